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

from tools.files import read
from tools.refused import Refused

from ..make.proto import STOCK, field_of, is_whole, without_comments
from .core import BLOB, Core
from .declarations import Class, Place, macros_of
from .toolkit_headers import Toolkit
from .tree import DEFINED, HEADER_KINDS, SOURCE_KINDS, WORD, Tree, Type, is_header, remembered

# A field of a message: its type, without a package, and its name.
_MESSAGE_FIELD = re.compile(r"\b(?:optional|repeated|required)\s+(?:[\w.]*\.)?([A-Z]\w*)\s+(\w+)\s*=")


class Unregistered(Refused):
    """No file of the tree registers the type."""


class Names:
    """What the names in one tree mean."""

    def __init__(self, tree: Tree, toolkit: Toolkit):
        self.tree, self.toolkit, self.core = tree, toolkit, Core(tree, toolkit)

    # ------------------------------------------------------------------------------- files

    @cached_property
    def namespace(self) -> str:
        """The fork's name for the namespace caffe. In KITTI_SSD it is caffe9."""
        text = self.tree[BLOB].text if self.tree.has(BLOB) else ""
        match = re.search(r"^namespace\s+(caffe\w*)\s*\{", text, re.M)
        return match[1] if match else "caffe"

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
            raise Unregistered(f"{tree.root} registers no layer {type_name}. {nearest(tree, type_name)}")
        type = tree.types[type_name]
        place = type.place
        seen = tree[place.file].visible
        named = tree.classes(type_name + "Layer")
        visible = [cls for cls in named if cls.file in seen]
        classes = visible or named or self._returning(type_name) or self._made_by(type)
        if classes:
            return classes[0]
        why = f'no header defines a class {type_name}Layer nor one whose type() says "{type_name}"'
        for include in tree[place.file].source.includes():
            if not tree[place.file].resolved[include] and not self.toolkit.header(include):
                why += f"; {Path(include).name}, which this file includes, is missing in the tree"
                break
        raise Refused(f"{place}: {type_name} is registered, but {why}")

    def _returning(self, type_name: str) -> list[Class]:
        """The classes whose type() returns this."""
        files = (f for f in self.tree.holding(type_name) if f'"{type_name}"' in self.tree[f].text)
        classes = (
            cls for f in files for name in self.tree[f].source.classes for cls in self.tree.classes(name)
        )
        return [cls for cls in classes if cls.type == type_name]

    def _made_by(self, type: Type) -> list[Class]:
        """The classes that a type's creator function creates objects of."""
        file, function = self.tree[type.place.file], type.creator
        names = (
            after.text
            for token, after in pairwise(file.source.lexed.tokens)
            if function and function.body < token.start < function.end and token.text == "new"
        )
        classes = [cls for name in dict.fromkeys(names) for cls in self.tree.classes(name)]
        return [cls for cls in classes if cls.file in file.visible]

    # ----------------------------------------------------------------------- words of a file

    @cached_property
    def macros(self) -> dict[str, str]:
        """The macros that the fork added to headers that the toolkit replaces, as {name: header}.

        Switches are left out, because here nothing is compiled with another value of them than the tree was read with.
        """
        headers = [f for f in self.tree.files if f.startswith("include/") and self.toolkit.has(f)]
        return {
            name: header
            for header in headers
            for name in macros_of(self.tree[header].source, self.toolkit.words)
            if name not in DEFINED
        }

    @cached_property
    def _protos(self) -> list[str]:
        """The texts of the tree's messages, and stock Caffe's if the tree has at most a layer's own message."""
        texts = [read(path) for path in self.tree.root.rglob("*.proto")]
        return texts if any(map(is_whole, texts)) else [*texts, read(STOCK)]

    @cached_property
    def _messages(self) -> set[str]:
        return {name for text in self._protos for name in re.findall(r"\b(?:message|enum)\s+(\w+)", text)}

    @cached_property
    def fields(self) -> set[str]:
        """The words of the tree's messages, and the fields that the build adds for messages without a field."""
        texts = [without_comments(text) for text in self._protos]
        declared = {field for text in texts for field in _MESSAGE_FIELD.findall(text)}
        lost = {kind for kind, _ in declared} - self._messages
        words = {word for text in texts for word in WORD.findall(text)}
        words -= {name for kind, name in declared if kind in lost} - {n for k, n in declared if k not in lost}
        return words | {field_of(message) for message in self._messages}

    def definition(self, function: str, visible: Collection[str]) -> Place | None:
        """The place where the fork defines a function that a visible header declares, or None."""
        # A member function's definition elsewhere is not this function, so declarations in classes do not count.
        seen = (file for file in self.tree.holding(function) if file in visible and is_header(file))
        headers = [file for file in seen if function in self.tree[file].functions]
        place = self._in_source(function, headers, visible) or self._in_header(function, visible)
        return place or self._by_macro(function, visible)

    def _in_source(self, function: str, headers: list[str], visible: Container[str]) -> Place | None:
        """The place of the definition of a function that one of `headers` declares, or a visible source."""
        paired = [f for h in headers for f in (h, *self.tree[h].companions)]
        sources = [f for f in self.tree.holding(function) if f.endswith(SOURCE_KINDS)]
        if not headers and not any(f in visible and self._declares(f, function) for f in sources):
            return None
        # Sources that include the declaration come first.
        sources.sort(key=lambda f: self.tree[f].visible.isdisjoint(headers))
        for file in dict.fromkeys([*paired, *sources]):
            for defined in self.tree[file].source.functions:
                is_private = "static" in defined.words and file not in visible
                if defined.name == function and not defined.scope and not is_private:
                    return self.tree[file].place(defined.at)
        return None

    def _declares(self, file: str, function: str) -> bool:
        """Does a source declare a function without defining it?"""
        source = self.tree[file].source
        names = (source.lexed.tokens[source.name_of(head)] for head in source.declared)
        return any(name.text == function and name.start not in source.defined_at for name in names)

    def _in_header(self, function: str, visible: Container[str]) -> Place | None:
        """The place of a template that a visible header declares and another header, of other layers, defines."""
        headers = [file for file in self.tree.holding(function) if file.endswith(HEADER_KINDS)]
        declared, defined = set(), {}
        for file in headers:
            for item in self.tree[file].functions.get(function, ()):
                if item.defines:
                    defined.setdefault(item.arity, self.tree[file].place(item))
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
        for file in (header, *self.tree[header].companions):
            for item in self.tree[file].made_by_macros:
                places.setdefault(item.name, self.tree[file].place(item))
        return places

    def sublayer(self, type_name: str) -> Class | None:
        """The fork's class of a sub-layer's type, or None if the toolkit's is used.

        A part of a fork may have the registration of a stock layer, and not the layer.
        """
        if type_name not in self.tree.types:
            return None
        try:
            return self.class_of(type_name)
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
