"""Find the macros that register or instantiate a Caffe layer's class, and the type() of a class."""

from __future__ import annotations

from typing import NamedTuple

from tools.cuda.lexer import Token
from tools.cuda.source import Source

from .macros import INSTANTIATE, REGISTER


class Registration(NamedTuple):
    type: str
    at: Token  # the macro's name
    creator: str  # the function that creates the layer, or "" if the macro defines it
    is_old: bool  # of 2014: REGISTER_LAYER_CLASS(POOLING, PoolingLayer)


def registrations(source: Source) -> list[Registration]:
    """The registrations of a source, in the order of the text."""
    tokens = source.lexed.tokens
    return [
        Registration(
            tokens[i + 2].text,
            token,
            "".join(t.text for t in tokens[i + 4 : i + 5] if token.text == REGISTER[1]),
            token.text == REGISTER[0] and [t.text for t in tokens[i + 3 : i + 4]] == [","],
        )
        for i, token in enumerate(tokens[:-2])
        if token.text in REGISTER
    ]


def instantiated(source: Source) -> set[str]:
    """The classes that a source instantiates."""
    tokens = source.lexed.tokens
    return {tokens[i + 2].text for i, token in enumerate(tokens[:-2]) if token.text.startswith(INSTANTIATE)}


def types_said(source: Source) -> dict[str, str]:
    """The text that the type() of each class returns, by class."""
    types, tokens = {}, source.lexed.tokens
    for name, bodies in source.classes.items():
        for first, last in bodies:
            for i in range(first, last):
                if tokens[i].text != "type" or tokens[i + 1].text != "(":
                    continue
                words = [t.text for t in tokens[i : i + 7]]
                if words[2] == ")" and "return" in words:
                    value = tokens[i + words.index("return") + 1]
                    if value.kind == "string":
                        types[name] = value.text[1:-1]
    return types
