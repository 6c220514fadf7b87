"""The names of launchers and functions, made from the names of kernels."""

from __future__ import annotations

import itertools
import re

# Names that every layer's module uses.
TAKEN = {"tensor", "operator", "nn", "torch", "case"}


def snake_case(name: str) -> str:
    """MaxPoolForward -> max_pool_forward, ROIPool -> roi_pool, kernel_channel_max -> kernel_channel_max."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"_+", "_", name).strip("_").lower()


def without_layer(layer: str, snake: str) -> str:
    """`snake` without the layer's name in front: for layer relu, re_lu_forward -> forward."""
    words, wanted = snake.split("_"), layer.replace("_", "")
    for count in range(1, len(words) + 1):
        if "".join(words[:count]) == wanted:
            return "_".join(words[count:])
    return snake


def launcher_name(layer: str, kernel: str) -> str:
    rest = without_layer(layer, snake_case(kernel))
    return f"{layer}_{rest}" if rest else f"{layer}_kernel"


def unique(name: str, used: set[str]) -> str:
    """`name`, or `name_` if it is used."""
    while name in used:
        name += "_"
    return name


def numbered(name: str, used: set[str]) -> str:
    """`name`, or `name_2` if it is used."""
    return next(n for i in itertools.count(1) if (n := f"{name}_{i}" if i > 1 else name) not in used)
