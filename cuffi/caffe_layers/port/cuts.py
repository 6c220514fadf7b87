"""Cut out what a fork added to files that the toolkit replaces: functions, structs and macros, word for word.

Forks add functions to util/math_functions.hpp and its sources, and macros to common.hpp. A ported layer uses the
toolkit's versions of these files. The additions that it names are written to its folder: to additions.hpp, which the
build includes first, and definitions to additions.cpp and additions.cu. Member functions that a fork gave to Blob go
into additions_blob.hpp, which caffe/blob.hpp includes in the class.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from pathlib import Path

from tools.cuda.lexer import Token

from .core import BLOB, Core
from .declarations import Item, Place, macros_of
from .toolkit_headers import Toolkit
from .tree import SOURCE_KINDS, Tree

# A .cuh is for the compiler of kernels. On the host that is the C++ compiler.
KERNELS = "#if defined(__CUDACC__) || defined(CAFFE_HOST_BACKEND)"
# Headers of the standard library. Additions keep these includes.
STANDARD = re.compile(r"[a-z_0-9]+\Z|(float|limits|math|stdint|stdio|stdlib|string)\.h\Z")


class Cut:
    """The parts of one header and its sources that layers need."""

    def __init__(self, tree: Tree, toolkit: Toolkit, header: str):
        self.tree, self.toolkit, self.header = tree, toolkit, header
        key = type(self).__name__, header
        if key not in tree.parts:  # the same parts for every type
            files = [header, *tree[header].companions]
            macros = {file: macros_of(tree[file].source, toolkit.words) for file in files}
            tree.parts[key] = {file: self._declarations(file) for file in files}, macros
        self.items, self.macros = tree.parts[key]
        self.names: set[str] = set()

    def _declarations(self, file: str) -> list[Item]:
        items = self.tree[file].declarations + self.tree[file].made_by_macros
        return [item for item in items if not self.toolkit.declares(item.name, item.arity)]

    def take(self, name: str) -> list[tuple[str, list[Token]]] | None:
        """Take the parts of this name, and the parts that they name.

        Returns (file, tokens) of each new part, or None if nothing here defines the name.
        """
        every = (item for items in self.items.values() for item in items)
        defined = any(item.name == name and item.defines for item in every)
        if not defined and name not in self.macros[self.header]:
            return None
        waiting, new = [name], []
        while waiting:
            word = waiting.pop()
            if word in self.names:
                continue
            self.names.add(word)
            for file, items in self.items.items():
                parts = [item.tokens for item in items if item.name == word]
                if word in self.macros[file]:
                    parts.append(self.macros[file][word].tokens)
                new += [(file, tokens) for tokens in parts]
                words = {token.text for tokens in parts for token in tokens}
                waiting += [item.name for many in self.items.values() for item in many if item.name in words]
                waiting += words & {*self.macros[file], *self.macros[self.header]}
        return new

    def texts(self) -> dict[str, list[tuple[Place, str]]]:
        """The (place, text) of each part that was taken, by file of the tree."""
        parts = {}
        for file, items in self.items.items():
            text = self.tree[file].text
            macros = (macro for name, macro in self.macros[file].items() if name in self.names)
            spans = [(macro.start, macro.end) for macro in macros]
            for item in items:
                if item.name in self.names:
                    spans.append((item.start, item.tokens[-1].end))
            if spans:
                # One call of a macro may define several items.
                spans = dict.fromkeys(spans)
                parts[file] = [(self.tree[file].place(a), text[a:b].rstrip()) for a, b in spans]
        return parts

    def file_for(self, file: str) -> str:
        """The file to which the parts of a file of the tree are written."""
        return "additions" + (Path(file).suffix if file.endswith(SOURCE_KINDS) else ".hpp")

    def lines(self, file: str, texts: list[str], copied: Container[str]) -> list[str]:
        """The lines of the additions for the parts of a file: first the includes that exist here, then the parts.

        Args:
            copied: the files of the tree that are copied.
        """
        source = self.tree[file].source
        quoted = list(source.includes())
        angles = [i for i in source.includes(angles=True) if i not in quoted]
        lines = [line for i in angles for line in self._line(i)]
        # A part of a header may use the toolkit's header of this name and the fork's messages without an include.
        if file == self.header and not file.endswith(SOURCE_KINDS):
            quoted = [file.removeprefix("include/"), "caffe/proto/caffe.pb.h"]
        lines += [
            f'#include "{i}"'
            for i in quoted
            if self.toolkit.header(i) or (self.tree.resolve(i, file) or "") in copied
        ]
        lines += in_caffe(texts)
        return [KERNELS, *lines, "#endif"] if file.endswith(".cuh") else lines

    def _line(self, include: str) -> list[str]:
        """The include of a real header of the toolkit's, for example for boost. Or of the system's, if it is there."""
        header = self.toolkit.header(include)
        if header is not None and header.is_absolute():
            return [f"#include <{include}>"]
        return [f"#if __has_include(<{include}>)\n#include <{include}>\n#endif"] * bool(
            STANDARD.match(include)
        )


class BlobCut(Cut):
    """The member functions of the fork's Blob that layers need. They use only members that the toolkit's Blob has."""

    def __init__(self, tree: Tree, toolkit: Toolkit):
        super().__init__(tree, toolkit, BLOB)

    def _declarations(self, file: str) -> list[Item]:
        if file == BLOB:
            items = Core(self.tree, self.toolkit).members("Blob", BLOB)
        else:
            items = [item for item in self.tree[file].declarations if item.arity]
        forks = [item for item in items if self._is_forks(item)]
        return [item for item in forks if self._can_be_taken(item.tokens)]

    def _is_forks(self, item: Item) -> bool:
        if item.name not in self.toolkit.words:
            return True
        return item.arity is not None and not self.toolkit.has_member("Blob", item.name, item.arity.most)

    def _can_be_taken(self, tokens: list[Token]) -> bool:
        """Is it neither virtual nor a specialization, and does it use no data member that the fork added?"""
        words = [token.text for token in tokens]
        if "virtual" in words or words[:3] == ["template", "<", ">"]:
            return False
        return all(word in self.toolkit.words for word in words if re.match(r"[a-z]\w*_\Z", word))

    def file_for(self, file: str) -> str:
        return "additions_blob.hpp" if file == BLOB else "additions.hpp"

    def lines(self, file: str, texts: list[str], copied: Container[str]) -> list[str]:
        if file == BLOB:
            return texts
        return ['#include "caffe/blob.hpp"', '#include "caffe/util/math_functions.hpp"', *in_caffe(texts)]


class SourceCut(Cut):
    """The functions of one source that layers need, where its other functions use what the toolkit lacks."""

    def _declarations(self, file: str) -> list[Item]:
        items = super()._declarations(file)
        # A function of a class needs the whole class.
        return [] if file != self.header or any(item.scope for item in items) else items


def in_caffe(texts: list[str]) -> list[str]:
    return ["namespace caffe {", *texts, "}  // namespace caffe"]


def written(
    cuts: Iterable[Cut], seen: Iterable[str], copied: Container[str]
) -> tuple[dict[str, str], list[str]]:
    """The texts of the additions by file name, and a line for each part with its file here and its place in the tree.

    Args:
        seen: headers of the tree that every file must include.
        copied: the files of the tree that are copied.
    """
    texts: dict[str, list[str]] = {}
    if seen := [f'#include "{file.removeprefix("include/")}"' for file in seen]:
        texts["additions.hpp"] = ["#pragma once", '#include "caffe/common.hpp"', *seen]
    origin = [f"additions.hpp  {line}" for line in seen]
    done: set[Place] = set()  # two headers, .hpp and .cuh, may have the same source

    def place(cut: Cut) -> tuple[bool, int]:
        """Sort key: macros first, then a header before the headers that include it."""
        return not cut.names & {*cut.macros[cut.header]}, len(cut.tree[cut.header].visible)

    for cut in sorted(cuts, key=place):
        for file, all_parts in cut.texts().items():
            parts = [part for part in all_parts if part[0] not in done]
            done.update(place for place, _ in parts)
            name = cut.file_for(file)
            lines = texts.setdefault(name, ["#pragma once"] if name.endswith(".hpp") else [])
            lines += cut.lines(file, [text for _, text in parts], copied)
            origin += [f"{name}  {place}" for place, _ in parts]
    return {name: "\n".join(lines) + "\n" for name, lines in texts.items()}, origin
