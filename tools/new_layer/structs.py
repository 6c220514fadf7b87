"""The fields of a file's structs, as far as a C function can take their values one by one.

fields = fields_of("float scale; const float *x, *y; int sizes[3];", "Shape")
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

STRUCT = re.compile(
    r"(typedef\s+)?struct\s*((?:__align__|alignas)\s*\([^()]*\)\s*)?(\w*)\s*\{(.*)\}\s*(\w*)\s*;?", re.S
)
# Words of a member that is no plain variable.
NOT_PLAIN = {
    "virtual",
    "union",
    "struct",
    "class",
    "enum",
    "mutable",
    "volatile",
    "private",
    "protected",
    "operator",
}
DECLARATOR = re.compile(r"\s*(\**)\s*(\w+)\s*(?:\[\s*(\d+)\s*\])?\s*(?:=.*)?", re.S)


class Field(NamedTuple):
    name: str
    type: str  # of a number, or of what it points to
    is_pointer: bool
    is_const: bool  # what it points to
    count: int  # the elements of an array; 0 for one value


# CUDA's own. What a cudaPitchedPtr points to is given as bytes.
OF_CUDA = {
    "cudaPitchedPtr": [
        Field("ptr", "unsigned char", True, False, 0),
        *(Field(name, "size_t", False, False, 0) for name in ("pitch", "xsize", "ysize")),
    ],
    "cudaExtent": [Field(name, "size_t", False, False, 0) for name in ("width", "height", "depth")],
}


def structs_of(text: str) -> dict[str, list[Field] | None]:
    """The fields of the struct that a declaration defines, by each of its names. They are None if C can't give them.

    Args:
        text: without comments.
    """
    if not (found := STRUCT.fullmatch(text.strip())):
        return {}
    is_typedef, _, own, body, after = found.groups()
    names = {own, after} - {""} if is_typedef else {own} - {""}
    return dict.fromkeys(names, fields_of(body, names))


def fields_of(body: str, names: set[str]) -> list[Field] | None:
    """The variables of a struct with these names; None if one is of another kind, or it has a constructor."""
    fields = []
    for member in _without_bodies(body).split(";"):
        member = re.sub(r"\b(public\s*:|__restrict__|__restrict|inline|__forceinline__)", " ", member).strip()
        if not member or re.match(r"static\b|using\b|typedef\b|friend\b|static_assert\b", member):
            continue
        if re.search(r"\(\s*[*&]", member):  # a pointer to a function or to an array
            return None
        if "(" in member:  # a function
            called = re.search(r"(\w+)\s*\(", re.sub(r"__\w+__\s*(\([^()]*\))?", " ", member))
            if not called or called[1] in names or "virtual" in member:
                return None
            continue
        words = re.findall(r"\w+", member)
        if NOT_PLAIN & set(words) or re.search(r"[&<>:~]", member.split("=")[0]):
            return None
        # The type's words, and the first name if no * is before it.
        head = re.split(r"[\[,=*{]", member, maxsplit=1)[0]
        before, after = head.split(), member[len(head) :]
        if not after.startswith("*"):
            after = (before.pop() if before else "") + after
        kind, rest = " ".join(before), after
        parts = rest.split(",")
        declared = [found for part in parts if (found := DECLARATOR.fullmatch(part))]
        if not kind or len(declared) < len(parts):
            return None
        is_const = "const" in kind.split()
        base = " ".join(word for word in kind.split() if word != "const")
        if any(len(d[1]) > 1 or (d[1] and d[3]) or (is_const and not d[1]) for d in declared):
            return None
        fields += [Field(d[2], base, bool(d[1]), is_const, int(d[3] or 0)) for d in declared]
    return fields or None


# What a struct whose bytes are given may not have: addresses, types that may own memory, and functions for that.
NO_BYTES = {"*", "&", "<", "~", "std", "virtual"}


def without_addresses(texts: Iterable[str]) -> set[str]:
    """The names of the structs that these declarations define and that have no pointer or reference in them.

    Args:
        texts: without comments.
    """
    members: dict[str, set[str]] = {}
    for text in texts:
        if not (found := STRUCT.fullmatch(text.strip())):
            continue
        is_typedef, _, own, body, after = found.groups()
        variables = [m for m in _without_bodies(body).split(";") if not re.search(r"\w\s*\(", m)]
        words = set(re.findall(r"[*&<~]|\bstd\b", "".join(variables) + "~" * ("~" in body)))
        words |= set(re.findall(r"\w+", body)) - {"std"}
        words |= {"*"} if re.search(r"\(\s*[*&]", body) else set()
        members |= dict.fromkeys({own, after} - {""} if is_typedef else {own} - {""}, words)
    plain = {name for name, words in members.items() if not words & NO_BYTES}
    while more := {name for name in plain if members[name] & (members.keys() - plain)}:
        plain -= more
    return plain


# The bytes of C's types.
SIZES = {
    **dict.fromkeys(("bool", "char", "uchar", "int8_t", "uint8_t"), 1),
    **dict.fromkeys(("short", "ushort", "int16_t", "uint16_t", "half", "__half"), 2),
    **dict.fromkeys(("int", "unsigned", "uint", "float", "int32_t", "uint32_t"), 4),
    **dict.fromkeys(("long", "double", "size_t", "int64_t", "uint64_t", "longlong", "ulonglong"), 8),
}


def layout_of(fields: list[Field] | None, structs: dict[str, list[Field] | None]) -> tuple[int, int] | None:
    """(bytes, alignment) of a struct with these fields; None if that is unknown."""
    size, most = 0, 1
    for field in fields or ():
        own = (8, 8) if field.is_pointer else _layout(field.type, structs)
        if own is None:
            return None
        most = max(most, own[1])
        size = -(-size // own[1]) * own[1] + own[0] * max(1, field.count)
    return (-(-size // most) * most, most) if fields else None


def _layout(kind: str, structs: dict[str, list[Field] | None]) -> tuple[int, int] | None:
    if kind in structs:
        return layout_of(structs[kind], {name: fields for name, fields in structs.items() if name != kind})
    words = [word for word in kind.split() if word not in ("const", "signed", "unsigned")] or ["int"]
    if words in (["long", "long"], ["long", "int"], ["long", "long", "int"]):
        words = ["long"]
    if len(words) == 1 and words[0] in SIZES:
        return SIZES[words[0]], SIZES[words[0]]
    vector = re.fullmatch(r"(u?char|u?short|u?int|float|double|u?longlong)([1-4])", kind)
    if not vector:
        return None
    each, count = SIZES[vector[1]], int(vector[2])
    return each * count, min(16, each * count) if count in (2, 4) else each


def _without_bodies(text: str) -> str:
    """The members without the bodies of functions: `int f() { ... }` is `int f();`."""
    while (shorter := re.sub(r"\)([^;{}()]*)\{[^{}]*\}", r")\1;", text)) != text:
        text = shorter
    while (shorter := re.sub(r"(\)[^;]*?)\{[^{}]*\}", r"\1", text)) != text:  # blocks within bodies
        text = shorter
    return text
