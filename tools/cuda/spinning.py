"""Loops that wait for another thread: they let others run."""

from __future__ import annotations

from .analysis import Unit
from .rewrite import Rewriter


def spinning_loops(file: Rewriter, unit: Unit):
    """Let other threads run in loops that read volatile memory, or that do nothing else."""
    tokens, partner = file.source.lexed.tokens, file.source.lexed.partner
    names = unit.volatile
    for i, token in enumerate(tokens[:-1]):
        if token.text not in ("while", "for") or tokens[i + 1].text != "(" or i + 1 not in partner:
            continue
        close = partner[i + 1]
        is_do = i and tokens[i - 1].text == "}" and tokens[partner.get(i - 1, 0) - 1].text == "do"
        first = partner[i - 1] if is_do else i
        last = _end_of_statement(file, close + 1)
        empty = not is_do and tokens[close + 1 : close + 2] and tokens[close + 1].text == ";"
        if not empty and not any(t.text in names for t in tokens[first:last]):
            continue
        if file.in_device_code(token.start):
            _may_spin(file, token.text, i + 1, close)


def _end_of_statement(file: Rewriter, index: int) -> int:
    """The index after the statement that begins there; of `if` and the like, after its first part."""
    tokens, partner = file.source.lexed.tokens, file.source.lexed.partner
    while index < len(tokens) and tokens[index].text != ";":
        if tokens[index].text == "{":
            return partner.get(index, index) + 1
        index = partner.get(index, index) + 1 if tokens[index].text in ("(", "[") else index + 1
    return index + 1


def _may_spin(file: Rewriter, word: str, opening: int, close: int):
    """Ask in the condition of a loop."""
    tokens, partner = file.source.lexed.tokens, file.source.lexed.partner
    start, end = tokens[opening].end, tokens[close].start
    if word == "for":
        parts, i = [], opening + 1
        while i < close:
            if tokens[i].text == ";":
                parts.append(tokens[i])
            i = partner.get(i, i) + 1 if tokens[i].text in ("(", "[", "{") else i + 1
        if len(parts) != 2:
            return
        start, end = parts[0].end, parts[1].start
    if file.text[start:end].strip():
        file.edit(start, start, "::cuda_host::may_wait() && ::cuda_host::waited(bool((")
        file.edit(end, end, ")))")
    else:
        file.edit(start, start, " ::cuda_host::may_spin()")
