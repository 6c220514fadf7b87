"""Checks of caffe_net's arguments. Each error names the argument."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from ...base import CaffeTypeError, CaffeValueError, describe, path_of
from ...caffe_files.parameters import did_you_mean
from .choice import by_torch, torch_types


def wrong(name: str, wanted: str, got) -> CaffeTypeError:
    return CaffeTypeError(f"caffe_net: {name}: expected {wanted}, got {describe(got)}")


def one_of(name: str, value, *allowed):
    """The value; an error unless it is None or one of `allowed`."""
    if value is not None and not (isinstance(value, str) and value in allowed):
        words = ", ".join(map(repr, allowed))
        raise CaffeValueError(f"caffe_net: {name}: expected {words} or None, got {value!r}")
    return value


def boolean(name: str, value) -> bool:
    if not isinstance(value, bool):
        raise wrong(name, "a bool", value)
    return value


def integer(name: str, value) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise wrong(name, "an int", value) from None


def names(name: str, value) -> tuple[str, ...]:
    """One string, or several."""
    several = (value,) if isinstance(value, str) else value
    if not isinstance(several, (tuple, list, set, frozenset)) or not all(isinstance(v, str) for v in several):
        raise wrong(name, "a string, or a list of strings", value)
    return tuple(several)


def paths(name: str, value) -> list[str]:
    """None, one path or several."""
    several = value if isinstance(value, (tuple, list)) else () if value is None else (value,)
    return [path_of(f"caffe_net: {name}", one) for one in several]


def mapping(name: str, value, kind: type | tuple[type, ...], what: str) -> dict:
    """None, or a dict from strings to values of a kind."""
    if value is None:
        return {}
    right = isinstance(value, Mapping) and all(
        isinstance(k, str) and isinstance(v, kind) for k, v in value.items()
    )
    if not right:
        raise wrong(name, f"a dict from names to {what}", value)
    return dict(value)


def native(name: str, value) -> bool | dict[str, bool]:
    """A bool, or a dict from stock types to bools."""
    if isinstance(value, bool):
        return value
    by_type = mapping(name, value, bool, "bools")
    for type_name in by_type:
        if not by_torch(type_name):
            near = did_you_mean(type_name, torch_types())
            raise CaffeValueError(f"caffe_net: {name}: {type_name!r} is not a type that torch computes{near}")
    return by_type


def shapes(name: str, value) -> dict[str, tuple[int, ...]]:
    """None, or a dict from blobs to their sizes."""
    found = {}
    for blob, shape in mapping(name, value, (tuple, list), "shapes").items():
        try:
            found[blob] = tuple(operator.index(size) for size in shape)
        except TypeError:
            raise wrong(f"{name}[{blob!r}]", "a tuple of ints", shape) from None
        if not all(0 <= size < 1 << 31 for size in found[blob]):
            raise CaffeValueError(f"caffe_net: {name}[{blob!r}]: {list(shape)}: a size is out of range")
    return found


def prototxt(value):
    """A path, or the text itself."""
    if isinstance(value, str) and ("{" in value or "\n" in value):
        return value
    return path_of("caffe_net: prototxt", value)
