"""make verify-net: what it compares, and that the comparison finds errors."""

from math import inf, nan
from types import SimpleNamespace

import pytest
import torch
from support.typed import not_none

from cuffi import caffe_net
from cuffi.commands.net.compare import (
    compare,
    gradients_of,
    random_inputs,
    relative,
    runs_by,
    twin_parameters,
    vary,
)

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
    native, unedited = nets
    return {(d.what, d.name): d for d in compare(native, unedited, random_inputs(native, torch.float32))}


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


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [
        (None, None, 0),
        (None, [0, 0], 0),
        ([0, 0], None, 0),
        (None, [0, 1], inf),
        ([1, 0], None, inf),
        ([1, 2], [1, 2, 3], inf),
        ([], [], 0),
        ([[1, 2]], [1, 4], 0.5),
        ([1, 5], [1, -4], 2.25),
        ([inf, 1], [inf, 2], 0.5),
        ([inf, 1], [-inf, 2], inf),
        ([nan, 1], [nan, 2], 0.5),
        ([nan, 1], [3, 2], inf),
        ([3, 1], [nan, 2], inf),
        ([nan, nan], [nan, nan], 0),
        ([inf, 3], [inf, inf], inf),
        ([1e-13, 0], [0, 0], 0.1),
    ],
)
def test_relative(a, b, error):
    a, b = (None if x is None else torch.tensor(x) for x in (a, b))
    assert relative(a, b) == pytest.approx(error, rel=1e-6)


LABELLED = """input: "x" input_shape {{ dim: 40 dim: 5 }} input: "y" input_shape {{ dim: {rows} }}
layer {{ name: "l" type: "{type}" bottom: "x" bottom: "y" top: "l" {more} }}"""


@pytest.mark.parametrize(
    ("type", "more", "rows", "count"),
    [
        ("SoftmaxWithLoss", "", "40", 5),
        ("Accuracy", "", "40", 5),
        ("HingeLoss", "", "40", 5),
        ("MultinomialLogisticLoss", "", "40", 5),
        ("SigmoidCrossEntropyLoss", "", "40 dim: 5", 2),
        ("EuclideanLoss", "", "40 dim: 5", 0),
    ],
)
def test_labels(type, more, rows, count):
    net = caffe_net(LABELLED.format(type=type, more=more, rows=rows))
    labels = random_inputs(net, torch.float32)["y"]
    assert (set(labels.unique().tolist()) == set(range(count))) if count else labels.min() < 0


def test_the_fewest_of_several_readers_labels():
    """A word's number is below the rows of its table, too."""
    text = """input: "a" input_shape { dim: 60 dim: 3 } input: "b" input_shape { dim: 60 dim: 7 }
    input: "y" input_shape { dim: 60 } input: "word" input_shape { dim: 60 }
    layer { name: "one" type: "SoftmaxWithLoss" bottom: "b" bottom: "y" top: "one" }
    layer { name: "two" type: "SoftmaxWithLoss" bottom: "a" bottom: "y" top: "two" }
    layer { name: "e" type: "Embed" bottom: "word" top: "e" embed_param { num_output: 2 input_dim: 4 } }"""
    inputs = random_inputs(caffe_net(text), torch.float32)
    assert set(inputs["y"].tolist()) == {0, 1, 2} and set(inputs["word"].tolist()) == {0, 1, 2, 3}
    assert torch.equal(inputs["a"], random_inputs(caffe_net(text), torch.float32)["a"])


def test_labels_that_the_net_shrinks_and_slices_first():
    text = """input: "x" input_shape { dim: 9 dim: 5 dim: 4 dim: 4 }
    input: "y" input_shape { dim: 9 dim: 2 dim: 8 dim: 8 }
    layer { name: "s" type: "Slice" bottom: "y" top: "s" top: "rest" }
    layer { name: "p" type: "Pooling" bottom: "s" top: "p" pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: "l" type: "SoftmaxWithLoss" bottom: "x" bottom: "p" top: "l" }
    layer { name: "e" type: "Silence" bottom: "rest" }"""
    inputs = random_inputs(caffe_net(text), torch.float32)
    assert set(inputs["y"].unique().tolist()) == {0, 1, 2, 3, 4} and inputs["x"].min() < 0


def test_who_runs_a_layer():
    net = caffe_net(TEXT)
    assert runs_by(net.c) == "torch"
    assert runs_by(SimpleNamespace(layer=SimpleNamespace(name="mine"))) == "ported (mine)"


def test_dropout_is_left_out_while_nets_are_compared():
    """Afterwards the nets drop values again."""
    drop = 'layer { name: "d" type: "Dropout" bottom: "score" top: "d" }'
    torch.manual_seed(0)
    nets = [caffe_net(f"{TEXT}\n{drop}").train() for _ in range(2)]
    vary(nets[0])
    twin_parameters(*nets)
    nets[1].d.eval()
    differences = found(nets)
    assert all(d.error == 0 for d in differences.values()) and ("blob", "d") in differences
    assert nets[0].d.training and not nets[1].d.training


def test_gradients_of_a_loss_or_of_the_outputs():
    """Each trained parameter; none if gradients are not requested."""
    loss = 'input: "y" input_shape { dim: 2 }\n'
    loss += 'layer { name: "l" type: "SoftmaxWithLoss" bottom: "score" bottom: "y" top: "l" }'
    for text in (TEXT, f"{TEXT}\n{loss}"):
        torch.manual_seed(0)
        net = caffe_net(text, phase="TRAIN")
        vary(net)
        net.score.bias.requires_grad_(False)
        inputs = random_inputs(net, torch.float32)
        net.c.weight.grad = torch.full_like(net.c.weight, 1e9)
        blobs = net(**inputs, blobs=True)
        gradients = gradients_of(net, blobs)
        assert set(gradients) == {"c[0]", "c[1]", "score[0]"}
        top = net(**inputs) if text != TEXT else None
        if top is not None:
            wanted = torch.autograd.grad(top["l"] if isinstance(top, dict) else top, net.score.weight)[0]
            torch.testing.assert_close(gradients["score[0]"], wanted)
        assert not_none(gradients["c[0]"]).abs().max() < 1e6
        for parameter in net.parameters():
            parameter.requires_grad_(False)
        assert gradients_of(net, net(**inputs, blobs=True)) == {}


def test_an_input_without_a_shape_is_given_none():
    net = caffe_net(TEXT)
    net.phase.shapes.pop("data")
    assert random_inputs(net, torch.float32) == {}
