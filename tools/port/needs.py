"""Which files of a fork a layer needs, and what it needs that neither they nor the toolkit have.

From the layer's class on: the header and the sources of each class, the headers that these include and the toolkit
lacks, the sources that belong to those headers, the classes and functions named in all that. Core classes (Blob, Layer,
Net ...) are always the toolkit's own; where a fork has changed them and the layer uses the change, it is refused, but
for plain member functions of Blob.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from additions import BLOB, Additions, BlobMembers, macros_of
from cuda_lexer import Token
from refusals import CORE, functions_lacking, is_called, refuse
from toolkit import ROOT, Toolkit
from tree import NOT_CAFFE, PROTO, SOURCE_KINDS, Place, Tree


class Problem(NamedTuple):
    place: Place
    text: str
    fatal: bool

    def __str__(self):
        return f"{self.place}: {self.text}"


class Needs:
    def __init__(self, tree: Tree, toolkit: Toolkit, type_name: str):
        self.tree, self.toolkit = tree, toolkit
        self.target = tree.class_of(type_name)
        # Headers of the fork that are taken though the toolkit has one of that name: they define what its does not.
        self._own: set[str] = {self.target.file}
        before: set[str] = set()
        while before != self._own:
            before = set(self._own)
            self.files: dict[str, str] = {}  # file -> why it is copied
            self.problems: list[Problem] = []
            self.class_names: set[str] = set()
            self.seen: dict[str, None] = {}  # headers of the fork that its core's headers include for all
            # Of headers that the toolkit has too, what is taken; and of Blob's members.
            self.additions: dict[str, Additions] = {}
            self.stock: set[str] = set()  # headers of layers for which the toolkit's own stand in
            self.scanned: list[tuple[str, list[Token]]] = []  # what is compiled for sure: file, tokens
            self._class(self.target.name, "the layer itself")
            self._functions()
            self._changed_layers()
        if not any(file.endswith(SOURCE_KINDS) for file in self.files):
            place = Place(self.target.file, self.target.line)
            self.problem(place, f"no source defines {self.target.name}'s functions", True)
        refuse(self)
        own = {self.target.file, *tree.members(self.target.name)}
        self.problems.sort(key=lambda problem: problem.place.file not in own)

    def problem(self, place: Place, text: str, fatal: bool):
        problem = Problem(place, text, fatal)
        if problem not in self.problems:
            self.problems.append(problem)

    # ------------------------------------------------------------------------------ the closure

    def _class(self, name: str, why: str):
        if name in self.class_names:
            return
        self.class_names.add(name)
        one = self.tree.classes[name]
        self._file(one.file, why)
        for file in self.tree.members(name):
            self._file(file, f"functions of {name}")
        self._scan(one.file, self.tree.source(one.file).lexed.tokens[slice(*one.tokens)])

    def _scan(self, file: str, tokens: list[Token]):
        self.scanned.append((file, tokens))
        words = [t.text for t in tokens if t.kind == "name"]
        self._mentioned(dict.fromkeys(words + self._made_by_type(tokens)), file)

    def _made_by_type(self, tokens: list[Token]) -> list[str]:
        """The classes of sub-layers that are made by their types: set_type("SmoothL1Loss")."""
        types = [t.text[1:-1] for i, t in enumerate(tokens[2:]) if tokens[i].text == "set_type"]
        return [self.tree.class_of(t).name for t in types if t in self.tree.types]

    def _mentioned(self, words, file: str):
        """Classes and macros of the fork among these words, unless the toolkit has them."""
        for word in words:
            if (header := self._macros.get(word)) and header not in self._own:
                self._addition(word, header)
            one = self.tree.classes.get(word)
            if not one or word in self.class_names or one.file.endswith(SOURCE_KINDS):
                continue
            if one.file not in self._own:
                if word in self.toolkit.classes or self.is_core(one.file):
                    continue
                if self._is_toolkits(one.file):
                    if self._has_source(one.file):
                        self._addition(word, one.file)
                        continue
                    self._own.add(one.file)
            if word.endswith("Layer") or one.file in self.files or self.tree.members(word):
                self._class(word, f"{word}, which {Path(file).name} uses")

    @cached_property
    def _macros(self) -> dict[str, str]:
        """The macros that the fork added to headers which the toolkit replaces: name -> header."""
        headers = [f for f in self.tree.files if f.startswith("include/") and self._is_toolkits(f)]
        return {
            name: header
            for header in headers
            for name in macros_of(self.tree.source(header), self.toolkit.words)
        }

    def is_core(self, file: str) -> bool:
        return Path(file).parent.as_posix() == "include/caffe" and Path(file).stem in CORE

    def _is_toolkits(self, file: str) -> bool:
        return self.toolkit.header(file.removeprefix("include/")) is not None

    def _file(self, file: str, why: str):
        if file in self.files:
            return
        self.files[file] = why
        source = self.tree.source(file)
        for include in source.includes(angles=True):
            self._include(include, file)
        if file.endswith(SOURCE_KINDS):
            self._scan(file, source.lexed.tokens)
        elif not any(name.endswith("Layer") for name in source.classes):  # a header of helpers: all of it
            self._scan(file, source.lexed.tokens)
            for companion in self.tree.companions(file):
                if not self._replaced(companion):
                    self._file(companion, f"what {Path(file).name} declares")
        else:
            self._seen_by_all(file)

    def _seen_by_all(self, file: str):
        """What other layers of an aggregate header name and nobody includes but the fork's layer.hpp, say."""
        for word in sorted({t.text for t in self.tree.source(file).lexed.tokens if t.kind == "name"}):
            one = self.tree.classes.get(word)
            if not one or one.file in self.files or word in self.toolkit.classes or word.endswith("Layer"):
                continue
            if (
                not one.file.endswith(SOURCE_KINDS)
                and not self.is_core(one.file)
                and not self._is_toolkits(one.file)
            ):
                self.seen[one.file] = None
                self._file(one.file, f"{word}, which {Path(file).name} names")

    def _include(self, include: str, includer: str):
        found = self.tree.resolve(include, includer)
        if found and NOT_CAFFE & set(Path(found).parts) and found != PROTO:
            line = next(
                n for n, text in enumerate(self.tree.text(includer).split("\n"), 1) if include in text
            )
            text = f"{self.target.name} needs {found}, a library that the tree carries with it"
            self.problem(Place(includer, line), text, True)
        elif found and found != PROTO and (found in self._own or not self.toolkit.header(include)):
            self._file(found, f"included by {Path(includer).name}")
        elif found and found.startswith("include/caffe/layers/"):
            self.stock.add(found)

    def _changed_layers(self):
        """Layers of the toolkit's that the fork gave members which are used here: the fork's own are taken."""
        for header in self.stock - self._own:
            lacking = {token.text for token in functions_lacking(self, header)}
            for _, tokens in self.scanned:
                if any(tokens[i].text in lacking and is_called(tokens, i) for i in range(1, len(tokens) - 1)):
                    self._own.add(header)

    # ------------------------------------------------------------------------------ functions

    def _functions(self):
        """Functions that are called, and that the fork defines elsewhere."""
        done: set[str] = set()
        blob: BlobMembers | None = None
        while True:
            here = {f.name for file in self.files for f in self.tree.source(file).functions}
            taken = {name for one in self.additions.values() for name in one.names}
            known = self.toolkit.words | here | taken | done
            called, members = {}, set()
            for file, tokens in self.scanned:
                for i, token in enumerate(tokens[:-1]):
                    if token.kind == "name" and token.text not in known:
                        if self._is_call(tokens, i):
                            called.setdefault(token.text, (file, token))
                        elif i and is_called(tokens, i):
                            members.add(token.text)
            done |= set(called)
            before = len(self.files), len(self.scanned)
            if members and (self.tree.root / BLOB).is_file():
                blob = blob or BlobMembers(self.tree, self.toolkit)
                for name in sorted(members):
                    self._take(f"{BLOB}, class Blob", blob, name)
            for name, (file, token) in called.items():
                self._function(name, Place(file, self.line(file, token)))
            if (len(self.files), len(self.scanned)) == before:
                return

    def _is_call(self, tokens: list[Token], i: int) -> bool:
        after = tokens[i + 1].text
        before = tokens[i - 1].text if i else ""
        if before in (".", "->") or (before == "::" and tokens[i - 2].text not in ("caffe", "")):
            return False
        return after == "(" or (after == "<" and bool(re.match(r"caffe_\w+\Z", tokens[i].text)))

    def _function(self, name: str, place: Place):
        found = self.tree.definition(name)
        if not found or found.file in self.files:
            return
        header = self._header_of(found.file)
        if self._replaced(found.file) and header and not self._has_source(header):
            # The toolkit has a header of that name, and no source: the fork's pair stands for itself.
            self._own.add(header)
            self._file(header, f"declares {name}, which {Path(place.file).name} calls")
            self._file(found.file, f"{name}, which {Path(place.file).name} calls")
        elif self._replaced(found.file) and not (header and self._addition(name, header)):
            text = (
                f"{name} is the fork's own, at {found}, in a file that the toolkit replaces: copy that function "
                "into additions.hpp in the layer's folder, which all of its files see"
            )
            self.problem(place, text, False)
        elif header is None or header in self.files or not self._is_toolkits(header):
            self._file(found.file, f"{name}, which {Path(place.file).name} calls")

    def _addition(self, name: str, header: str) -> bool:
        """Take a part of a file that the toolkit replaces; False if that file's text does not show it."""
        additions = self.additions.get(header) or Additions(self.tree, self.toolkit, header)
        return self._take(header, additions, name)

    def _take(self, title: str, additions: Additions, name: str) -> bool:
        if name in additions.names:
            return True
        taken = additions.take(name)
        for file, tokens in taken or ():
            self.additions[title] = additions
            self._scan(file, tokens)
        return taken is not None

    def _header_of(self, file: str) -> str | None:
        stem = Path(file).stem
        return next((f for f in self.tree.files if f.startswith("include/") and Path(f).stem == stem), None)

    def _replaced(self, file: str) -> bool:
        """Does the toolkit have its own version of this file?"""
        name = re.sub(r"^(include|src)/", "", file)
        return any(self.toolkit.header(re.sub(r"\.\w+$", kind, name)) for kind in (".hpp", ".cuh", ".h"))

    def _has_source(self, header: str) -> bool:
        """Is the toolkit's header of that name one of its engine's, with a source behind it?"""
        source = ROOT / header.replace("include/", "src/", 1)
        return any(source.with_suffix(kind).exists() for kind in SOURCE_KINDS)

    def line(self, file: str, token: Token) -> int:
        return self.tree.source(file).lexed.position(token.start)[0]
