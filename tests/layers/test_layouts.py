"""Every layer's cases with views and empty tensors."""

import pytest
import torch
from support.layers import (
    is_laid_out,
)
from support.points import (
    differentiable,
    random_like,
    same_bits,
)
from torch import Tensor

from cuffi.runtime.cases import Case, Draw, cast, results


def transposed(x):
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def sliced(x):
    padded = torch.full((*x.shape, 3), float("nan"), dtype=x.dtype, device=x.device)
    padded[..., 1] = x
    return padded[..., 1]


def offset(x):
    """Contiguous, but aligned to one element only."""
    return torch.cat([x.new_full((1,), float("nan")), x.flatten()])[1:].view(x.shape)


def expanded(x):
    return x[:1].expand_as(x) if x.dim() else x


def channels_last(x):
    return x.to(memory_format=torch.channels_last) if x.dim() == 4 else transposed(x)


def negated(x):
    """Its memory has -x and the negative bit, like z.conj().imag."""
    return torch._neg_view(-x)


@pytest.mark.parametrize(
    "view", [transposed, sliced, offset, expanded, channels_last, negated], ids=lambda f: f.__name__
)
def test_views(each_device, view):
    """A view gives the result of its contiguous copy, forward and backward."""
    like_its_copy(each_device, view)


def test_views_in_each_dtype(each_dtype):
    like_its_copy(each_dtype, channels_last)


def like_its_copy(point, view):
    viewed = [
        view(a) if isinstance(a, Tensor) and a.is_floating_point() and a.dim() else a
        for a in point.arguments()
    ]
    copies = [a.clone(memory_format=torch.contiguous_format) if isinstance(a, Tensor) else a for a in viewed]
    if point.case.gradient != "none":
        for a in differentiable(viewed + copies):
            a.requires_grad_()
    one, other = point.call(*viewed), point.call(*copies)
    # A layer with kernels for several layouts may add up in another order in each.
    alike = point.assert_close if point.layer_object.any_layout else assert_same_bits
    alike(one, other)
    assert all(is_laid_out(t) for t in results(one))
    if point.case.gradient != "none":
        top_diffs = random_like(one)
        views = [view(d) if d.dim() else d for d in top_diffs]
        copied = [v.clone(memory_format=torch.contiguous_format) for v in views]
        found = torch.autograd.grad(differentiable(results(one)), differentiable(viewed), views)
        alike(found, torch.autograd.grad(differentiable(results(other)), differentiable(copies), copied))


def assert_same_bits(one, other):
    assert same_bits(one, other)


def empty_arguments(case: Case, dtype, device, grad=False):
    if case.empty:
        return cast(case.empty(Draw()), dtype, device, grad)
    given = next(iter(case.inputs.values()))(Draw())
    return cast(tuple(a[:0] if isinstance(a, Tensor) and a.dim() else a for a in given), dtype, device, grad)


def test_empty(each_dtype):
    case = each_dtype.case
    arguments = empty_arguments(case, each_dtype.dtype, each_dtype.device, case.gradient != "none")
    result = each_dtype.call(*arguments)
    doubled, reference = each_dtype.reference(*arguments, grad=case.gradient != "none")
    assert [t.shape for t in results(result)] == [t.shape for t in results(reference)]
    each_dtype.assert_close(result, reference)
    if case.gradient != "none":
        found = torch.autograd.grad(
            differentiable(results(result)),
            differentiable(arguments),
            [torch.ones_like(t) for t in differentiable(results(result))],
        )
        wanted = torch.autograd.grad(
            differentiable(results(reference)),
            differentiable(doubled),
            [torch.ones_like(t) for t in differentiable(results(reference))],
        )
        each_dtype.assert_close(found, wanted)
    if each_dtype.device == "cuda":
        torch.cuda.synchronize()  # a launch of 0 blocks would leave an error for this one
