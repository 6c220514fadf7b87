"""Building a file's layers: fields, types, parameters, and errors."""

import copy
import re

import pytest
import torch
from support.nets import INPUT, conv, images

from cuffi import CaffeValueError, caffe_net


def test_lr_mult_0_and_propagate_down():
    text = (
        INPUT
        + conv("a", "data", more="param { lr_mult: 0 } param { lr_mult: 0 }")
        + conv("b", "a", more="propagate_down: false")
    )
    net = caffe_net(text)
    assert [n for n, p in net.named_parameters() if p.requires_grad] == ["b.weight", "b.bias"]
    x = images().requires_grad_()
    net(x).sum().backward()
    assert x.grad is None and net.b.weight.grad is not None


def test_parameters_of_one_name_are_one_parameter():
    text = INPUT + 'input: "other" input_shape { dim: 2 dim: 3 dim: 8 dim: 8 }\n'
    shared = 'param { name: "w" } param { name: "b" }'
    net = caffe_net(text + conv("left", "data", more=shared) + conv("right", "other", more=shared))
    assert net.left.weight is net.right.weight and len(list(net.parameters())) == 2
    x = images()
    net(x, x)["left"].sum().backward()
    once = net.left.weight.grad.clone()
    net.zero_grad()
    sum(v.sum() for v in net(x, x).values()).backward()
    torch.testing.assert_close(net.right.weight.grad, 2 * once)
    with pytest.raises(
        CaffeValueError, match=r"'right'.*shares 'w' with 'left'.*\[5, 3, 3, 3\], \[4, 3, 3, 3\]\n.*\[4\]$"
    ):
        caffe_net(text + conv("left", "data", more=shared) + conv("right", "other", more=shared, outputs=5))


def test_layers_of_one_name_in_training_and_testing_share_their_parameters():
    text = (
        INPUT
        + conv("c", "data", more="include { phase: TRAIN }")
        + conv("c", "data", more="include { phase: TEST }")
    )
    net = caffe_net(text)
    assert len(list(net.parameters())) == 2
    assert torch.equal(net.eval()(images()), net.train()(images()))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Poling", "; did you mean 'Pooling'?"),
        ("relu", "; did you mean 'ReLU'?"),
        ("ROIPoolng", "; did you mean 'ROIPooling'?"),
        ("ROIWarping", ""),
        ("Transpose", ""),
    ],
)
def test_types_that_are_misspelt(name, said):
    """A fork's type is not a misspelling, even if it is similar to a known one."""
    with pytest.raises(CaffeValueError, match=re.escape(f"({name}): no such layer here{said}\n")):
        caffe_net(INPUT + f'layer {{ name: "x" type: "{name}" bottom: "data" top: "x" }}')


def test_fields_of_forks_are_understood_or_named():
    pool = 'layer { name: "p" type: "Pooling" bottom: "data" top: "p" pooling_param { kernel_size: 3 stride: 2 %s } }'
    assert caffe_net(INPUT + pool % "").shapes["p"] == (2, 3, 4, 4)
    assert caffe_net(INPUT + pool % "ceil_mode: false").shapes["p"] == (2, 3, 3, 3)
    with pytest.raises(CaffeValueError, match=r"pooling_param\.ceil_mode: expected true or false, got flase"):
        caffe_net(INPUT + pool % "ceil_mode: flase")
    with pytest.raises(
        CaffeValueError, match=r"line 2: pooling_param\.ceil_mode: expected a value, got a message"
    ):
        caffe_net(INPUT + pool % "ceil_mode { }")
    with pytest.raises(
        CaffeValueError, match=r"line 2: pooling_param\.pad_l is a field that stock Caffe does not have"
    ):
        caffe_net(INPUT + pool % "pad_l: 1")
    with pytest.raises(CaffeValueError, match="not have; did you mean 'kernel_size'"):
        caffe_net(INPUT + pool % "kernal_size: 1")
    net = caffe_net(INPUT + pool % "pad_l: 1", ignore="pooling_param.pad_l")
    assert "pad_l" in net.notes[0]


def test_who_computes_is_not_what_is_computed():
    said = 'engine: "MKLDNN" '
    assert caffe_net(INPUT + conv("c", "data", more=said).replace("pad: 1", "pad: 1 engine: MKL2017")).shapes


def test_all_that_stands_in_the_way_is_said_at_once():
    text = (
        INPUT
        + conv("a", "nowhere")
        + conv("b", "data", more="convolution_param { group: 5 }").replace("group: 5 }", "}")
    )
    text += """layer { name: "x" type: "NoSuchLayer" bottom: "data" top: "x" }
    layer { name: "y" type: "Python" bottom: "data" top: "y" python_param { module: "rpn" layer: "Proposal" } }
    layer { name: "z" type: "Concat" bottom: "data" bottom: "flat" top: "z" }
    layer { name: "flat" type: "Flatten" bottom: "data" top: "flat" }
    layer { name: "again" type: "Flatten" bottom: "data" top: "flat" }
    layer { name: "lrn" type: "LRN" bottom: "data" top: "lrn" lrn_param { local_size: 4 } include { phase: TEST } }"""
    with pytest.raises(CaffeValueError) as error:
        caffe_net(text)
    said = str(error.value)
    for words in (
        "'a' (Convolution): bottom 'nowhere' is made by no layer",
        "'b' (Convolution)",
        "'x' (NoSuchLayer): no such layer here",
        "'y' (Python): runs Python code, rpn.Proposal",
        "'z' (Concat): bottom 'flat' is made later, by 'flat' in line",
        "'again' (Flatten): top 'flat' is made by another layer, too",
        "'lrn' (LRN): local_size: expected an odd number, got 4 (only in phase TEST)",
        "make port CAFFE=/path/to/the/fork TYPE=NoSuchLayer",
    ):
        assert words in said, said


def test_a_filler_that_is_none_is_named_with_its_layer():
    with pytest.raises(CaffeValueError, match="c: weight: filler: no type 'diagonals'"):
        caffe_net(INPUT + conv("c", "data").replace("gaussian", "diagonals"))


def test_a_layer_in_place_may_change_its_tops_diff(shared_layers):
    """In Caffe it is the bottom's diff: Backward multiplies it. Before, the gradient was zero without an error."""
    text = """input: "x" input_shape { dim: 2 dim: 3 }
    layer { name: "a" type: "Power" bottom: "x" top: "y" power_param { scale: 2 } }
    layer { name: "b" type: "SquareTurned" bottom: "y" top: "y" }
    layer { name: "c" type: "Power" bottom: "y" top: "z" power_param { power: 2 } }"""
    net = caffe_net(text, layers=[shared_layers.build_layers("caffe_crooked")])
    for _ in range(3):
        x, other = (torch.randn(2, 3, requires_grad=True) for _ in range(2))
        z, _ = net(x), net(other)
        diff = torch.randn(2, 3)
        z.backward(diff, retain_graph=True)
        torch.testing.assert_close(x.grad, 72 * x.detach() * diff)  # z = 36 x^2
        z.backward(diff)
        torch.testing.assert_close(x.grad, 144 * x.detach() * diff)


IN_PLACE = """input: "x" input_shape { dim: 2 dim: 3 }
layer { name: "a" type: "Power" bottom: "x" top: "y" power_param { scale: 2 } }
layer { name: "b" type: "SquareInPlace" bottom: "y" top: "y" }
layer { name: "c" type: "Power" bottom: "y" top: "z" power_param { power: 2 } }
layer { name: "d" type: "SquareInPlace" bottom: "x" top: "x" }"""


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_a_layer_that_demands_to_be_in_place(shared_layers, dtype):
    """It computes on a copy: an input that requires a gradient does not change."""
    net = caffe_net(IN_PLACE, layers=[shared_layers.build_layers("caffe_crooked")])
    assert net.b.definition.in_place and net.shapes["x"] == (2, 3)
    for call in (net, copy.deepcopy(net), torch.compile(net, backend="aot_eager")):
        x, diff = torch.randn(2, 3, dtype=dtype, requires_grad=True), torch.randn(2, 3, dtype=dtype)
        before = x.detach().clone()
        tops = call(x)
        torch.testing.assert_close(tops["z"], 36 * x**2)
        torch.testing.assert_close(tops["x"], 3 * x)
        tops["z"].backward(diff)
        torch.testing.assert_close(x.grad, 72 * x.detach() * diff)
        assert torch.equal(x, before)
    with torch.autocast("cpu", torch.bfloat16):
        half = before.bfloat16()
        torch.testing.assert_close(net(half)["x"], 3 * half.float())


def test_a_layer_that_fails_in_place_too_says_what_it_said_first(shared_layers):
    text = IN_PLACE.replace(
        '"SquareInPlace" bottom: "x" top: "x"', '"SquareOfSeventeen" bottom: "x" top: "x"'
    )
    with pytest.raises(CaffeValueError, match=r"line 5: 'd' .*channels of the famous paper"):
        caffe_net(text, layers=[shared_layers.build_layers("caffe_crooked")])
