"""The fields of a file's structs, as far as a C function can take their values one by one.

structs_of(tokens)             {"Shape": [Field("scale", "float", ...), ...]}: of one declaration
without_addresses(several)     the classes whose objects are plain bytes
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import NamedTuple

from ..cuda.conditions import Token
from ..cuda.declarations import Member, alias_of, class_of, members, variables_of, words

# Words of a member that is no plain variable.
NOT_PLAIN = {
    "virtual", "union", "struct", "class", "enum", "mutable", "volatile", "private", "protected", "operator",
}  # fmt: skip
# Words that say nothing about a member's type.
UNTOLD = {"__restrict__", "__restrict", "inline", "__forceinline__", "__inline__"}
# The first words of a member that is no variable of each object.
OF_THE_CLASS = {"static", "using", "typedef", "friend", "static_assert"}


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


def structs_of(tokens: list[Token]) -> dict[str, list[Field] | None]:
    """The fields of the struct that a declaration defines, by each of its names. They are None if C can't give them."""
    found = class_of(tokens)
    if found is None or found.bases or found.is_template:
        return {}
    is_open = found.word == "struct" or [token.text for token in found.body[:2]] == ["public", ":"]
    return dict.fromkeys(found.names, fields_of(found.body, found.names) if is_open else None)


def constructed(tokens: list[Token]) -> set[str]:
    """The names of the struct that a declaration defines, if it has a constructor."""
    if (found := class_of(tokens)) is None:
        return set()
    functions = [member for member in members(found.body) if member.is_function]
    return found.names if any(_name_of(function) in found.names for function in functions) else set()


def fields_of(body: list[Token], names: set[str]) -> list[Field] | None:
    """The variables of a struct with these names; None if one is of another kind, or a copy is more than its fields."""
    fields = []
    texts = [token.text for token in body] + [""]
    if any(text in ("private", "protected") and texts[i + 1] == ":" for i, text in enumerate(texts)):
        return None
    for member in members(body):
        if member.tokens[0].text in OF_THE_CLASS:
            continue
        if _points_to_another(member.texts):
            return None
        if member.is_function:
            if {"virtual", "~"} & set(member.texts) or _copies(member, names):
                return None
            continue
        own = _fields_of_one([token for token in member.tokens if token.text not in UNTOLD])
        if own is None:
            return None
        fields += own
    return fields or None


def _points_to_another(texts: list[str]) -> bool:
    """Is it a pointer to a function or to an array?"""
    return any(text == "(" and after in ("*", "&") for text, after in itertools.pairwise(texts))


def _copies(function: Member, names: set[str]) -> bool:
    """Is it a constructor from another object?"""
    texts = [text for text in function.texts if text != "const"]
    takes = any(text in names and after == "&" for text, after in itertools.pairwise(texts))
    return takes and _name_of(function) in names


def _fields_of_one(tokens: list[Token]) -> list[Field] | None:
    texts = [token.text for token in tokens]
    before = set(texts[: texts.index("=") if "=" in texts else len(texts)])
    found = variables_of(tokens)
    if found is None or NOT_PLAIN & set(texts) or before & {"&", "&&", "<", ">", ">>", ":", "::", "~"}:
        return None
    is_const, base = "const" in found.type, " ".join(word for word in found.type if word != "const")
    fields = []
    for name, stars, sizes in found.declarators:
        many = len(sizes) > 1 or any(not size.isdigit() for size in sizes)
        if many or stars > 1 or (stars and sizes) or (is_const and not stars):
            return None
        fields.append(Field(name, base, bool(stars), is_const, int(sizes[0]) if sizes else 0))
    return fields


def _name_of(function: Member) -> str:
    """The name of a member function."""
    texts = function.texts
    at = texts.index("(") if "(" in texts else 0
    while at and re.fullmatch(r"__\w+__", texts[at - 1]) and "(" in texts[at + 1 :]:
        at = texts.index("(", at + 1)
    return texts[at - 1] if at and "operator" not in texts else ""


def without_addresses(declarations: Iterable[list[Token]]) -> set[str]:
    """The names of the classes of these declarations whose objects are plain bytes: they have no pointer or reference,
    no type that may own memory, and no destructor. So have other names of theirs: `using Real3 = Vector<double>`.
    """
    several = list(declarations)
    named: dict[str, set[str] | None] = {}
    based: dict[str, set[str]] = {}
    for found in filter(None, map(class_of, several)):
        texts = [token.text for token in found.bases] + [","]
        of_base = {text for text, after in itertools.pairwise(texts) if after in ("<", ",")}
        based |= dict.fromkeys((found.name, found.after), of_base)
        named |= dict.fromkeys(found.names, _words(found.body))
    plain = {name for name, own in named.items() if own is not None}
    while more := {n for n in plain if (named[n] or set()) & (named.keys() - plain) or based[n] - plain}:
        plain -= more
    for new, old in filter(None, map(alias_of, several)):
        if old in plain:
            plain.add(new)
    return plain


def _words(body: list[Token]) -> set[str] | None:
    """The words of a class's variables; None if one may have an address."""
    found: set[str] = set()
    for member in members(body):
        texts = member.texts
        destroys = member.is_function and "~" in texts and "default" not in texts
        head = texts[: texts.index("=") if "=" in texts else len(texts)]
        if "virtual" in head or _points_to_another(head) or destroys:
            return None
        if member.is_function or texts[0] in OF_THE_CLASS | {"enum"}:
            continue
        if texts[0] in ("struct", "union", "class") and "{" in texts:
            close = len(texts) - 1 - texts[::-1].index("}")
            inner = _words(member.tokens[texts.index("{") + 1 : close])
            if inner is None:
                return None
            found |= inner
            continue
        plain = _without_values(member.tokens)
        texts = [token.text for token in plain] + ["", ""]
        if {"*", "&", "&&"} & set(texts) or any(
            text == "std"
            and texts[i + 1] == "::"
            and not re.fullmatch(r"array|u?int\d+_t|size_t", texts[i + 2])
            for i, text in enumerate(texts)
        ):
            return None
        found |= set(words(plain)) - {"std"}
    return found


def _without_values(tokens: list[Token]) -> list[Token]:
    """A declaration without sizes and initial values."""
    found, depth, is_value = [], 0, False
    for token in tokens:
        depth += (token.text in ("[", "{")) - (token.text in ("]", "}"))
        is_value = (is_value or token.text == "=") and not (token.text == "," and not depth)
        if not depth and not is_value and token.text not in ("]", "}"):
            found.append(token)
    return found


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
