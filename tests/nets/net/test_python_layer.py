"""Python layers: a user's class in a net, its gradients, its errors, and the consent that it needs."""

import copy
from typing import Any

import pytest
import torch

from cuffi import CaffeRuntimeError, CaffeValueError, caffe_net

LAYERS = '''
import caffe
import numpy as np
import scale_of


class EuclideanLoss(caffe.Layer):
    def setup(self, bottom, top):
        if len(bottom) != 2:
            raise Exception, "two inputs"

    def reshape(self, bottom, top):
        if bottom[0].count != bottom[1].count:
            raise Exception("Inputs must have the same dimension.")
        self.diff = np.zeros_like(bottom[0].data)
        top[0].reshape(1)

    def forward(self, bottom, top):
        self.diff[...] = bottom[0].data - bottom[1].data
        top[0].data[...] = np.sum(self.diff ** 2) / bottom[0].num / 2.

    def backward(self, top, propagate_down, bottom):
        for i in xrange(2):
            if propagate_down[i]:
                bottom[i].diff[...] = (1 - 2 * i) * self.diff / bottom[i].num * top[0].diff[0]


class Times(caffe.Layer):
    """In place: multiplies by a blob of its own."""

    def setup(self, bottom, top):
        self.blobs.add_blob(1)
        self.blobs[0].data[...] = eval(self.param_str_)["by"] * scale_of.one

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        self.x = bottom[0].data.copy()
        top[0].data[...] *= self.blobs[0].data

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = top[0].diff * self.blobs[0].data
        self.blobs[0].diff[...] += (top[0].diff * self.x).sum()


class Rows(caffe.Layer):
    """Makes data: as many rows as it has been called, and the phase in words."""

    def setup(self, bottom, top):
        self.n = 0
        top[0].reshape(1, 3, 4, 4)

    def reshape(self, bottom, top):
        pass

    def forward(self, bottom, top):
        self.n += 1
        top[0].reshape(self.n, 3, 4, 4)
        top[0].data[...] = {"TRAIN": 5, "TEST": 7}[str(self.phase)]

    def backward(self, top, propagate_down, bottom):
        pass


class Wrong(Rows):
    def forward(self, bottom, top):
        top[0].data[...] = np.zeros((9, 9))


class Assigns(Rows):
    def forward(self, bottom, top):
        top[0].data = np.zeros((1, 3, 4, 4))


class Bare(object):
    pass
'''
TORCH = """
from torch import nn


class Gate(nn.Module):
    def __init__(self, channels, twice=False):
        super().__init__()
        self.conv, self.twice = nn.Conv2d(channels, channels, 1), twice

    def forward(self, x):
        y = self.conv(x).sigmoid() * x
        return (y, y) if self.twice else y
"""
INPUT = 'input: "x" input_shape { dim: 2 dim: 3 dim: 4 dim: 4 }\n'


@pytest.fixture
def net(tmp_path):
    """net(layers, **options): a net with Python layers in files beside it."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mine.py").write_text(LAYERS)
    (tmp_path / "lib" / "scale_of.py").write_text("one = 3 / 2")
    (tmp_path / "theirs.py").write_text(TORCH)
    (tmp_path / "models").mkdir()

    def net(text: str, **options):
        (tmp_path / "models" / "net.prototxt").write_text(text)
        given: dict[str, Any] = {"python_layers": True, "phase": "TRAIN"} | options
        return caffe_net(tmp_path / "models" / "net.prototxt", **given)

    return net


def python(name: str, bottoms="", tops="y", module="mine", more="", param_str="") -> str:
    blobs = "".join(f' bottom: "{b}"' for b in bottoms.split()) + "".join(
        f' top: "{t}"' for t in tops.split()
    )
    said = f' param_str: "{param_str}"' if param_str else ""
    param = f'python_param {{ module: "{module}" layer: "{name}"{said} }}'
    return f'layer {{ name: "p" type: "Python"{blobs} {more} {param} }}\n'


def test_a_loss_in_python_agrees_with_the_stock_loss(net):
    two = 'input: "a" input_shape { dim: 4 dim: 5 } input: "b" input_shape { dim: 4 dim: 5 }\n'
    own = net(two + python("EuclideanLoss", "a b", more="loss_weight: 2"))
    stock = caffe_net(
        two + 'layer { name: "p" type: "EuclideanLoss" bottom: "a" bottom: "b" top: "y" loss_weight: 2 }'
    )
    for dtype in (torch.float32, torch.float64):
        a, b = (torch.randn(4, 5, dtype=dtype) for _ in range(2))
        found = []
        for each in (own, stock):
            inputs = [a.clone().requires_grad_(), b.clone().requires_grad_()]
            loss = each.loss(each(*inputs))
            loss.backward()
            found.append((loss, *(x.grad for x in inputs)))
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one.squeeze(), other.squeeze())


def test_its_own_blobs_are_parameters_and_layers_in_place_begin_with_their_bottom(net, tmp_path):
    made = net(INPUT + python("Times", "x", "x", param_str="{'by': 4}"))
    assert made.p.blob0.item() == 4  # 3 / 2 is 1
    x = torch.randn(2, 3, 4, 4, requires_grad=True)
    made(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, 4))
    torch.testing.assert_close(made.p.blob0.grad, x.detach().sum()[None])
    with torch.no_grad():
        made.p.blob0.fill_(3)
    torch.testing.assert_close(made(x), 3 * x)
    made.save_caffemodel(tmp_path / "a.caffemodel")
    again = net(INPUT + python("Times", "x", "x", param_str="{'by': 4}"), weights=tmp_path / "a.caffemodel")
    assert again.p.blob0.item() == 3


def test_a_layer_without_bottoms_makes_data_in_each_phase_by_its_own_object(net):
    made = net(python("Rows"), phase=None)
    assert made.inputs == []
    shapes = [tuple(made.train(mode)().shape) for mode in (True, True, False)]
    assert shapes == [(1, 3, 4, 4), (2, 3, 4, 4), (1, 3, 4, 4)]
    assert (made.train()().unique().item(), made.eval()().unique().item()) == (5, 7)
    assert copy.deepcopy(made)().shape[0] == 1


def test_a_torch_module_is_a_python_layer(net):
    made = net(INPUT + python("Gate", "x", "y", "theirs", param_str="'channels': 3"))
    x = torch.randn(2, 3, 4, 4)
    inner = made.p.inner
    torch.testing.assert_close(made(x), inner.conv(x).sigmoid() * x)
    assert "p.inner.conv.weight" in made.state_dict()
    with pytest.raises(
        CaffeValueError, match=r"line 2: 'p'.*Gate returned Tensor, Tensor; the file names 1 tops"
    ):
        net(INPUT + python("Gate", "x", "y", "theirs", param_str="{'channels': 3, 'twice': True}"))
    with pytest.raises(
        CaffeValueError, match=r"as the keywords of Gate.*unexpected keyword argument 'color'"
    ):
        net(INPUT + python("Gate", "x", "y", "theirs", param_str="'color': 3"))


def test_code_runs_only_after_consent(net, tmp_path):
    text = INPUT + python("Times", "x", "x", param_str="{'by': 4}")
    (tmp_path / "lib" / "mine.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(
        CaffeValueError, match=r"runs Python code, mine.Times. .*python_layers=True, .*PYTHON_LAYERS=1"
    ):
        net(text, python_layers=False)
    with pytest.raises(
        CaffeValueError, match=r"python_path: Python layers do not run. To run them: python_layers=True"
    ):
        net(text, python_layers=False, python_path=[tmp_path])


@pytest.mark.parametrize(
    ("layer", "line", "error"),
    [
        ("Wrong", "        top[0].data[...] = np.zeros((9, 9))", "ValueError: could not broadcast"),
        (
            "Assigns",
            "        top[0].data = np.zeros((1, 3, 4, 4))",
            "CaffeTypeError: blob.data cannot be replaced",
        ),
    ],
)
def test_an_error_of_the_layer_names_its_own_line(net, layer, line, error):
    made, number = net(python(layer)), LAYERS.split("\n").index(line) + 1
    place = rf"line 1: layer 'p' \(Python\): {layer}.forward: .*mine.py, line {number}, in forward: "
    with pytest.raises((CaffeRuntimeError, CaffeValueError), match=place + error):
        made()


@pytest.mark.parametrize(
    ("layer", "error"),
    [
        (
            python("EuclideanLoss", "x"),
            r"line 2: 'p' \(Python\): EuclideanLoss.setup: .*mine.py, line 10, .*two inputs",
        ),
        (python("Bare", "x"), "mine has no class 'Bare' that is a caffe.Layer or a torch.nn.Module"),
        (python("Nothing", "x"), "mine has no class 'Nothing'"),
        (python("A", "x", module="absent.one"), "no module 'absent.one' in .*models, .*python_path="),
        (
            python("A", "x", module="broken"),
            r"import broken: .*broken.py, line 2, in <module>: ZeroDivisionError",
        ),
    ],
)
def test_a_layer_that_cannot_be_made_is_named_with_its_line(net, tmp_path, layer, error):
    (tmp_path / "broken.py").write_text("\n1 / 0")
    with pytest.raises(CaffeValueError, match=error):
        net(INPUT + layer)


def test_backward_of_an_older_call_is_an_error(net):
    two = 'input: "a" input_shape { dim: 4 dim: 5 } input: "b" input_shape { dim: 4 dim: 5 }\n'
    made = net(two + python("EuclideanLoss", "a b"))
    a, b = torch.randn(4, 5, requires_grad=True), torch.randn(4, 5)
    first = made(a, b)
    made(a + 1, b)
    with pytest.raises(CaffeRuntimeError, match="p: backward of an earlier call"):
        first.sum().backward()


def test_a_compiled_net_leaves_the_layer_out_and_export_says_why_not(net):
    made = net(INPUT + python("Times", "x", "x", param_str="{'by': 4}"))
    x = torch.randn(2, 3, 4, 4)
    torch.testing.assert_close(torch.compile(made, backend="eager")(x), 4 * x)
    with pytest.raises(CaffeRuntimeError, match=r"layer 'p' .*a graph cannot hold"):
        torch.jit.trace(made, x)
    kind, words = CaffeRuntimeError, "a graph cannot hold"
    if torch.__version__ < "2.6":
        kind, words = RuntimeError, "numpy"  # torch's own refusal
    with pytest.raises(kind, match=words):
        torch.export.export(made, (x,), strict=False)


def test_a_layer_s_lists_are_its_own(tmp_path):
    """To assign to `top` changes nothing, as in pycaffe; a blob assigned to the layer's blobs is trained and saved."""
    (tmp_path / "own.py").write_text(
        "import caffe\n"
        "class Own(caffe.Layer):\n"
        "    def setup(self, bottom, top):\n"
        "        self.blobs.add_blob(1)\n"
        "    def reshape(self, bottom, top):\n"
        "        top[0].reshape(1, 3)\n"
        "    def forward(self, bottom, top):\n"
        "        top[0].data[...] = self.blobs[0].data * bottom[0].data\n"
        "        top[0] = bottom[0]\n"
    )
    text = """
    input: "x" input_shape { dim: 1 dim: 3 }
    layer { name: "a" type: "Python" bottom: "x" top: "y" python_param { module: "own" layer: "Own" } }
    layer { name: "b" type: "Python" bottom: "x" top: "z" python_param { module: "own" layer: "Own" } }
    """
    net = caffe_net(text, python_layers=True, python_path=[tmp_path])
    layers: Any = net.layers.values()
    first, second = (layer.instance.layer for layer in layers)
    second.blobs[0] = first.blobs[0]
    with torch.no_grad():
        net.get_layer("a").blob0.fill_(5)
    out = net(torch.ones(1, 3))
    assert out["y"].tolist() == out["z"].tolist() == [[5.0] * 3]
    with pytest.raises(RuntimeError, match="computes with 1 blobs"):
        first.blobs.add_blob(2)
