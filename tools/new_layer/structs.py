"""The fields of a file's structs, as far as a C function can take their values one by one.

fields = fields_of("float scale; const float *x, *y; int sizes[3];", "Shape")
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .members import CLASS, members

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
    if not (found := CLASS.fullmatch(text.strip())) or found[5] or text.lstrip().startswith("template"):
        return {}
    is_typedef, word, _, own, _, body, after = found.groups()
    names = {own, after} - {""} if is_typedef else {own} - {""}
    is_open = word == "struct" or re.match(r"\s*public\s*:", body)
    return dict.fromkeys(names, fields_of(body, names) if is_open else None)


def constructed(text: str) -> set[str]:
    """The names of the struct that a declaration defines, if it has a constructor."""
    if not (found := CLASS.fullmatch(text.strip())):
        return set()
    names = {found[4], found[7]} - {""}
    return (
        names
        if any(_calls(member.text) in names for member in members(found[6]) if member.is_function)
        else set()
    )


def fields_of(body: str, names: set[str]) -> list[Field] | None:
    """The variables of a struct with these names; None if one is of another kind, or a copy is more than its fields."""
    fields = []
    if re.search(r"\b(private|protected)\s*:", body):
        return None
    for member, is_function in members(body):
        member = re.sub(r"\b(__restrict__|__restrict|inline|__forceinline__)", " ", member).strip()
        if not member or re.match(r"static\b|using\b|typedef\b|friend\b|static_assert\b", member):
            continue
        if re.search(r"\(\s*[*&]", member):  # a pointer to a function or to an array
            return None
        if is_function:
            copies = _calls(member) in names and re.search(rf"\b({'|'.join(names)})\s*(const\s*)?&", member)
            if "virtual" in member or "~" in member or copies:
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


def _calls(function: str) -> str:
    """The name of a member function."""
    found = re.search(r"(\w+)\s*\(", re.sub(r"__\w+__\s*(\([^()]*\))?", " ", function))
    return found[1] if found and "operator" not in function else ""


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
