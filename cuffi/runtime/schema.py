"""Read a function's annotations: its schema for torch, and which of its parameters are tensors."""

import collections.abc
import functools
import inspect
import types
import typing
from operator import or_

import torch
from torch import Tensor

from ..base.errors import CaffeTypeError

# Subscripted at run time, which is no type to a checker.
_SEQUENCE: typing.Any = typing.Sequence


def schema_of(function) -> str:
    """A function's signature as torch writes it."""
    try:
        return torch.library.infer_schema(function, mutates_args=())
    except ValueError:
        # An older torch, such as 2.5, knows only typing's own sequences.
        hints = typing.get_type_hints(function)
        signature = inspect.signature(function)
        parameters = [
            p.replace(annotation=_by_typing(hints.get(name, p.annotation)))
            for name, p in signature.parameters.items()
        ]

        def same():
            """A function that is used only for its signature."""

        read = signature.replace(parameters=parameters, return_annotation=hints.get("return"))
        vars(same).update(__signature__=read)
        return torch.library.infer_schema(same, mutates_args=())


def _by_typing(hint):
    """`list[int]` and `collections.abc.Sequence[int]` as `typing.Sequence[int]`, also if optional."""
    origin, of = typing.get_origin(hint), typing.get_args(hint)
    if origin in (list, collections.abc.Sequence):
        return _SEQUENCE[of[0]]
    if origin in (types.UnionType, typing.Union):
        return functools.reduce(or_, map(_by_typing, of))
    return hint


def tensor_kind(parameter: str, annotation) -> str | None:
    """'tensor', 'optional' (a tensor or None), or None for the annotation of a parameter that is not a tensor.

    Args:
        parameter: names the parameter in an error.
    """
    if annotation is Tensor:
        return "tensor"
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    if is_union and set(typing.get_args(annotation)) == {Tensor, type(None)}:
        return "optional"
    if "Tensor" in str(annotation):
        raise CaffeTypeError(f"{parameter}: an operator takes Tensor or Tensor | None, not {annotation}")
    return None
