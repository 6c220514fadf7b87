"""For the race finder: functions that take or return structures are inlined, so that g++ tells it of each access."""

from __future__ import annotations

import re

from .analysis import Unit
from .rewrite import Rewriter
from .tokens import position_from

WORDS_OF_FUNCTIONS = {
    *("__device__", "__host__", "__forceinline__", "__inline__", "inline", "static", "constexpr", "extern"),
    "const",
}
# A type of which no value is a structure.
SCALAR = re.compile(
    r"(.*[*&].*|(\s*\b(void|bool|char|short|int|long|unsigned|signed|float|double|size_t|u?int\d+_t|const|volatile)\b)*)\s*",
    re.DOTALL,
)
INLINED = " __attribute__((always_inline))"
NOT_WATCHED = "accesses of the structures that {} takes or returns are not watched, because {}"


def _comes_back(name: str, calls: dict[str, set[str]]) -> bool:
    """Does a function of this name call itself, maybe by others?"""
    seen, waiting = set(), list(calls.get(name, ()))
    while waiting:
        one = waiting.pop()
        if one == name:
            return True
        if one not in seen:
            seen.add(one)
            waiting += calls.get(one, ())
    return False


def inlined(file: Rewriter, unit: Unit):
    """Have functions inlined that take or return structures, and note of which not all calls can be.

    g++ calls the race finder for each access but two: that of a structure which is an argument, and that of where
    a returned one goes.
    """
    names = {function.name for source in unit.sources for function in source.functions}
    calls: dict[str, set[str]] = {}
    pointed = set()
    for source in unit.sources:
        tokens = source.lexed.tokens
        for function in source.functions:
            first, last = (position_from(tokens, at) for at in (function.body, function.end))
            used = [i for i in range(first, last) if tokens[i].text in names]
            calls.setdefault(function.name, set()).update(tokens[i].text for i in used)
            pointed |= {tokens[i].text for i in used if tokens[i + 1].text not in ("(", "<", "::")}
    tokens = file.source.lexed.tokens
    for function in file.source.functions:
        if function.is_kernel or "__device__" not in function.words:
            continue
        head = tokens[slice(*(position_from(tokens, at) for at in (function.head, function.at)))]
        types = [" ".join(t.text for t in head if t.text not in WORDS_OF_FUNCTIONS)]
        types += [parameter.type for parameter in function.parameters]
        if all(SCALAR.fullmatch(one) for one in types):
            continue
        word = next((t for t in head if t.text == "__device__"), None)
        itself = _comes_back(function.name, calls)
        if itself or not word or function.name in pointed or "virtual" in types[0].split():
            how = "it calls itself" if itself else "a pointer calls it"
            line = file.source.lexed.position(function.at)[0]
            file.notes.append(f"{file.source.path}:{line}: {NOT_WATCHED.format(function.name, how)}")
        if word and not itself:
            file.edit(word.end, word.end, INLINED)
    for i, token in enumerate(tokens):
        if token.text in ("(", "{") and tokens[i - 1].text == "]" and file.in_device_code(token.start):
            _lambda(file, tokens, i)


def _lambda(file: Rewriter, tokens, at: int):
    """Have a lambda inlined whose parameters or body begin here, unless it passes itself on."""
    partner = file.source.lexed.partner
    before = tokens[partner[at - 1] - 1]
    if (before.kind == "name" and before.text != "return") or before.text in (")", "]"):
        return  # an index
    ends = partner[at] if tokens[at].text == "(" else at
    where = next((i for i in range(ends, len(tokens)) if tokens[i].text in ("->", "{", ";")), ends)
    body = next((i for i in range(where, len(tokens)) if tokens[i].text in ("{", ";")), where)
    names = {t.text for t in tokens[at:ends] if t.kind == "name"}
    inside = range(body, partner.get(body, body))
    if inside and not any(
        tokens[i].text in names and tokens[i + 1].text == "(" and tokens[i + 2].text == tokens[i].text
        for i in inside
    ):
        file.edit(tokens[where].start, tokens[where].start, INLINED + " ")
