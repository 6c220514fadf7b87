"""The derivative of an operator: nodes of autograd, and a backward that another operator computes."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence

import torch
from torch._library import autograd

from ..base.errors import CaffeRuntimeError, CaffeTypeError
from .named import tell_caches

if typing.TYPE_CHECKING:
    from .operator import Operator


def by_another(operator: Operator, gradient, save: Sequence[str]):
    """What saves for a backward that another operator computes, and that backward (Operator.backward_by)."""
    _check_gradient(operator, gradient, save)
    saved, names = [operator.names.index(name) for name in save], operator.names
    tensors = [i for i, name in enumerate(names) if name in operator.tensors]
    others = [i for i, name in enumerate(names) if name not in operator.tensors]
    nothing, only = [None] * len(names), tensors[0] if len(tensors) == 1 else None

    def keep(ctx, arguments, result):
        ctx.save_for_backward(*[arguments[i] for i in saved])
        # The parameters, with True in place of each tensor, as the builtin keeps them.
        ctx.given = tuple([a if a is None or i in others else True for i, a in enumerate(arguments)])

    def backward(ctx, *top_diffs):
        wanted = ctx.needs_input_grad
        found = gradient(
            *top_diffs, *ctx.saved_tensors, *[ctx.given[i] for i in others], *[wanted[i] for i in tensors]
        )
        diffs = nothing.copy()
        for i, diff in zip(tensors, (found,) if only is not None else found, strict=True):
            if wanted[i]:
                diffs[i] = diff
        return tuple(diffs)

    return keep, backward


def _check_gradient(operator: Operator, gradient, save) -> None:
    """Check the parameters' names, because a call would notice only a wrong number of arguments."""
    takes = list(inspect.signature(gradient).parameters)
    tops = len(operator.torch_op._schema.returns)
    parameters = [name for name in operator.names if name not in operator.tensors]
    passed = ["top_diff"] * tops + [*save, *parameters] + [f"{name}_wanted" for name in operator.tensors]
    if unknown := [name for name in save if name not in operator.tensors]:
        raise CaffeTypeError(
            f"{operator.layer.name}: backward_by: save: {unknown[0]!r} is not a tensor of {operator.function.__name__}"
        )
    if len(takes) != len(passed):
        raise CaffeTypeError(
            f"{operator.layer.name}: backward_by: {gradient.__name__} is given {', '.join(passed)}; "
            f"it takes {', '.join(takes)}"
        )


def register_backward(operator: Operator, node, save) -> None:
    """As torch.library.register_autograd, with the builtin before it. That runs a clear call without a gradient."""
    name = operator.torch_op.name().split(".")[0]
    setup = None if save is None else lambda ctx, inputs, output: save(ctx, inputs, output)
    tell_caches(f"{name}, backward", node, save)
    if not hasattr(operator.short, "in_torch"):
        torch.library.register_autograd(name, node, setup_context=setup, lib=operator.library)
        return
    careful = autograd.make_autograd_impl(operator.torch_op, autograd.Info(node, setup))
    operator.short.in_torch(registered=operator.registered, autograd=careful, op=operator.of_torch)
    operator.library.impl(operator.function.__name__, operator.short.autograd, "Autograd", with_keyset=True)


def node_of(operator: Operator, backward, save=None):
    """Make an autograd.Function, and return its `apply`. Without the short way it saves tensors by `save`."""
    name = operator.function.__name__

    def forward(ctx, *arguments):
        result = operator.plain(*arguments)
        if save is not None:
            save(ctx, arguments, result)
        return result

    def jvp(ctx, *_):
        raise CaffeRuntimeError(f"{operator.layer.name}: {name} has no forward-mode derivative (jvp)")

    kept = {
        "forward": staticmethod(getattr(operator.short, "forward", forward)),
        "backward": staticmethod(backward),
        "jvp": staticmethod(jvp),
        "__doc__": f"Autograd of {name}.",
    }
    node = type(f"{name}_function", (torch.autograd.Function,), kept)
    return apply_of(node)


def apply_of(node: type[torch.autograd.Function]) -> Callable[..., typing.Any]:
    """A node's `apply` without its part in Python, which looks for functorch transforms: the calls here have none."""
    return vars(torch._C._FunctionBase)["apply"].__get__(None, node)


def once(function, name: str):
    """A backward whose own derivative is an error.

    torch's once_differentiable only looks at top_diff. If that is a constant, as in `y.sum()`, the gradients have no
    graph, and a penalty on them would silently have a zero gradient.
    """

    def backward(ctx, *top_diffs):
        if not torch.is_grad_enabled():  # no create_graph=True, so there is no second derivative
            return function(ctx, *top_diffs)
        with torch.no_grad():
            diffs = function(ctx, *top_diffs)
        diffs = diffs if isinstance(diffs, tuple) else (diffs,)
        kept = [d for d in diffs if d is not None]
        refusing = iter(_Refuse.apply(name, len(kept), *kept, *top_diffs, *ctx.saved_tensors))
        return tuple(None if d is None else next(refusing) for d in diffs)

    return backward


class _Refuse(torch.autograd.Function):
    """Return the first `count` tensors. They depend on all tensors, and their derivative is an error."""

    @staticmethod
    def forward(ctx, name, count, *tensors):
        ctx.name = name
        return tuple(t.view_as(t) for t in tensors[:count])

    @staticmethod
    def backward(ctx, *_):
        raise CaffeRuntimeError(
            f"{ctx.name} can be differentiated once only: it has no second derivative. If its backward is made of "
            "differentiable operators, define it by .backward(twice=True)"
        )
