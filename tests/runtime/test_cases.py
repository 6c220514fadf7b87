"""Case: what it supports, and how a result is compared with its reference."""

import math
from types import SimpleNamespace

import pytest
import torch

from cuffi.runtime.cases import TOLERANCE, Case

INPUTS = {"vector": lambda draw: (draw.normal(9),)}
CASE = Case(function=torch.sin, reference=torch.sin, inputs=INPUTS)


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("off, right", [(0.9, True), (1.1, False)])
def test_the_tolerance_is_each_elements_own(dtype, off, right):
    """As in torch's assert_close: a large element does not excuse a small one."""
    relative, absolute = TOLERANCE[dtype]
    wanted = double(1e3, 1.0)
    got = wanted + double(0, off * (absolute + relative))
    verdict = CASE.check(got, wanted, dtype)
    assert verdict.right == right == (verdict.excess <= 1) and verdict.excess == pytest.approx(off, rel=1e-2)
    assert verdict.error == pytest.approx(off * (absolute + relative), rel=1e-2)
    by_torch = pytest.raises(AssertionError) if not right else torch.no_grad()
    with by_torch:
        torch.testing.assert_close(got, wanted, rtol=relative, atol=absolute)
    assert CASE.check(got, wanted, dtype, loose=1).right


@pytest.mark.parametrize(
    "got, wanted, said",
    [
        ((1.0, math.nan), (1.0, math.nan), ""),
        ((math.inf, -math.inf), (math.inf, -math.inf), ""),
        ((1.0, math.nan), (1.0, 3.0), "nan instead of 3 at [1], inf times"),
        ((1.0, 3.0), (1.0, math.nan), "3 instead of nan at [1], inf times"),
        ((1.0, math.inf), (1.0, -math.inf), "inf instead of -inf at [1], inf times"),
        ((1.0, 5.0), (1.0, math.inf), "5 instead of inf at [1], inf times"),
        ((1.0, math.inf), (1.0, 5.0), "inf instead of 5 at [1], inf times"),
        ((1.0,), (1.0, 2.0), "shape [1] instead of [2]"),
        ((), (), ""),
    ],
)
@pytest.mark.parametrize("loose", [0, 20])
def test_what_is_not_finite(got, wanted, said, loose):
    verdict = CASE.check(double(*got), double(*wanted), torch.float32, loose)
    assert verdict.words.startswith(said) and verdict.right == (not said)
    assert verdict.right or verdict.excess == verdict.error == math.inf


def test_the_worst_of_several_is_named():
    got, wanted = (double(1), double(2, 2), double(3)), (double(1), double(2, 1), double(2))
    verdict = CASE.check(got, wanted, torch.float32)
    assert verdict.words.startswith("2 instead of 1 at [1], 5e+05 times the tolerance") and verdict.error == 1
    with pytest.raises(ValueError):
        CASE.check(got, wanted[:2], torch.float32)
    assert not CASE.check(torch.tensor([True]), torch.tensor([False]), torch.float32).right


@pytest.mark.parametrize("factor, right", [(1.0, True), (1.01, False)])
def test_a_run_compares_gradients_too(factor, right):
    """A forward that is right does not excuse a wrong gradient."""

    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, *diffs):
            return factor * diffs[0] * ctx.saved_tensors[0].cos()

    def sine(x):
        return Sine.apply(x)

    arguments = (torch.linspace(0, 1, 9, dtype=torch.float64),)
    assert (
        Case(function=sine, reference=torch.sin, inputs=INPUTS).run(arguments, torch.float32).right == right
    )
    without = Case(function=sine, reference=torch.sin, inputs=INPUTS, gradient="none")
    assert without.run(arguments, torch.float32).right


class WithModes:
    __name__, mode = "own", None

    def __call__(self, x):
        return x, self.mode


def test_a_function_with_modes_is_told_which():
    case = Case(function=WithModes(), reference=lambda x: x, inputs=INPUTS)
    assert case.has_modes and not CASE.has_modes
    assert case.call(1, kernels=True) == (1, "gpu") and case.call(2) == (2, None)


def test_what_is_supported():
    layer = SimpleNamespace(dtypes=(torch.float32,), backends=lambda: ["host"])
    both = Case(function=WithModes(), reference=lambda x: x, inputs=INPUTS)
    assert CASE.supports(layer, "cpu", torch.float32) and not CASE.supports(layer, "cpu", torch.float64)
    assert not CASE.supports(layer, "cuda", torch.float32)
    assert both.supports(layer, "cpu", torch.float32, kernels=True)
    assert not CASE.supports(layer, "cpu", torch.float32, kernels=True)
    layer.backends = lambda: ["cuda"]
    assert CASE.supports(layer, "cuda", torch.float32) and not both.supports(
        layer, "cuda", torch.float32, True
    )
