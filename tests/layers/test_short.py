"""Every operator's short way gives the result of the careful way, for all cases."""

import contextlib
import importlib

import pytest
import torch
from conftest import PACKAGE
from support.points import cases_of, differentiable, random_like, same_bits

from cuffi.runtime.cases import results

of_operators = pytest.mark.only(lambda case: not case.has_modes)


def operators_of(layer: str) -> list:
    """The operators in a layer's module, as the runtime's objects."""
    module = vars(importlib.import_module(f"{PACKAGE}.{layer}"))
    made = [getattr(v, "operator", None) for v in module.values()]
    return [operator for operator in made if hasattr(operator, "torch_op")]


def forget(layer: str) -> None:
    """From here on, the next calls go the careful way."""
    for operator in operators_of(layer):
        operator.short.clear()


def forward_and_backward(point, seed: int) -> tuple:
    """The tops, and the gradients of all tensors that can have one."""
    grad = point.case.gradient != "none"
    arguments = point.arguments(grad, seed)
    tops = results(point.call(*arguments))
    if not grad:
        return tops
    return (
        *tops,
        *torch.autograd.grad(differentiable(tops), differentiable(arguments), random_like(tops, seed)),
    )


@of_operators
def test_a_plan_gives_the_same_bits(point):
    """Forward and backward; with other values in between, and without a gradient."""
    forget(point.layer)
    careful = forward_and_backward(point, 1)
    without = results(point.call(*point.arguments()))
    for seed in (2, 3, 4):
        forward_and_backward(point, seed)
        point.call(*point.arguments(seed=seed))
    if point.case is cases_of(point.layer)[0]:  # another function may do more than allocate and launch
        made = sum(operator.short.plans() for operator in operators_of(point.layer))
        assert made or point.layer == "lltm", (
            "no call of this layer is ever repeated by a plan"
        )  # lltm: torch.mm
    assert same_bits(forward_and_backward(point, 1), careful)
    assert same_bits(point.call(*point.arguments()), without)


@pytest.mark.only(lambda case: case.gradient != "none")
def test_what_autograd_refuses_is_torchs_own_error(each_way):
    """A second backward, and a backward after an input was changed in place. A layer that saved nothing takes both.

    What is saved depends on the arguments' kinds, not on their sizes: one input of each choice of optional tensors.
    """
    for seed, wrong in enumerate(["second time", "modified by an inplace operation"] * 3):
        arguments = each_way.arguments(True, seed)
        tops = differentiable(results(each_way.call(*arguments)))
        inputs, top_diffs = differentiable(arguments), random_like(tops, seed)
        saved = {
            t.data_ptr() for top in tops for t in getattr(top.grad_fn, "saved_tensors", ()) if t is not None
        }
        if wrong == "second time":
            torch.autograd.grad(tops, inputs, top_diffs)
        else:
            saved &= {tensor.data_ptr() for tensor in inputs}
            with torch.no_grad():
                for tensor in inputs:
                    tensor.add_(1)
        with pytest.raises(RuntimeError, match=wrong) if saved else contextlib.nullcontext():
            torch.autograd.grad(tops, inputs, top_diffs)


@pytest.mark.only(lambda case: case.gradient != "none")
def test_negated_memory_after_plans(each_way):
    """A view like z.conj().imag has the negated values in memory. Backward gets it, too, if forward saved it."""
    for seed in (1, 2, 3, 4):
        wanted = forward_and_backward(each_way, seed)
    arguments = each_way.arguments(True, 4)
    negated = [
        torch._neg_view(a.detach().neg()).requires_grad_(a.requires_grad)
        if isinstance(a, torch.Tensor) and a.is_floating_point()
        else a
        for a in arguments
    ]
    for top_diff in (lambda diff: diff, lambda diff: torch._neg_view(diff.neg())):
        tops = results(each_way.call(*negated))
        top_diffs = [top_diff(diff) for diff in random_like(tops, 4)]
        found = (*tops, *torch.autograd.grad(differentiable(tops), differentiable(negated), top_diffs))
        assert same_bits(found, wanted)


@pytest.mark.only(lambda case: case.gradient != "none")
def test_a_batch_of_gradients(each_way):
    """autograd.grad(is_grads_batched=True) gives each gradient, as for torch's operators. A Caffe layer refuses it."""
    arguments = each_way.arguments(True, 1)
    tops = differentiable(results(each_way.call(*arguments)))
    inputs, each = differentiable(arguments), [random_like(tops, seed) for seed in (1, 2, 3)]
    batch = [torch.stack(diffs) for diffs in zip(*each, strict=True)]
    if each_way.case.has_modes:
        with pytest.raises(TypeError, match=r"expected a tensor that has memory \(.* torch.vmap's\)"):
            torch.autograd.grad(tops, inputs, batch, is_grads_batched=True, allow_unused=True)
        return
    wanted = [
        torch.autograd.grad(tops, inputs, diffs, retain_graph=True, allow_unused=True) for diffs in each
    ]
    found = torch.autograd.grad(tops, inputs, batch, is_grads_batched=True, allow_unused=True)
    for batched, single in zip(found, zip(*wanted, strict=True), strict=True):
        assert (batched is None) == (single[0] is None)
        if batched is not None:
            torch.testing.assert_close(batched, torch.stack(single))
