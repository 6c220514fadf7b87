"""Stock layers' parameters: a layer of a prototxt as a LayerParameter, and what stock Caffe does not know of it."""

from __future__ import annotations

from pathlib import Path

from .._caffe.parameters import Parameters, Unknown, read_fields
from .._caffe.prototxt import Node

STOCK = Parameters(Path(__file__).resolve().parent)  # `make` lays stock Caffe's descriptor beside this file


def layer_parameter(node: Node) -> tuple[object, list[Unknown]]:
    """(the LayerParameter, what it has no fields for). CaffeValueError for values that are wrong."""
    message = STOCK.message("LayerParameter")
    # `engine` says who computes, of which each fork has its own; never what is computed.
    return message, read_fields(node, message, without=("engine",))
