"""Read a Caffe fork: its files, and what they include, register, define and declare.

Nothing is decided here, and a file is read only when somebody asks for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Container
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from .. import files
from ..caffe.folder import spelled_here
from ..caffe.registers import REGISTER, Registration, instantiated, registrations, types_said
from ..cuda.lexer import Directive, Token
from ..cuda.source import Function, Source
from ..cuda.tokens import head_name

# Switches with which nothing is compiled here, and the reason to refuse a layer that is registered only with one.
WITHOUT = {
    "USE_CUDNN": "needs cuDNN",
    "USE_OPENCV": "needs OpenCV",
    "USE_LMDB": "reads a database: in PyTorch that is a DataLoader's work",
    "USE_LEVELDB": "reads a database: in PyTorch that is a DataLoader's work",
    "USE_HDF5": "needs HDF5",
    "USE_NCCL": "talks to other processes",
    "USE_MPI": "talks to other processes",
    "WITH_PYTHON_LAYER": "is a Python layer: call its Python code from PyTorch",
    "CPU_ONLY": "exists only in builds without CUDA",
    "MKL2017_SUPPORTED": "needs Intel's MKL-DNN",
    "MKLDNN_SUPPORTED": "needs Intel's MKL-DNN",
    "USE_MKL2017_AS_DEFAULT_ENGINE": "needs Intel's MKL-DNN",
    "USE_GREENTEA": "needs OpenCL",
}
WINDOWS = dict.fromkeys(("_MSC_VER", "_WIN32", "WIN32", "_WINDOWS"), 0)
# The macros with which the files are read. nvcc's own are not among them, so code that only nvcc sees counts, too.
DEFINED = {
    **dict.fromkeys(WITHOUT, 0),
    **WINDOWS,
    # Guards of headers whose functions are refused. helper_cuda.h tests them before it uses such a function.
    **dict.fromkeys(("CURAND_H_", "CUDNN_H_"), 0),
    # Some forks test it instead of CPU_ONLY.
    "USE_CUDA": 1,
    "__cplusplus": 1,
}
# Names that show that code behind USE_OPENCV needs OpenCV. Much of that code does not.
OPENCV = re.compile(r"(cv\w*|\w*CVMat\w*|CV_\w+|Mat|IplImage|imread|imwrite)\Z")
# Folders of tests and of libraries. Libraries within caffe/ are compiled with the rest, so they do not count.
NOT_CAFFE = {"test", "gtest", "proto"}
LIBRARIES = {"thirdparty", "3rdparty", "third_party"}
# Trees made by Visual Studio have inc.
HEADERS_IN = ("include", "inc")
HEADER_KINDS = (".hpp", ".h", ".cuh")
SOURCE_KINDS = (".cpp", ".cc", ".cu")
PROTO = "src/caffe/proto/caffe.proto"
# protoc's output. If it is in the tree, it is ignored, because the build makes it again.
MESSAGES = "/caffe.pb.h"
WORD = re.compile(r"[A-Za-z_]\w*")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.M)


class PortError(Exception):
    """Why there is nothing to port, and what to do."""


class Place(NamedTuple):
    """A line of a file in the tree."""

    file: str
    line: int

    def __str__(self):
        return f"{self.file}:{self.line}"


class Class(NamedTuple):
    name: str
    file: str
    line: int
    tokens: tuple[int, int]  # its head and body, among the file's tokens
    type: str  # what its type() returns, or ""


class Tree:
    """Files are named by their path in the tree, with slashes."""

    def __init__(self, root: str):
        self.root = Path(root)
        check(root)
        self._texts: dict[str, str] = {}
        self._sources: dict[str, Source] = {}
        self._words: dict[str, frozenset[str]] = {}
        self._using: dict[str, list[Token]] = {}
        self._pasting: dict[str, list[Directive]] = {}
        self._includes: dict[str, list[str]] = {}
        self._visible: dict[str, frozenset[str]] = {}
        self._resolved: dict[tuple[str, str], str | None] = {}
        self._classes: dict[str, list[Class]] = {}
        self._classes_of: dict[str, list[Class]] = {}
        self._members: dict[str, list[str]] = {}
        self.parts: dict[tuple[str, str], tuple] = {}  # what cuts.py could take of a header

    # ---------------------------------------------------------------------------------- files

    @cached_property
    def files(self) -> list[str]:
        """The headers and sources of the library itself, its tests left out."""
        found = []
        for top in (*HEADERS_IN, "src"):
            for folder, folders, names in os.walk(self.root / top):
                inside = os.path.relpath(folder, self.root).replace(os.sep, "/")
                folders[:] = sorted(f for f in folders if is_caffes(f"{inside}/{f}"))
                found += [f"{inside}/{n}" for n in sorted(names) if n.endswith(HEADER_KINDS + SOURCE_KINDS)]
        return [file for file in found if not os.path.islink(self.root / file) or self._is_inside(file)]

    def _is_inside(self, file: str) -> bool:
        return (self.root / file).resolve().is_relative_to(self.root.resolve())

    def path(self, file: str) -> Path:
        """Where a file of the tree is. A link that leads out of the tree is not followed."""
        if not self._is_inside(file):
            raise PortError(f"{file} is a link that leads out of the tree: it is not followed.")
        return self.root / file

    def text(self, file: str) -> str:
        if file not in self._texts:
            self._texts[file] = files.read(self.path(file))
        return self._texts[file]

    def source(self, file: str) -> Source:
        if file not in self._sources:
            self._sources[file] = Source(self.text(file), file, self.defined(file))
        return self._sources[file]

    def defined(self, file: str) -> dict[str, int]:
        """The macros with which a file is read."""
        return DEFINED | {"USE_OPENCV": 1} if file in self._with_opencv else DEFINED

    @cached_property
    def _with_opencv(self) -> set[str]:
        """Sources of types that are registered with USE_OPENCV alone, though nothing there is OpenCV's."""
        found: set[str] = set()
        for file in (f for f in self._registering if "USE_OPENCV" in self.text(f)):
            both = [file, *(f for f in self._sources_by_stem[file.rpartition(".")[0]] if f != file)]
            read = [Source(self.text(f), f, DEFINED | {"USE_OPENCV": 1}) for f in both]
            more = len(registrations(read[0])) > len(registrations(Source(self.text(file), file, DEFINED)))
            if more and not any(OPENCV.match(t.text) for source in read for t in source.lexed.tokens):
                found.update(both)
        return found

    def line(self, file: str, token: Token) -> int:
        return self.source(file).lexed.position(token.start)[0]

    def words(self, file: str) -> frozenset[str]:
        """The words of a file's code, its macros' too."""
        if file not in self._words:
            lexed = self.source(file).lexed
            lines = [lexed.tokens, *(directive.tokens for directive in lexed.directives)]
            self._words[file] = frozenset(token.text for line in lines for token in line)
        return self._words[file]

    def using(self, file: str) -> list[Token]:
        """A header's tokens that may use something: what declares a function, and does not define it, does not."""
        if file not in self._using:
            tokens, declared = self.source(file).lexed.tokens, self.source(file).declared
            heads = (tokens[first:last] for first, last in declared if tokens[last].text == ";")
            without_values = (head for head in heads if all(token.text != "=" for token in head))
            idle = {token.start for head in without_values for token in head}
            self._using[file] = [token for token in tokens if token.start not in idle]
        return self._using[file]

    def pasting(self, file: str) -> list[Directive]:
        """The macros of a file whose calls may define functions of pasted names."""
        if file not in self._pasting:
            macros = self.source(file).macros if "##" in self.text(file) else []
            macros = [macro for macro in macros if {"##", "{"} <= {token.text for token in macro.tokens}]
            self._pasting[file] = [macro for macro in macros if macro.tokens[0].text not in REGISTER]
        return self._pasting[file]

    @cached_property
    def _holding(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for file in self.files:
            for word in set(WORD.findall(self.text(file))):
                found.setdefault(word, []).append(file)
        return found

    def holding(self, word: str) -> list[str]:
        """The files that have this word anywhere, comments included: few enough to be looked at closely."""
        return self._holding.get(word, [])

    # ------------------------------------------------------------------------------- includes

    def resolve(self, include: str, includer: str) -> str | None:
        """The file of the tree that an #include in `includer` names: Caffe's Makefile has ./src before ./include."""
        beside = includer.rpartition("/")[0]
        if (include, beside) not in self._resolved:
            named = spelled_here(include)
            places = (
                os.path.normpath(f"{f}/{named}").replace(os.sep, "/")
                for f in (beside, "src", *HEADERS_IN, ".")
            )
            there = (
                p
                for p in places
                if not p.startswith("..") and not p.endswith(MESSAGES) and (self.root / p).is_file()
            )
            self._resolved[include, beside] = next(there, None)
        return self._resolved[include, beside]

    def includes(self, file: str) -> list[str]:
        """The files of the tree that one includes, whatever #if stands around, but for Windows' own."""
        if file not in self._includes:
            text = self.text(file)
            is_windows = any(word in text for word in WINDOWS)
            named = Source(text, file, WINDOWS).includes(angles=True) if is_windows else INCLUDE.findall(text)
            found = (self.resolve(include, file) for include in named)
            self._includes[file] = [
                f for f in dict.fromkeys(found) if f and f.endswith(HEADER_KINDS + SOURCE_KINDS)
            ]
        return self._includes[file]

    def visible(self, file: str) -> frozenset[str]:
        """The file, all that it includes, and what these include in turn, in the fork."""
        if file not in self._visible:
            self._visible[file] = frozenset(reached(file, self.includes))
        return self._visible[file]

    # ---------------------------------------------------------------------------------- types

    @cached_property
    def types(self) -> dict[str, Place]:
        """Registered types, and where."""
        return {name: Place(file, self.line(file, one.at)) for name, (file, one) in self._registered.items()}

    @cached_property
    def _registered(self) -> dict[str, tuple[str, Registration]]:
        return {
            one.type: (file, one) for file in self._registering for one in registrations(self.source(file))
        }

    def creator(self, type_name: str) -> Function | None:
        """The function that makes the layers of a type, of REGISTER_LAYER_CREATOR: in the file that registers it."""
        file, one = self._registered[type_name]
        named = (f for f in self.source(file).functions if one.creator and f.name == one.creator)
        return next(named, None)

    def made_by(self, type_name: str) -> list[Class]:
        """The classes of which that function makes objects."""
        file, _ = self._registered[type_name]
        function, tokens = self.creator(type_name), self.source(file).lexed.tokens
        made = (
            after.text
            for token, after in pairwise(tokens)
            if function and function.body < token.start < function.end and token.text == "new"
        )
        found = [one for name in dict.fromkeys(made) for one in self.classes(name)]
        return [one for one in found if one.file in self.visible(file)]

    @cached_property
    def _registering(self) -> list[str]:
        found = dict.fromkeys(file for word in REGISTER for file in self.holding(word))
        return [file for file in found if file.endswith(SOURCE_KINDS)]

    @cached_property
    def types_without(self) -> dict[str, tuple[Place, str]]:
        """Types that are registered only in builds with something that the toolkit does without: where, and why not."""
        found: dict[str, tuple[Place, str]] = {}
        for file in self._registering:
            for setting, reason in WITHOUT.items():
                if setting in self.text(file):
                    source = Source(self.text(file), file, DEFINED | {setting: 1})
                    for one in registrations(source):
                        if one.type not in self.types:
                            place = Place(file, source.lexed.position(one.at.start)[0])
                            found.setdefault(one.type, (place, reason))
        return found

    def check_age(self) -> None:
        """Layers of trees of 2014 have another interface: PortError says which."""
        if place := self._old():
            raise PortError(
                f"{place}: a tree of 2014. Take a later tree of the same layer, or put its files into a folder by hand "
                "and change what differs in its Layer: " + "; ".join(self._differences())
            )

    def _differences(self) -> list[str]:
        """How the interface of a layer in a tree of 2014 differs from that of 2015 and after."""
        found = [
            'type() is a constant of LayerParameter_LayerType: return its name, "Pooling", and register that'
        ]
        file = "include/caffe/layer.hpp"
        words = (
            " ".join(t.text for t in self.source(file).lexed.tokens) if (self.root / file).is_file() else ""
        )
        signs = {
            "vector < Blob < Dtype > * > * top": "tops are a pointer, vector<...>* top: now const vector<...>& top",
            "vector < Blob < Dtype > * > * bottom": "so are Backward's bottoms",
            "Dtype Forward_cpu (": "Forward_cpu and Forward_gpu return a loss: now void, and the loss goes into top[0]",
            "const bool propagate_down": "propagate_down is one bool: now const vector<bool>&, one a bottom",
        }
        found += [text for sign, text in signs.items() if sign in words]
        if "LayerSetUp" not in words:
            found.append("SetUp does it all: now LayerSetUp, and Reshape, which each call runs")
        return found

    def _old(self) -> Place | None:
        """Where a tree shows that it is of 2014: its registration, or the factory that it has in its place."""
        for file in self._registering:
            for one in registrations(self.source(file)):
                if one.is_old:
                    return Place(file, self.line(file, one.at))
        for file in self.holding("LayerParameter_LayerType"):
            token = next(
                (t for t in self.source(file).lexed.tokens if t.text == "LayerParameter_LayerType"), None
            )
            if token and file.endswith("layer_factory.cpp"):
                return Place(file, self.line(file, token))
        return None

    # -------------------------------------------------------------------------------- classes

    def classes(self, name: str) -> list[Class]:
        """The classes of a name: of headers first, and of sources for their own use."""
        if name not in self._classes:
            heads = re.compile(rf"\b(?:class|struct)\b[^;{{}}()]*\b{name}\b")
            sought = (f for f in self.holding(name) if heads.search(self.text(f)))
            found = [one for f in sought for one in self.classes_of(f) if one.name == name]
            self._classes[name] = sorted(found, key=lambda one: one.file.endswith(SOURCE_KINDS))
        return self._classes[name]

    def classes_of(self, file: str) -> list[Class]:
        """Those that a file defines."""
        if file not in self._classes_of:
            self._classes_of[file] = list(classes_in(self.source(file), file))
        return self._classes_of[file]

    @cached_property
    def class_names(self) -> frozenset[str]:
        """What may be a class's name in some header."""
        pattern = re.compile(r"\b(?:class|struct)\s+(?:[A-Z][A-Z_0-9]*\s+)?([A-Za-z_]\w*)(?=[^;(){}]*\{)")
        headers = (self.text(f) for f in self.files if f.endswith(HEADER_KINDS))
        return frozenset(name for text in headers for name in pattern.findall(text))

    def members(self, name: str) -> list[str]:
        """The sources that define member functions of a class, or instantiate it; of a copy deeper down, none."""
        if name not in self._members:
            sources = (f for f in self.holding(name) if f.endswith(SOURCE_KINDS))
            found = [f for f in sources if name in members_in(self.source(f))]
            first = {os.path.basename(f): f for f in sorted(found, key=lambda f: -f.count("/"))}
            self._members[name] = [f for f in found if first[os.path.basename(f)] == f]
        return self._members[name]

    def members_of(self, one: Class) -> list[str]:
        """The same of one of the classes of that name. What defines again what the source of its header's name
        defines is another version."""
        alone = len(self.classes(one.name)) == 1
        found = [f for f in self.members(one.name) if alone or one.file in self.visible(f)]
        stem = os.path.splitext(os.path.basename(one.file))[0]
        own = [f for f in found if os.path.splitext(os.path.basename(f))[0] == stem]
        there = {part for f in own for part in self._defined(one.name, f)}
        return [f for f in found if f in own or not there & self._defined(one.name, f)]

    def _defined(self, name: str, file: str) -> set[tuple[str, str, int]]:
        """The member functions of a class that a source defines: their kind of file, names, numbers of arguments."""
        own = (f for f in self.source(file).functions if f.scope == name and not f.member)
        return {(os.path.splitext(file)[1], f.name, len(f.parameters)) for f in own}

    # ------------------------------------------------------------------------------ functions

    def companions(self, header: str) -> list[str]:
        """The sources that lie where a header's do: src/caffe/util/nms.cpp and .cu of include/caffe/util/nms.hpp."""
        stem = re.sub(r"\.\w+$", "", header)
        stems = dict.fromkeys((stem, re.sub(r"^inc(lude)?/", "src/", stem)))
        return [file for stem in stems for file in self._sources_by_stem.get(stem, ())]

    @cached_property
    def _sources_by_stem(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for file in (f for f in self.files if f.endswith(SOURCE_KINDS)):
            found.setdefault(file.rpartition(".")[0], []).append(file)
        return found

    def definition(self, function: str, headers: Collection[str], visible: Container[str]) -> Place | None:
        """Where the tree defines a function outside classes that these headers declare, or a visible source itself."""
        beside = [f for h in headers for f in (h, *self.companions(h))]
        sources = [f for f in self.holding(function) if f.endswith(SOURCE_KINDS)]
        if not headers and not any(f in visible and self._declares(f, function) for f in sources):
            return None
        sources.sort(
            key=lambda f: self.visible(f).isdisjoint(headers)
        )  # those that include the declaration first
        for file in dict.fromkeys([*beside, *sources]):
            source = self.source(file)
            for one in source.functions:
                is_others = "static" in one.words and file not in visible
                if one.name == function and not one.scope and not is_others:
                    return Place(file, source.lexed.position(one.at)[0])
        return None

    def _declares(self, file: str, function: str) -> bool:
        """Does a source declare a function without defining it there?"""
        source = self.source(file)
        lexed = source.lexed
        names = (lexed.tokens[head_name(lexed.tokens, lexed.partner, *head)] for head in source.declared)
        return any(name.text == function and name.start not in source.defined_at for name in names)


def is_header(file: str) -> bool:
    """Where others find it: not one beside a source."""
    return file.startswith(tuple(f"{top}/" for top in HEADERS_IN)) and file.endswith(HEADER_KINDS)


def reached(file: str, follow) -> set[str]:
    """The file, and all that `follow` leads to."""
    found, waiting = {file}, [file]
    while waiting:
        new = [f for f in follow(waiting.pop()) if f not in found]
        found.update(new)
        waiting += new
    return found


def members_in(source: Source) -> set[str]:
    """The classes whose member functions a source defines, or which it instantiates."""
    return {f.scope for f in source.functions if f.scope and not f.member} | instantiated(source)


def classes_in(source: Source, file: str):
    """Each class a file defines."""
    lexed, types = source.lexed, types_said(source)
    for name, bodies in source.classes.items():
        for first, last in bodies:
            head = first
            while head and lexed.tokens[head - 1].text not in (";", "}", "{"):
                head -= 1
            line = lexed.position(lexed.tokens[first].start)[0]
            yield Class(name, file, line, (head, last), types.get(name, ""))


def check(root: str) -> None:
    """Is there a Caffe tree, or the files of a layer laid out as in one?"""
    folder = Path(root)
    if not root or not folder.is_dir():
        raise PortError(
            f"CAFFE={root}: there is no such folder. It is a Caffe tree's root, with include/ and src/."
        )
    if folder.resolve() == Path(__file__).resolve().parents[2]:
        raise PortError(
            f"CAFFE={root}: that is the toolkit itself. CAFFE= names the tree that has the layer."
        )
    if is_tree(folder):
        return
    inside = [p for depth in ("*", "*/*") for p in sorted(folder.glob(depth)) if p.is_dir() and is_tree(p)]
    hint = (
        f" There is one in it: CAFFE={inside[0]}"
        if inside
        else " A Caffe tree has include/caffe and src/caffe/layers. One layer's files alone are"
        " put into a folder of layers/ by hand: docs/port-a-caffe-layer.md."
    )
    raise PortError(f"CAFFE={root}: not a Caffe tree.{hint}")


def is_caffes(path: str) -> bool:
    """Not a test's, nor a library's outside of Caffe's own folders?"""
    parts = path.split("/")
    return not NOT_CAFFE & set(parts) and (parts[1:2] == ["caffe"] or not LIBRARIES & set(parts))


def is_tree(folder: Path) -> bool:
    """With or without a caffe.proto: layers are published as a few files, too."""
    return (folder / "include/caffe").is_dir() and (folder / "src/caffe").is_dir()
