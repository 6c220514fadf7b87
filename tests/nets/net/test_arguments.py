"""Wrong arguments of `caffe_net` and its nets: each error is the toolkit's, and names the argument."""

import numpy as np
import pytest
import torch
from support.nets import one_layer

from cuffi import CaffeError, CaffeTypeError, CaffeValueError, caffe_net

NET = """
input: "x" input_shape { dim: 2 dim: 3 }
input: "t" input_shape { dim: 2 dim: 3 }
layer { name: "fc" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 3 } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }"""
NOTHING_IN_PARTICULAR = (None, "three", 3, -1, 2.5, float("nan"), 2**40, True, [], [5], {}, {"a": 1}, {1: True}, b"x",
                         (None,), {"x": 3}, {"x": ("2",)}, {"x": (-1, 3)}, "", "\0", object(), torch.zeros(3),
                         np.int64(3), torch.float16)  # fmt: skip


@pytest.fixture(scope="module")
def net():
    return caffe_net(NET)


def refused(name: str, call) -> int:
    """The number of these values that are refused. Python names a file or folder that does not exist."""
    count = 0
    for value in NOTHING_IN_PARTICULAR:
        try:
            call(value)
        except CaffeError as error:
            assert name in str(error), f"{value!r}: {error}"
            count += 1
        except FileNotFoundError as error:
            assert error.filename in (value, "x"), f"{value!r}: {error}"
            count += 1
    return count


@pytest.mark.parametrize(
    "name, least",
    [
        ("train", 22), ("phase", 23), ("stages", 16), ("level", 17), ("shapes", 20), ("replace", 17), ("native", 19),
        ("layers", 21), ("choose", 20), ("ignore", 16), ("crop", 23), ("weights", 20),
    ],
)  # fmt: skip
def test_arguments_of_caffe_net(name, least):
    assert refused(f"{name}", lambda value: caffe_net(NET, **{name: value})) >= least


def test_what_is_no_prototxt():
    # True and 1 are open files' numbers to `open`, which would close the program's output.
    assert refused("prototxt", caffe_net) == len(NOTHING_IN_PARTICULAR)


def test_what_is_right_is_taken(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text(NET.replace("num_output: 3", "num_output: $N$"))
    net = caffe_net(path, replace={"N": 3}, shapes={"x": (4, 3), "t": [np.int64(4), 3]}, stages="a", level=1)
    assert net.shapes["y"] == (4, 3) and not net.training
    assert caffe_net(str(path), replace={"N": 3}, stages=["a", "b"], ignore=("c",)).inputs
    assert caffe_net(NET, train=True, phase=None, native={"Pooling": False}).training
    assert not caffe_net(NET, train=True, phase="TEST").training
    assert one_layer('type: "Crop" crop_param { }', (1, 2, 5, 5), (1, 2, 3, 3), crop="stock")


def test_folders_of_ported_layers_are_taken(tmp_path):
    pytest.importorskip("cuffi.runtime")
    assert caffe_net(NET, layers=[tmp_path]).inputs


def test_names_that_the_net_does_not_have():
    """They would be ignored silently."""
    with pytest.raises(CaffeValueError, match=r"shapes: no input 'X'; did you mean 'x'\? There are: x, t"):
        caffe_net(NET, shapes={"X": (4, 3)})
    with pytest.raises(CaffeValueError, match=r"shapes: no input 'y'. There are"):  # it is a layer's
        caffe_net(NET, shapes={"y": (4, 3)})
    with pytest.raises(CaffeValueError, match=r"native: 'Poling' .* did you mean 'Pooling'"):
        caffe_net(NET, native={"Poling": False})
    # An input of the other phase is no mistake.
    data = 'layer { name: "d" type: "Data" top: "d" include { phase: TRAIN } }'
    assert caffe_net(data + NET, phase="TEST", shapes={"d": (1, 3)}).inputs == ["x", "t"]


def test_a_solver_is_no_net(tmp_path):
    path = tmp_path / "solver.prototxt"
    path.write_text('net: "train_val.prototxt"\nbase_lr: 0.01\n')
    with pytest.raises(CaffeValueError, match=r"not a net: .* whose net is 'train_val.prototxt'"):
        caffe_net(path)


def test_arguments_of_a_net(net):
    everything = len(NOTHING_IN_PARTICULAR)
    assert refused("get_layer", net.get_layer) == everything
    assert refused("loss", net.loss) == everything - 1  # but the tensor
    assert refused("loss: 'loss'", lambda value: net.loss({"loss": value})) == everything - 1
    assert (
        refused("parameter_groups: lr", net.parameter_groups) == everything - 7
    )  # the numbers and the tensor
    assert refused("weight_decay", lambda value: net.parameter_groups(0.1, value)) == everything - 7
    assert refused("load_caffemodel: path", net.load_caffemodel) == everything
    assert refused("load_caffemodel: path", lambda value: net.load_caffemodel("x", value)) == everything
    assert refused("train: mode", net.train) == everything - 1
    net.eval()
    assert net.get_layer("fc") is net.fc and net.loss(torch.ones(2)) == 2


@pytest.mark.parametrize("path", [None, 3, True, 2.5, [], {}, (None,), "", "\0", object()])
def test_a_path_to_save_to(net, path):
    with pytest.raises((CaffeTypeError, CaffeValueError), match="save_caffemodel: path: expected a path"):
        net.save_caffemodel(path)


def test_torch_jit_script_is_refused_by_name(net):
    with pytest.raises(CaffeError, match=r"prototxt: torch\.jit\.script cannot .*torch\.export"):
        torch.jit.script(net)


PICTURES = """input: "data" input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }
layer { name: "c" type: "Convolution" bottom: "BOTTOM" top: "c" convolution_param { num_output: 2 kernel_size: 3 } }"""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (torch.ones(1, 4, 8, 8), ". Input 'data' is [1, 4, 8, 8]; in the file it is [1, 3, 8, 8]"),
        (torch.ones(1, 8, 8, 3), "and the channels are last: data.permute(0, 3, 1, 2) puts them first"),
        (torch.ones(2, 3, 8, 8).byte(), ". Input 'data' is of torch.uint8: data.float() is of torch.float32"),
        (np.ones((1, 3, 8, 8)), "expected a tensor, got ndarray. torch.from_numpy makes a tensor of it"),
    ],
)
def test_an_input_that_a_layer_refuses(given, said):
    """The error says what is unlike the file, whether the input came by position or by name."""
    net = caffe_net(PICTURES.replace("BOTTOM", "data"))
    for call in (lambda: net(given), lambda: net(data=given)):
        with pytest.raises(CaffeError) as error:
            call()
        assert str(error.value).endswith(said)


def test_an_error_does_not_speak_of_inputs_that_fit():
    net = caffe_net(PICTURES.replace("BOTTOM", "data"))
    with pytest.raises(CaffeError) as error:
        net(torch.ones(2, 3, 8, 8).double())
    assert "Input" not in str(error.value).partition("(Convolution): ")[2].replace("Input type", "")


def test_a_bottom_that_is_almost_the_name_of_a_blob():
    with pytest.raises(CaffeValueError, match="bottom 'dat' is made by no layer; did you mean 'data'"):
        caffe_net(PICTURES.replace("BOTTOM", "dat"))
