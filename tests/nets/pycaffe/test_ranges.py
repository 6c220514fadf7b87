"""Ranges of layers run on the blobs as they are."""

import pytest
import torch
from support.pycaffe import assert_close, data

from cuffi import CaffeValueError, caffe


def test_a_range_of_layers_goes_on_from_the_blobs(net):
    x = data(2, 3, 6, 6)
    assert list(net.forward(data=x, end="pool")) == ["pool"]
    net.blobs["pool"].data[...] = 1
    out = net.forward(start="ip")["prob"]
    weight, bias = (p.data for p in net.params["ip"])
    assert_close(out, torch.from_numpy(weight.sum(1) + bias).softmax(0).expand(2, 5))
    with pytest.raises(CaffeValueError, match="end: no layer 'pol'; did you mean 'pool'"):
        net.forward(end="pol")


PRODUCT = ' layer { name: "scale" type: "Scale" bottom: "x" top: "y" scale_param { axis: 0 num_axes: 0 } }'


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])
def test_a_layer_that_overwrites_an_input_has_read_what_was_written(phase):
    text = 'input: "x" input_shape { dim: 3 } '
    text += 'layer { name: "p" type: "Power" bottom: "x" top: "x" power_param { power: 2 } }'
    net = caffe.Net("force_backward: true " + text if phase == caffe.TRAIN else text + PRODUCT, phase)
    net.blobs["x"].data[...] = [1, 2, 3]
    out = net.forward()
    assert_close(net.blobs["x"].data, [1, 4, 9])
    net.blobs[next(iter(out))].diff[...] = 1
    net.backward()
    if phase == caffe.TRAIN:
        assert_close(net.blobs["x"].diff, [2, 4, 6])
    else:
        assert_close(net.params["scale"][0].diff, [14])
