"""The fields of a file's structs, as far as a C function can take their values one by one.

fields = fields_of("float scale; const float *x, *y; int sizes[3];", "Shape")
"""

from __future__ import annotations

import re
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


def _without_bodies(text: str) -> str:
    """The members without the bodies of functions: `int f() { ... }` is `int f();`."""
    while (shorter := re.sub(r"\)([^;{}()]*)\{[^{}]*\}", r")\1;", text)) != text:
        text = shorter
    while (shorter := re.sub(r"(\)[^;]*?)\{[^{}]*\}", r"\1", text)) != text:  # blocks within bodies
        text = shorter
    return text
