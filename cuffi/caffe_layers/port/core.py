"""Find what a fork changed in Caffe's core: Blob, Layer, Net and their like. A port uses the toolkit's instead."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import pairwise

from tools.cuda.lexer import Token

from ..make.includes import NOTHING
from .bodies import changed
from .declarations import Item, Place
from .toolkit_headers import Toolkit
from .tree import HEADER_KINDS, File, Tree

BLOB = "include/caffe/blob.hpp"
LAYER = "include/caffe/layer.hpp"
# Classes of Caffe's core, and their headers. Forks add overloads to the functions of these classes.
OVERLOADED = {
    "Blob": BLOB,
    "SyncedMemory": "include/caffe/syncedmem.hpp",
    "Filler": "include/caffe/filler.hpp",
    "Net": "include/caffe/net.hpp",
}
# Headers of the core. A fork's versions of them are not taken.
CORE = ["blob", "syncedmem", "common", "layer", "net", "layer_factory", "internal_thread"]
CORE_FILES = {f"include/caffe/{stem}{kind}" for stem in CORE for kind in HEADER_KINDS}

# Members of the standard library's containers, strings and pointers.
STANDARD = frozenset((
    "append", "assign", "at", "back", "begin", "capacity", "c_str", "clear", "compare", "copy", "count", "data",
    "emplace", "emplace_back", "empty", "end", "equal_range", "erase", "find", "first", "front", "get",
    "insert", "length", "lower_bound", "max_size", "merge", "pop", "pop_back", "pop_front", "push", "push_back",
    "push_front", "rbegin", "release", "remove", "rend", "replace", "reserve", "reset", "resize", "reverse",
    "second", "shrink_to_fit", "size", "sort", "splice", "str", "substr", "swap", "top", "unique",
    "upper_bound", "use_count",
))  # fmt: skip


def is_containers(tokens: list[Token], i: int) -> bool:
    """Is the member named here most likely a container's? If it is not, the compiler says that the class lacks it.

    bottom[0] and top[0] are Blobs, whatever the name. So is what a call returns, in most layers.
    """
    before = [token.text for token in tokens[max(i - 5, 0) : i - 1]]
    of_blob = before[-1:] == ["]"] and before[:1] in (["bottom"], ["top"])
    return tokens[i].text in STANDARD and before[-1:] != [")"] and not of_blob


def is_called(tokens: list[Token], i: int) -> bool:
    """Is the token called as a member: x.f(, x->f(, X::f(?"""
    return tokens[i + 1].text == "(" and tokens[i - 1].text in (".", "->", "::")


class Core:
    """A fork's versions of the core's headers, compared with the toolkit's."""

    def __init__(self, tree: Tree, toolkit: Toolkit):
        self.tree, self.toolkit = tree, toolkit

    def adds_what_is_used(self, header: str, scanned: list[tuple[str, list[Token]]]) -> bool:
        """Does some of this code use members of a fork's header that the toolkit's header lacks?"""
        functions = {token.text for token in self.functions_added(header)}
        data = {token.text for token in self.data_added(header)}
        for _, tokens in scanned:
            called = any(
                tokens[i].text in functions and is_called(tokens, i) for i in range(1, len(tokens) - 1)
            )
            if called or any(token.text in data for token in tokens):
                return True
        return False

    def functions_added(self, header: str) -> list[Token]:
        """The functions and member functions that a fork's header declares and the toolkit does not have."""
        source = self.tree[header].source
        names = (source.lexed.tokens[source.name_of(head)] for head in source.declared)
        return [name for name in names if name.text not in self.toolkit.words]

    def data_added(self, header: str) -> list[Token]:
        """The data members, such as net_, that a fork's header declares and the toolkit does not have."""
        source = self.tree[header].source
        members = (
            t for t, after in pairwise(source.lexed.tokens) if after.text == ";" and t.text.endswith("_")
        )
        added = (token for token in members if token.text not in self.toolkit.words)
        return [token for token in added if not source.function_around(token.start)]

    def members(self, name: str, header: str) -> list[Item]:
        """The members of the fork's class of this name in a header of the core."""
        return [item for cls in self.tree.classes(name) if cls.file == header for item in cls.members]

    @cached_property
    def _files(self) -> list[File]:
        """The core's headers in the tree. Headers that the toolkit replaces by empty ones are left out."""
        names = (f"caffe/{stem}.hpp" for stem in (*CORE, "filler"))
        files = (f"include/{name}" for name in names if not NOTHING.match(name))
        return [self.tree[file] for file in files if self.tree.has(file)]

    @cached_property
    def added(self) -> dict[str, Place]:
        """The place of each member that the fork added to a class of the core, by name."""
        places: dict[str, Place] = {}
        for file in self._files:
            for token in self.functions_added(file.name) + self.data_added(file.name):
                places.setdefault(token.text, file.place(token))
        return places

    @cached_property
    def variables(self) -> dict[str, Place]:
        """The place of each global variable of the fork's core, by name. One is a Solver's count of iterations."""
        pattern = re.compile(r"^[ \t]*extern\s+[^;(]*?(\w+)\s*;", re.M)
        places: dict[str, Place] = {}
        for file in self._files:
            for match in pattern.finditer(file.text):
                places.setdefault(match[1], file.place(match.start(1)))
        return places

    @cached_property
    def overloads(self) -> dict[str, dict[int, Place]]:
        """The place of each overload that the fork added to a function of the core, by name and number of arguments."""
        places: dict[str, dict[int, Place]] = {}
        for name, header in OVERLOADED.items():
            # Other classes, such as Layer, have functions with the names of Net's. So only its constructors count.
            for item in (i for i in self.members(name, header) if name != "Net" or i.name == name):
                if item.arity is None or item.name not in self.toolkit.words:
                    continue
                place = self.tree[header].place(item)
                for count in range(item.arity.least, item.arity.most + 1):
                    if not self.toolkit.has_member(name, item.name, count):
                        places.setdefault(item.name, {}).setdefault(count, place)
        return places

    @cached_property
    def layer_added(self) -> dict[str, Place]:
        """The place of each function that the fork added to Layer and that no layer of the toolkit has, by name."""
        places: dict[str, Place] = {}
        for item in self.members("Layer", LAYER):
            if item.name not in self.toolkit.words_of_layers:
                places.setdefault(item.name, self.tree[LAYER].place(item))
        return places

    @cached_property
    def layer_variables(self) -> dict[str, Place]:
        """The place of each static variable of the fork's Layer, by name. All layers share its value."""
        # A part of a fork may lack the file.
        text = self.tree[LAYER].text if self.tree.has(LAYER) else ""
        matches = re.finditer(r"^[ \t]*static\s[^;()]*?(\w+)\s*;", text, re.M)
        return {m[1]: self.tree[LAYER].place(m.start(1)) for m in matches}

    def changed(self, words: set[str]) -> dict[str, Place]:
        """The places of the functions that the fork changed, by name: Layer's, and those in `words`."""
        taken = {"Blob::LegacyShape"} if self.legacy_axes[0] != 4 else set()
        return {
            name: place
            for name, place in self._changed.items()
            if name not in taken and (name.startswith("Layer::") or name.rpartition("::")[2] in words)
        }

    @cached_property
    def _changed(self) -> dict[str, Place]:
        return changed(self.tree)

    @cached_property
    def legacy_axes(self) -> tuple[int, Place | None]:
        """The most axes that the fork's LegacyShape allows, and its place. Caffe's allows 4."""
        item = next((item for item in self.members("Blob", BLOB) if item.name == "LegacyShape"), None)
        text = " ".join(token.text for token in item.tokens) if item else ""
        if not item or "{" not in text:
            return 4, None
        most = re.search(r"CHECK_LE \( num_axes \( \) , (\d+) \)", text)
        return int(most[1]) if most else 32, self.tree[BLOB].place(item)
