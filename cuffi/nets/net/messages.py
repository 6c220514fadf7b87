"""Parts of a prototxt as stock Caffe's messages, and the fields that stock Caffe does not have."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any

from ...base import CaffeValueError
from ...caffe_files.parameters import Parameters, Unknown, read_fields
from ...caffe_files.prototxt import Node

STOCK = Parameters(Path(__file__).resolve().parent)  # `make` writes stock Caffe's descriptor beside this file

# `engine` chooses an implementation; forks have their own. NVCaffe's other fields choose the dtype of a layer, which is
# the module's here. None of them changes the function.
_NUMBERS = ("forward_type", "backward_type", "forward_math", "backward_math")
_MEMORY = (
    "eltwise_mem_sharing",
    "global_grad_scale",
)  # NVCaffe's: a layout, and a factor that the update undoes
_HARMLESS = ("engine", *_MEMORY, *_NUMBERS, *(f"default_{name}" for name in _NUMBERS))


def layer_parameter(node: Node, words: Container[str] = ()) -> tuple[Any, list[Unknown]]:
    """(the LayerParameter, the fields that it does not have). CaffeValueError for wrong values."""
    message = STOCK.message("LayerParameter")
    return message, read_fields(node, message, _HARMLESS, words)


def message_of(node: Node, name: str, ignore: tuple[str, ...] = ()):
    """The stock message of that name, such as a NetStateRule.

    Raises:
        CaffeValueError: a wrong value, or an unknown field that is not ignored.
    """
    message = STOCK.message(name)
    try:
        unknown = read_fields(node, message, without=_HARMLESS)
    except CaffeValueError as error:
        raise CaffeValueError(f"{node.path}, {error}") from None
    for one in unknown:
        if one.path not in ignore:
            hint = f"{one.hint}. If it does not matter: ignore=({one.path!r},)"
            raise CaffeValueError(f"{node.path}, line {one.line}: {hint}")
    return message
