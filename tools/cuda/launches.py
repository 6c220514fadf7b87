"""Find kernel launches, by tree-sitter's CUDA grammar. A launch counts only if the grammar agrees with the brackets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import tree_sitter
import tree_sitter_cuda

from .lexer import CLOSING, OPENING, Token
from .outline import Outline, split_commas
from .tokens import launch_openings, mask, position_from, tidy

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def parse(masked: str):
    """tree-sitter's root node for a text from mask()."""
    return _PARSER.parse(masked.encode("latin-1")).root_node


class Launch(NamedTuple):
    """callee<template arguments> <<<grid, block, shared memory, stream>>> (arguments)"""

    kernel: str  # the callee's plain name; "" if the callee is an expression
    line: int
    grid: str
    block: str
    shmem: str
    stream: str
    arguments: tuple[str, ...]
    template_arguments: tuple[str, ...]
    function: str  # the function that contains it; "" in a macro's body
    start: int  # offset of the launch
    chevrons: tuple[int, int]  # offsets of <<<...>>>
    config: tuple[int, int]  # offsets of the text between <<< and >>>
    end: int  # offset after the launch


def find_launches(
    outline: Outline, tokens: list[Token], partner: dict[int, int]
) -> Iterator[tuple[Launch | None, int]]:
    """Yields (launch or None, offset) of each `<<<`.

    All tokens are parsed together first, because context helps. If a macro confused the parser, the statement or
    macro argument of the launch is parsed alone.
    """
    openings = launch_openings(tokens)
    if not openings:
        return
    whole = _parse_statements(outline, tokens)
    for index in openings:
        at = tokens[index].start
        launch = _locate(outline, *whole, at, tokens, partner)
        for first, last in surroundings(tokens, partner, index):
            if launch is None:
                part = _parse_statements(outline, tokens[first:last])
                launch = _locate(outline, *part, at, tokens, partner)
        if launch is None and (callee := _behind_a_macro(tokens, index)) is not None:
            _, last = next(surroundings(tokens, partner, index))
            part = _parse_statements(outline, tokens[callee:last])
            launch = _locate(outline, *part, at, tokens, partner, behind_a_macro=callee)
        yield launch, at


def _parse_statements(outline: Outline, tokens: list[Token]) -> tuple[Any, int]:
    """The syntax tree of these tokens, and the number to add to its offsets to get the text's offsets."""
    start, before = (tokens[0].start, "void f(){") if tokens is not outline.lexed.tokens else (0, "")
    root = parse(before + mask(tokens, start, tokens[-1].end) + (";}" if before else ""))
    return root, start - len(before)


def _behind_a_macro(tokens: list[Token], index: int) -> int | None:
    """The place of a launch's callee if a macro that ends its own statement stands before it: `CHECK_LAST k<<<...`."""
    at, depth = index - 1, 0
    if tokens[at].text in (">", ">>"):
        while at > 0 and (depth := depth + _angles(tokens[at].text)) > 0:
            at -= 1
        at -= 1
    while at > 1 and tokens[at - 1].text == "::" and tokens[at - 2].kind == "name":
        at -= 2
    before = tokens[at - 1] if at > 0 else None
    is_macro = before and (
        before.text == ")" or (before.kind == "name" and not can_precede_expression(before))
    )
    return at if is_macro and tokens[at].kind == "name" else None


def _angles(text: str) -> int:
    return {">": 1, ">>": 2, "<": -1}.get(text, 0)


def _locate(
    outline: Outline, root, shift: int, at: int, tokens, partner, *, behind_a_macro: int | None = None
) -> Launch | None:
    """The launch whose `<<<` is at `at`, or None unless the syntax tree has it and the brackets agree.

    Args:
        behind_a_macro: the place of its first token, if a macro that ends its own statement is before that.
    """
    node = root.descendant_for_byte_range(at - shift, at - shift + 2)
    while node is not None and node.type != "kernel_call_syntax":
        node = node.parent
    if node is None or node.start_byte + shift != at or node.parent.type != "call_expression":
        return None
    call = node.parent
    callee, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if callee is None or arguments is None or node.children[-1].type != ">>>":
        return None
    start, end = call.start_byte + shift, call.end_byte + shift
    config = node.children[0].end_byte + shift, node.children[-1].start_byte + shift
    first = position_from(tokens, start)
    opening = position_from(tokens, arguments.start_byte + shift)
    closing = position_from(tokens, end - 1)
    if partner.get(opening) != closing or tokens[closing].start != end - 1:
        return None
    if first and first != behind_a_macro and not can_precede_expression(tokens[first - 1]):
        return None
    # In a launch, every bracket of a part closes within that part.
    for low, high in ((start, at), config, (arguments.start_byte + shift, end)):
        inside = range(position_from(tokens, low), position_from(tokens, high))
        brackets = [i for i in inside if tokens[i].text in OPENING or tokens[i].text in CLOSING]
        if not all(i in partner and partner[i] in inside for i in brackets):
            return None
    return _launch(outline, node, shift)


def _launch(outline: Outline, node, shift: int) -> Launch:
    """The launch of a <<<...>>> node, whose parent is the call."""

    def text(child) -> str:
        return tidy(outline.lexed.text[child.start_byte + shift : child.end_byte + shift])

    def texts(parent) -> list[str]:
        return [text(c) for c in parent.named_children if c.type not in ("comment", "ERROR")]

    call = node.parent
    name, templates = call.child_by_field_name("function"), ()
    while name.type == "qualified_identifier":
        name = name.child_by_field_name("name")
    if name.type in ("template_function", "template_method"):
        templates = tuple(texts(name.child_by_field_name("arguments")))
        name = name.child_by_field_name("name")
    function = outline.function_around(node.start_byte + shift)
    start = call.start_byte + shift
    return Launch(
        text(name) if name.type in ("identifier", "field_identifier") else "",
        outline.lexed.position(start)[0],
        *(texts(node) + [""] * 4)[:4],
        tuple(texts(call.child_by_field_name("arguments"))),
        templates,
        function.name if function else "",
        start,
        (node.start_byte + shift, node.end_byte + shift),
        (node.children[0].end_byte + shift, node.children[-1].start_byte + shift),
        call.end_byte + shift,
    )


def surroundings(tokens, partner, index: int):
    """Yields token ranges around a token: its statement within the innermost brackets, then its part between commas."""
    first = last = index
    while first and tokens[first - 1].text not in (";", "{", "}", "(", "["):
        first = partner.get(first - 1, first - 1)
    while last < len(tokens) and tokens[last].text not in (";", "}", ")", "]"):
        last = partner.get(last, last) + 1
    yield first, last
    yield from ((a, b) for a, b in split_commas(tokens, partner, first, last) if a <= index < b)


def can_precede_expression(token: Token) -> bool:
    """May an expression start after this token? If not, the parser missed the beginning of a callee."""
    if token.kind == "name":
        return token.text in ("return", "else", "do", "co_return")
    return token.kind == "punct" and token.text not in ("::", ".", "->", "]", ">", "##", "#")
