"""Mistakes with names, labels and means: the words name the thing, and the next step."""

import numpy as np
import pytest
import torch

from cuffi import CaffeError, CaffeRuntimeError, CaffeValueError, caffe, caffe_net

NET = """name: "n" input: "data" input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "ip" type: "InnerProduct" bottom: "conv1" top: "ip" inner_product_param { num_output: 5 } }
"""
LOSS = NET.replace("layer {", 'input: "label" input_shape { dim: 1 }\nlayer {', 1)
LOSS += 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }'


@pytest.mark.parametrize(
    "attribute, name, said",
    [
        (
            "blobs",
            "dat",
            "net.blobs['dat']: there is no such name; did you mean 'data'? There are: data, conv1, ip",
        ),
        ("blobs", "zzz", "net.blobs['zzz']: there is no such name. There are: data, conv1, ip"),
        (
            "params",
            "conv",
            "net.params['conv']: there is no such name; did you mean 'conv1'? There are: conv1, ip",
        ),
        ("params", 0, "net.params[0]: there is no such name. There are: conv1, ip"),
    ],
)
def test_a_name_that_a_net_does_not_have(attribute, name, said):
    """It is a KeyError, as a dict's own, and `in` and `get` ask without one."""
    names = getattr(caffe.Net(NET, caffe.TEST), attribute)
    with pytest.raises(KeyError) as error:
        names[name]
    assert str(error.value) == said and isinstance(error.value, CaffeError)
    assert name not in names and names.get(name) is None


@pytest.mark.parametrize("label", [7, -2, 5])
def test_a_label_that_is_no_class(label):
    with pytest.raises(
        CaffeRuntimeError,
        match=rf"layer 'loss' \(SoftmaxWithLoss\): Target {label} is out of bounds\. It is a label in 'label': "
        r"labels are classes, of which 'ip' has 5, counted from 0.*ignore_label",
    ):
        caffe_net(LOSS)(data=torch.zeros(1, 3, 8, 8), label=torch.tensor([float(label)]))


@pytest.mark.parametrize(
    "mean, said",
    [
        (np.zeros(4), "A mean of 4 values for 'data' of 3 channels"),
        (np.zeros((4, 9, 9)), "A mean of 4 channels for 'data' of 3"),
        (np.zeros((1, 3, 8, 8)), r"expected an array \[K\] or \[K, H, W\], got \[1, 3, 8, 8\]"),
        ("mean.binaryproto", "got 'mean.binaryproto'. A .binaryproto is read by"),
    ],
)
def test_a_mean_of_the_wrong_kind(mean, said):
    with pytest.raises(CaffeValueError, match=said):
        caffe.io.Transformer({"data": (1, 3, 8, 8)}).set_mean("data", mean)


def test_weights_that_are_cut_off(tmp_path):
    path = tmp_path / "w.caffemodel"
    caffe.Net(NET, caffe.TEST).save(str(path))
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(CaffeValueError, match=r"w\.caffemodel: .*Is it cut off\? Download it again"):
        caffe_net(NET, path)
