"""Pairs of brackets in a list of tokens."""

from __future__ import annotations

from .conditions import Token

OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {")": "(", "]": "[", "}": "{"}


def match_brackets(tokens: list[Token]) -> dict[int, int]:
    """The partner of each bracket in a short list of tokens, such as a macro's body, by index."""
    partner, stack = {}, []
    for index, token in enumerate(tokens):
        if token.kind == "punct" and token.text in OPENING:
            stack.append(index)
        elif token.kind == "punct" and stack and CLOSING.get(token.text) == tokens[stack[-1]].text:
            partner[index] = stack[-1]
            partner[stack.pop()] = index
    return partner
