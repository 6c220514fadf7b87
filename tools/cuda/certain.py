"""Find the array elements that a kernel's loop reads or writes for every index, whatever its conditions are."""

from __future__ import annotations

import re
from typing import NamedTuple

from .analysis import CHANGES, Kernel
from .lexer import CLOSING, OPENING, Lexed
from .source import Source
from .tokens import LOOP, position_from

# The code after such a word may run several times, or not at all.
REPEATS = {"for", "while"}
CONTROL = REPEATS | {"do", "switch", "goto", "try"}
LEAVES = {"continue", "break", "return"}
DIRECTIVE = re.compile(r"^[ \t]*#", re.M)


class Loop(NamedTuple):
    """CUDA_KERNEL_LOOP(index, count) body. Numbers are those of tokens."""

    lexed: Lexed
    kernel: range
    head: range
    index: str
    count: str
    body: range  # with its braces
    first: int  # without them, from first to last
    last: int

    @property
    def sure(self) -> set[int]:
        """The tokens of the body that are evaluated for every index."""
        return evaluated_always(self.lexed, self.first, self.last)

    @property
    def changes_index(self) -> bool:
        tokens = self.lexed.tokens
        return any(
            tokens[k].text == self.index and _may_change(tokens, k) for k in range(self.first, self.last)
        )


def touched_elements(source: Source, kernel: Kernel) -> tuple[str, list[str]] | None:
    """(n, pointers), if the kernel has one CUDA_KERNEL_LOOP(i, n) that uses p[i] of each pointer for every i.

    Such a pointer must have n elements. None if there is no such loop.
    """
    loop, tokens = only_loop(source, kernel), source.lexed.tokens
    if isinstance(loop, str) or loop.changes_index:
        return None
    if any(t.text in CONTROL | LEAVES | {"if"} for t in tokens[loop.kernel.start : loop.head.start]):
        return None
    touched = []
    for name in [p.name for p in kernel.parameters if "*" in p.type]:
        uses = [k for k in loop.kernel if tokens[k].text == name]
        # The pointer must not be changed, passed on, or hidden by another name.
        only_indexed = all(tokens[k + 1].text == "[" and tokens[k - 1].kind != "name" for k in uses)
        at_index = [k for k in uses if [t.text for t in tokens[k + 2 : k + 4]] == [loop.index, "]"]]
        if only_indexed and loop.sure.intersection(at_index):
            touched.append(name)
    return loop.count, touched


def only_loop(source: Source, kernel: Kernel) -> Loop | str:
    """The kernel's only loop over indices, or the reason why it has none that can be read."""
    lexed, tokens, partner = source.lexed, source.lexed.tokens, source.lexed.partner
    start, end = (position_from(tokens, offset) for offset in kernel.body)
    if DIRECTIVE.search(source.text[slice(*kernel.body)]):
        return "preprocessor lines in the kernel"
    loops = [k for k in range(start, end) if LOOP.match(tokens[k].text)]
    if len(loops) != 1 or tokens[head := loops[0]].text != "CUDA_KERNEL_LOOP":
        return "not exactly one CUDA_KERNEL_LOOP"
    brackets = (k for k in range(head, end) if tokens[k].text in OPENING or tokens[k].text in CLOSING)
    if any(k not in partner for k in brackets) or tokens[head + 3].text != ",":
        return "an unusual loop head"
    body = partner[head + 1] + 1
    braced, after = tokens[body].text == "{", statement_end(lexed, body, end)
    while tokens[body].text == "if" and tokens[after].text == "else":
        after = statement_end(lexed, after + 1, end)
    return Loop(
        lexed,
        kernel=range(start, end),
        head=range(head, body),
        index=tokens[head + 2].text,
        count=" ".join(t.text for t in tokens[head + 4 : body - 1]),
        body=range(body, after),
        first=body + braced,
        last=after - braced,
    )


def _may_change(tokens, k: int) -> bool:
    before, after = tokens[k - 1], tokens[k + 1]
    return after.text in CHANGES or before.text in ("++", "--", "&") or before.kind == "name"


def evaluated_always(lexed: Lexed, first: int, last: int) -> set[int]:
    """The tokens of these statements that are always evaluated."""
    tokens, sure = lexed.tokens, set()
    k = first
    while k < last:
        word, leaves = tokens[k].text, LEAVES
        if word in CONTROL - REPEATS or word in LEAVES:
            break  # the rest does not run for every element
        if word in ("{", "else"):  # a block, or the branch of an `if` that was handled before
            end = lexed.partner[k] + 1 if word == "{" else statement_end(lexed, k + 1, last)
        elif word == "if":
            sure |= _before_choice(lexed, k + 2, lexed.partner[k + 1])
            end = statement_end(lexed, k, last)
        elif word in REPEATS:
            end, leaves = statement_end(lexed, k, last), {"return", "goto"}
        else:
            end = statement_end(lexed, k, last)
            sure |= _before_choice(lexed, k, end)
        if any(t.text in leaves for t in tokens[k:end]):
            break
        k = end
    return sure


def statement_end(lexed: Lexed, k: int, last: int) -> int:
    """The index after the statement that starts at k. An `else` is a statement of its own."""
    tokens = lexed.tokens
    if tokens[k].text == "{":
        return lexed.partner[k] + 1
    if tokens[k].text in REPEATS | {"if"}:
        return statement_end(lexed, lexed.partner[k + 1] + 1, last)
    while k < last and tokens[k].text != ";":
        k = lexed.partner[k] + 1 if tokens[k].text in ("(", "[", "{") else k + 1
    return min(k + 1, last)


def _before_choice(lexed: Lexed, start: int, end: int) -> set[int]:
    """The tokens before the first ?:, && or ||, after which an operand may not be evaluated."""
    for k in range(start, end):
        if lexed.tokens[k].text in ("?", "&&", "||"):
            return set(range(start, k))
    return set(range(start, end))
