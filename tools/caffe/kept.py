"""Find the names by which a layer may reach its bottoms and tops besides the lists that its functions are given.

    softmax_top_vec_.push_back(top[0]);    a sub-layer's list
    output_ = top[0];                      a member
    buffer_.ShareDiff(*bottom[0]);         another blob with the same memory

The functions of the class that use such a name count, too, because a call of one does not show the blob.
"""

from __future__ import annotations

from ..cuda.analysis import Unit
from ..cuda.lexer import Lexed
from ..cuda.outline import Function
from ..cuda.tokens import position_from

# What may keep a blob that stands behind it in a statement.
KEEPS = {"=", "push_back", "emplace_back", "insert", "assign", "swap", "ShareData", "ShareDiff"}


def kept_names(units: list[Unit], layer: str) -> set[str]:
    functions = [
        (source.lexed, function)
        for unit in units
        for source in unit.sources
        for function in source.functions
        if function.scope == layer
    ]
    names = {name for one in functions for name in _holders(*one)}
    words = [(function.name, _words(lexed, function)) for lexed, function in functions]
    while more := {name for name, used in words if used & names} - names:
        names |= more
    return names


def _holders(lexed: Lexed, function: Function) -> set[str]:
    """The names that keep a blob in one function."""
    tokens, names = lexed.tokens, set()
    lists = {p.name for p in function.parameters if "vector" in p.type and "Blob" in p.type}
    first, last = (position_from(tokens, at) for at in (function.body, function.end))
    for k in range(first, last):
        if tokens[k].text in lists and not _is_looked_into(lexed, k):
            at = k - 1
            while at > first and tokens[at].text not in KEEPS | {";", "}"}:
                at -= 1
            if tokens[at].text in KEEPS:
                names.add(_holder(lexed, at))
    # The core itself knows of top[0]->ShareData(*bottom[0]).
    return names - lists - {""}


def _is_looked_into(lexed: Lexed, k: int) -> bool:
    """Is a list, or a blob of it, only used by a function of its own: top.size(), top[0]->count()?"""
    at = k + 1
    if lexed.tokens[at].text == "[":
        at = lexed.partner[at] + 1
        return lexed.tokens[at].text == "->"
    return lexed.tokens[at].text == "." and lexed.tokens[at + 1].text in ("size", "empty")


def _holder(lexed: Lexed, at: int) -> str:
    """Whose assignment or function stands here: `lists_` in lists_[0].push_back. "" for a new variable."""
    at -= 1
    if lexed.tokens[at].text in (".", "->"):
        at -= 1
    while lexed.tokens[at].text in ("]", ")"):
        at = lexed.partner[at] - 1
    pointed = at - 1 if lexed.tokens[at - 1].text in ("*", "&") else at
    before = lexed.tokens[pointed - 1]
    return "" if before.kind == "name" or before.text == ">" else lexed.tokens[at].text


def _words(lexed: Lexed, function: Function) -> set[str]:
    first, last = (position_from(lexed.tokens, at) for at in (function.body, function.end))
    return {token.text for token in lexed.tokens[first:last]}
