"""A launcher that is called outside of an operator: every tracer keeps the launch, or refuses it by name."""

import copy
import io
from typing import Any

import pytest
import torch
from cuffi.sigmoid import layer, sigmoid
from torch._subclasses import FakeTensorMode
from torch.export import Dim
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from cuffi.runtime import CaffeRuntimeError, CaffeTypeError
from cuffi.runtime.launcher_operator import schema


def launched(x):
    """1 + sigmoid(x), by a launcher and no operator."""
    top = torch.zeros_like(x)
    layer.sigmoid_forward(x, top, x.numel())
    return top + 1


def by_operator(x):
    return sigmoid(x) + 1


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def exported(function, x):
    return torch.export.export(Module(function), (x,)).module()


def saved(function, x):
    file = io.BytesIO()
    torch.export.save(torch.export.export(Module(function), (x,)), file)
    return torch.export.load(io.BytesIO(file.getvalue())).module()


def decomposed(function, x):
    return torch.export.export(Module(function), (x,)).run_decompositions().module()


def dynamic(function, x):
    shapes = {"x": {0: Dim.DYNAMIC}}
    module = torch.export.export(Module(function), (x,), dynamic_shapes=shapes).module()
    longer = torch.linspace(-3, 3, 7)
    assert torch.equal(module(longer), 1 + torch.sigmoid(longer))
    return module


def symbolic(function, x):
    graph = torch.fx.symbolic_trace(Module(function))
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph


TRACERS = {
    "export": exported,
    "export, saved": saved,
    "export, decomposed": decomposed,
    "export, dynamic": dynamic,
    "make_fx": lambda f, x: make_fx(f)(x),
    "make_fx fake": lambda f, x: make_fx(f, tracing_mode="fake")(x),
    "make_fx symbolic": lambda f, x: make_fx(f, tracing_mode="symbolic")(x),
    "make_fx pre_dispatch": lambda f, x: make_fx(f, pre_dispatch=True)(x),
    "jit.trace": lambda f, x: torch.jit.trace(f, (x,)),
    "fx": symbolic,
    "compile": lambda f, x: torch.compile(f, backend="aot_eager"),
    "compile of export": lambda f, x: torch.compile(exported(f, x), backend="aot_eager", fullgraph=True),
    "checkpoint": lambda f, x: lambda x: checkpoint(f, x, use_reentrant=False),
    "no_grad": lambda f, x: torch.no_grad()(f),
    "deepcopy of a graph": lambda f, x: copy.deepcopy(make_fx(f)(x)),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("function", [launched, by_operator])
@pytest.mark.parametrize("tracer", TRACERS)
def test_a_tracer_keeps_the_launch(tracer, function):
    if tracer == "fx" and function is by_operator:
        pytest.skip("tests/layers/test_exotic.py has it")
    first, second = torch.tensor([-1.0, 0, 2]), torch.tensor([3.0, -4, 5])
    traced = TRACERS[tracer](function, first)
    for x in (first, second):
        torch.testing.assert_close(traced(x), 1 + torch.sigmoid(x))


@pytest.mark.parametrize("function", [launched, by_operator])
def test_shapes_without_memory(function):
    with FakeTensorMode():
        found = function(torch.empty(2, 3, dtype=torch.float64))
    assert (found.shape, found.dtype) == ((2, 3), torch.float64)


@pytest.mark.parametrize("function", [launched, by_operator])
def test_meta_tensors_are_refused(function):
    with pytest.raises(CaffeTypeError, match=r"^sigmoid: bottom: expected a tensor on cpu or cuda, got meta"):
        function(torch.empty(2, 3, device="meta"))


@pytest.mark.parametrize(
    "transform",
    [
        torch.func.vmap,
        lambda f: torch.func.grad(lambda x: f(x).sum()),
        lambda f: torch.func.vjp(f, torch.zeros(3))[1],
        torch.func.functionalize,
        lambda f: make_fx(torch.func.functionalize(f)),
        lambda f: lambda x: torch.func.jvp(f, (x,), (x,)),
        torch.func.jacrev,
    ],
)
def test_a_transform_is_refused_by_name(transform):
    with pytest.raises(CaffeRuntimeError, match=r"^sigmoid: bottom: .*(transforms|forward-mode)"):
        transform(launched)(torch.zeros(2, 3))


def test_a_mode_sees_the_launch():
    names = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    with Seen():
        found = launched(torch.zeros(3))
    assert torch.equal(found, torch.full((3,), 1.5))
    assert "cuffi_sigmoid.launch_sigmoid_forward.default" in names


def test_a_subclass_sees_the_launch():
    plain: Any = torch.Tensor  # to its type, the first parameter of __torch_dispatch__ is the instance

    class Wrapped(plain):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            args = [a.inner if isinstance(a, cls) else a for a in args]
            found = func(*args, **(kwargs or {}))
            return cls(found) if isinstance(found, torch.Tensor) else found

    assert torch.equal(launched(Wrapped(torch.zeros(3))).inner, torch.full((3,), 1.5))


def test_a_wrong_call_is_refused_when_it_is_traced():
    def wrong(x):
        layer.sigmoid_forward(x, torch.zeros(3, dtype=torch.float64), 3)

    for trace in (exported, TRACERS["make_fx"], TRACERS["make_fx fake"], TRACERS["jit.trace"]):
        with pytest.raises(CaffeTypeError, match=r"^sigmoid: top: expected float32 as 'bottom' has"):
            trace(wrong, torch.zeros(3))
    with pytest.raises(CaffeTypeError, match="sigmoid_forward takes 3 arguments"), FakeTensorMode():
        layer.sigmoid_forward(torch.zeros(3))


def test_schema():
    parameters = [
        ("const float *", "in"), ("void *", "top"), ("int", "n"), ("double", "eps"), ("bool", "relu"),
        ("const float *", "bias"), ("float *", "self"), ("float *", "saved"),
    ]  # fmt: skip
    assert schema(parameters, {"bias", "saved"}) == (
        "(Tensor in_, Tensor(a1!) top, SymInt n, float eps, bool relu, Tensor? bias, Tensor(a6!) self_, "
        "Tensor(a7!)? saved) -> ()"
    )
