"""Refuse trees of 2014, whose layers have another interface."""

from __future__ import annotations

from ..caffe.registers import registrations
from ..refused import Refused
from .items import Place
from .tree import Tree


def check_age(tree: Tree) -> None:
    """Raise Refused if the tree is of 2014, because its layers have another interface."""
    if place := _old(tree):
        raise Refused(
            f"{place}: a tree of 2014. Take a later tree of the same layer, or put its files into a folder by hand "
            "and change what differs in its Layer: " + "; ".join(_differences(tree))
        )


def _differences(tree: Tree) -> list[str]:
    """The differences between the interface of a layer in this tree and that of 2015 and later."""
    constant = (
        'type() is a constant of LayerParameter_LayerType: return its name, "Pooling", and register that'
    )
    differences = [constant]
    file = "include/caffe/layer.hpp"
    tokens = tree[file].source.lexed.tokens if tree.has(file) else []
    words = " ".join(token.text for token in tokens)
    signs = {
        "vector < Blob < Dtype > * > * top": "tops are a pointer, vector<...>* top: now const vector<...>& top",
        "vector < Blob < Dtype > * > * bottom": "so are Backward's bottoms",
        "Dtype Forward_cpu (": "Forward_cpu and Forward_gpu return a loss: now void, and the loss goes into top[0]",
        "const bool propagate_down": "propagate_down is one bool: now const vector<bool>&, one a bottom",
    }
    differences += [text for sign, text in signs.items() if sign in words]
    if "LayerSetUp" not in words:
        differences.append("SetUp does it all: now LayerSetUp, and Reshape, which each call runs")
    return differences


def _old(tree: Tree) -> Place | None:
    """The place that shows that a tree is of 2014: an old registration, or an old factory. None if it is newer."""
    for file in tree.registering:
        for registration in registrations(tree[file].source):
            if registration.is_old:
                return tree[file].place(registration.at)
    for file in tree.holding("LayerParameter_LayerType"):
        tokens = tree[file].source.lexed.tokens if file.endswith("layer_factory.cpp") else []
        for token in tokens:
            if token.text == "LayerParameter_LayerType":
                return tree[file].place(token)
    return None
