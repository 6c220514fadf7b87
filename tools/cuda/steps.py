"""Warps in step: old code reads and writes volatile shared memory without a barrier, as one warp did on older GPUs.

    s[t] += s[t + 16];   s[t] = Step(&(s[t]), ...) = (meet_lanes(&(s[t]), ...), s[t] + (s[t + 16]));

The lanes of a warp meet before they read and before they write, so each statement is done by all before the next one,
as every GPU still does where nothing parts the lanes. After an `if` with such a statement they meet, too. At memory
that no block shares, nobody meets (meet_lanes in src/host/host_launch.cpp). It is a race all the same, and the race
finder says so. Conditions of loops are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .analysis import Unit
from .body import Body, walk
from .outline import Function
from .rewrite import Rewriter
from .tokens import position_from

_ENDS = {";", ",", ")", "=", "["}


def in_step(file: Rewriter, unit: Unit):
    """Let the lanes of a warp meet at the statements of device code that use volatile memory."""
    for function in file.source.functions:
        if unit.types.is_for_devices(function) and (names := _names(file, function)):
            body = Body(file.source, function)
            if body.root is not None:
                for edit in _Steps(file, body, names).edits():
                    file.edit(*edit)


class VolatileName(NamedTuple):
    address: str  # as C++ writes it
    at: int  # where it is declared


def _names(file: Rewriter, function: Function) -> dict[str, VolatileName]:
    """Variables of volatile memory that may be a block's."""
    tokens, found = file.source.lexed.tokens, dict[str, VolatileName]()
    first, last = (position_from(tokens, at) for at in (function.head, function.end))
    for i in (i for i in range(first, last) if tokens[i].text == "volatile"):
        begin = max(
            (k for k in range(first, i) if tokens[k].text in (";", "{", "}", "(", ",")), default=first
        )
        for j in range(i + 1, min(i + 12, last - 1)):
            if tokens[j].text == ")":  # of a cast: what follows is no name of volatile memory
                break
            if tokens[j].kind == "name" and tokens[j + 1].text in _ENDS:
                words = {t.text for t in tokens[begin:j]}
                if words & {"*", "__shared__"}:
                    is_one = "*" not in words and tokens[j + 1].text != "["
                    address = f"&{tokens[j].text}" if is_one else tokens[j].text
                    found[tokens[j].text] = VolatileName(address, tokens[j].start)
                break
    return found


class _Steps:
    def __init__(self, file: Rewriter, body: Body, names: dict[str, VolatileName]):
        self.file, self.body, self.names = file, body, names

    def edits(self) -> Iterator[tuple[int, int, str]]:
        for node in walk(self.body.root):
            if node.type == "expression_statement" and node.named_children:
                yield from self._statement(node.named_children[0])
            elif node.type == "init_declarator" and (value := node.child_by_field_name("value")) is not None:
                if self._used(value) and value.type != "initializer_list":
                    yield from self._meeting(value, value)
            elif node.type == "if_statement" and self._used(node):
                condition = node.child_by_field_name("condition").child_by_field_name("value")
                if condition is not None and condition.type != "declaration" and self._used(condition):
                    yield from self._meeting(condition, condition)
                is_known = self.names[self._used(node)].at < self.body.place(node)[0]
                if node.parent.type == "compound_statement" and is_known:
                    end = self.body.place(node)[1]
                    yield end, end, f" {self._meet(node, end)};"

    def _used(self, node) -> str:
        """A name of volatile memory in an expression or a statement; "" if it has none."""
        found = ((self.body.of(n), n) for n in walk(node) if n.type == "identifier")
        return next((name for name, n in found if name in self.names and not self._points(name, n)), "")

    def _points(self, name: str, node) -> bool:
        """Is it a pointer that is set? What it points to is not used, and a block may share it."""
        above = node.parent
        return (
            not self.names[name].address.startswith("&")
            and above.type == "assignment_expression"
            and above.child_by_field_name("left") == node
        )

    def _meet(self, node, place: int) -> str:
        return f"::cuda_host::meet_lanes({self.names[self._used(node)].address}, __LINE__, {self._column(place)})"

    def _column(self, offset: int) -> int:
        return self.file.source.lexed.position(offset)[1]

    def _meeting(self, node, value) -> Iterator[tuple[int, int, str]]:
        """All meet before a value is read."""
        start, end = self.body.place(value)
        yield start, start, f"({self._meet(node, start)}, "
        yield end, end, ")"

    def _statement(self, node) -> Iterator[tuple[int, int, str]]:
        if not self._used(node):
            return
        if node.type != "assignment_expression":
            start = self.body.place(node)[0]
            yield start, start, f"{self._meet(node, start)}, "
            return
        left, right, sign = (node.child_by_field_name(field) for field in ("left", "right", "operator"))
        if not self._used(left) or any(
            n.type in ("call_expression", "update_expression") for n in walk(left)
        ):
            if self._used(right):
                yield from self._meeting(right, right)
            return
        text = " ".join(self.body.of(left).split())
        begin, after = self.body.place(sign)
        start, end = self.body.place(right)
        operator = sign.type[:-1]
        step = f"::cuda_host::Step<::cuda_host::gpu_plain<decltype({text})>>"
        yield begin, after, "="
        yield (
            start,
            start,
            f"{step}(&({text}), __LINE__, {self._column(begin)}) = ({self._meet(left, start)}, ",
        )
        if operator:
            yield start, start, f"{text} {operator} ("
        yield end, end, "))" if operator else ")"
