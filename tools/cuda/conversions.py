"""The edits by which conversions and shifts of device code follow a GPU's rules.

casts.py, assignments.py, arguments.py and shifts.py find them; number_types.py knows what names mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .arguments import Arguments
from .assignments import Assignments, result_of
from .casts import Edit, casts
from .conditions import Directive
from .constructors import Body, class_of
from .lexer import Lexed
from .number_types import Names, Types, declarators, text_of, type_at, typenames, typenames_of_class
from .outline import Function, parameters_after, split_commas
from .shifts import shifts
from .sides import Sides
from .source import Source
from .tokens import macro_body, macro_parameters, match_brackets, position_from

EVERYWHERE, IN_LOOP = "::cuda_host::", "::cuda_host::in_loop::"


def of_function(source: Source, function: Function, types: Types, in_loop: bool) -> Iterator[Edit]:
    """The edits of a function for devices, with a constructor's initialisers; of another one, of lambdas for devices.

    Args:
        in_loop: g++ may vectorise it.
    """
    tokens, partner, space = source.lexed.tokens, source.lexed.partner, IN_LOOP if in_loop else EVERYWHERE
    first, last = position_from(tokens, function.body) + 1, position_from(tokens, function.end - 1)
    if not types.is_for_devices(function):
        for begin, end in _lambdas(source, first, last, types):
            names = Names(types, source, function)
            yield from casts(tokens, partner, begin, end, names, space)
            yield from Assignments(tokens, partner, begin, end, names, space).edits(None)
            yield from Arguments(tokens, partner, begin, end, names, space).edits()
            yield from shifts(tokens, begin, end)
        return
    names, result = Names(types, source, function), result_of(source, function, types)
    yield from casts(tokens, partner, first, last, names, space)
    yield from Assignments(tokens, partner, first, last, names, space).edits(result)
    yield from Arguments(tokens, partner, first, last, names, space).edits()
    yield from shifts(tokens, first, last)
    if function.member or function.scope:
        yield from _initialisers(source, function, names)


def of_classes(source: Source, types: Types) -> Iterator[Edit]:
    """The edits of what members begin with: `struct Cell { int a = x; };`."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    for opening, close in (one for ranges in source.classes.values() for one in ranges):
        names = Names(types)
        names.templates |= typenames_of_class(tokens, opening)
        yield from Assignments(tokens, partner, opening + 1, close, names, EVERYWHERE).members()


def of_heads(source: Source, types: Types) -> Iterator[Edit]:
    """The edits of default arguments: `__device__ int f(int k = x)`."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    for first, last in source.declared:
        words = {token.text for token in tokens[first:last]}
        if "=" not in words or "__global__" in words or not words & (types.device_words | {"constexpr"}):
            continue
        names = Names(types)
        names.templates |= set(typenames(tokens[first:last]))
        begin, end = parameters_after(tokens, partner, source.name_of((first, last)), last)
        sides = Sides(tokens, partner, begin, end, names, EVERYWHERE)
        for a, b in split_commas(tokens, partner, begin, end):
            sign = next((i for i in range(a, b) if tokens[i].text == "="), b)
            found = type_at(tokens, partner, a, sign)
            if found is None or sign == b or any(t.text == "*" for t in tokens[found[1] : sign]):
                continue
            if types.may_be_whole(found[0]) and not sides.is_clear(sign + 1, b):
                place = tokens[sign].end
                yield place, place, f" ::cuda_host::gpu_into<{found[0]}> ="


def aligned_pointers(source: Source, function: Function) -> str:
    """Statements that note which of a kernel's pointers are not aligned for their type.

    One that the kernel casts is left alone: it may be an array of something smaller.
    """
    tokens = source.lexed.tokens
    first, last = (position_from(tokens, at) for at in (function.body + 1, function.end))
    cast = {t.text for before, t in pairwise(tokens[first:last]) if before.text == ")"}
    cast |= {
        t.text for i in range(first, last) if tokens[i].text == "reinterpret_cast" for t in tokens[i : i + 12]
    }
    names = [
        p.name
        for p in function.parameters
        if p.name not in cast
        and re.search(r"\*(\s*(__restrict__|__restrict|volatile))*\s*\Z", p.type)
        and not re.search(r"[(&]|\*.*\*|\b(void|char|uchar|bool|u?int8_t)\b", p.type)
    ]
    return "".join(f" {name} = ::cuda_host::gpu_parameter({name});" for name in names)


def of_macro(macro: Directive, types: Types) -> Iterator[Edit]:
    """The edits of a macro's text. One that the preprocessor computes with stays as it is."""
    body = macro_body(macro)
    if not body or macro.tokens[0].text in types.in_conditions:
        return
    partner, names = match_brackets(body), Names(types)
    names.templates |= types.types_of_macro(macro)
    yield from casts(body, partner, 0, len(body), names)
    assignments = Assignments(body, partner, 0, len(body), names, EVERYWHERE)
    assignments.is_statement = types.is_statement(macro)
    assignments.given_types = frozenset(n for n in macro_parameters(macro) if types.are_types(macro, n))
    yield from assignments.edits(None, in_macro=True)
    yield from shifts(body, 0, len(body))


def of_text(text: str, types: Types, in_loop: bool) -> str:
    """Text of device code that was copied, with its casts and shifts converted."""
    lexed = Lexed(text)
    tokens, space = lexed.tokens, IN_LOOP if in_loop else EVERYWHERE
    edits = [
        *casts(tokens, lexed.partner, 0, len(tokens), Names(types), space),
        *shifts(tokens, 0, len(tokens)),
    ]
    for start, end, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _lambdas(source: Source, first: int, last: int, types: Types) -> Iterator[tuple[int, int]]:
    """The bodies of `[=] __device__ (int i) {...}` between two tokens."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    for i in range(first, last):
        if tokens[i].text in types.device_words and tokens[i].kind == "name":
            while i < last and tokens[i].text not in ("{", ";"):
                i = partner.get(i, i) + 1 if tokens[i].text == "(" else i + 1
            if i < last and tokens[i].text == "{" and i in partner:
                yield i + 1, partner[i]


def _members(bodies: list[Body]) -> dict[str, str]:
    """The types of a class's members. Of a pointer and of an array the type has a star."""
    members: dict[str, str] = {}
    for source, at, close in bodies:
        tokens, partner, starts, at = source.lexed.tokens, source.lexed.partner, True, at + 1
        while at < close:
            if starts and (found := type_at(tokens, partner, at, close)):
                members |= dict(declarators(tokens, partner, found[1], close, found[0]))
            text = tokens[at].text
            starts = text in (";", ":", "{")
            at = partner.get(at, at) + 1 if text in ("(", "[", "{") else at + 1
    return members


def _initialisers(source: Source, function: Function, names: Names) -> Iterator[Edit]:
    """`Cell(float x) : a(x), b{x}, Base(x) {}`: members are known by their declaration in the class."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    at, body = position_from(tokens, function.at), position_from(tokens, function.body)
    name = function.scope or tokens[at].text
    while at < body and tokens[at].text != ":":
        at = partner.get(at, at) + 1 if tokens[at].text == "(" else at + 1
    if at >= body:
        return
    bodies = names.types.constructors.bodies.get(name, [])
    members = _members(bodies)
    members.pop(name, None)  # `__device__ Cell(...)` looks like one
    bases = {name, *names.templates, *(t for one in bodies for t in one.types())}
    arguments = Arguments(tokens, partner, at + 1, body, names, EVERYWHERE)
    lists = Assignments(tokens, partner, at + 1, body, names, EVERYWHERE)
    own = {key: text for one in bodies for key, text in one.meanings().items()}
    edits = {edit[0]: edit for edit in arguments.edits()}
    for first, last in split_commas(tokens, partner, at + 1, body):
        opening = next((i for i in range(first, last) if tokens[i].text in ("(", "{")), last)
        close, text = partner.get(opening, last), text_of(tokens[first:opening])
        if opening == first or close <= opening + 1:
            continue
        found = [*casts(tokens, partner, opening + 1, close, names), *shifts(tokens, opening + 1, close)]
        is_nested = tokens[opening + 1].text == "{"
        if not is_nested and lists.is_clear(opening + 1, close):
            yield from found
            continue
        meant = class_of(members.get(text) or own.get(text, ""))
        if meant is not None and meant.name in names.types.constructors.bodies:
            edits |= {edit[0]: edit for edit in arguments.of_object(first, opening, meant)}
        if text in members:
            edits |= {edit[0]: edit for edit in _member(lists, opening, text, members[text])}
        elif tokens[opening].text == "{" and text in own:
            edits |= {edit[0]: edit for edit in lists.list_of(opening, own[text])}
        elif lists.is_one(opening) and tokens[opening + 1].start not in edits:
            base, start = class_of(text), tokens[opening + 1].start
            known = base is not None and base.name in bases
            if known and names.types.constructors.may_be_made((meant or base).name):
                edits[start] = start, start, f"::cuda_host::gpu_into<{text}> = "
        yield from found
    yield from edits.values()


def _member(lists: Assignments, opening: int, name: str, of: str) -> Iterator[Edit]:
    """`a(x)`, `a{x}`, `a{x, y}` of a member of this type."""
    start, is_list = lists.tokens[opening + 1].start, lists.tokens[opening].text == "{"
    if lists.is_one(opening) and not (is_list and of.endswith("*")):
        yield start, start, f"::cuda_host::gpu_into<::cuda_host::gpu_plain<decltype({name})>> = "
    elif is_list:
        yield from lists.list_of(opening, of.removesuffix("*"), of.endswith("*"))
