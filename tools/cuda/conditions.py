"""The tokens and directives of a text, and the values of its #if conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Words that only nvcc defines. A host compiler does not.
NVCC_WORDS = {"__CUDACC__", "__CUDA_ARCH__", "__NVCC__", "__CUDACC_RTC__", "__CUDA_ARCH_LIST__"}
# What macros are defined, 0 or 1. Linux's compilers define __LP64__. For C++ that nobody rewrites:
NOT_HERE = ("_WIN32", "_WIN64", "_MSC_VER", "__INTELLISENSE__")  # of other systems, and of editors
OF_SYSTEM = {"__LP64__": 1, **dict.fromkeys(NOT_HERE, 0)}
IS_DEFINED = {**dict.fromkeys(NVCC_WORDS, 0), "__cplusplus": 1} | OF_SYSTEM
# For a source that tools/cuda/to_host.py rewrites. branches.py finds which code for nvcc it has.
HOST_BUILD = IS_DEFINED | {"CAFFE_HOST_BACKEND": 1}
ARCH = "__CUDA_ARCH__"
# The macros that include/host defines with a value.
VALUES = {"CUDART_VERSION": 12000, "__CUDACC_VER_MAJOR__": 12, "__CUDACC_VER_MINOR__": 0}


class Token(NamedTuple):
    kind: str  # string, char, name, number, punct
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Directive(NamedTuple):
    """One preprocessor line, with its continuation lines: `# word tokens...`."""

    word: str
    tokens: list[Token]  # after the word
    start: int
    end: int


def compared_arch(directive: Directive) -> list[Token]:
    """The #if and #elif that use the value of __CUDA_ARCH__, not only whether it is defined."""
    if directive.word not in ("if", "elif"):
        return []
    texts = ["", "", *(token.text for token in directive.tokens)]
    return [
        token
        for i, token in enumerate(directive.tokens)
        if token.text == ARCH and "defined" not in (texts[i + 1], texts[i] * (texts[i + 1] == "("))
    ]


def evaluate(directive: Directive, defined: Mapping[str, int] = IS_DEFINED, arch: int = 0) -> int | None:
    """The value of an #if condition, or None if it depends on macros that are not in `defined`.

    Args:
        arch: the value of __CUDA_ARCH__.
    """
    compared = compared_arch(directive) if arch or ARCH in defined else []
    words = [str(arch) if token in compared else token.text for token in directive.tokens]
    if directive.word in ("ifdef", "ifndef"):
        value = defined.get(words[0]) if words else None
        if words and words[0] in VALUES and defined.get("CAFFE_HOST_BACKEND"):
            value = 1
        return 1 - value if value is not None and directive.word == "ifndef" else value
    try:
        value = _expression(words, 0, defined)
    except (IndexError, ValueError):
        return None
    return None if words else value


_BINDING = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4}
_COMPARE = {
    "==": int.__eq__,
    "!=": int.__ne__,
    "<": int.__lt__,
    ">": int.__gt__,
    "<=": int.__le__,
    ">=": int.__ge__,
}


def _expression(words: list[str], floor: int, defined: Mapping[str, int]) -> int | None:
    """The value of the expression at the start of `words`, or None if unknown. Removes its words from the list.

    This is precedence climbing: it stops at an operator that binds no tighter than `floor`.
    """
    left = _operand(words, defined)
    while words and _BINDING.get(words[0], 0) > floor:
        operator = words.pop(0)
        right = _expression(words, _BINDING[operator], defined)
        if operator == "||":
            left = 1 if left or right else 0 if left == right == 0 else None
        elif operator == "&&":
            left = 0 if left == 0 or right == 0 else 1 if left and right else None
        else:
            left = None if left is None or right is None else int(_COMPARE[operator](left, right))
    return left


def _operand(words: list[str], defined: Mapping[str, int]) -> int | None:
    word = words.pop(0)
    if word == "!":
        value = _operand(words, defined)
        return None if value is None else int(not value)
    if word == "(":
        value = _expression(words, 0, defined)
        if words.pop(0) != ")":
            raise ValueError
        return value
    if word == "defined":
        name = words.pop(0)
        if name == "(":
            name = words.pop(0)
            words.pop(0)
        return 1 if name in VALUES and defined.get("CAFFE_HOST_BACKEND") else defined.get(name)
    if word[0].isdigit():
        return int(word.rstrip("uUlL"), 0)
    if defined.get(word) == 0:  # the preprocessor treats an undefined macro as 0
        return 0
    if word in VALUES and defined.get("CAFFE_HOST_BACKEND"):
        return VALUES[word]
    if words and words[0] == "(":  # a call such as __has_include(...) has no known value
        raise ValueError
    return None
