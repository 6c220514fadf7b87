"""The body of a function as a syntax tree, with its nodes' places in the source."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from .launches import parse
from .names import INDEX
from .outline import Function
from .source import Source
from .tokens import mask, position_from

_HEAD = "void f()"


class Body:
    """Strings are blank in its text, and a kernel loop is a `while` (tokens.py)."""

    def __init__(self, source: Source, function: Function):
        tokens = source.lexed.tokens
        self.source_text = source.text
        self.tokens = tokens[position_from(tokens, function.body) : position_from(tokens, function.end)]
        self.words = {token.text for token in self.tokens}
        self._text = _HEAD + mask(self.tokens, function.body, function.end)
        self.shift = function.body - len(_HEAD)
        self.tree = parse(self._text)
        definition = self.tree.named_children[0] if self.tree.named_children else None
        self.root: Any = definition and definition.child_by_field_name("body")

    def unread(self) -> Any:
        """The first node that the parser does not know; None if it knows the whole."""
        node = self.tree if self.tree.has_error else None
        while node is not None and not (node.is_error or node.is_missing):
            node = next((child for child in node.children if child.has_error or child.is_missing), None)
        return node if node is None or node.start_byte >= len(_HEAD) else self.root

    def first(self, words: Collection[str]) -> int | None:
        """The offset in the source of the first of these words; None if there is none."""
        return next((token.start for token in self.tokens if token.text in words), None)

    def of(self, node) -> str:
        """The text of a node."""
        return self._text[node.start_byte : node.end_byte]

    def place(self, node) -> tuple[int, int]:
        """The offsets of a node in the source."""
        return node.start_byte + self.shift, node.end_byte + self.shift


def walk(node) -> Iterator:
    """A node, and all that it consists of."""
    yield node
    for child in node.named_children:
        yield from walk(child)


def plain(node):
    """An expression without the parentheses around it."""
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    return node


def operands(node) -> tuple:
    """(left, operator, right) of a binary expression; none of another one."""
    if node.type != "binary_expression":
        return None, "", None
    left, sign, right = (node.child_by_field_name(field) for field in ("left", "operator", "right"))
    return left, sign.type, right


def component(body: Body, node) -> str:
    """ "threadIdx.x" of `threadIdx . x` and the like; "" of other expressions."""
    if node.type == "field_expression":
        owner, name = node.child_by_field_name("argument"), node.child_by_field_name("field")
        if owner.type == "identifier" and body.of(owner) in INDEX and name is not None:
            return f"{body.of(owner)}.{body.of(name)}"
    return ""


def declarators(declaration) -> Iterator[tuple]:
    """(declarator, name, value) of each variable of a declaration. The name is None if it is none of those."""
    for declarator in declaration.children_by_field_name("declarator"):
        value, inner = None, declarator
        if declarator.type == "init_declarator":
            value, inner = (
                declarator.child_by_field_name("value"),
                declarator.child_by_field_name("declarator"),
            )
        while inner is not None and inner.type != "identifier":
            inner = inner.child_by_field_name("declarator") or next(iter(inner.named_children), None)
        yield declarator, inner, value
