"""Which files of a fork a layer needs, and what it needs that neither they nor the toolkit have.

From the layer's class on: the header and the sources of each class, the headers that these include and the toolkit lacks,
the sources that belong to those headers, the classes and functions named in all that. Core classes (Blob, Layer, Net ...) are
always the toolkit's own; where a fork has changed them and the layer uses the change, it is refused.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

from cuda_lexer import Token
from toolkit import Toolkit
from tree import NOT_CAFFE, PROTO, SOURCE_KINDS, Place, Tree

# Words of things that the toolkit does not do, in layers that use them: what to say.
DATA = "reads its data itself: in PyTorch that is a DataLoader's work"
UNSUPPORTED = [
    (r"(BaseDataLayer|BasePrefetchingDataLayer|DataReader|DataTransformer|InternalThread|BlockingQueue|Batch)\Z", DATA),
    (r"(leveldb|lmdb|MDB_\w+|mdb_\w+)\Z", "reads a database: in PyTorch that is a DataLoader's work"),
    (r"(hid_t|H5\w+|hdf5_(load|save)\w+)\Z", "needs HDF5"),
    (r"(Solver|SGDSolver|SolverParameter|P2PSync|SolverRegistry)\Z", "needs the Solver; in PyTorch the training loop is Python"),
    (r"(cudnn[A-Z]\w*|cudnn|CUDNN_\w+)\Z", "works by cuDNN only"),
    (r"(PyObject|PyErr_\w+|Py_\w+)\Z", "is a Python layer: call its Python code from PyTorch"),
    (r"(MPI_\w+|ncclAllReduce)\Z", "talks to other processes"),
    (r"(curandState\w*|curand_(init|uniform|normal)\w*|curand)\Z", "uses cuRAND in its kernels, whose headers are no part of the CUDA compiler"),
    (r"(curand[A-Z]\w*|curand_generator)\Z", "calls cuRAND itself"),
    (r"(Mat_Open|Mat_VarRead\w*|matvar_t|CImg)\Z", "needs a library that the toolkit does not have"),
    (r"(Ftype|Btype)\Z", "is NVCaffe's, whose layers have two types each"),
]  # fmt: skip
NAMESPACES = {
    "cv": "needs OpenCV",
    "leveldb": "reads a database: in PyTorch that is a DataLoader's work",
    "db": "reads a database: in PyTorch that is a DataLoader's work",
    "bp": "is a Python layer: call its Python code from PyTorch",
    "thrust": "uses thrust, which has no meaning on the host and runs outside of torch's stream",
    "cub": "uses cub, which has no meaning on the host",
}
# A fork's versions of these are not taken: they are the engine.
CORE = ["blob", "syncedmem", "common", "layer", "net", "layer_factory", "internal_thread"]


@functools.cache
def unsupported(word: str) -> str | None:
    return next((reason for pattern, reason in UNSUPPORTED if re.match(pattern, word)), None)


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
        # Headers of the fork that are taken though the toolkit has one of that name: they define what the toolkit's does not.
        self._own: set[str] = {self.target.file}
        before: set[str] = set()
        while before != self._own:
            before = set(self._own)
            self.files: dict[str, str] = {}  # file -> why it is copied
            self.problems: list[Problem] = []
            self._classes: set[str] = set()
            self._scanned: list[tuple[str, list[Token]]] = []  # what is compiled for sure: file, tokens
            self._class(self.target.name, "the layer itself")
            self._functions()
        if not any(file.endswith(SOURCE_KINDS) for file in self.files):
            self._problem(
                Place(self.target.file, self.target.line),
                f"no source defines {self.target.name}'s functions",
                True,
            )
        self._refusals()
        self._core_changes()
        own = {self.target.file, *tree.members(self.target.name)}
        self.problems.sort(key=lambda problem: problem.place.file not in own)

    def _problem(self, place: Place, text: str, fatal: bool):
        problem = Problem(place, text, fatal)
        if problem not in self.problems:
            self.problems.append(problem)

    # ------------------------------------------------------------------------------ the closure

    def _class(self, name: str, why: str):
        if name in self._classes:
            return
        self._classes.add(name)
        one = self.tree.classes[name]
        self._file(one.file, why)
        for file in self.tree.members(name):
            self._file(file, f"functions of {name}")
        tokens = [t for t in self.tree.source(one.file).lexed.tokens if t.kind == "name"]
        wanted = {t.text for t in tokens} & set(one.words)
        self._scanned.append((one.file, self._body(one)))
        self._mentioned(sorted(wanted), one.file)

    def _body(self, one) -> list[Token]:
        source = self.tree.source(one.file)
        return [
            t
            for first, last in source.classes[one.name]
            for t in source.lexed.tokens[max(first - 12, 0) : last]
        ]

    def _mentioned(self, words, file: str):
        """Classes of the fork among these words, unless the toolkit has them."""
        for word in words:
            one = self.tree.classes.get(word)
            if not one or word in self._classes or one.file.endswith(SOURCE_KINDS):
                continue
            if one.file not in self._own:
                if word in self.toolkit.classes or self._is_core(one.file):
                    continue
                if self._is_toolkits(one.file):
                    self._own.add(one.file)
            if word.endswith("Layer") or one.file in self.files or self.tree.members(word):
                self._class(word, f"{word}, which {Path(file).name} uses")

    def _is_core(self, file: str) -> bool:
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
            self._scanned.append((file, source.lexed.tokens))
            self._mentioned(dict.fromkeys(t.text for t in source.lexed.tokens if t.kind == "name"), file)
        elif not any(name.endswith("Layer") for name in source.classes):  # a header of helpers: all of it
            self._scanned.append((file, source.lexed.tokens))
            for companion in self.tree.companions(file):
                if not self._replaced(companion):
                    self._file(companion, f"what {Path(file).name} declares")

    def _include(self, include: str, includer: str):
        found = self.tree.resolve(include, includer)
        if found and NOT_CAFFE & set(Path(found).parts) and found != PROTO:
            source = self.tree.source(includer)
            line = next(
                d
                for d in source.lexed.directives
                if d.word == "include" and include in source.text[d.start : d.end]
            )
            place = Place(includer, source.lexed.position(line.start)[0])
            self._problem(
                place, f"{self.target.name} needs {found}, a library that the tree carries with it", True
            )
        elif found and found != PROTO and (found in self._own or not self.toolkit.header(include)):
            self._file(found, f"included by {Path(includer).name}")

    # ------------------------------------------------------------------------------ functions

    def _functions(self):
        """Functions that are called, and that the fork defines elsewhere."""
        done: set[str] = set()
        while True:
            known = self.toolkit.words | {
                t.text
                for s in map(self.tree.source, self.files)
                for f in s.functions
                for t in [self._name(s, f)]
            }
            called = {}
            for file, tokens in list(self._scanned):
                for i, token in enumerate(tokens[:-1]):
                    if token.kind == "name" and self._is_call(tokens, i) and token.text not in known | done:
                        called.setdefault(token.text, (file, token))
            done |= set(called)
            before = len(self.files)
            for name, (file, token) in called.items():
                self._function(name, Place(file, self._line(file, token)))
            if len(self.files) == before:
                return

    def _name(self, source, function) -> Token:
        return Token("name", function.name, function.at)

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
        if self._replaced(found.file):
            self._problem(place, f"{name} is the fork's own, at {found}, in a file that the toolkit replaces: "
                                 "copy that function, declared before its use, into a file in the layer's folder", False)  # fmt: skip
        elif header is None or header in self.files or not self._is_toolkits(header):
            self._file(found.file, f"{name}, which {Path(place.file).name} calls")

    def _header_of(self, file: str) -> str | None:
        stem = Path(file).stem
        return next((f for f in self.tree.files if f.startswith("include/") and Path(f).stem == stem), None)

    def _replaced(self, file: str) -> bool:
        """Does the toolkit have its own version of this file?"""
        name = re.sub(r"^(include|src)/", "", file)
        return any(self.toolkit.header(re.sub(r"\.\w+$", kind, name)) for kind in (".hpp", ".cuh", ".h"))

    def _line(self, file: str, token: Token) -> int:
        return self.tree.source(file).lexed.position(token.start)[0]

    # ------------------------------------------------------------------------------- refusals

    def _refusals(self):
        for file, tokens in self._scanned:
            for i, token in enumerate(tokens):
                if token.kind != "name":
                    continue
                reason = self._unsupported(tokens, i)
                if reason and not (token.text in self.toolkit.words and token.text not in NAMESPACES):
                    self._problem(
                        Place(file, self._line(file, token)),
                        f"{self.target.name} {reason} ({token.text})",
                        True,
                    )
                    break
            self._old_signature(file, tokens)

    def _unsupported(self, tokens: list[Token], i: int) -> str | None:
        word = tokens[i].text
        if i + 1 < len(tokens) and tokens[i + 1].text == "::" and word in NAMESPACES:
            return NAMESPACES[word]
        return unsupported(word)

    def _old_signature(self, file: str, tokens: list[Token]):
        words = [t.text for t in tokens]
        for i, word in enumerate(words[:-9]):
            if (
                word == "vector"
                and words[i + 1 : i + 8] == ["<", "Blob", "<", "Dtype", ">", "*", ">"]
                and words[i + 8 : i + 10] == ["*", "top"]
            ):
                self._problem(Place(file, self._line(file, tokens[i])), f"{self.target.name} is from before the Layer interface of 2014 "
                              "(tops by pointer, not by reference)", True)  # fmt: skip
                return

    def _core_changes(self):
        """Members that the fork gave to Blob, Layer and their like, and that the layer calls."""
        added: dict[str, Place] = {}
        for stem in CORE:
            file = f"include/caffe/{stem}.hpp"
            if not (self.tree.root / file).is_file():
                continue
            lexed = self.tree.source(file).lexed
            for token, after in zip(lexed.tokens, lexed.tokens[1:], strict=False):
                if token.kind == "name" and after.text == "(" and token.text not in self.toolkit.words:
                    added.setdefault(token.text, Place(file, lexed.position(token.start)[0]))
        own = {f.name for file in self.files for f in self.tree.source(file).functions}
        own |= {w for name in self._classes for w in self.tree.classes[name].words}
        for file, tokens in self._scanned:
            for i, token in enumerate(tokens[1:-1], 1):
                if (
                    token.text in added
                    and token.text not in own
                    and tokens[i + 1].text == "("
                    and tokens[i - 1].text in (".", "->", "::")
                ):
                    self._problem(Place(file, self._line(file, token)), f"{self.target.name} uses {token.text}, which this fork added to "
                                  f"Caffe's core ({added[token.text]}); the toolkit's core is stock Caffe's", True)  # fmt: skip
                    return
