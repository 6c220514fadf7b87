"""Decide what a name in a fork's file means: the toolkit's, the fork's, or a part of a file that the toolkit replaces.

A name means what a layer's files can see through their includes: a class of the same name elsewhere in the tree is
another's.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Container
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from ..caffe.folder import NOTHING
from ..caffe.proto import field_of
from ..cuda.lexer import Token
from ..cuda.tokens import head_name
from ..files import read
from .compiler import Compiler
from .items import Item, items_of, macros_of, made_by_macros
from .toolkit import Toolkit
from .tree import HEADER_KINDS, INCLUDE, WORD, Class, Place, PortError, Tree, is_header

BLOB = "include/caffe/blob.hpp"
LAYER = "include/caffe/layer.hpp"
# The classes of Caffe's core of which forks overload functions, and their headers.
OVERLOADED = {
    "Blob": BLOB,
    "SyncedMemory": "include/caffe/syncedmem.hpp",
    "Filler": "include/caffe/filler.hpp",
    "Net": "include/caffe/net.hpp",
}
# What each layer defines.
OF_A_LAYER = ["LayerSetUp", "Reshape", "Forward_cpu", "Forward_gpu", "Backward_cpu", "Backward_gpu"]
# A fork's versions of these are not taken: they are the core.
CORE = ["blob", "syncedmem", "common", "layer", "net", "layer_factory", "internal_thread"]


class Names:
    def __init__(self, tree: Tree, toolkit: Toolkit):
        self.tree, self.toolkit, self.compiler = tree, toolkit, Compiler()
        self._items: dict[str, dict[str, list[Item]]] = {}
        self._made: dict[str, dict[str, Place]] = {}

    # ------------------------------------------------------------------------------- files

    @cached_property
    def namespace(self) -> str:
        """The fork's name of the namespace caffe: KITTI_SSD has caffe9."""
        text = self.tree.text(BLOB) if (self.tree.root / BLOB).is_file() else ""
        found = re.search(r"^namespace\s+(caffe\w*)\s*\{", text, re.M)
        return found[1] if found else "caffe"

    def is_core(self, file: str) -> bool:
        return Path(file).parent.as_posix() == "include/caffe" and Path(file).stem in CORE

    def is_toolkits(self, file: str) -> bool:
        """Has the toolkit a header of this name?"""
        return self.toolkit.header(file.removeprefix("include/")) is not None

    def has_source(self, header: str) -> bool:
        """Has the toolkit's header of that name a source?"""
        return self.toolkit.has_source(header)

    def replaced(self, file: str) -> bool:
        """Has the toolkit its own version of this file?"""
        name = re.sub(r"^(include|src)/", "", file)
        return any(self.toolkit.header(re.sub(r"\.\w+$", kind, name)) for kind in (".hpp", ".cuh", ".h"))

    def header_of(self, file: str) -> str | None:
        """The header of a source. Of util/math_functions.hpp and .cuh, the former."""
        stem = Path(file).stem
        found = (f for f in self.tree.files if is_header(f) and Path(f).stem == stem)
        return min(found, key=lambda f: HEADER_KINDS.index(Path(f).suffix), default=None)

    # ------------------------------------------------------------------------------- types

    def class_of(self, type_name: str) -> Class:
        """The class of a type."""
        tree = self.tree
        if type_name not in tree.types:
            if type_name == "Python":
                raise PortError("it runs Python code that the prototxt names: call that code from PyTorch")
            if type_name in tree.types_without:
                place, reason = tree.types_without[type_name]
                raise PortError(f"{place}: {type_name} {reason}")
            raise PortError(f"{tree.root} registers no layer {type_name}. {nearest(tree, type_name)}")
        place = tree.types[type_name]
        seen = tree.visible(place.file)
        named = tree.classes(type_name + "Layer")
        found = [one for one in named if one.file in seen] or named or self._saying(type_name)
        found = found or tree.made_by(type_name)
        if found:
            return found[0]
        includes = tree.source(place.file).includes()
        lacking = [i for i in includes if not tree.resolve(i, place.file) and not self.toolkit.header(i)]
        raise PortError(
            f"{place}: {type_name} is registered, but no header defines a class {type_name}Layer "
            f'nor one whose type() says "{type_name}"'
            + "".join(
                f"; {Path(i).name}, which this file includes, is missing in the tree" for i in lacking[:1]
            )
        )

    def _saying(self, type_name: str) -> list[Class]:
        """The classes whose type() returns this."""
        said = (f for f in self.tree.holding(type_name) if f'"{type_name}"' in self.tree.text(f))
        classes = (
            one for f in said for name in self.tree.source(f).classes for one in self.tree.classes(name)
        )
        return [one for one in classes if one.type == type_name]

    # ----------------------------------------------------------------------- words of a file

    @cached_property
    def _macros(self) -> dict[str, str]:
        """The macros that the fork added to headers which the toolkit replaces: name -> header."""
        headers = [f for f in self.tree.files if f.startswith("include/") and self.is_toolkits(f)]
        return {
            name: header
            for header in headers
            for name in macros_of(self.tree.source(header), self.toolkit.words)
        }

    def macro(self, word: str, visible: Container[str]) -> str | None:
        """The header among the visible ones that defines a macro which the toolkit's version of it lacks."""
        header = self._macros.get(word)
        return header if header in visible else None

    def header_class(self, word: str, visible: Container[str]) -> Class | None:
        """The class of that name in one of the visible headers."""
        if word not in self.tree.class_names:
            return None
        found = (one for one in self.tree.classes(word) if one.file in visible)
        return next((one for one in found if one.file.endswith(HEADER_KINDS)), None)

    def words_seen(self, file: str) -> set[str]:
        """The words of all headers that a file includes, the fork's and the toolkit's, comments left out."""
        seen = self.tree.visible(file) - {file}
        found = set().union(*map(self.tree.words, seen))
        includes = {include for one in (file, *seen) for include in INCLUDE.findall(self.tree.text(one))}
        for header in set().union(*map(self.toolkit.behind, includes)):
            found.update(self.toolkit.words_of[header])
        return found | self.toolkit.words_of_backends

    def systems_headers(self, file: str) -> list[str]:
        """Those that a file includes, itself or by others, and that neither the tree nor the toolkit has."""
        both = [(i, one) for one in self.tree.visible(file) for i in INCLUDE.findall(self.tree.text(one))]
        found = {i for i, one in both if not self.tree.resolve(i, one) and not self.toolkit.header(i)}
        return sorted(found | self.toolkit.systems_headers)

    def is_messages(self, name: str) -> bool:
        """Can this be a name that protoc makes of a message of the tree, such as message_Kind_VALUE?"""
        return any(name.startswith(f"{message}_") for message in self._messages)

    @cached_property
    def _protos(self) -> list[str]:
        return [read(path) for path in self.tree.root.rglob("*.proto")]

    @cached_property
    def _messages(self) -> set[str]:
        return {name for text in self._protos for name in re.findall(r"\b(?:message|enum)\s+(\w+)", text)}

    @cached_property
    def fields(self) -> set[str]:
        """The words of the tree's messages, and the fields that the build adds for messages without a field."""
        words = {word for text in self._protos for word in WORD.findall(text)}
        return words | {field_of(message) for message in self._messages}

    def functions_added(self, header: str) -> list[Token]:
        """The functions and member functions that a fork's header declares and the toolkit does not have."""
        lexed = self.tree.source(header).lexed
        heads = (head_name(lexed.tokens, lexed.partner, *head) for head in self.tree.source(header).declared)
        return [lexed.tokens[at] for at in heads if lexed.tokens[at].text not in self.toolkit.words]

    def data_added(self, header: str) -> list[Token]:
        """The data members, such as net_, that a fork's header declares and the toolkit does not have."""
        source = self.tree.source(header)
        named = (
            t for t, after in pairwise(source.lexed.tokens) if after.text == ";" and t.text.endswith("_")
        )
        lacking = (token for token in named if token.text not in self.toolkit.words)
        return [token for token in lacking if not source.function_around(token.start)]

    @property
    def _core_files(self) -> list[str]:
        """The core's headers of which the toolkit has more than names."""
        names = (f"caffe/{stem}.hpp" for stem in (*CORE, "filler"))
        files = (f"include/{name}" for name in names if not NOTHING.match(name))
        return [file for file in files if (self.tree.root / file).is_file()]

    @cached_property
    def core_added(self) -> dict[str, Place]:
        """By name, the place of each member that the fork added to a class of the core."""
        found: dict[str, Place] = {}
        for file in self._core_files:
            for token in self.functions_added(file) + self.data_added(file):
                found.setdefault(token.text, Place(file, self.tree.line(file, token)))
        return found

    @cached_property
    def layer_added(self) -> dict[str, Place]:
        """By name, the place of each function that the fork added to Layer, and that no layer of the toolkit has."""
        known = self.toolkit.words_of_layers
        found: dict[str, Place] = {}
        for one in (one for one in self.tree.classes("Layer") if one.file == LAYER):
            source = self.tree.source(LAYER)
            for item in items_of(source, within=one.tokens):
                if item.name not in known:
                    line = self.tree.line(LAYER, source.lexed.tokens[item.tokens[0]])
                    found.setdefault(item.name, Place(LAYER, line))
        return found

    @cached_property
    def layer_changed(self) -> list[tuple[Place, str]]:
        """(place, name) of the functions of a layer that take other arguments in this fork."""
        layer = (one for one in self.tree.classes("Layer") if one.file == LAYER)
        source = self.tree.source(LAYER) if (self.tree.root / LAYER).is_file() else None
        items = [item for one in layer for item in items_of(source, within=one.tokens)]
        declared = {name: [item for item in items if item.name == name] for name in OF_A_LAYER}
        return [
            (Place(LAYER, self.tree.line(LAYER, source.lexed.tokens[found[0].tokens[0]])), name)
            for name, found in declared.items()
            if found and not any(self.toolkit.has_member("Layer", name, i.arity.most) for i in found)
        ]

    @cached_property
    def layer_variables(self) -> dict[str, Place]:
        """By name, the place of each static variable that the fork added to Layer. Its layers share values by them."""
        text = self.tree.text(LAYER)
        found = re.finditer(r"^[ \t]*static\s[^;()]*?(\w+)\s*;", text, re.M)
        return {m[1]: Place(LAYER, text.count("\n", 0, m.start(1)) + 1) for m in found}

    @cached_property
    def core_overloads(self) -> dict[str, dict[int, Place]]:
        """By name and number of arguments, the place of each overload that the fork added to a function of the core."""
        found: dict[str, dict[int, Place]] = {}
        for name, file in OVERLOADED.items():
            for one in (one for one in self.tree.classes(name) if one.file == file):
                source = self.tree.source(file)
                # Net's functions have names of Layer's: its constructors alone are known by theirs.
                items = items_of(source, within=one.tokens)
                for item in (item for item in items if name != "Net" or item.name == name):
                    place = Place(file, self.tree.line(file, source.lexed.tokens[item.tokens[0]]))
                    for count in range(item.arity.least, item.arity.most + 1):
                        if item.name in self.toolkit.words and not self.toolkit.has_member(
                            name, item.name, count
                        ):
                            found.setdefault(item.name, {}).setdefault(count, place)
        return found

    @cached_property
    def core_variables(self) -> dict[str, Place]:
        """By name, the place of each global variable of the fork's core, such as a Solver's count of iterations."""
        found: dict[str, Place] = {}
        for file in self._core_files:
            text = self.tree.text(file)
            for match in re.finditer(r"^[ \t]*extern\s+[^;(]*?(\w+)\s*;", text, re.M):
                found.setdefault(match[1], Place(file, text.count("\n", 0, match.start(1)) + 1))
        return found

    def definition(self, function: str, visible: Collection[str]) -> Place | None:
        """The place where the fork defines a function that a visible header declares."""
        # What a class declares is its own: one of that name elsewhere has nothing to do with it.
        seen = (file for file in self.tree.holding(function) if file in visible and is_header(file))
        headers = [file for file in seen if function in self._functions_of(file)]
        found = self.tree.definition(function, headers, visible) or self._in_header(function, visible)
        return found or self._by_macro(function, visible)

    def _in_header(self, function: str, visible: Container[str]) -> Place | None:
        """A template that one header declares and another defines, which only other layers include."""
        headers = [file for file in self.tree.holding(function) if file.endswith(HEADER_KINDS)]
        declared, defined = set(), {}
        for file in headers:
            for item in self._functions_of(file).get(function, ()):
                if item.defines:
                    first = self.tree.source(file).lexed.tokens[item.tokens[0]]
                    defined.setdefault(item.arity, Place(file, self.tree.line(file, first)))
                elif file in visible:
                    declared.add(item.arity)
        return next((defined[arity] for arity in declared if arity in defined), None)

    def _by_macro(self, function: str, visible: Collection[str]) -> Place | None:
        """One that a call of a macro defines, in a visible header or in a source that goes with it."""
        places = (self._made_for(file).get(function) for file in sorted(filter(is_header, visible)))
        return next((place for place in places if place), None)

    def _made_for(self, header: str) -> dict[str, Place]:
        """By name, what calls of macros define there."""
        if header not in self._made:
            found = self._made[header] = {}
            for file in (header, *self.tree.companions(header)):
                for item in made_by_macros(self.tree, file):
                    first = self.tree.source(file).lexed.tokens[item.tokens[0]]
                    found.setdefault(item.name, Place(file, self.tree.line(file, first)))
        return self._made[header]

    def defined_in(self, file: str) -> set[str]:
        """The functions that a source defines, and the classes of which it defines members."""
        items = items_of(self.tree.source(file)) + made_by_macros(self.tree, file)
        return {item.scope or item.name for item in items if item.defines}

    def _functions_of(self, file: str) -> dict[str, list[Item]]:
        """By name, the functions of a file that are no members of classes."""
        if file not in self._items:
            found = self._items[file] = {}
            for item in items_of(self.tree.source(file)):
                if item.arity and not item.scope:
                    found.setdefault(item.name, []).append(item)
        return self._items[file]

    def sublayer(self, type_name: str) -> str | None:
        """The class of a sub-layer that is made by its type."""
        return self.class_of(type_name).name if type_name in self.tree.types else None


def nearest(tree: Tree, type_name: str) -> str:
    """For an error: the registered types that are similar to this one, or all."""
    lower = {t.lower().removesuffix("layer"): t for t in tree.types}
    wanted = type_name.lower().removesuffix("layer").replace("_", "")
    near = difflib.get_close_matches(wanted, lower, n=5, cutoff=0.55)
    near += [k for k in lower if k not in near and wanted and wanted in k]
    if not near:
        return "It has: " + ", ".join(sorted(tree.types))
    return "Near it: " + ", ".join(lower[k] for k in near)
