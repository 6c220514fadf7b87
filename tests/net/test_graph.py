"""The graph of a net: formats, phases, in place, shared parameters, inputs, outputs, and what is wrong with a file."""

import copy
import pickle
import re
from pathlib import Path

import pytest
import torch

from layers import CaffeTypeError, CaffeValueError, caffe_net
from layers._net.needs import needs
from layers._net.registry import Folders

INPUT = 'input: "data" input_shape { dim: 2 dim: 3 dim: 8 dim: 8 }\n'


def conv(name, bottom, top=None, more="", outputs=4):
    return (
        f'layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{top or name}" {more}\n'
        f"  convolution_param {{ num_output: {outputs} kernel_size: 3 pad: 1 weight_filler {{ type: "
        f'"gaussian" std: 0.1 }} }} }}\n'
    )


def images(*shape):
    return torch.randn(shape or (2, 3, 8, 8), generator=torch.Generator().manual_seed(0))


def test_submodules_have_the_layers_names():
    net = caffe_net(INPUT + conv("conv1", "data") + conv("a/b.c", "conv1"))
    assert list(net.state_dict()) == ["conv1.weight", "conv1.bias", "a/b_c.weight", "a/b_c.bias"]
    assert net.layers["a/b.c"] is net.get_submodule("a/b_c")
    assert net.inputs == ["data"] and net.outputs == ["a/b.c"]


def test_a_layer_may_have_the_name_of_something_that_a_module_has():
    net = caffe_net(INPUT + conv("forward", "data") + conv("training", "forward") + conv("path", "training"))
    assert net(images()).shape == (2, 4, 8, 8)
    assert set(net.layers) == {"forward", "training", "path"}
    assert caffe_net(INPUT + conv("forward", "data")).load_state_dict(
        caffe_net(INPUT + conv("forward", "data")).state_dict()
    )


def test_inputs_by_name_or_place_and_of_any_batch_and_size():
    net = caffe_net(INPUT + conv("conv1", "data"))
    x = images(5, 3, 11, 6)
    assert torch.equal(net(x), net(data=x)) and net(x).shape == (5, 4, 11, 6)
    for wrong, said in (
        (lambda: net(image=x), "no input 'image'. There are: data"),
        (lambda: net(x, data=x), "input 'data' came twice"),
        (lambda: net(), "input 'data' is missing; conv1 needs it"),
        (lambda: net(x, x), "2 inputs came; the net has data"),
        (lambda: net([1]), "input 'data': expected a tensor, got list"),
    ):
        with pytest.raises(CaffeTypeError, match=said):
            wrong()


def test_in_place_layers_do_not_change_what_others_have_read():
    text = (
        INPUT + conv("conv1", "data") + 'layer { name: "relu" type: "ReLU" bottom: "conv1" top: "conv1" }\n'
    )
    text += 'layer { name: "down" type: "Power" bottom: "conv1" top: "conv1" power_param { shift: -1 } }\n'
    net, x = caffe_net(text), images()
    before = net.conv1(x)
    assert torch.equal(net(x), before.relu() - 1)
    assert list(net(x, blobs=True)) == ["data", "conv1"]
    assert torch.equal(net(x, blobs=["conv1"])["conv1"], before.relu() - 1)


def test_end_computes_no_more_than_is_needed():
    net, x = (
        caffe_net(INPUT + conv("conv1", "data") + conv("conv2", "conv1") + conv("conv3", "conv1")),
        images(),
    )
    assert torch.equal(net(x, end="conv2"), net.conv2(net.conv1(x)))
    assert [call.key for call in net.make_schedule(False, "conv2").calls] == ["conv1", "conv2"]
    assert list(net(x)) == ["conv2", "conv3"]
    with pytest.raises(CaffeValueError, match="no blob or layer 'conv9'"):
        net(x, end="conv9")


TRAIN_VAL = """
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { crop_size: 8 mean_value: 1 mean_value: 2 mean_value: 3 } data_param { batch_size: 4 source: "x" } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { crop_size: 8 } data_param { batch_size: 2 source: "x" } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 5
  weight_filler { type: "xavier" } } param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 } }
layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" loss_weight: 0.5 }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
"""


def test_train_and_eval_are_caffes_phases():
    net, x, label = caffe_net(TRAIN_VAL), images(), torch.tensor([1, 3])
    assert not net.training and net.shapes["data"] == (2, 3, 8, 8) and net.outputs == ["accuracy", "loss"]
    assert torch.equal(net(x, label)["accuracy"], net(data=x, label=label)["accuracy"])
    net.train()
    assert net.shapes["data"] == (4, 3, 8, 8) and net.outputs == ["loss"]
    assert net(x, label).shape == ()
    with pytest.raises(TypeError, match="input 'label' is missing; loss needs it"):
        net(x)
    assert net(x, end="ip").shape == (2, 5)


def test_a_net_whose_data_are_of_one_phase_alone_has_its_inputs_in_both():
    text = """layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
      transform_param { crop_size: 8 } data_param { batch_size: 2 source: "x" } }\n""" + conv("c", "data")
    net = caffe_net(text)
    assert net.inputs == ["data"] and net(images()).shape == (2, 4, 8, 8)
    assert net.train().inputs == ["data", "label"]


def test_the_loss_is_weighted():
    net, x, label = caffe_net(TRAIN_VAL), images(), torch.tensor([1, 3])
    outputs = net(x, label)
    assert torch.equal(net.loss(outputs), outputs["loss"] * 0.5)
    with pytest.raises(CaffeValueError, match="makes a loss"):
        caffe_net(INPUT + conv("c", "data")).loss(x)


def test_losses_are_added_up():
    """GoogLeNet does this: its inner classifiers count 0.3."""
    again = (
        'layer { name: "again" type: "EuclideanLoss" bottom: "a" bottom: "b" top: "again" loss_weight: 0.25 }'
    )
    text = f"""input: "a" input_shape {{ dim: 2 dim: 3 }} input: "b" input_shape {{ dim: 2 dim: 3 }} {again}
      layer {{ name: "first" type: "EuclideanLoss" bottom: "a" bottom: "b" top: "first" }}
      layer {{ name: "last" type: "Reduction" bottom: "a" top: "last" loss_weight: 2 }}"""
    net, a, b = caffe_net(text, train=True), torch.rand(2, 3), torch.rand(2, 3)
    distance = ((a - b) ** 2).sum() / 4
    torch.testing.assert_close(net.loss(net(a, b)), 1.25 * distance + 2 * a.sum())


def test_parameter_groups_have_the_multipliers():
    net = caffe_net(TRAIN_VAL)
    groups = net.parameter_groups(0.1, 0.01)
    assert [(g["lr"], g["weight_decay"], len(g["params"])) for g in groups] == [(0.1, 0.01, 1), (0.2, 0.0, 1)]


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


def test_statistics_of_training_are_those_of_testing_after_a_move_too():
    """torch's own `to` and `double` give each module a buffer of its own."""
    bn = 'layer { name: "bn" type: "BatchNorm" bottom: "data" top: "n" include { phase: %s } }'
    net = caffe_net(INPUT + bn % "TRAIN" + bn % "TEST").double()
    net.train()(images().double())
    trained, tested = (net.eval().layers["bn"], net.train().layers["bn"])
    assert trained is not tested and trained.mean is tested.mean and tested.factor == 1


def test_formats_v1_and_v0():
    v1 = (
        INPUT
        + """layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" blobs_lr: 1 blobs_lr: 0 weight_decay: 1
      convolution_param { num_output: 4 kernel_size: 3 } }
    layers { name: "r" type: RELU bottom: "c" top: "c" }"""
    )
    net = caffe_net(v1)
    assert [p.requires_grad for p in net.parameters()] == [True, False]
    assert net(images()).shape == (2, 4, 6, 6) and (net(images()) >= 0).all()
    v0 = INPUT.replace(
        "input_shape { dim: 2 dim: 3 dim: 8 dim: 8 }", "input_dim: 2 input_dim: 3 input_dim: 8 input_dim: 8"
    )
    v0 += """layers { layer { name: "p" type: "padding" pad: 2 } bottom: "data" top: "p" }
    layers { layer { name: "c" type: "conv" num_output: 4 kernelsize: 3 stride: 2 weight_filler { type: "xavier" } }
      bottom: "p" top: "c" }
    layers { layer { name: "m" type: "pool" pool: MAX kernelsize: 2 } bottom: "c" top: "m" }
    layers { layer { name: "i" type: "innerproduct" num_output: 7 biasterm: false } bottom: "m" top: "i" }"""
    assert caffe_net(v0)(images()).shape == (2, 7)
    assert caffe_net(v0).c.pad == (2, 2)


def test_a_template_is_filled_in():
    text = INPUT.replace("dim: 8 dim: 8", "dim: $SIDE$ dim: $SIDE") + conv("c", "data")
    assert caffe_net(text, replace={"SIDE": 6}).shapes["c"] == (2, 4, 6, 6)
    with pytest.raises(CaffeValueError, match=r"a template: give replace=.*SIDE \(line 1\)"):
        caffe_net(text)


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
    """A fork's type is no slip, however like a known one it is."""
    with pytest.raises(CaffeValueError, match=re.escape(f"({name}): no such layer here{said}\n")):
        caffe_net(INPUT + f'layer {{ name: "x" type: "{name}" bottom: "data" top: "x" }}')


def test_fields_of_forks_are_understood_or_named():
    pool = 'layer { name: "p" type: "Pooling" bottom: "data" top: "p" pooling_param { kernel_size: 3 stride: 2 %s } }'
    assert caffe_net(INPUT + pool % "").shapes["p"] == (2, 3, 4, 4)
    assert caffe_net(INPUT + pool % "ceil_mode: false").shapes["p"] == (2, 3, 3, 3)
    with pytest.raises(CaffeValueError, match=r"pooling_param\.ceil_mode: expected true or false, got flase"):
        caffe_net(INPUT + pool % "ceil_mode: flase")
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


class Ported(torch.nn.Module):
    """What a ported layer is to a net."""

    type, folder, type_name, is_set_up = "Pooling", Path("pooling"), "Pooling", True

    def __init__(self, prototxt, bottom, top):
        super().__init__()
        self.prototxt = prototxt

    def top_shapes(self, *bottoms):
        return [(1, 2)]

    @classmethod
    def module_class(cls):
        return cls


def test_fields_of_forks_are_read_by_the_ported_layer_where_there_is_one(monkeypatch):
    text = INPUT + "".join(
        f'layer {{ name: "{name}" type: "Pooling" bottom: "data" top: "{name}" '
        f"pooling_param {{ kernel_size: 3 {said} }} }}\n"
        for name, said in (("of_fork", "pad_l: 1"), ("of_stock", "ceil_mode: false"))
    )
    (field,) = needs(text)["Pooling"].fields
    assert (field.path, field.message) == ("pooling_param.pad_l", "PoolingParameter")
    assert needs(text, ignore=["pooling_param.pad_l"])["Pooling"].fields is None
    monkeypatch.setattr(Folders, "find", lambda self, name: Ported)
    net = caffe_net(text)
    assert "pad_l: 1" in net.of_fork.prototxt and "pad_l is not stock Caffe's" in net.notes[0]
    assert not isinstance(net.of_stock, Ported)
    assert not isinstance(caffe_net(text, ignore=["pooling_param.pad_l"]).of_fork, Ported)


@pytest.mark.parametrize("kind", ["Data", "ImageData", "HDF5Data", "AnnotatedData"])
@pytest.mark.parametrize("tops", ["data", "data label", "data clip", "data clip label"])
def test_the_second_blob_of_a_data_layer(kind, tops):
    """A label for each item, of the types that have no other, or by its name. Others are known when they come."""
    names = tops.split()
    text = "layer { name: 'd' type: '%s' %s data_param { batch_size: 4 } transform_param { crop_size: 5 } }"
    net = caffe_net(
        text % (kind, " ".join(f"top: '{name}'" for name in names))
        + "layer { name: 'f' type: 'Flatten' bottom: 'data' top: 'f' }"
    )
    assert net.inputs == names and net.shapes.pop("f") == (4, 75)
    assert net.shapes.pop("data") == (4, 3, 5, 5)
    known = len(names) > 1 and (kind in ("Data", "ImageData") or names[1] == "label")
    if kind == "AnnotatedData" and len(names) > 1:  # SSD's: rows of boxes, of all items together
        assert net.shapes == {names[1]: (1, 1, 1, 8)}
        return
    assert net.shapes == ({names[1]: (4,)} if known else {})


def test_a_path_may_be_a_string(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text(INPUT + conv("c", "data"))
    assert caffe_net(str(path)).shapes == caffe_net(path).shapes == caffe_net(path.read_text()).shapes


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


def test_an_error_of_a_call_names_the_layer_and_its_line():
    net = caffe_net(
        INPUT
        + 'layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"\n inner_product_param { num_output: 2 } }'
    )
    with pytest.raises(RuntimeError, match=r"line 2: layer 'ip' \(InnerProduct\)"):
        net(images(2, 3, 9, 9))


def test_a_net_is_copied_and_pickled():
    net, x = (
        caffe_net(INPUT + conv("a", "data") + 'layer { name: "n" type: "BatchNorm" bottom: "a" top: "n" }'),
        images(),
    )
    wanted = net(x)
    assert torch.equal(copy.deepcopy(net)(x), wanted)
    assert torch.equal(pickle.loads(pickle.dumps(net))(x), wanted)


def test_a_net_compiles_without_a_break():
    net, x = caffe_net(INPUT + conv("a", "data") + 'layer { name: "n" type: "BatchNorm" bottom: "a" top: "n" }\n'
        'layer { name: "s" type: "Scale" bottom: "n" top: "n" scale_param { bias_term: true } }'), images()  # fmt: skip
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(data=x), net(x))
    net.train()
    torch.testing.assert_close(compiled(x), net(x))


def test_a_net_exports():
    net, x = (
        caffe_net(
            INPUT
            + conv("a", "data")
            + 'layer { name: "p" type: "Pooling" bottom: "a" top: "p" pooling_param { kernel_size: 2 stride: 2 } }'
        ),
        images(),
    )
    program = torch.export.export(net, (x,))
    torch.testing.assert_close(program.module()(x), net(x))


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "not a net"),
        ("layer { name: 'a' ", "the text ends inside of what begins at line 1"),
        ("layer }", "expected ':' or '{' after 'layer'"),
        ("hello world {", "expected ':' or '{' after 'hello'"),
        ("import torch\nx = {1: 2}", "line 1: expected ':' or '{' after 'import', found 'torch'"),
        ('layer { name: "a\n" }', "line 1: a string without its end"),
        ("layer { " * 100 + "}" * 100, "more than 64 messages within each other"),
        ('layer { name: "a" type: "ReLU" } layers { name: "b" type: RELU }', "two formats"),
        ('layer { name: "a" bottom: [ "b" "c", }', "expected ',' or ']' in the list of 'bottom'|found '}'"),
        ('input: "a" input_dim: 1 { }', "expected the name of a field"),
        (
            'input: "a" input_dim: 1 layer { name: "b" type: "ReLU" bottom: "a" top: "b" }',
            "1 input_dim for 1 inputs",
        ),
        ('input: "a" input_shape { dim: -1 }', "out of range"),
        ('input: "a" input_shape { dim: x }', "line 1: dim: Couldn't parse integer: x"),
    ],
)
def test_a_prototxt_that_is_none(text, words):
    with pytest.raises(CaffeValueError, match=words):
        caffe_net(text + "\n")


def test_a_file_is_named(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text("layer { name: 1 2 }")
    with pytest.raises(CaffeValueError, match=r"net\.prototxt, line 1"):
        caffe_net(path)
    path.write_bytes(b"\0\1\2" * 100)
    with pytest.raises(CaffeValueError, match="binary"):
        caffe_net(path)
    with pytest.raises(FileNotFoundError):
        caffe_net(tmp_path / "none.prototxt")
