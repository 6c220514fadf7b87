"""Stock layers' parameters: a tree of text as a LayerParameter, and what stock Caffe does not know of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .._caffe.parameters import Parameters, unknown_field
from .._caffe.prototxt import Node, render
from .._runtime import CaffeValueError

STOCK = Parameters(Path(__file__).resolve().parent)  # `make` lays stock Caffe's descriptor beside this file


@dataclass
class Unknown:
    """A field that the messages do not have."""

    path: str  # pooling_param.ceil_mode
    line: int
    value: str | Node
    hint: str


def layer_parameter(node: Node, parameters: Parameters = STOCK):
    """(the LayerParameter, what of the tree it has no fields for). CaffeValueError for values that are wrong."""
    from google.protobuf import text_format

    message = parameters.message("LayerParameter")
    unknown: list[Unknown] = []
    known = _known(node, message.DESCRIPTOR, "", unknown)
    try:
        text_format.Parse(render(known), message)
    except text_format.ParseError as error:
        said = re.sub(r"^\d+:\d+ : ", "", str(error))
        raise CaffeValueError(f"line {error.GetLine() or node.line}: {said}") from None
    return message, unknown


def _known(node: Node, descriptor, path: str, unknown: list[Unknown]) -> Node:
    kept = Node(node.line)
    for entry in node.fields:
        field = descriptor.fields_by_name.get(entry.name)
        where = f"{path}{entry.name}"
        if entry.name == "engine" and not isinstance(entry.value, Node):
            continue  # who computes, of which each fork has its own; never what is computed
        if field is None:
            unknown.append(Unknown(where, entry.line, entry.value, unknown_field(entry.name, descriptor)))
        elif isinstance(entry.value, Node) and field.message_type is not None:
            inside = _known(entry.value, field.message_type, where + ".", unknown)
            kept.fields.append(type(entry)(entry.name, inside, entry.line))
        else:
            kept.fields.append(entry)
    return kept
