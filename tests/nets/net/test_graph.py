"""The graph of a net: formats, phases, in place, shared parameters, inputs, outputs, and errors in a file."""

import pytest
import torch
from support.nets import INPUT, TRAIN_VAL, conv, images

from cuffi import CaffeValueError, caffe_net


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


def test_statistics_of_training_are_those_of_testing_after_a_move_too():
    """torch's own `to` and `double` would give each module its own buffer."""
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


@pytest.mark.parametrize("kind", ["Data", "ImageData", "HDF5Data", "AnnotatedData"])
@pytest.mark.parametrize("tops", ["data", "data label", "data clip", "data clip label"])
def test_the_second_blob_of_a_data_layer(kind, tops):
    """A label for each item, by type or by name. Other types' second blobs are unknown until they are passed."""
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
