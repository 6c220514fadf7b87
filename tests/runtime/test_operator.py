"""Operators of any signature: which arguments are tensors, which may be None, and errors."""

import sys
import types

import pytest
import torch
from support import python_with_torch
from support.operators import Labelled, scaled
from torch import Tensor

from cuffi.runtime import CaffeRuntimeError, CaffeTypeError, CaffeValueError, Layer, operator


def test_what_is_not_optional_is_named(layer):
    scale, x = scaled(layer), torch.randn(3)
    with pytest.raises(CaffeTypeError, match=f"{layer.name}: x: expected a tensor, got NoneType None"):
        scale(None, None, None, ())
    with pytest.raises(CaffeTypeError, match=f"{layer.name}: shift: expected a tensor, got str 'a'"):
        scale(x, None, "a", ())
    with pytest.raises(
        CaffeTypeError, match=f"{layer.name}: factor: expected a tensor on cpu as 'x' is|on cpu or cuda"
    ):
        scale(x, x.to("meta"), None, ())


@pytest.mark.parametrize(
    "error", [RuntimeError("out of memory"), TypeError("mine"), CaffeRuntimeError("not built")]
)
def test_an_error_is_not_replaced(layer, error):
    @operator(layer)
    def fails(x: Tensor, bias: Tensor | None) -> Tensor:
        raise error

    for x in (torch.ones(2), torch.ones(2, requires_grad=True), torch.ones(2).as_subclass(Labelled)):
        with pytest.raises(type(error), match=str(error)):
            fails(x, None)


def test_the_registered_operator_checks_too(layer):
    op = scaled(layer).operator.torch_op
    x = torch.randn(3)
    with pytest.raises(CaffeTypeError, match=f"{layer.name}: x: expected a tensor, got NoneType None"):
        op(None, None, torch.ones(3), (1,))
    assert torch.equal(op(x, None, torch.ones(3), (1,)), x + 1)


def test_two_packages_that_torch_would_know_by_one_name(tmp_path, monkeypatch):
    layers = []
    for name in ("pair.of_one", "pair_of.one", "pair.of_one"):
        module = types.ModuleType(name)
        module.__file__ = str(tmp_path / "__init__.py")
        monkeypatch.setitem(sys.modules, name, module)
        layers.append(Layer(name))
    first = scaled(layers[0])
    with pytest.raises(
        CaffeValueError, match=r"pair_of\.one: torch has pair\.of_one's operator as pair_of_one::scale"
    ):
        scaled(layers[1])
    arguments = torch.ones(3), None, None, [1]
    assert torch.equal(first.operator.torch_op(*arguments), torch.ones(3))  # it is still there
    again = scaled(layers[2])  # imported again
    assert torch.equal(again.operator.torch_op(*arguments), torch.ones(3))


# ---------------------------------------------------------------------------------------- parameters


def numpy_int():
    return pytest.importorskip("numpy").int64(2)


@pytest.mark.parametrize("value", [2, torch.tensor(2), numpy_int], ids=["int", "tensor", "numpy"])
def test_integers(layer, value):
    value = value() if callable(value) else value
    assert layer.integer("stride", value, 1) == 2 and type(layer.integer("stride", value, 1)) is int
    assert layer.pair("stride", value, 1) == layer.pair("stride", [value, 2], 1) == (2, 2)
    assert layer.pair("stride", torch.Size((2, 3)), 1) == (2, 3)


@pytest.mark.parametrize(
    "value", [2.5, None, float("nan"), "3", True, 1j, torch.tensor(2.5), (2.5, 1), [None, 1]], ids=str
)
def test_no_integers(layer, value):
    with pytest.raises(CaffeTypeError, match=f"{layer.name}: stride: expected an int"):
        layer.pair("stride", value, 1)


@pytest.mark.parametrize("value", [0, -1, 2**31, 10**30, (1, 0), (1,), (), (1, 2, 3)], ids=str)
def test_integers_out_of_range(layer, value):
    with pytest.raises(CaffeValueError, match=f"{layer.name}: stride: expected an int"):
        layer.pair("stride", value, 1)


AGAIN = """
import importlib, sys, torch
x = torch.randn(2, 3, 4, 4, requires_grad=True)
for how in ("first", "again", "reloaded"):
    if how == "again":
        for name in [name for name in sys.modules if name.partition(".")[0] == "cuffi"]:
            del sys.modules[name]
    import cuffi.sigmoid, cuffi.normalize
    if how == "reloaded":
        importlib.reload(cuffi.sigmoid), importlib.reload(cuffi.normalize)
    sigmoid, normalize = cuffi.sigmoid.sigmoid, cuffi.normalize.Normalize()
    for call in (sigmoid, torch.ops.cuffi_sigmoid.sigmoid):
        torch.testing.assert_close(call(x), torch.sigmoid(x))
        wanted = torch.autograd.grad(torch.sigmoid(x).sum(), x)
        torch.testing.assert_close(torch.autograd.grad(call(x).sum(), x), wanted)
    norms = normalize(x)
    program = torch.export.export(normalize, (x.detach(),)).module()
    torch.testing.assert_close(program(x.detach()), norms)
print("right")
"""


def test_imported_again():
    """As in a notebook that drops the package from sys.modules: torch already has the operators."""
    done = python_with_torch.run([sys.executable, "-c", AGAIN])  # autograd's threads do not survive a fork
    assert done.stdout == "right\n", done.stderr[-2000:]


@pytest.mark.parametrize(
    ("arguments", "named", "said"),
    [
        ((), {"tensor": 1}, "sigmoid has no parameter tensor. It takes bottom"),
        ((), {"botom": 1}, "It takes bottom. Did you mean bottom?"),
        ((1,), {"x": 2}, "sigmoid has no parameter x"),
        ((1, 2), {}, "sigmoid takes 1 argument, bottom: got 2"),
        ((1,), {"bottom": 2}, "bottom is given twice, by its place and by its name"),
        ((), {}, "sigmoid: bottom is missing"),
    ],
)
def test_a_wrong_argument_is_named(arguments, named, said):
    from cuffi.sigmoid import sigmoid

    values = [torch.ones(3) for _ in arguments]
    with pytest.raises(CaffeTypeError) as raised:
        sigmoid(*values, **{name: torch.ones(3) for name in named})
    assert said in str(raised.value)
