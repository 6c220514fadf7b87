"""Files in which an #if opens a bracket that another #if closes, by a macro that nobody knows before the compiler.

    answers_of(unit)    [{"FAST": 1}, {"FAST": 0}]: what the macros may be

Such a file is rewritten once for each answer, and the compiler takes one of the texts (joined). If a header that is not
read here defines the macro after all, the text ends with an #error.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from .analysis import Unit
from .conditions import HOST_BUILD, VALUES
from .lexer import Directive, tokens_and_directives
from .source import Source

MOST = 2  # macros of one file
DEFINED = re.compile(r"\bdefined\s*\(?\s*(\w+)")


def answers_of(unit: Unit) -> list[dict[str, int]]:
    """What the macros may be by which an #if leaves brackets open. Empty if there are none, or it cannot be said."""
    asked = {name: at for source in unit.sources for name, at in _macros(source).items()}
    asked = {name: at for name, at in asked.items() if name not in HOST_BUILD and name not in VALUES}
    own = {name: _defines(unit, name) for name in asked}
    if not asked or None in own.values() or sum(not given for given in own.values()) > MOST:
        return []
    several = [(1,) if given else (1, 0) for given in own.values()]
    return [dict(zip(own, values, strict=True)) for values in itertools.product(*several)]


def _macros(source: Source) -> dict[str, int]:
    """The macros that these conditions ask for, with the place of the first one."""
    found: dict[str, int] = {}
    for condition in source.lexed.conditions:
        if not any(one.start <= condition.start < one.end for one in source.lexed.imbalances):
            continue
        text = source.text[condition.start : condition.end]
        names = DEFINED.findall(text) or [
            t.text for t in condition.tokens[:1] if condition.word in ("ifdef", "ifndef")
        ]
        for name in names:
            found.setdefault(name, condition.start)
    return found


def _defines(unit: Unit, name: str) -> bool | None:
    """Do the unit's files define a macro, for all that is below? None if that changes, or an #if decides it."""
    first = _macros(unit.main).get(name, len(unit.main.text))
    found = False
    for source in unit.sources:
        depth = 0
        for item in tokens_and_directives(source.text):
            if not isinstance(item, Directive):
                continue
            depth += (item.word in ("if", "ifdef", "ifndef")) - (item.word == "endif")
            if item.word not in ("define", "undef") or [t.text for t in item.tokens[:1]] != [name]:
                continue
            if item.word == "undef" or depth or (source is unit.main and item.start > first):
                return None
            found = True
    return found


def decided(unit: Unit) -> Unit:
    """The same files by the first answer, so that all brackets match."""
    answers = answers_of(unit)
    return unit.where(answers[0]) if answers else unit


def joined(texts: Iterable[tuple[dict[str, int], str]]) -> str:
    """One text of those for each answer. The first line of each is its banner."""
    texts = list(texts)
    changes = [name for name in texts[0][0] if len({known[name] for known, _ in texts}) > 1]
    banner, parts = texts[0][1].partition("\n")[0], []
    for known, text in texts:
        condition = " && ".join(f"{'!' * (not known[name])}defined({name})" for name in changes) or "1"
        checks = "".join(
            f'#if{"n" * value}def {name}\n#error "a header that is not read decides of {name}"\n#endif\n'
            for name, value in known.items()
        )
        parts.append(f"#if {condition}\n{text.partition(chr(10))[2]}\n{checks}#endif\n")
    return banner + "\n" + "".join(parts)
