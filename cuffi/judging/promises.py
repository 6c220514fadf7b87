"""What a kernel's author promises of its arguments: comments above it, or the same in JSON.

    // requires: blockDim.x == 256, n % 4 == 0
    // size: x n, y n
    __global__ void k(const float* x, float* y, int n)

`requires` has conditions that C++ can read, of parameters, blockDim and gridDim. `size` has the elements of arrays. The
JSON is {"k": {"requires": ["blockDim.x == 256"], "size": {"x": "n"}}}.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SAID = re.compile(r"^[\s/*!]*(requires|size)\s*:\s*(.*?)[\s*/]*$")
_COMMENT = re.compile(r"\s*(//|/?\*)")
_WORDS = re.compile(r"[\w\s.+\-*/%<>=!&|()?:,]+")
_SETS = re.compile(r"((?:block|grid)Dim\.[xyz]|\w+)\s*(==|<=|>=|<|>)\s*([^=<>].*)")
_DIVIDES = re.compile(r"((?:block|grid)Dim\.[xyz]|\w+)\s*%\s*([\w.]+|\([^()]*\))\s*==\s*0")

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w|\s*[(:])")


class Refused(ValueError):
    """A promise that cannot be read."""


@dataclass
class Promise:
    """Of one function.

    Attributes:
        requires: conditions.
        size: the elements of arrays, by parameter.
    """

    requires: list[str] = field(default_factory=list)
    size: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.requires or self.size)

    def block(self, axis: str) -> str:
        """How many threads a block has along an axis; "" if nothing says so."""
        found = (_SETS.fullmatch(one) for one in self.requires)
        return next((one[3] for one in found if one and (one[1], one[2]) == (f"blockDim.{axis}", "==")), "")

    def adjusted(self) -> list[str]:
        """C++ that changes what was invented as these conditions ask."""
        lines = []
        for one in self.requires:
            if match := _DIVIDES.fullmatch(one):
                lines.append(f"judge::divides({match[1]}, {match[2]});")
            elif match := _SETS.fullmatch(one):
                word = {"==": "equals", "<=": "most", "<": "below", ">=": "least", ">": "above"}[match[2]]
                lines.append(f"judge::{word}({match[1]}, {match[3]});")
        return lines

    def met(self) -> str:
        """C++: do all conditions hold?"""
        return " && ".join(f"({one})" for one in self.requires) or "true"


def _apart(text: str) -> list[str]:
    """Split at commas that stand in no bracket."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "(<") - (letter in ")>") if letter in "()" else 0
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def above(text: str, head: int, parameters: list[str]) -> Promise:
    """The promise in the comment that ends where a function begins.

    Raises:
        Refused: it cannot be read.
    """
    lines = text[:head].splitlines()
    if lines and not lines[-1].strip():
        lines.pop()
    comment: list[str] = []
    while lines and _COMMENT.match(lines[-1]):
        comment.insert(0, lines.pop())
    made = Promise()
    for line in comment:
        if not (match := _SAID.match(line)):
            continue
        if match[1] == "requires":
            made.requires += _apart(match[2])
        else:
            for part in _apart(match[2]):
                name, _, elements = part.partition(" ")
                made.size[name] = elements.strip()
    _refuse_unknown(made, parameters, text)
    return checked(made, parameters)


def of_json(said: Mapping, parameters: list[str]) -> Promise:
    """The promise that JSON has of a function.

    Raises:
        Refused: it cannot be read.
    """
    requires, size = said.get("requires", []), said.get("size", {})
    if not isinstance(requires, list) or not isinstance(size, Mapping) or set(said) - {"requires", "size"}:
        raise Refused('a promise is {"requires": ["n % 4 == 0"], "size": {"x": "n"}}')
    return checked(
        Promise([str(one) for one in requires], {str(a): str(b) for a, b in size.items()}), parameters
    )


def _refuse_unknown(made: Promise, parameters: list[str], text: str) -> None:
    """Refused for a condition's word that is like a parameter, and that the code of the file does not have."""
    code = {*parameters, "blockDim", "gridDim", *re.findall(r"\w+", _COMMENTS.sub(" ", text))}
    for one in made.requires:
        for name in _NAME.findall(one):
            near = [] if name in code else difflib.get_close_matches(name, parameters, n=1)
            if near:
                line = text.count("\n", 0, text.find(one)) + 1
                raise Refused(
                    f"line {line}: requires: {one}: there is no parameter {name}; did you mean {near[0]}? "
                    f"There are: {', '.join(parameters)}"
                )


def _near(name: str, parameters: list[str]) -> str:
    near = difflib.get_close_matches(name, parameters, n=1)
    return f"; did you mean {near[0]}?" if near else "."


def checked(made: Promise, parameters: list[str]) -> Promise:
    for name, elements in made.size.items():
        if name not in parameters:
            raise Refused(
                f"size: there is no parameter {name}{_near(name, parameters)} There are: {', '.join(parameters)}"
            )
        if not elements or not _WORDS.fullmatch(elements):
            raise Refused(f"size: {name} has no number of elements: {elements!r}")
    for one in made.requires:
        if not _WORDS.fullmatch(one):
            raise Refused(f"requires: this is no condition: {one!r}")
    return made
