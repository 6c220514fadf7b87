"""Every layer's cases: is everything there, and are values and derivatives right?

`python3 test.py -k round_ste` runs one function's tests, `-k "cuda and float16"` one device's and dtype's."""

import contextlib
import functools
import importlib
import inspect
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from support.layers import (
    differentiated,
    dtype_of,
    is_laid_out,
    numeric,
    once,
    operator_calls,
    twice,
)
from support.points import (
    LAYERS,
    PACKAGE,
    Point,
    cases_of,
    differentiable,
    layer_object,
    random_like,
    same_bits,
)
from torch import Tensor

from cuffi.runtime.cases import away_from_kinks, results


def added(numbers: Iterable[Tensor]) -> Tensor:
    return functools.reduce(torch.add, numbers)


@pytest.mark.parametrize("layer", LAYERS)
def test_layer_says_its_cases(layer):
    """A layer without cases would pass these tests untested."""
    try:
        cases = importlib.import_module(f"{PACKAGE}.{layer}.cases").CASES
    except ModuleNotFoundError as error:
        pytest.fail(f"layer {layer} has no cases.py, so nothing of it is tested: {error}")
    assert cases, f"layer {layer}: CASES in its cases.py is empty, so nothing of it is tested"
    assert all(case.inputs for case in cases), f"layer {layer}: a case without inputs tests nothing"


@pytest.mark.parametrize("layer", LAYERS)
def test_layer_is_built(layer):
    """It is built for at least one backend. Tests of a missing backend are skipped."""
    assert layer_object(layer).backends(), (
        f"layer {layer} is built for no backend: type `make LAYERS={layer}`"
    )


@pytest.mark.parametrize("layer", LAYERS)
def test_every_operator_is_in_a_case(layer):
    points = [Point(layer, case, next(iter(case.inputs)), "cpu", dtype_of(layer)) for case in cases_of(layer)]
    reached = {op for point in points for op, _ in operator_calls(point)}
    module = vars(importlib.import_module(f"{PACKAGE}.{layer}"))
    found = [getattr(v, "operator", None) for v in module.values()]
    made = [one for one in found if one is not None and type(one).__name__ == "Operator"]
    operators = {one.torch_op for one in made}
    assert operators <= reached, f"layer {layer}: no case reaches {sorted(map(str, operators - reached))}"


def test_forward(point):
    arguments = point.arguments()
    result = point.call(*arguments)
    _, reference = point.reference(*arguments)
    assert type(result) is type(reference)
    for got, wanted in zip(results(result), results(reference), strict=True):
        dtype = point.dtype if wanted.is_floating_point() else wanted.dtype
        assert (got.dtype, got.device.type, got.shape) == (dtype, point.device, wanted.shape)
        assert is_laid_out(got) and got.layout == torch.strided
        assert not got.requires_grad
    point.assert_close(result, reference)


def test_an_infinity_goes_no_further(point):
    """It leaves finite what it leaves finite in the reference: 0 * inf of a kernel's padding would be nan.

    Inputs that are large for the sake of many blocks of threads have no other padding than small ones.
    """
    arguments = point.arguments()
    first = next(
        (a for a in arguments if isinstance(a, Tensor) and a.is_floating_point() and a.numel()), None
    )
    if first is None or first.numel() > 100_000:
        pytest.skip("no floating-point argument, or one of more than 100,000 elements")
    first[tuple(size // 2 for size in first.shape)] = float("inf")
    found, wanted = results(point.call(*arguments)), results(point.reference(*arguments)[1])
    if not no_further(found, wanted):
        # In bfloat16 on processors with AMX, torch's own matmul carries an infinity into the row before it.
        assert no_further(found, results(point.case.reference(*arguments)))


def no_further(found, wanted):
    """Whether each element that is finite in wanted, which is computed on the processor or not, is finite in found."""
    pairs = zip(found, wanted, strict=True)
    return all((ours.cpu().isfinite() | ~theirs.cpu().isfinite()).all() for ours, theirs in pairs)


def assert_gradients(point, arguments):
    """A call's gradients agree with the reference's and have their arguments' properties. Returns the call's result."""
    result = point.call(*arguments)
    top_diffs = random_like(result)
    diffs = torch.autograd.grad(differentiable(results(result)), differentiable(arguments), top_diffs)
    doubled, reference = point.reference(*arguments, grad=True)
    wanted = torch.autograd.grad(
        differentiable(results(reference)), differentiable(doubled), [d.double().cpu() for d in top_diffs]
    )
    for diff, argument in zip(diffs, differentiable(arguments), strict=True):
        assert (diff.dtype, diff.device, diff.shape) == (argument.dtype, argument.device, argument.shape)
    point.assert_close(diffs, wanted)
    return result


@differentiated
def test_backward(point):
    assert_gradients(point, point.arguments(grad=True))


@pytest.mark.only(lambda case: case.stays_float)
def test_float_beside_half(half_type):
    """Arguments that autocast leaves in float32 are read, and their gradients written, in float32."""
    names = inspect.signature(half_type.case.function).parameters
    arguments = tuple(
        a.detach().float().requires_grad_()
        if name in half_type.case.stays_float and isinstance(a, Tensor)
        else a
        for name, a in zip(names, half_type.arguments(grad=True), strict=False)
    )
    if half_type.case.gradient == "none":
        with torch.no_grad():
            result = half_type.call(*arguments)
    else:
        result = assert_gradients(half_type, arguments)
    assert result.dtype == half_type.dtype
    half_type.assert_close(result, half_type.reference(*arguments)[1])


def test_kinks_are_kept_away_from():
    (x,) = away_from_kinks((torch.tensor([-1.0, -0.01, 0.0, 0.02, 0.5]),), ((0.0, 0.1),))
    assert torch.equal(x.detach(), torch.tensor([-1.0, -0.1, 0.1, 0.1, 0.5]))


def is_large(arguments) -> bool:
    """Is it too large to perturb element by element? Then a random direction is checked instead."""
    return sum(a.numel() for a in differentiable(arguments)) > 64


@numeric
def test_gradcheck(double):
    if double.dtype != torch.float64:
        pytest.skip("the layer does not compute in double")
    arguments = away_from_kinks(double.arguments(grad=True), double.case.kinks)
    assert torch.autograd.gradcheck(double.call, arguments, fast_mode=is_large(arguments))


@numeric
@twice
def test_gradgradcheck(double):
    if double.dtype != torch.float64:
        pytest.skip("the layer does not compute in double")
    arguments = away_from_kinks(double.arguments(grad=True), double.case.kinks)
    assert torch.autograd.gradgradcheck(double.call, arguments, fast_mode=is_large(arguments))


@twice
def test_second_derivative(point):
    """Compared with the reference's, because differences do not give a straight-through gradient."""

    def second(arguments, result, top_diffs):
        wanted = differentiable(arguments)
        first = torch.autograd.grad(differentiable(results(result)), wanted, top_diffs, create_graph=True)
        seeds = [s.to(f.dtype) for s, f in zip(random_like([f.float() for f in first]), first, strict=True)]
        total = added((f * s).sum() for f, s in zip(first, seeds, strict=True))
        found = torch.autograd.grad(total, [*wanted, *top_diffs], allow_unused=True)
        return [
            torch.zeros_like(x) if f is None else f for f, x in zip(found, [*wanted, *top_diffs], strict=True)
        ]

    arguments = point.arguments(grad=True)
    result = point.call(*arguments)
    top_diffs = [d.requires_grad_() for d in random_like(result)]
    found = second(arguments, result, top_diffs)
    doubled, reference = point.reference(*arguments, grad=True)
    wanted = second(doubled, reference, [d.detach().double().cpu().requires_grad_() for d in top_diffs])
    point.assert_close(found, wanted)


@once
@pytest.mark.parametrize("top", ["constant", "variable"])
def test_second_derivative_is_refused(each_device, top):
    """It is never silently 0: then a gradient penalty would add nothing."""

    def penalised(arguments, result, top_diffs):
        wanted = differentiable(arguments)
        first = torch.autograd.grad(differentiable(results(result)), wanted, top_diffs, create_graph=True)
        tops = differentiable(results(result))
        loss = added(t.sum() for t in tops) + added(f.square().sum() for f in first)
        return torch.autograd.grad(loss, [*wanted, *(d for d in top_diffs if d.requires_grad)])

    arguments = each_device.arguments(grad=True)
    result = each_device.call(*arguments)
    top_diffs = [d.requires_grad_(top == "variable") for d in random_like(result)]
    doubled, reference = each_device.reference(*arguments, grad=True)
    constant = [d.detach().double().cpu() for d in top_diffs]
    plain = torch.autograd.grad(added(t.sum() for t in differentiable(results(reference))), differentiable(doubled),
                                retain_graph=True)  # fmt: skip
    wanted = penalised(doubled, reference, constant) if top == "constant" else None
    if wanted and all(torch.equal(w, p) for w, p in zip(wanted, plain, strict=True)):
        # The penalty's own gradient is zero: a layer that refuses is right, and so is one that adds nothing.
        with contextlib.suppress(RuntimeError):
            each_device.assert_close(penalised(arguments, result, top_diffs), wanted)
        return
    with pytest.raises(RuntimeError, match=r"differentiated once|second derivative"):
        penalised(arguments, result, top_diffs)


@pytest.mark.only(lambda case: case.gradient == "none")
def test_no_derivative_is_refused(each_device):
    """A function without a derivative says so. Otherwise the gradient would lack its part."""
    result = each_device.call(*each_device.arguments(grad=True))
    with pytest.raises(RuntimeError, match="no derivative"):
        differentiable(results(result))[0].sum().backward()


@differentiated
def test_only_wanted_gradients(each_device):
    """Each gradient alone equals the one computed with the others, and the others are not computed."""
    arguments = each_device.arguments(grad=True)
    result = each_device.call(*arguments)
    top_diffs = random_like(result)
    diffs = iter(top_diffs)
    for_each_top = [next(diffs) if t.is_floating_point() else None for t in results(result)]
    together = torch.autograd.grad(differentiable(results(result)), differentiable(arguments), top_diffs)
    for wanted, diff in zip(differentiable(arguments), together, strict=True):
        alone = tuple(
            a.detach().requires_grad_(a is wanted) if isinstance(a, Tensor) and a.is_floating_point() else a
            for a in arguments
        )
        result = each_device.call(*alone)
        node: Any = differentiable(results(result))[0].grad_fn
        if hasattr(
            each_device.case.function, "operator"
        ):  # what backward itself returns, before autograd drops some
            raw = node.apply(*for_each_top)
            raw = raw if isinstance(raw, tuple) else (raw,)
            # A node whose gradients another operator computes has the tensors alone as inputs.
            inputs = alone if len(raw) == len(alone) else [a for a in alone if isinstance(a, Tensor)]
            asked = [isinstance(a, Tensor) and a.requires_grad for a in inputs]
            assert [d is not None for d in raw] == asked, (
                "backward returns a gradient that nobody asked for, or lacks one: see ctx.needs_input_grad"
            )
        (found,) = torch.autograd.grad(
            differentiable(results(result)),
            differentiable([a for a in alone if isinstance(a, Tensor) and a.requires_grad]),
            top_diffs,
        )
        assert same_bits(found, diff)


def test_same_bits_twice(each_dtype):
    arguments = each_dtype.arguments(grad=each_dtype.case.gradient != "none")

    def run():
        result = each_dtype.call(*arguments)
        if each_dtype.case.gradient == "none":
            return results(result)
        return [
            *results(result),
            *torch.autograd.grad(
                differentiable(results(result)), differentiable(arguments), random_like(result)
            ),
        ]

    assert same_bits(run(), run())


def test_inputs_stay_as_they_are(each_dtype):
    """Neither values nor versions of the arguments change, including top_diff."""
    arguments = each_dtype.arguments(grad=each_dtype.case.gradient != "none")
    before = [(a, a.detach().clone(), a._version) for a in arguments if isinstance(a, Tensor)]
    result = each_dtype.call(*arguments)
    if each_dtype.case.gradient != "none":
        top_diffs = random_like(result)
        before += [(d, d.clone(), d._version) for d in top_diffs]
        before += [(t, t.detach().clone(), t._version) for t in results(result)]
        torch.autograd.grad(differentiable(results(result)), differentiable(arguments), top_diffs)
    for tensor, copied, version in before:
        assert tensor._version == version and same_bits(tensor, copied)
    storages = {a.untyped_storage().data_ptr() for a in arguments if isinstance(a, Tensor)}
    assert not any(t.untyped_storage().data_ptr() in storages for t in results(result)), (
        "the result is an argument"
    )
