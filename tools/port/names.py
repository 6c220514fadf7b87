"""Decide what a name in a fork's file means: the toolkit's, the fork's, or a part of a file that the toolkit replaces.

Only declarations that a layer's files can see through their includes count. Elsewhere in the tree, another class may
have the same name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Container
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from ..caffe.folder import NOTHING
from ..caffe.proto import field_of, is_whole
from ..cuda.lexer import Token
from ..cuda.outline import head_name
from ..files import read
from ..refused import Refused
from .compiler import Compiler
from .items import Item, items_of, macros_of, made_by_macros, place_of
from .toolkit import ROOT, Toolkit
from .tree import DEFINED, HEADER_KINDS, INCLUDE, PROTO, WORD, Class, Place, Tree, is_header, remembered

BLOB = "include/caffe/blob.hpp"
LAYER = "include/caffe/layer.hpp"
# Classes of Caffe's core, and their headers. Forks add overloads to the functions of these classes.
OVERLOADED = {
    "Blob": BLOB,
    "SyncedMemory": "include/caffe/syncedmem.hpp",
    "Filler": "include/caffe/filler.hpp",
    "Net": "include/caffe/net.hpp",
}
# Functions that each layer defines.
OF_A_LAYER = ["LayerSetUp", "Reshape", "Forward_cpu", "Forward_gpu", "Backward_cpu", "Backward_gpu"]
# Headers of the core. A fork's versions of them are not taken.
CORE = ["blob", "syncedmem", "common", "layer", "net", "layer_factory", "internal_thread"]


class Names:
    def __init__(self, tree: Tree, toolkit: Toolkit):
        self.tree, self.toolkit, self.compiler = tree, toolkit, Compiler()

    # ------------------------------------------------------------------------------- files

    @cached_property
    def namespace(self) -> str:
        """The fork's name for the namespace caffe. In KITTI_SSD it is caffe9."""
        text = self.tree.text(BLOB) if self.tree.has(BLOB) else ""
        match = re.search(r"^namespace\s+(caffe\w*)\s*\{", text, re.M)
        return match[1] if match else "caffe"

    def is_core(self, file: str) -> bool:
        return Path(file).parent.as_posix() == "include/caffe" and Path(file).stem in CORE

    def is_toolkits(self, file: str) -> bool:
        """Does the toolkit have a header of this name?"""
        return self.toolkit.header(file.removeprefix("include/")) is not None

    def has_source(self, header: str) -> bool:
        """Does the toolkit's header of this name have a source?"""
        return self.toolkit.has_source(header)

    def replaced(self, file: str) -> bool:
        """Does the toolkit have its own version of this file?"""
        name = re.sub(r"^(include|src)/", "", file)
        return any(self.toolkit.header(re.sub(r"\.\w+$", kind, name)) for kind in (".hpp", ".cuh", ".h"))

    def header_of(self, file: str) -> str | None:
        """The header of a source, or None. A .hpp, such as util/math_functions.hpp, comes before a .cuh."""
        stem = Path(file).stem
        headers = (f for f in self.tree.files if is_header(f) and Path(f).stem == stem)
        return min(headers, key=lambda f: HEADER_KINDS.index(Path(f).suffix), default=None)

    # ------------------------------------------------------------------------------- types

    def class_of(self, type_name: str) -> Class:
        """The class of a type. Raises Refused if there is none."""
        tree = self.tree
        if type_name not in tree.types:
            if type_name == "Python":
                raise Refused("it runs Python code that the prototxt names: call that code from PyTorch")
            if type_name in tree.types_without:
                place, reason = tree.types_without[type_name]
                raise Refused(f"{place}: {type_name} {reason}")
            raise Refused(f"{tree.root} registers no layer {type_name}. {nearest(tree, type_name)}")
        place = tree.types[type_name]
        seen = tree.visible(place.file)
        named = tree.classes(type_name + "Layer")
        visible = [cls for cls in named if cls.file in seen]
        classes = visible or named or self._returning(type_name) or tree.made_by(type_name)
        if classes:
            return classes[0]
        why = f'no header defines a class {type_name}Layer nor one whose type() says "{type_name}"'
        for include in tree.source(place.file).includes():
            if not tree.resolve(include, place.file) and not self.toolkit.header(include):
                why += f"; {Path(include).name}, which this file includes, is missing in the tree"
                break
        raise Refused(f"{place}: {type_name} is registered, but {why}")

    def _returning(self, type_name: str) -> list[Class]:
        """The classes whose type() returns this."""
        files = (f for f in self.tree.holding(type_name) if f'"{type_name}"' in self.tree.text(f))
        classes = (
            cls for f in files for name in self.tree.source(f).classes for cls in self.tree.classes(name)
        )
        return [cls for cls in classes if cls.type == type_name]

    # ----------------------------------------------------------------------- words of a file

    @cached_property
    def _macros(self) -> dict[str, str]:
        """The macros that the fork added to headers that the toolkit replaces, as {name: header}.

        Switches are left out, because here nothing is compiled with another value of them than the tree was read with.
        """
        headers = [f for f in self.tree.files if f.startswith("include/") and self.is_toolkits(f)]
        return {
            name: header
            for header in headers
            for name in macros_of(self.tree.source(header), self.toolkit.words)
            if name not in DEFINED
        }

    def macro(self, word: str, visible: Container[str]) -> str | None:
        """The visible header that defines a macro, if the toolkit's version of this header lacks it. Otherwise None."""
        header = self._macros.get(word)
        return header if header in visible else None

    def header_class(self, word: str, visible: Container[str]) -> Class | None:
        """The class of this name in one of the visible headers, or None."""
        if word not in self.tree.class_names:
            return None
        classes = (cls for cls in self.tree.classes(word) if cls.file in visible)
        return next((cls for cls in classes if cls.file.endswith(HEADER_KINDS)), None)

    def words_seen(self, file: str) -> set[str]:
        """The words of all headers that a file includes, both the fork's and the toolkit's, without their comments."""
        seen = self.tree.visible(file) - {file}
        words = set().union(*map(self.tree.words, seen))
        includes = {
            include for includer in (file, *seen) for include in INCLUDE.findall(self.tree.text(includer))
        }
        for header in set().union(*map(self.toolkit.behind, includes)):
            words.update(self.toolkit.words_of[header])
        return words | self.toolkit.words_of_backends

    def systems_headers(self, file: str) -> list[str]:
        """The headers that a file includes, directly or indirectly, and that neither tree nor toolkit has."""
        includes = [(i, f) for f in self.tree.visible(file) for i in INCLUDE.findall(self.tree.text(f))]
        unresolved = {i for i, f in includes if not self.tree.resolve(i, f) and not self.toolkit.header(i)}
        return sorted(unresolved | self.toolkit.systems_headers)

    def is_messages(self, name: str) -> bool:
        """Can protoc have generated this name from a message of the tree, such as message_Kind_VALUE?"""
        return any(name.startswith(f"{message}_") for message in self._messages)

    @cached_property
    def _protos(self) -> list[str]:
        """The texts of the tree's messages, and stock Caffe's if the tree has at most a layer's own message."""
        texts = [read(path) for path in self.tree.root.rglob("*.proto")]
        return texts if any(map(is_whole, texts)) else [*texts, read(ROOT / PROTO)]

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
        members = (
            t for t, after in pairwise(source.lexed.tokens) if after.text == ";" and t.text.endswith("_")
        )
        added = (token for token in members if token.text not in self.toolkit.words)
        return [token for token in added if not source.function_around(token.start)]

    @property
    def _core_files(self) -> list[str]:
        """The core's headers in the tree. Headers that the toolkit replaces by empty ones are left out."""
        names = (f"caffe/{stem}.hpp" for stem in (*CORE, "filler"))
        files = (f"include/{name}" for name in names if not NOTHING.match(name))
        return [file for file in files if self.tree.has(file)]

    @cached_property
    def core_added(self) -> dict[str, Place]:
        """The place of each member that the fork added to a class of the core, by name."""
        places: dict[str, Place] = {}
        for file in self._core_files:
            for token in self.functions_added(file) + self.data_added(file):
                places.setdefault(token.text, self.tree.place(file, token))
        return places

    @cached_property
    def layer_added(self) -> dict[str, Place]:
        """The place of each function that the fork added to Layer and that no layer of the toolkit has, by name."""
        known = self.toolkit.words_of_layers
        places: dict[str, Place] = {}
        for cls in (cls for cls in self.tree.classes("Layer") if cls.file == LAYER):
            source = self.tree.source(LAYER)
            for item in items_of(source, within=cls.tokens):
                if item.name not in known:
                    places.setdefault(item.name, place_of(self.tree, LAYER, item))
        return places

    @cached_property
    def layer_changed(self) -> list[tuple[Place, str]]:
        """(place, name) of each function of a layer that has other parameters in this fork."""
        layers = (cls for cls in self.tree.classes("Layer") if cls.file == LAYER)
        source = self.tree.source(LAYER) if self.tree.has(LAYER) else None
        items = [item for cls in layers for item in items_of(source, within=cls.tokens)]
        declared = {name: [item for item in items if item.name == name] for name in OF_A_LAYER}
        return [
            (place_of(self.tree, LAYER, overloads[0]), name)
            for name, overloads in declared.items()
            if overloads and not any(self.toolkit.has_member("Layer", name, i.arity.most) for i in overloads)
        ]

    @cached_property
    def layer_variables(self) -> dict[str, Place]:
        """The place of each static variable of the fork's Layer, by name. All layers share its value."""
        # A part of a fork may lack the file.
        text = self.tree.text(LAYER) if self.tree.has(LAYER) else ""
        matches = re.finditer(r"^[ \t]*static\s[^;()]*?(\w+)\s*;", text, re.M)
        return {m[1]: self.tree.place(LAYER, m.start(1)) for m in matches}

    @cached_property
    def core_overloads(self) -> dict[str, dict[int, Place]]:
        """The place of each overload that the fork added to a function of the core, by name and number of arguments."""
        places: dict[str, dict[int, Place]] = {}
        for name, file in OVERLOADED.items():
            for cls in (cls for cls in self.tree.classes(name) if cls.file == file):
                source = self.tree.source(file)
                # Other classes, such as Layer, have functions with the names of Net's. So only its constructors count.
                items = items_of(source, within=cls.tokens)
                for item in (item for item in items if name != "Net" or item.name == name):
                    place = place_of(self.tree, file, item)
                    for count in range(item.arity.least, item.arity.most + 1):
                        if item.name in self.toolkit.words and not self.toolkit.has_member(
                            name, item.name, count
                        ):
                            places.setdefault(item.name, {}).setdefault(count, place)
        return places

    @cached_property
    def core_variables(self) -> dict[str, Place]:
        """The place of each global variable of the fork's core, by name. One is a Solver's count of iterations."""
        places: dict[str, Place] = {}
        for file in self._core_files:
            text = self.tree.text(file)
            for match in re.finditer(r"^[ \t]*extern\s+[^;(]*?(\w+)\s*;", text, re.M):
                places.setdefault(match[1], self.tree.place(file, match.start(1)))
        return places

    def definition(self, function: str, visible: Collection[str]) -> Place | None:
        """The place where the fork defines a function that a visible header declares, or None."""
        # A member function's definition elsewhere is not this function, so declarations in classes do not count.
        seen = (file for file in self.tree.holding(function) if file in visible and is_header(file))
        headers = [file for file in seen if function in self._functions_of(file)]
        place = self.tree.definition(function, headers, visible) or self._in_header(function, visible)
        return place or self._by_macro(function, visible)

    def _in_header(self, function: str, visible: Container[str]) -> Place | None:
        """The place of a template that a visible header declares and another header, of other layers, defines."""
        headers = [file for file in self.tree.holding(function) if file.endswith(HEADER_KINDS)]
        declared, defined = set(), {}
        for file in headers:
            for item in self._functions_of(file).get(function, ()):
                if item.defines:
                    defined.setdefault(item.arity, place_of(self.tree, file, item))
                elif file in visible:
                    declared.add(item.arity)
        return next((defined[arity] for arity in declared if arity in defined), None)

    def _by_macro(self, function: str, visible: Collection[str]) -> Place | None:
        """The place of a macro's call that defines the function, in a visible header or one of its sources."""
        places = (self._made_for(file).get(function) for file in sorted(filter(is_header, visible)))
        return next((place for place in places if place), None)

    @remembered
    def _made_for(self, header: str) -> dict[str, Place]:
        """The functions that calls of macros define in a header and its sources, by name."""
        places: dict[str, Place] = {}
        for file in (header, *self.tree.companions(header)):
            for item in made_by_macros(self.tree, file):
                places.setdefault(item.name, place_of(self.tree, file, item))
        return places

    def defined_in(self, file: str) -> set[str]:
        """The names of the functions that a source defines, and of the classes whose members it defines."""
        items = items_of(self.tree.source(file)) + made_by_macros(self.tree, file)
        return {item.scope or item.name for item in items if item.defines}

    @remembered
    def _functions_of(self, file: str) -> dict[str, list[Item]]:
        """The functions of a file that are not members of classes, by name."""
        by_name: dict[str, list[Item]] = {}
        for item in items_of(self.tree.source(file)):
            if item.arity and not item.scope:
                by_name.setdefault(item.name, []).append(item)
        return by_name

    def sublayer(self, type_name: str) -> str | None:
        """The name of the fork's class of a sub-layer's type, or None if the toolkit's is used.

        A part of a fork may have the registration of a stock layer, and not the layer.
        """
        if type_name not in self.tree.types:
            return None
        try:
            return self.class_of(type_name).name
        except Refused:
            if f"{type_name}Layer" in self.toolkit.classes:
                return None
            raise


def nearest(tree: Tree, type_name: str) -> str:
    """A sentence for an error message: the registered types that are similar to this one, or all types."""
    types = {t.lower().removesuffix("layer"): t for t in tree.types}
    sought = type_name.lower().removesuffix("layer").replace("_", "")
    similar = difflib.get_close_matches(sought, types, n=5, cutoff=0.55)
    similar += [name for name in types if name not in similar and sought and sought in name]
    if not similar:
        return "It has: " + ", ".join(sorted(tree.types))
    return "Near it: " + ", ".join(types[name] for name in similar)
