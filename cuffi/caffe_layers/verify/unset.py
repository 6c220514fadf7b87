"""Members that nothing sets before they are read: the words for verify, with the members that may be meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tools.cuda.source import Source
from tools.files import read

from ..make.cpu_code import CUDA_BUILD

# Bytes of other memory. An int of 0xFF is -1, which max(member, n) hides; one of 0x7F is large.
OTHER = (0xFF, 0x7F)
KINDS = (".hpp", ".h", ".cpp", ".cu", ".cuh")
# Types whose variables have no value of their own, unlike a vector or a Blob. Pointers are others.
PLAIN = re.compile(r"(unsigned|signed|char|short|int|long|bool|float|double|Dtype|size_t|u?int\d+_t)\Z")
# Statements of a class's body that declare no variable of an object.
OTHERS = re.compile(r"(typedef|using|friend|static|enum|struct|class|union|template)\Z")


def words(folder: Path, type_name: str) -> str:
    """The words for a layer that gave another result in memory of OTHER than in memory of 0."""
    said = (
        "reads a member that nothing has set: in other memory than zeros its result is another one."
        " In Caffe it is undefined; here the memory is zeros"
    )
    names = unset(folder, type_name)
    return said + f". Its constructor does not set {', '.join(names)}" * bool(names)


def unset(folder: Path, type_name: str) -> list[str]:
    """The plain members of the type's class that its declaration and its constructor leave without a value."""
    sources = [Source(read(p), p.name, CUDA_BUILD) for p in sorted(folder.rglob("*")) if p.suffix in KINDS]
    found = [
        (cls, name)
        for source in sources
        for cls, bodies in source.classes.items()
        for body in bodies
        for name in plain_members(source, body)
    ]
    own = [name for cls, name in found if cls == f"{type_name}Layer"] or [name for _, name in found]
    text = "\n".join(source.text for source in sources)
    return [name for name in dict.fromkeys(own) if not re.search(rf"[:,]\s*{name}\s*[({{]", text)]


def plain_members(source: Source, body: tuple[int, int]) -> Iterator[str]:
    """The names of a class's plain members that have no value where they are declared."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    statement: list[str] = []
    at = body[0] + 1
    while at < body[1]:
        text = tokens[at].text
        if text in ("(", "{", "["):
            at = partner[at]
        if text == ":" and statement[-1:] in (["public"], ["protected"], ["private"]):
            statement = []
        elif text == ";" or (text == "{" and "(" in statement):
            yield from names_of(statement)
            statement = []
        else:
            statement.append(text)
        at += 1


def names_of(statement: list[str]) -> Iterator[str]:
    """The variables that a statement declares without a value; brackets in it have lost what they hold."""
    kind = [text for text in statement if text not in ("const", "mutable", "volatile", "std", "::")]
    is_plain = bool(kind) and (PLAIN.match(kind[0]) or "*" in kind)
    if not is_plain or "(" in statement or OTHERS.match(statement[0]):
        return
    for declared in " ".join(statement).split(","):
        if not re.search(r"[={]", declared):
            yield re.findall(r"\w+", declared)[-1]
