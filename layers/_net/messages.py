"""A layer of a prototxt as stock Caffe's LayerParameter, and the fields that stock Caffe does not have."""

from __future__ import annotations

from pathlib import Path

from .._caffe.parameters import Parameters, Unknown, read_fields
from .._caffe.prototxt import Node

STOCK = Parameters(Path(__file__).resolve().parent)  # `make` puts stock Caffe's descriptor beside this file


def layer_parameter(node: Node) -> tuple[object, list[Unknown]]:
    """(the LayerParameter, the fields that it does not have). CaffeValueError for wrong values."""
    message = STOCK.message("LayerParameter")
    # `engine` names an implementation, and forks have their own. It never changes the result.
    return message, read_fields(node, message, without=("engine",))
