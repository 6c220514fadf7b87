"""caffe.coord_map: crops by geometry, compared with the tops that torch computes."""

import numpy as np
import pytest

from cuffi import caffe
from cuffi.caffe import NetSpec
from cuffi.caffe import layers as L
from cuffi.caffe import params as P

coord_map_from_to, crop = caffe.coord_map.coord_map_from_to, caffe.coord_map.crop


def test_the_offset_is_where_the_image_lies_in_the_upsampled_score():
    """One bright pixel of the image stays in place through padding, pooling and a symmetric deconvolution."""
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, 20, 24]))
    n.conv = L.Convolution(
        n.data, kernel_size=3, pad=9, num_output=1, weight_filler=dict(type="constant", value=1)
    )
    n.relu = L.ReLU(n.conv, in_place=True)
    n.pool = L.Pooling(n.relu, pool=P.Pooling.AVE, kernel_size=2, stride=2)
    n.up = L.Deconvolution(
        n.pool,
        convolution_param=dict(num_output=1, kernel_size=4, stride=2, weight_filler=dict(type="bilinear")),
    )
    n.score = crop(n.up, n.data)
    net = caffe.Net(str(n.to_proto()), caffe.TEST)
    net.blobs["data"].data[0, 0, 10:12, 4:6] = 1
    score = net.forward()["score"][0, 0]
    assert score.shape == (20, 24)
    rows, columns = score.sum(1), score.sum(0)
    assert (rows @ np.arange(20) / rows.sum(), columns @ np.arange(24) / columns.sum()) == pytest.approx(
        (10.5, 4.5)
    )


def test_maps_compose_over_sides_that_differ_and_crops():
    n = NetSpec()
    n.data, n.label = L.Python(module="m", layer="A", ntop=2)
    n.conv = L.Convolution(n.data, kernel_h=5, kernel_w=3, stride_h=2, stride_w=1, pad=[2, 0], num_output=1)
    n.wide = L.Convolution(n.conv, kernel_size=3, dilation=2, num_output=1)
    n.cut = L.Crop(n.wide, n.conv, crop_param=dict(axis=2, offset=[3]))
    # Rows: of conv 2 y + 2 - 2, of wide y + 2, of cut y + 3; columns: x + 1, x + 2, x + 3.
    for tops, expected in (((n.cut, n.data), ([2, 1], [10, 6])), ((n.data, n.cut), ([0.5, 1], [-5, -6]))):
        axis, *found = coord_map_from_to(*tops)
        assert axis == 1 and [values.tolist() for values in found] == list(expected)
    n.deep = L.Convolution(n.label, kernel_size=[3, 1, 5], stride=2, num_output=1)
    assert [values.tolist() for values in coord_map_from_to(n.deep, n.label)[1:]] == [[2, 2, 2], [1, 0, 2]]
    n.even = L.Pooling(n.label, kernel_size=2, stride=2)
    assert coord_map_from_to(n.even, n.label) == (1, 2, 0.5)  # numbers, where all axes are alike


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda n: (n.pool, n.data),
            "expected a scale of 1 and a shift that is whole and at most 0, got 2 and 1/2",
        ),
        (lambda n: (n.small, n.data), "got 1 and 1"),
        (
            lambda n: (n.pool, L.Input(shape=dict(dim=[1, 1, 4, 4]))),
            "no top that both tops are computed from",
        ),
        (lambda n: (L.InnerProduct(n.data, num_output=1), n.data), "no top that both tops are computed from"),
    ],
)
def test_what_cannot_be_cropped(make, said):
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, 8, 8]))
    n.pool = L.Pooling(n.data, kernel_size=2, stride=2)
    n.small = L.Convolution(n.data, kernel_size=3, num_output=1)
    kind = RuntimeError if "no top" in said else AssertionError  # pycaffe's kinds
    with pytest.raises(kind, match=said):
        crop(*make(n))
