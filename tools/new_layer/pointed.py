"""Find the type of a template's tensors at a launch without template arguments: `k<<<1, 32>>>(x)` of an `int *x`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..cuda.analysis import Kernel
from ..cuda.launches import Launch
from ..cuda.number_types import declared
from ..cuda.outline import Function, Parameter, skip_angles, split_commas
from ..cuda.source import Source
from ..cuda.tokens import position_from

NO_TYPE = re.compile(r"\b(const|volatile|restrict|__restrict(__)?)\b")


def pointed_types(source: Source, launch: Launch, kernel: Kernel, name: str) -> list[str]:
    """What the launch's tensors of type `name *` point to, where the function around declares them, or its callers."""
    here = any(launch is own for own in source.launches)  # not in a header
    function = source.function_around(launch.start) if here else None
    if function is None:
        return []
    tensors = [
        text
        for parameter, text in zip(kernel.parameters, launch.arguments, strict=True)
        if _points_to(parameter, name)
    ]
    return [kind for text in tensors for kind in _declared(source, function, text, frozenset())]


def _points_to(parameter: Parameter, name: str) -> bool:
    words = re.findall(r"\w+", NO_TYPE.sub("", parameter.type))
    return words == [name] and parameter.type.count("*") + parameter.type.count("[") == 1


def _declared(source: Source, function: Function, text: str, within: frozenset[str]) -> Iterator[str]:
    """The types to which an argument of a function's call may point."""
    named = re.match(r"[A-Za-z_]\w*(?=\s*(\+|\Z))", text)
    if not named or function.name in within:
        return
    own = next((p for p in function.parameters if p.name == named[0]), None)
    template = re.match(r"template\s*<([^<>]*)>", source.text[function.head : function.at])
    types = (
        [kind.split("=")[0].split()[-1] for kind in template[1].split(",") if kind.strip()]
        if template
        else []
    )
    if own and any(_points_to(own, kind) for kind in types):
        place = function.parameters.index(own)
        for caller, arguments in _calls(source, function):
            if len(arguments) > place:
                yield from _declared(source, caller, arguments[place], within | {function.name})
        return
    tokens = source.lexed.tokens
    first, last = (position_from(tokens, at) for at in (function.head, function.end))
    for name, kind in declared(tokens, source.lexed.partner, first, last):
        if name == named[0] and kind.endswith("*") and kind.count("*") == 1:
            yield kind[:-1]


def _calls(source: Source, function: Function) -> Iterator[tuple[Function, list[str]]]:
    """(the function around, the arguments) of each call of a function."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    for i, token in enumerate(tokens[:-1]):
        if token.text != function.name or token.start == function.at:
            continue
        at = skip_angles(tokens, partner, i + 1, len(tokens)) if tokens[i + 1].text == "<" else i + 1
        caller = source.function_around(token.start)
        if caller and at in partner and tokens[at].text == "(":
            ranges = split_commas(tokens, partner, at + 1, partner[at])
            yield caller, [source.text[tokens[a].start : tokens[b - 1].end] for a, b in ranges]
