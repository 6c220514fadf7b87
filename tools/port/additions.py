"""What a fork added to files that the toolkit replaces: functions and structs, cut out of there word for word.

Forks put functions of their own into util/math_functions.hpp and its sources. The toolkit's versions of these files
stay; a layer's folder gets what its code names of the rest: additions.hpp, which the build includes before everything,
and for definitions additions.cpp and additions.cu.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from cuda_source import Source, head_name
from toolkit import Toolkit
from tree import SOURCE_KINDS, Place, Tree, classes_in

# Of a fork's includes an addition gets the standard library's; the toolkit's own header brings Caffe's.
STANDARD = re.compile(r"[a-z_0-9]+\Z|(float|limits|math|stdint|stdio|stdlib|string)\.h\Z")


class Item(NamedTuple):
    """One declaration or definition at namespace scope."""

    name: str
    tokens: tuple[int, int]
    defines: bool


def items_of(source: Source, file: str) -> list[Item]:
    lexed = source.lexed
    bodies = {function.at: function for function in source.functions}
    classes = list(classes_in(source, file))
    found = [Item(one.name, (one.tokens[0], one.tokens[1] + 2), True) for one in classes]
    for head, end in source.declared:
        if any(one.tokens[0] < head < one.tokens[1] for one in classes):
            continue
        at = head_name(lexed.tokens, lexed.partner, head, end)
        while lexed.tokens[head].text.isupper() and lexed.tokens[head + 1].text == "(":
            after = lexed.partner.get(head + 1, at)
            if after >= at:
                break
            head = after + 1  # a macro's call, which needs no semicolon
        body = bodies.get(lexed.tokens[at].start)
        last = lexed.partner[end] if body else end
        found.append(Item(lexed.tokens[at].text, (head, last + 1), body is not None))
    return sorted(found, key=lambda item: item.tokens)


class Additions:
    """What is taken of one header and of the sources that go with it."""

    def __init__(self, tree: Tree, toolkit: Toolkit, header: str):
        self.tree, self.header = tree, header
        self.items = {
            file: [item for item in items_of(tree.source(file), file) if item.name not in toolkit.words]
            for file in [header, *tree.companions(header)]
        }
        self.names: set[str] = set()

    def take(self, name: str) -> list[tuple[str, Item]] | None:
        """The items of that name and those which these name in turn; None if nothing here defines it."""
        if not any(item.name == name and item.defines for item in self._all(name)):
            return None
        wanted, new = [name], []
        while wanted:
            one = wanted.pop()
            if one in self.names:
                continue
            self.names.add(one)
            for file, items in self.items.items():
                for item in (item for item in items if item.name == one):
                    new.append((file, item))
                    words = {t.text for t in self.tokens(file, item)}
                    wanted += [
                        other.name for many in self.items.values() for other in many if other.name in words
                    ]
        return new

    def _all(self, name: str) -> list[Item]:
        return [item for items in self.items.values() for item in items if item.name == name]

    def tokens(self, file: str, item: Item):
        return self.tree.source(file).lexed.tokens[slice(*item.tokens)]

    def parts(self) -> dict[str, list[tuple[Place, str]]]:
        """By file of the tree: where each part taken stands, and its text."""
        found = {}
        for file, items in self.items.items():
            lexed, text = self.tree.source(file).lexed, self.tree.text(file)
            for item in items:
                if item.name in self.names:
                    first, last = lexed.tokens[item.tokens[0]], lexed.tokens[item.tokens[1] - 1]
                    place = Place(file, lexed.position(first.start)[0])
                    found.setdefault(file, []).append((place, text[first.start : last.end]))
        return found


def written(tree: Tree, additions: list[Additions], seen: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The files' texts by their names, and a line for each part: its file here, its place in the tree.

    seen: headers of the tree that every file is to include.
    """
    texts: dict[str, list[str]] = {}
    if seen := [f'#include "{file.removeprefix("include/")}"' for file in seen]:
        texts["additions.hpp"] = ["#pragma once", '#include "caffe/common.hpp"', *seen]
    origin = []
    for one in additions:
        for file, parts in one.parts().items():
            name = "additions" + (Path(file).suffix if file.endswith(SOURCE_KINDS) else ".hpp")
            includes = [
                f"#include <{i}>" for i in tree.source(file).includes(angles=True) if STANDARD.match(i)
            ]
            if file == one.header:
                includes.append(f'#include "{file.removeprefix("include/")}"')
            lines = texts.setdefault(name, ["#pragma once"] if name.endswith(".hpp") else [])
            lines += [*includes, "namespace caffe {", *(text for _, text in parts), "}  // namespace caffe"]
            origin += [f"{name}  {place}" for place, _ in parts]
    return {name: "\n".join(lines) + "\n" for name, lines in texts.items()}, origin
