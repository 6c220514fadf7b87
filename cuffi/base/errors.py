"""The errors that layers raise, and how their messages describe a value."""

import os
import re

import torch
from torch import Tensor

from .shown import without_escapes

# The tensor types that C takes as they are.
PLAIN = frozenset({Tensor, torch.nn.Parameter})


# The folder of a layer in load's cache (cuffi/loading/cache.py), before a source's name.
_IN_CACHE = re.compile(r"/\S*?-[0-9a-f]{32}/src/(?:\w+/)?(?=[\w./+-]+\.(?:cuh?|hpp|h|cpp|cc)\b)")


def _for_users(text: str) -> str:
    return _IN_CACHE.sub("", without_escapes(text))


class CaffeError(Exception):
    """Base of all errors of layers. Each is also a TypeError, ValueError or RuntimeError.

    Its text has no escape sequences: a name from a file of somebody else can contain them. A source in load's cache has
    the name that the user gave it.
    """

    def __init__(self, *arguments):
        super().__init__(*(_for_users(a) if isinstance(a, str) else a for a in arguments))


class CaffeTypeError(CaffeError, TypeError):
    """Not a tensor, or a tensor of the wrong dtype, device or layout."""


class CaffeValueError(CaffeError, ValueError):
    """A tensor of the wrong shape, or a parameter out of range."""


class CaffeRuntimeError(CaffeError, RuntimeError):
    """The library is missing or cannot run on this machine, or the C function failed."""


def describe(value) -> str:
    """A value for an error message: 'cuda:0 float32 [2, 3]'."""
    if not isinstance(value, Tensor):
        return f"{type(value).__name__} {value!r}"[:80]
    if value.is_nested:
        return f"nested {value.device} {dtype_name(value.dtype)}"
    layout = "" if value.layout == torch.strided else f"{str(value.layout).removeprefix('torch.')} "
    return f"{layout}{value.device} {dtype_name(value.dtype)} {list(value.shape)}"


def path_of(subject: str, value) -> str:
    """A path as a string. An int is refused: `open` would use it as a file descriptor, and close that file."""
    try:
        path = os.fsdecode(value)
    except TypeError:
        raise CaffeTypeError(f"{subject}: expected a path, got {describe(value)}") from None
    if not path or "\0" in path:
        raise CaffeValueError(f"{subject}: expected a path, got {path!r}")
    return path


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def some(items, most: int = 50) -> list[str]:
    """The first `most` items for a message, and how many more there are."""
    items = list(items)
    return [*items[:most], *[f"and {len(items) - most:,} more"] * (len(items) > most)]
