"""Which classes of the files a real number may become by a constructor, and what their constructors take.

    struct Cell { int a; Cell(int k) : a(k) {} };     Cell cell(x), cell = x, take(x), (Cell)x
    struct Row : Cell { using Base = Cell; Row(float x) : Base(x) {} };

A constructor is known by its class's name, and by those that `using` and `typedef` give to the class. C++ finds out
whether it takes an integer (`gpu_into<Cell>` in include/host/cuda_convert.h); of a class that takes a real number
nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .source import Source


class ClassType(NamedTuple):
    """A class, and the arguments of its template."""

    name: str
    arguments: tuple[str, ...]
    text: str


def class_of(text: str) -> ClassType | None:
    """The class of `typename ns::Box<int>`; None if the text ends otherwise than with a class's name."""
    head, sign, rest = text.partition("<")
    words = [w for w in head.replace("::", " ").split() if w not in ("const", "typename", "struct", "class")]
    if not words or any(other in text for other in "*&([") or (sign and not rest.rstrip().endswith(">")):
        return None
    if sign and "::" in rest.rpartition(">")[2]:
        return None
    inside = rest.rpartition(">")[0]
    arguments = [inside.strip()] if "<" in inside or "(" in inside else [a.strip() for a in inside.split(",")]
    return ClassType(words[-1], tuple(arguments) if sign else (), text)


class Body(NamedTuple):
    """Of a class: its braces."""

    source: Source
    opening: int
    close: int

    def head(self) -> list[str]:
        tokens, first = self.source.lexed.tokens, self.opening
        while first and tokens[first - 1].text not in (";", "{", "}"):
            first -= 1
        return [token.text for token in tokens[first : self.opening]]

    def types(self) -> Iterator[str]:
        """The words of the class's head, as its bases, and the types that it declares by `using` and `typedef`."""
        tokens = self.source.lexed.tokens
        yield from self.head()
        for i in range(self.opening, self.close):
            if tokens[i].text == "using":
                yield tokens[i + 1].text
            elif tokens[i].text == "typedef":
                yield next((tokens[k - 1].text for k in range(i, self.close) if tokens[k].text == ";"), "")

    def meanings(self) -> dict[str, str]:
        """What the class's own `using Name = ...` say."""
        tokens, found = self.source.lexed.tokens, {}
        for i in range(self.opening, self.close):
            if tokens[i].text == "using" and tokens[i + 2].text == "=":
                end = next((k for k in range(i, self.close) if tokens[k].text == ";"), self.close)
                found[tokens[i + 1].text] = " ".join(token.text for token in tokens[i + 3 : end])
        return found

    def inherited(self) -> Iterator[str]:
        """The names in `using Base::Base`."""
        tokens = self.source.lexed.tokens
        for i in range(self.opening, self.close):
            if tokens[i].text == "using" and tokens[i + 2].text != "=":
                end = next((k for k in range(i, self.close) if tokens[k].text == ";"), self.close)
                yield from (token.text for token in tokens[i + 1 : end] if token.kind == "name")


class Constructors:
    """Of the classes of a file with its headers.

    Args:
        others: what `using` and `typedef` say, by the new name.
        may_take: may a number become a parameter of this type by a conversion to an integer?
    """

    def __init__(
        self, sources: list[Source], others: dict[str, set[str]], signatures: dict[str, list], may_take
    ):
        self.bodies: dict[str, list[Body]] = {}
        for source in sources:
            for name, ranges in source.classes.items():
                self.bodies.setdefault(name, []).extend(Body(source, *one) for one in ranges)
        self.names: set[str] = set()  # of the classes that a number may become
        self._meant = {name: {c for text in texts if (c := class_of(text))} for name, texts in others.items()}
        for name in self.bodies:
            taking = (s for s in signatures.get(name, []) if s.takes and s.least <= 1)
            if any(s.is_constructor and may_take(s, s.takes[0]) for s in taking):
                self.names.add(name)
        self._close(
            {name: {n for body in bodies for n in body.inherited()} for name, bodies in self.bodies.items()}
        )
        self.signatures = signatures

    def _close(self, inheriting: dict[str, set[str]]):
        """Add other names of such classes, and classes that inherit their constructors."""
        count = -1
        while count < len(self.names):
            count = len(self.names)
            self.names |= {n for n, meant in self._meant.items() if {c.name for c in meant} & self.names}
            self.names |= {n for n, bases in inheriting.items() if bases & self.names}

    def meant(self, name: str) -> set[ClassType]:
        """What `using` and `typedef` say of a name."""
        return self._meant.get(name, set())

    def has(self, name: str) -> bool:
        return name in self.names

    def may_be_made(self, name: str) -> bool:
        """The same, and of a name that is none of the files' classes."""
        return name in self.names or name not in self.bodies

    def is_made(self, text: str) -> bool:
        """May a number become this type by a constructor?"""
        found = class_of(text)
        return found is not None and found.name in self.names

    def is_deduced(self, text: str, tokens: list, at: int) -> bool:
        """Is this a class template without arguments: `Pair p = f();`? In the class itself it is the class."""
        bodies = self.bodies.get(text.removeprefix("const ").strip(), [])
        own = any(body.source.lexed.tokens is tokens and body.opening < at < body.close for body in bodies)
        return bool(bodies) and not own and all("template" in body.head() for body in bodies)

    def of(self, name: str) -> tuple[list, list[str]]:
        """The constructors that a class has by its own or another name, and the arguments that this name gives to its
        template."""
        if name not in self._meant:
            return self.signatures.get(name, []), []
        every, given, waiting, seen = [], set[tuple[str, ...]](), [name], set[str]()
        while waiting:
            for meant in self._meant.get(waiting.pop(), ()):
                if meant.name in seen:
                    continue
                seen.add(meant.name)
                waiting.append(meant.name)
                if meant.name in self.bodies:
                    every += [s for s in self.signatures.get(meant.name, []) if s.is_constructor]
                    given.add(meant.arguments)
        return every, list(given.pop()) if len(given) == 1 else []
