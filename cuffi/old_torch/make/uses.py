"""Find out from the text of an extension's C functions which tensors' strides they read, and which they write.

The text is matched by patterns, not parsed. If in doubt, a tensor's strides count as read, and the tensor as not
written.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\\\.|[^\"\\\\\n])*\"", re.S)
_DEFINITION = re.compile(r"\b(\w+)\s*\(([^(){};]*)\)\s*\{")
_CALL = re.compile(r"\b(\w+)\s*(?:<[\w\s,:*]*>\s*)?(?:<<<.*?>>>\s*)?\(", re.S)
_NOT_FUNCTIONS = frozenset({"if", "for", "while", "switch", "return", "sizeof", "catch"})
# A pointer made from another: `float *p = (float *)q + 3;`, `= &q[3];`, `= THFloatTensor_data(q);`.
_ALIAS = re.compile(
    r"\b(\w+)\s*=\s*(?:\([^()]*\)\s*)?"
    r"(?:&\s*(\w+)\s*\[|(\w+)\b(?!\s*[.(\[]|\s*->)|\w+_data\s*\(([^()]*)\))"
)
_ASSIGNS = r"\s*(?:[-+*/|&]?=(?!=)|\+\+|--)"
# TH's functions that neither read strides nor pass the tensor on.
_OF_DENSE = re.compile(
    r"TH\w*(?:Tensor|Storage)_(?:data|size|nElement|numel|nDimension|isSameSizeAs|storage|storageOffset|resize\w+|zero|fill|"
    r"free|retain|getDevice|sizeDesc|get[1-4]d|set[1-4]d)\Z|TH\w*Check|TH\w*GPU|TH\w*checkGPU|THAssert\w*"
)


class Body(NamedTuple):
    parameters: list[str]
    text: str
    path: str


def split(arguments: str) -> list[str]:
    """The arguments of a call, at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(arguments):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append(arguments[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, arguments[start:]]]


def closing(text: str, opening: int) -> int:
    """The place of the bracket that closes the one at `opening`; the text's end if there is none."""
    left, right = text[opening], {"(": ")", "[": "]", "{": "}"}[text[opening]]
    depth = 0
    for i in range(opening, len(text)):
        depth += (text[i] == left) - (text[i] == right)
        if not depth:
            return i
    return len(text)


class Uses:
    """The functions that files define. texts: by path."""

    def __init__(self, texts: dict[str, str]):
        self.texts, self.bodies = texts, {}
        for path, text in texts.items():
            text = _COMMENT.sub(" ", text)
            for found in _DEFINITION.finditer(text):
                if found[1] not in _NOT_FUNCTIONS:
                    names = [(re.findall(r"\w+", part) or [""])[-1] for part in split(found[2])]
                    end = closing(text, found.end() - 1)
                    self.bodies.setdefault(found[1], Body(names, text[found.end() : end], path))

    def is_cpp(self, function: str) -> bool:
        """Is it defined in C++, without C's linkage?"""
        body = self.bodies.get(function)
        return (
            bool(body)
            and body.path.endswith((".cpp", ".cc", ".cxx"))
            and 'extern "C"' not in self.texts[body.path]
        )

    def name(self, function: str, index: int) -> str:
        """The name that the definition gives to a parameter; "" if it is unknown."""
        body = self.bodies.get(function)
        return body.parameters[index] if body and index < len(body.parameters) else ""

    def any_layout(self, function: str, index: int) -> bool:
        """May the function read the strides of this tensor?"""
        body, parameter = self.bodies.get(function), self.name(function, index)
        if not body or not parameter:
            return True
        if re.search(rf"\b{parameter}\s*->\s*stride\b", body.text):
            return True
        return any(
            parameter in arguments and not _OF_DENSE.match(name) for name, arguments in self.calls(function)
        )

    @functools.cache  # noqa: B019 (one object for each run)
    def calls(self, function: str) -> list[tuple[str, list[str]]]:
        """The calls and launches in a function: the name, and the arguments."""
        text = self.bodies[function].text
        return [
            (found[1], split(text[found.end() : closing(text, found.end() - 1)]))
            for found in _CALL.finditer(text)
            if found[1] not in _NOT_FUNCTIONS
        ]

    def writes(self, function: str, parameter: str, seen: frozenset = frozenset()) -> bool:
        """Is it certain that the function, or one that it calls, has a statement that writes to this memory?"""
        body = self.bodies.get(function)
        if not body or (function, parameter) in seen:
            return False
        names = {parameter}
        for found in _ALIAS.finditer(body.text):
            if {found[2], found[3], found[4] and split(found[4])[-1]} & names:
                names.add(found[1])
        if any(self._stores(body.text, name) for name in names):
            return True
        for called, arguments in self.calls(function):
            callee = self.bodies.get(called)
            for given, taken in zip(arguments, callee.parameters if callee else (), strict=False):
                start = re.match(r"(?:\([^()]*\)\s*)?&?\s*(\w+)\b(?!\s*\()", given)
                data = re.match(r"\w+_data\s*\(([^()]*)\)", given)
                root = split(data[1])[-1] if data else start and start[1]
                if root in names and self.writes(called, taken, seen | {(function, parameter)}):
                    return True
        return False

    @staticmethod
    def _stores(text: str, name: str) -> bool:
        if re.search(
            rf"(?:\A|[;{{}})])\s*\*\s*{name}{_ASSIGNS}|\batomic\w+\s*\(\s*&?\s*\(?\s*{name}\b", text
        ):
            return True
        for found in re.finditer(rf"\b{name}\s*\[", text):
            if re.match(_ASSIGNS, text[closing(text, found.end() - 1) + 1 :]):
                return True
        return bool(re.search(rf"\*\s*\(\s*{name}\b[^()]*\){_ASSIGNS}", text))
