"""make verify-net: what it compares, and that a comparison says something."""

import torch

from layers import caffe_net
from tools.net.compare import compare, random_inputs, relative, twin_parameters, vary

# As FCN's files are: the last weights have no filler, so they are zero, and so are all gradients.
TEXT = """input: "data" input_shape { dim: 2 dim: 3 dim: 6 dim: 6 }
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "n" type: "BatchNorm" bottom: "c" top: "n" }
layer { name: "score" type: "InnerProduct" bottom: "n" top: "score" inner_product_param { num_output: 2 } }"""


def pair(varied):
    torch.manual_seed(0)
    nets = [caffe_net(TEXT, phase="TRAIN") for _ in range(2)]
    if varied:
        vary(nets[0])
    twin_parameters(*nets)
    return nets


def found(nets):
    return {(d.what, d.name): d for d in compare(*nets, random_inputs(nets[0], torch.float32))}


def test_what_is_zero_in_both_is_said_to_be_so():
    nothing = {key for key, d in found(pair(varied=False)).items() if d.nothing}
    assert nothing == {("blob", "score"), ("gradient", "c[0]"), ("gradient", "c[1]")}


def test_a_net_without_weights_gets_some_and_each_difference_is_found():
    nets = pair(varied=True)
    assert nets[0].n.factor.item() > 0
    same = found(nets)
    assert len(same) == 7 and all(d.error == 0 for d in same.values())
    # The norm takes away what the bias before it adds; its gradient is what rounding leaves.
    assert {key for key, d in same.items() if d.nothing} <= {("gradient", "c[1]")}
    with torch.no_grad():
        nets[1].score.weight[0, 0] += 1
    wrong = {key for key, d in found(nets).items() if d.error > 1e-3}
    assert {("blob", "score"), ("gradient", "c[0]")} <= wrong and ("blob", "n") not in wrong


def test_inputs_are_what_the_layers_that_read_them_take():
    text = """input: "data" input_shape { dim: 1 dim: 8 dim: 12 dim: 20 } input: "rois" input_shape { dim: 50 dim: 5 }
    input: "x" input_shape { dim: 3 dim: 2 dim: 4 } input: "cont" input_shape { dim: 6 }
    layer { name: "p" type: "PSROIPooling" bottom: "data" bottom: "rois" top: "p"
      psroi_pooling_param { spatial_scale: 1 output_dim: 2 group_size: 2 } }
    layer { name: "r" type: "Reshape" bottom: "cont" top: "r" reshape_param { shape { dim: 3 dim: 2 } } }
    layer { name: "l" type: "LSTM" bottom: "x" bottom: "r" top: "l" recurrent_param { num_output: 2 } }"""
    inputs = random_inputs(caffe_net(text), torch.float64)
    item, left, top, right, bottom = inputs["rois"].T
    assert not item.any() and (left <= right).all() and (top <= bottom).all() and left.min() >= 0
    assert 12 <= right.max() < 20 and 7 <= bottom.max() < 12
    assert set(inputs["cont"].unique().tolist()) == {0, 1}


def test_what_rounding_leaves_is_no_difference():
    a, b = torch.tensor([3e-15, -2e-15]), torch.tensor([1e-15, 4e-15])
    assert relative(a * 1e10, b * 1e10) > 1 and relative(a * 1e10, b * 1e10, least=1e3) < 1e-3
