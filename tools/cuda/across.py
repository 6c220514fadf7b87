"""What the device code of a file needs of other files: functions and variables that it declares and does not define.

nvcc compiles each file alone. What another file defines is found only if both are compiled as relocatable code
(-rdc=true) and then linked for the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .outline import head_name
from .source import Source
from .tokens import macro_body

SPACES = {"__constant__", "__device__", "__managed__"}


def foreign_functions(sources: Sequence[Source]) -> set[str]:
    """The functions for devices that a file, with its headers, declares and does not define."""
    declared, defined = set(), set()
    words = {"__device__"}
    words |= {m.tokens[0].text for s in sources for m in s.macros if words & {t.text for t in macro_body(m)}}
    for source in sources:
        defined |= {function.name for function in source.functions}
        tokens = source.lexed.tokens
        for first, last in source.declared:
            named = {token.text for token in tokens[first:last]}
            written = tokens[last].text == ";" and tokens[last - 1].text not in ("default", "delete", "0")
            if written and words & named:
                declared.add(tokens[source.name_of((first, last))].text)
    return declared - defined


def foreign_variables(sources: Sequence[Source]) -> set[str]:
    """The variables on the GPU that a file, with its headers, declares as extern and does not define."""
    defined = {name for source in sources for name in _variables(source, extern=False)}
    return {name for source in sources for name in _variables(source, extern=True)} - defined


def needs_others(files: Sequence[Sequence[Source]]) -> bool:
    """Does one of the files need what another one defines? Each is given with its headers, as the first of them."""
    for mine in files:
        functions, variables = foreign_functions(mine), foreign_variables(mine)
        for main, *_ in files if functions | variables else ():
            if main is not mine[0] and (
                functions & {function.name for function in main.functions}
                or variables & set(_variables(main, extern=False))
            ):
                return True
    return False


def _variables(source: Source, extern: bool) -> Iterator[str]:
    tokens, partner = source.lexed.tokens, source.lexed.partner
    for kind, first, last, _ in source.parts:
        words = {token.text for token in tokens[first:last]}
        if (
            kind != "declaration"
            or not SPACES & words
            or ("extern" in words and not words & {"=", "{"}) != extern
        ):
            continue
        index, is_value = first, head_name(tokens, partner, first, last) is not None
        while index < last and not is_value:
            if tokens[index].kind == "name" and tokens[index + 1].text in ("[", "=", "{", ",", ";"):
                yield tokens[index].text
            index = partner.get(index, index) + 1 if tokens[index].text in ("(", "[", "{") else index + 1
            is_value = tokens[index].text == "="
