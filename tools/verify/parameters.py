"""Guess parameters for a layer that does not run without them.

Most such layers need a size that their message leaves at 0: a number of outputs, a window, a factor. If a failed CHECK
names a field, that field is set, one at a time. Then all whole numbers without a default in the layer's messages are
set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from layers._caffe.parameters import Parameters

SOURCES = (".cpp", ".cu", ".hpp", ".h", ".cuh")
# Parameters that choose between variants, or mean "none" by 0. A guessed size would make another layer of it.
NO_SIZE = re.compile(
    r"axis|ignore|label|background|pad|offset|start|begin|phase|seed|class_id|iter|engine|_id$"
)
# The most rounds of guessing.
MOST = 8


class Guesses:
    """The guessed parameters of one type. Each round of refusals adds some."""

    def __init__(self, folder: Path, type_name: str):
        message = Parameters(folder).message("LayerParameter")
        texts = [f.read_text(errors="replace") for f in sorted(folder.rglob("*")) if f.suffix in SOURCES]
        own = [text for text in texts if f"{type_name}Layer" in text] or texts
        read = {name for text in own for name in words_read(text)}
        self.fields = [
            (field.name, inner)
            for field in message.DESCRIPTOR.fields
            if field.message_type and field.name in read
            for inner in field.message_type.fields
            if is_number(inner)
        ]
        self.values: dict[str, dict[str, str]] = {}
        # A loss of several tops needs a loss_weight for each.
        self.tops = 0
        self.rounds = 0

    def text(self) -> str:
        """The parameters so far, as prototxt."""
        return " ".join(
            [
                *["loss_weight: 1"] * self.tops,
                *(
                    f"{message} {{ {' '.join(f'{name}: {value}' for name, value in of_it.items())} }}"
                    for message, of_it in self.values.items()
                ),
            ]
        )

    def more(self, refusals: Iterable[str]) -> bool:
        """Set the parameters that these messages name, else all sizes. False if nothing is left to set."""
        self.rounds += 1
        said = " ".join(refusals)
        weights = re.search(r"\((\d+) vs\. \d+\) loss_weight must be", said)
        if weights and not self.tops:
            self.tops = int(weights[1])
            return True
        named = [one for one in self.fields if not self._is_set(*one) and names(said, one[1].name)]
        chosen = named[:1] or [one for one in self.fields if not self._is_set(*one) and self._is_size(*one)]
        for message, inner in chosen:
            value = "2" if inner.cpp_type in whole(inner) else "1"
            self.values.setdefault(message, {})[inner.name] = wanted(said, inner.name) or value
        return bool(chosen) and self.rounds < MOST

    def _is_set(self, message: str, inner) -> bool:
        return inner.name in self.values.get(message, {})

    def _is_size(self, message: str, inner) -> bool:
        """Is it a whole number without a default, and no second name of another parameter?"""
        if inner.is_repeated or inner.has_default_value or inner.cpp_type not in whole(inner):
            return False
        both = {other.name for one, other in self.fields if one == message}
        stem = re.sub(r"_[hw]$", "", inner.name)
        twice = stem != inner.name and both & {stem, f"{stem}_size"}
        return not twice and not NO_SIZE.search(inner.name)


def words_read(text: str) -> set[str]:
    """The messages of LayerParameter that a source reads: layer_param_.tile_param()."""
    return set(re.findall(r"\b(\w+_param)\s*\(\s*\)", text))


def is_number(field) -> bool:
    return field.cpp_type in (*whole(field), field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE)


def whole(field) -> tuple[int, ...]:
    return field.CPPTYPE_INT32, field.CPPTYPE_INT64, field.CPPTYPE_UINT32, field.CPPTYPE_UINT64


def wanted(text: str, field: str) -> str | None:
    """The number that a failed CHECK compares the field with: num_output_ == channels (0 vs. 3)."""
    for left, right, of_left, of_right in re.findall(
        r"Check failed: (\S+) == (\S+) \((\d+) vs\. (\d+)\)", text
    ):
        for side, other in ((left, of_right), (right, of_left)):
            if names(side, field) and int(other):
                return other
    return None


def names(text: str, field: str) -> bool:
    """Matches tile_dim, has_tile_dim() and tile_dim_, but not untile_dim."""
    return re.search(rf"(?<![A-Za-z0-9])(has_)?{field}_?(?![A-Za-z0-9_])", text) is not None
