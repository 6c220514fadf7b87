"""The errors that layers raise, and how their messages describe a value."""

import os

import torch
from torch import Tensor

# The types that can be handed to C as they are.
PLAIN = frozenset({Tensor, torch.nn.Parameter})


class CaffeError(Exception):
    """Base of all errors raised by layers; each is also the builtin kind that fits."""


class CaffeTypeError(CaffeError, TypeError):
    """Not a tensor, or one of the wrong dtype, device or layout."""


class CaffeValueError(CaffeError, ValueError):
    """A tensor of the wrong shape, or a parameter out of range."""


class CaffeRuntimeError(CaffeError, RuntimeError):
    """The library is missing or unfit for this machine, or the C function failed."""


def describe(value) -> str:
    """What an error message says came instead: 'cuda:0 float32 [2, 3]'."""
    if not isinstance(value, Tensor):
        return f"{type(value).__name__} {value!r}"[:80]
    if value.is_nested:
        return f"nested {value.device} {dtype_name(value.dtype)}"
    layout = "" if value.layout == torch.strided else f"{str(value.layout).removeprefix('torch.')} "
    return f"{layout}{value.device} {dtype_name(value.dtype)} {list(value.shape)}"


def path_of(subject: str, value) -> str:
    """A path as a text. An int is none: `open` would take it for the number of an open file, and close that one."""
    try:
        path = os.fsdecode(value)
    except TypeError:
        raise CaffeTypeError(f"{subject}: expected a path, got {describe(value)}") from None
    if not path or "\0" in path:
        raise CaffeValueError(f"{subject}: expected a path, got {path!r}")
    return path


def refuse_script(name: str):
    """What torch.jit.script comes to: it reads Python's source, and a layer is a library."""
    raise CaffeRuntimeError(
        f"{name}: torch.jit.script cannot take a layer; torch.jit.trace, torch.export and torch.compile can"
    )


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def some(items, most: int = 50) -> list[str]:
    """The first ones, for a message that lists them, and how many more there are."""
    items = list(items)
    return [*items[:most], *[f"and {len(items) - most:,} more"] * (len(items) > most)]
