"""DummyData, and data layers whose files are absent."""

import numpy as np
import pytest
from support.pycaffe import assert_close

from cuffi import CaffeValueError, caffe


def test_dummy_data_is_filled_and_data_without_files_is_what_was_written():
    text = """
    layer { name: "d" type: "DummyData" top: "d" dummy_data_param { shape { dim: 2 dim: 3 } data_filler { value: 4 } } }
    layer { name: "r" type: "DummyData" top: "r"
      dummy_data_param { shape { dim: 2 dim: 3 } data_filler { type: "gaussian" } } }
    layer { name: "l" type: "Data" top: "l"
      data_param { source: "absent" batch_size: 2 backend: LMDB } transform_param { crop_size: 1 } }
    layer { name: "f" type: "Flatten" bottom: "l" top: "f" }
    layer { name: "sum" type: "Eltwise" bottom: "d" bottom: "r" bottom: "f" top: "sum" }
    """
    net = caffe.Net(text, caffe.TEST)
    with pytest.raises(CaffeValueError, match="absent"):
        net.forward()
    net.blobs["l"].data[...] = 100
    first = net.forward()["sum"].copy()
    assert_close(first - net.blobs["r"].data, np.full((2, 3), 104))
    assert (net.forward()["sum"] != first).all()
