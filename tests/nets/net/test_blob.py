"""A blob for Caffe's Python code."""

import numpy as np
import pytest

from cuffi.base import CaffeTypeError, CaffeValueError
from cuffi.nets.net.blob import Blob, BlobVec, Layer, Phase


def test_a_reshape_keeps_the_values_in_their_order():
    blob = Blob(np.arange(6, dtype=np.float32).reshape(2, 3))
    blob.reshape(3, 1, 1.0)
    assert blob.data.tolist() == [[[0]], [[1]], [[2]]] and blob.shape == (3, 1, 1) and blob.count == 3
    blob.reshape(5)
    assert blob.data.tolist() == [0, 1, 2, 0, 0]
    same = blob.data
    blob.reshape(5)
    assert blob.data is same


def test_the_diff_follows_the_shape_of_the_data():
    blob = Blob(np.ones((2, 2), np.float64))
    blob.diff[...] = 3
    assert blob.diff.tolist() == [[3, 3], [3, 3]] and blob.diff.dtype == np.float64
    blob.reshape(3)
    assert blob.diff.tolist() == [0, 0, 0]


def test_axes_by_name_are_one_where_there_are_none():
    blob = Blob(np.zeros((4, 7), np.float32))
    assert (blob.num, blob.channels, blob.height, blob.width) == (4, 7, 1, 1)


def test_arrays_are_written_to_and_not_replaced():
    blob = Blob(np.zeros(2, np.float32))
    blob.data += 1
    assert blob.data.tolist() == [1, 1]
    with pytest.raises(CaffeTypeError, match=r"blob\.data cannot be replaced"):
        blob.data = np.zeros(2, np.float32)
    with pytest.raises(CaffeTypeError, match=r"blob\.diff cannot be replaced"):
        blob.diff = [1, 2]


@pytest.mark.parametrize(
    ("size", "error"), [(-1, CaffeValueError), (1 << 31, CaffeValueError), ("3", CaffeTypeError)]
)
def test_sizes_that_are_none(size, error):
    with pytest.raises(error, match=r"blob\.reshape: "):
        Blob().reshape(2, size)


def test_a_layer_begins_without_parameters_and_in_testing():
    layer = Layer(None)
    layer.param_str = "{}"
    layer.blobs.add_blob(2, 3)
    assert isinstance(layer.blobs, BlobVec) and layer.blobs[0].data.tolist() == [[0] * 3] * 2
    assert (str(layer.phase), layer.phase == 1, layer.param_str_) == ("TEST", True, "{}")
    assert repr(Phase(0)) == "TRAIN"
