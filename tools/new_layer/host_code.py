"""The numbers of host code from which a launch's grid and block are made.

numbers = Numbers(source, launch)
numbers.found["blocks"]       # Number("int", "(n + 511) / 512", initialised at ...)
"""

from __future__ import annotations

from typing import NamedTuple

from ..cuda.analysis import CHANGES
from ..cuda.launches import Launch
from ..cuda.outline import split_commas
from ..cuda.source import Source
from ..cuda.tokens import mask, position_from, tidy

WHOLE_WORDS = {"int", "unsigned", "long", "short", "size_t", "int32_t", "int64_t", "uint32_t", "uint64_t"}
TYPE_WORDS = WHOLE_WORDS | {"float", "double", "bool", "dim3", "auto"}
QUALIFIERS = {"const", "constexpr", "static"}


class Number(NamedTuple):
    type: str  # int, dim3, auto, ...
    value: str  # the expression that gives it its only value; "" if that is unknown


class Numbers:
    """The local variables, and the parameters, of the function that launches.

    Attributes:
        found: those that have one value where the launch is.
        changed: those that get several.
    """

    def __init__(self, source: Source, launch: Launch):
        self.found: dict[str, Number] = {}
        self.changed: set[str] = set()
        function = source.function_around(launch.start)
        if function is None:
            return
        self._tokens, self._partner = source.lexed.tokens, source.lexed.partner
        for parameter in function.parameters:
            words = [w for w in parameter.type.split() if w not in QUALIFIERS]
            if words and set(words) <= WHOLE_WORDS:
                self.found[parameter.name] = Number(" ".join(words), "")
        self._assigned: set[str] = set()  # without an initialiser, by a statement that the launch cannot miss
        first = position_from(self._tokens, function.body)
        self._read(first, position_from(self._tokens, launch.start))
        self._forget_changed(first, self._partner.get(first, first))

    def _read(self, first: int, launch: int):
        """Read the statements before the launch, in the blocks around it."""
        tokens, index = self._tokens, first
        while index < launch:
            close = self._partner.get(index, index)
            if tokens[index].text == "{" and close < launch:  # another block
                index = close
            if tokens[index].text in ("{", "}", ";"):
                self._statement(index + 1, launch)
            index += 1

    def _statement(self, first: int, launch: int):
        """Read `type name = value, ...;` or `name = value;`."""
        tokens, last = self._tokens, first
        while last < launch and tokens[last].text not in (";", "{", "}"):
            last = self._partner.get(last, last) + 1
        if last >= launch:
            return
        at = first
        while tokens[at].text in TYPE_WORDS | QUALIFIERS:
            at += 1
        words = [t.text for t in tokens[first:at] if t.text not in QUALIFIERS]
        name = tokens[first].text
        if words:
            for a, b in split_commas(tokens, self._partner, at, last):
                if tokens[a].kind == "name":
                    kind = " ".join(words)
                    self.found[tokens[a].text] = Number(kind, self._initialiser(kind, a, b))
        elif (
            last - first > 2
            and tokens[first + 1].text == "="
            and name in self.found
            and not self.found[name].value
        ):
            self._assigned.add(name)
            self.found[name] = Number(self.found[name].type, self._between(first + 2, last))

    def _initialiser(self, kind: str, a: int, b: int) -> str:
        """The value in `name = value`, `name(value)` or `name{value}`."""
        texts = [t.text for t in self._tokens[a : a + 2]]
        if b - a > 2 and texts[1] == "=":
            return self._between(a + 2, b)
        if b - a > 3 and texts[1] in ("(", "{") and self._partner.get(a + 1) == b - 1:
            value = self._between(a + 2, b - 1)
            return f"dim3({value})" if kind == "dim3" else value
        return ""

    def _between(self, a: int, b: int) -> str:
        return tidy(mask(self._tokens[a:b], self._tokens[a].start, self._tokens[b - 1].end))

    def _forget_changed(self, first: int, end: int):
        changes = dict.fromkeys(self.found, 0)
        for before, token, after in zip(
            self._tokens[first:end],
            self._tokens[first + 1 : end],
            self._tokens[first + 2 : end],
            strict=False,
        ):
            if token.kind != "name" or token.text not in changes or before.text in TYPE_WORDS | {","}:
                continue
            changes[token.text] += before.text in ("++", "--", "&") or after.text in CHANGES | {".", "["}
        for name, count in changes.items():
            if count > (name in self._assigned):
                del self.found[name]
                self.changed.add(name)
