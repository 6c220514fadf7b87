"""Shared by the tests of every layer: their points, a layer's operators, its module."""

import inspect

import pytest
import torch
from support.points import (
    PACKAGE,
    Point,
    differentiable,
    layer_object,
    random_like,
)
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from cuffi.runtime.cases import results

# Of a grid's points, those whose case ...
differentiated = pytest.mark.only(lambda case: case.gradient != "none")
numeric = pytest.mark.only(lambda case: case.gradient == "numeric")
twice = pytest.mark.only(lambda case: case.gradient != "none" and case.twice)
once = pytest.mark.only(lambda case: case.gradient != "none" and not case.twice)
elementwise = pytest.mark.only(lambda case: case.elementwise)
of_module = pytest.mark.only(lambda case: case.module is not None, first=True)
of_operators = pytest.mark.only(lambda case: not case.has_modes)


def dtype_of(layer) -> torch.dtype:
    dtypes = layer_object(layer).dtypes
    return torch.float32 if torch.float32 in dtypes else dtypes[0]


def is_laid_out(tensor) -> bool:
    """Contiguous, or channels_last where a layer works in that layout too."""
    return tensor.is_contiguous() or (
        tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    )


class OperatorCalls(TorchDispatchMode):
    """Remembers the calls of a layer's operators, made forward and backward."""

    def __init__(self, namespace: str):
        super().__init__()
        self.namespace, self.calls = namespace, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == self.namespace:
            self.calls.append((func, args))
        return func(*args, **(kwargs or {}))


def operator_calls(point: Point):
    """(operator, arguments) for each operator that the case's function calls, including backward."""
    arguments = point.arguments(grad=point.case.gradient != "none")
    with OperatorCalls(f"{PACKAGE}_{point.layer}".replace(".", "_")) as mode:
        result = point.call(*arguments)
        if point.case.gradient != "none":
            torch.autograd.grad(
                differentiable(results(result)), differentiable(arguments), random_like(result)
            )
    return mode.calls


def module_and_call(point):
    """The case's module with the parameters from the arguments, and the remaining arguments for its call."""
    arguments = point.arguments()
    named = dict(zip(inspect.signature(point.case.function).parameters, arguments, strict=False))
    module = point.case.module().to(point.device, point.dtype)
    for name, parameter in module.named_parameters():
        parameter.data.copy_(named.pop(name))
    return module, [a for a in named.values() if isinstance(a, Tensor)]
