"""Read a Caffe fork: its files, and what they include, register, define and declare.

This module decides nothing. It reads a file when it is first used.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Container
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tools import files
from tools.cuda.lexer import Directive, Token
from tools.cuda.outline import Function
from tools.cuda.source import Source
from tools.make.package import ROOT
from tools.package_module import package_module
from tools.refused import Refused

from ..make.includes import spelled_here
from ..make.macros import REGISTER
from ..make.registers import instantiated, registrations
from .declarations import Class, Item, Place, classes_in, declarations_of, expansions

# Switches with which nothing is compiled here, and the reason to refuse a layer that is registered only with one.
WITHOUT = {
    "USE_CUDNN": "needs cuDNN",
    "USE_OPENCV": "needs OpenCV",
    "USE_LMDB": "reads a database: in PyTorch, use a DataLoader",
    "USE_LEVELDB": "reads a database: in PyTorch, use a DataLoader",
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
# The macros that are defined while the files are read. nvcc's own macros are left open, so code for nvcc counts, too.
DEFINED = {
    **dict.fromkeys(WITHOUT, 0),
    **WINDOWS,
    # Guards of headers whose functions are refused. helper_cuda.h tests them before it uses such a function.
    **dict.fromkeys(("CURAND_H_", "CUDNN_H_"), 0),
    # As in Caffe's release builds. Some forks show images or print in other builds.
    "NDEBUG": 1,
    # Some forks test it instead of CPU_ONLY.
    "USE_CUDA": 1,
    "__cplusplus": 1,
}
# Names that show that code behind USE_OPENCV needs OpenCV. Much of that code does not.
OPENCV = re.compile(r"(cv\w*|\w*CVMat\w*|CV_\w+|Mat|IplImage|imread|imwrite)\Z")
# Folders of tests and of libraries. A library within caffe/ is compiled with Caffe, so its files count as Caffe's.
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


class Type(NamedTuple):
    """What registers a type."""

    place: Place
    creator: Function | None  # the function that REGISTER_LAYER_CREATOR names, in the same file
    is_old: bool  # of 2014


class remembered:
    """A method that computes each result once: cached_property for methods with arguments."""

    def __init__(self, method):
        self.method = method

    def __set_name__(self, owner, name: str):
        self.name = name

    def __get__(self, object, owner):
        answers = object.__dict__[self.name] = functools.cache(self.method.__get__(object))
        return answers


class File:
    """A file of the tree, and its content. Each fact is computed once, at its first use."""

    def __init__(self, tree: Tree, name: str):
        self.tree, self.name = tree, name

    @property
    def is_caffes(self) -> bool:
        return is_caffes(self.name)

    @cached_property
    def text(self) -> str:
        return files.read(self.tree.path(self.name))

    @cached_property
    def defined(self) -> dict[str, int]:
        """The macros that are defined while the file is read."""
        return DEFINED | {"USE_OPENCV": 1} if self.name in self.tree.with_opencv else DEFINED

    @cached_property
    def source(self) -> Source:
        return Source(self.text, self.name, self.defined)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the code, including its macros."""
        lexed = self.source.lexed
        lines = [lexed.tokens, *(directive.tokens for directive in lexed.directives)]
        return frozenset(token.text for line in lines for token in line)

    @cached_property
    def using(self) -> list[Token]:
        """A header's tokens without its function declarations, which use nothing."""
        tokens, declared = self.source.lexed.tokens, self.source.declared
        heads = (tokens[first:last] for first, last in declared if tokens[last].text == ";")
        without_values = (head for head in heads if all(token.text != "=" for token in head))
        in_declarations = {token.start for head in without_values for token in head}
        return [token for token in tokens if token.start not in in_declarations]

    @cached_property
    def includes(self) -> list[str]:
        """The files of the tree that it includes. Of all #if branches, only those for Windows are left out."""
        is_windows = any(word in self.text for word in WINDOWS)
        spelled = (
            Source(self.text, self.name, WINDOWS).includes(angles=True)
            if is_windows
            else INCLUDE.findall(self.text)
        )
        resolved = dict.fromkeys(self.tree.resolve(include, self.name) for include in spelled)
        return [path for path in resolved if path and path.endswith(HEADER_KINDS + SOURCE_KINDS)]

    @cached_property
    def resolved(self) -> dict[str, str | None]:
        """The file of the tree that each live #include names, or None."""
        return {i: self.tree.resolve(i, self.name) for i in self.source.includes(angles=True)}

    @cached_property
    def visible(self) -> frozenset[str]:
        """The file, and all files of the fork that it includes directly or indirectly."""
        return frozenset(reached(self.name, lambda name: self.tree[name].includes))

    @cached_property
    def companions(self) -> list[str]:
        """The sources that belong to a header by their path.

        Those of include/caffe/util/nms.hpp are src/caffe/util/nms.cpp and nms.cu.
        """
        stem = re.sub(r"\.\w+$", "", self.name)
        stems = dict.fromkeys((stem, re.sub(r"^inc(lude)?/", "src/", stem)))
        return [file for stem in stems for file in self.tree.sources_by_stem.get(stem, ())]

    @cached_property
    def defines(self) -> set[str]:
        """The names of the functions that it defines, and of the classes whose members it defines."""
        return {item.scope or item.name for item in self.declarations + self.made_by_macros if item.defines}

    @cached_property
    def implements(self) -> set[str]:
        """The names of the classes that it instantiates, or whose member functions it defines."""
        scopes = {f.scope for f in self.source.functions if f.scope and not f.member}
        return scopes | instantiated(self.source)

    @cached_property
    def classes(self) -> list[Class]:
        return list(classes_in(self.source, self.name))

    @cached_property
    def declarations(self) -> list[Item]:
        """Its declarations and definitions at namespace scope."""
        return declarations_of(self.source)

    @cached_property
    def made_by_macros(self) -> list[Item]:
        """The functions that calls of macros define, such as vsSqr. The tokens of each item are the call."""
        macros = [macro for seen in self.visible for macro in self.tree[seen].pasting]
        called = "|".join(macro.tokens[0].text for macro in macros)
        if not macros or not re.search(rf"^[ \t]*({called})[ \t]*\(", self.text, re.M):
            return []
        return [
            item._replace(tokens=self.source.lexed.tokens[slice(*call)])
            for call, expansion in expansions(self.source, macros)
            for item in declarations_of(expansion)
            if item.defines and item.arity
        ]

    @cached_property
    def pasting(self) -> list[Directive]:
        """Its macros whose calls may define functions with pasted (##) names."""
        macros = self.source.macros if "##" in self.text else []
        macros = [macro for macro in macros if {"##", "{"} <= {token.text for token in macro.tokens}]
        return [macro for macro in macros if macro.tokens[0].text not in REGISTER]

    @cached_property
    def functions(self) -> dict[str, list[Item]]:
        """The functions that are not members of classes, by name."""
        by_name: dict[str, list[Item]] = {}
        for item in self.declarations:
            if item.arity and not item.scope:
                by_name.setdefault(item.name, []).append(item)
        return by_name

    def place(self, at: Token | Directive | Item | int) -> Place:
        """The place of a part of the file, or of an offset in its text."""
        return Place(self.name, self.source.lexed.position(at if isinstance(at, int) else at.start)[0])


class Tree:
    """A fork. Its files are named by their path in the tree, with slashes."""

    def __init__(self, root: str):
        self.root = Path(root)
        self.check()
        self.parts: dict[tuple[str, str], tuple] = {}  # results of cuts.py: the parts of headers
        self._read: dict[str, File] = {}

    def check(self):
        """Raise Refused unless the root is a Caffe tree, or has the folders of one."""
        if is_tree(self.root):
            return
        hint = "A Caffe tree has include/caffe and src/caffe/layers, and no file here registers a layer."
        if trees := trees_in(self.root):
            hint = f"There is one in it: {package_module('base/shown').command(f'CAFFE={trees[0]}')}"
        raise Refused(f"CAFFE={self.root}: not a Caffe tree. {hint}")

    # ---------------------------------------------------------------------------------- files

    def __getitem__(self, name: str) -> File:
        if name not in self._read:
            self._read[name] = File(self, name)
        return self._read[name]

    @cached_property
    def files(self) -> list[str]:
        """The headers and sources of the library, without its tests."""
        paths = []
        for top in (*HEADERS_IN, "src"):
            for folder, folders, names in os.walk(self.root / top):
                inside = os.path.relpath(folder, self.root).replace(os.sep, "/")
                folders[:] = sorted(f for f in folders if is_caffes(f"{inside}/{f}"))
                paths += [f"{inside}/{n}" for n in sorted(names) if n.endswith(HEADER_KINDS + SOURCE_KINDS)]
        return [file for file in paths if not os.path.islink(self.root / file) or self._is_inside(file)]

    def real(self, file: str) -> str:
        """The path of a file below the root."""
        return file

    def has(self, file: str) -> bool:
        return (self.root / self.real(file)).is_file()

    def _is_inside(self, file: str) -> bool:
        return (self.root / self.real(file)).resolve().is_relative_to(self.root.resolve())

    def path(self, file: str) -> Path:
        """The path of a file of the tree. Raises Refused if it is a link that leads out of the tree."""
        if not self._is_inside(file):
            raise Refused(f"{file} is a link that leads out of the tree: it is not followed.")
        return self.root / self.real(file)

    @cached_property
    def with_opencv(self) -> set[str]:
        """Sources that register types only with USE_OPENCV, but do not use OpenCV."""
        result: set[str] = set()
        for file in (f for f in self.registering if "USE_OPENCV" in self[f].text):
            pair = [file, *(f for f in self.sources_by_stem[file.rpartition(".")[0]] if f != file)]
            sources = [Source(self[f].text, f, DEFINED | {"USE_OPENCV": 1}) for f in pair]
            without = Source(self[file].text, file, DEFINED)
            has_more = len(registrations(sources[0])) > len(registrations(without))
            if has_more and not any(OPENCV.match(t.text) for source in sources for t in source.lexed.tokens):
                result.update(pair)
        return result

    def needs_opencv(self, function: str) -> bool:
        """Does the tree define a function only with USE_OPENCV?"""
        sources = [file for file in self.holding(function) if file.endswith(SOURCE_KINDS)]
        texts = [self[file].text for file in sources if "USE_OPENCV" in self[file].text]
        read = (Source(text, "", DEFINED | {"USE_OPENCV": 1}) for text in texts)
        return any(found.name == function for source in read for found in source.functions)

    @cached_property
    def _holding(self) -> dict[str, list[str]]:
        files_of: dict[str, list[str]] = {}
        for file in self.files:
            for word in set(WORD.findall(self[file].text)):
                files_of.setdefault(word, []).append(file)
        return files_of

    def holding(self, word: str) -> list[str]:
        """The files that contain this word, also in comments. They are few, so callers can analyse each of them."""
        return self._holding.get(word, [])

    # ------------------------------------------------------------------------------- includes

    def resolve(self, include: str, includer: str) -> str | None:
        """The file of the tree that an #include in `includer` names, or None."""
        return self._resolve(include, includer.rpartition("/")[0])

    @remembered
    def _resolve(self, include: str, folder: str) -> str | None:
        """Folders are searched in the order of Caffe's Makefile: ./src before ./include."""
        spelled = spelled_here(include)
        for place in (folder, "src", *HEADERS_IN, "."):
            path = os.path.normpath(f"{place}/{spelled}").replace(os.sep, "/")
            if not path.startswith("..") and not path.endswith(MESSAGES) and self.has(path):
                return path
        return None

    def library(self, include: str) -> str | None:
        """The header of a library that the tree carries with it: `3rdparty/eigen/Eigen/Dense` for `Eigen/Dense`."""
        found = (
            p for p in self._of_libraries.get(include.rpartition("/")[2], ()) if p.endswith(f"/{include}")
        )
        return min(found, key=lambda path: (path.count("/"), path), default=None)

    @cached_property
    def _of_libraries(self) -> dict[str, list[str]]:
        """By name, the tree's files that are not Caffe's."""
        files_of: dict[str, list[str]] = {}
        for folder, folders, names in os.walk(self.root):
            inside = os.path.relpath(folder, self.root).replace(os.sep, "/")
            folders[:] = sorted(f for f in folders if not f.startswith("."))
            for name in names if not inside.startswith((*HEADERS_IN, "src")) or not is_caffes(inside) else ():
                files_of.setdefault(name, []).append(f"{inside}/{name}".removeprefix("./"))
        return files_of

    def is_of_headers(self, header: str) -> bool:
        """Is it a header-only library: no sources below the header's folder, and none of its name anywhere?"""
        folder, _, name = header.rpartition("/")
        kinds = (*SOURCE_KINDS, ".c", ".cxx")
        names = (name for _, _, names in os.walk(self.root / folder) for name in names)
        of_its_name = (f"{Path(name).stem}{kind}" for kind in kinds)
        return not any(n.endswith(kinds) for n in names) and self._of_libraries.keys().isdisjoint(of_its_name)

    # ---------------------------------------------------------------------------------- types

    @cached_property
    def types(self) -> dict[str, Type]:
        """The registered types by name."""
        types = {}
        for file in self.registering:
            for registration in registrations(self[file].source):
                functions = (f for f in self[file].source.functions if f.name == registration.creator)
                creator = next(functions, None) if registration.creator else None
                types[registration.type] = Type(
                    self[file].place(registration.at), creator, registration.is_old
                )
        return types

    def check_interface(self) -> None:
        """Raise Refused if the tree is of 2014: by an old registration, or by a factory that switches over types."""
        old = {t.place: t for t in self.types.values() if t.is_old}
        switches = [f for f in self.holding("LayerParameter_LayerType") if f.endswith("layer_factory.cpp")]
        place = next(iter(old), None) or next(
            (self[f].place(self[f].text.index("LayerParameter_LayerType")) for f in switches), None
        )
        if place:
            raise Refused(
                f"{place}: a tree of 2014, whose layers have another interface. Use a later tree with the same layer"
            )

    @cached_property
    def registering(self) -> list[str]:
        """The sources that register types."""
        candidates = dict.fromkeys(file for word in REGISTER for file in self.holding(word))
        return [file for file in candidates if file.endswith(SOURCE_KINDS)]

    @cached_property
    def types_without(self) -> dict[str, tuple[Place, str]]:
        """Types that are registered only with a switch of WITHOUT: where, and the reason to refuse them."""
        refused: dict[str, tuple[Place, str]] = {}
        for file in self.registering:
            for setting, reason in WITHOUT.items():
                if setting in self[file].text:
                    source = Source(self[file].text, file, DEFINED | {setting: 1})
                    for registration in registrations(source):
                        if registration.type not in self.types:
                            place = self[file].place(registration.at)
                            refused.setdefault(registration.type, (place, reason))
        return refused

    # -------------------------------------------------------------------------------- classes

    @remembered
    def classes(self, name: str) -> list[Class]:
        """The classes of this name: first those in headers, then those in sources."""
        heads = re.compile(rf"\b(?:class|struct)\b[^;{{}}()]*\b{name}\b")
        candidates = (f for f in self.holding(name) if heads.search(self[f].text))
        classes = [cls for f in candidates for cls in self[f].classes if cls.name == name]
        return sorted(classes, key=lambda cls: cls.file.endswith(SOURCE_KINDS))

    def header_class(self, name: str, visible: Container[str]) -> Class | None:
        """The class of this name in one of the visible headers, or None."""
        if name not in self.class_names:
            return None
        classes = (cls for cls in self.classes(name) if cls.file in visible)
        return next((cls for cls in classes if cls.file.endswith(HEADER_KINDS)), None)

    @cached_property
    def class_names(self) -> frozenset[str]:
        """All names in headers that look like names of classes."""
        pattern = re.compile(r"\b(?:class|struct)\s+(?:[A-Z][A-Z_0-9]*\s+)?([A-Za-z_]\w*)(?=[^;(){}]*\{)")
        headers = (self[f].text for f in self.files if f.endswith(HEADER_KINDS))
        return frozenset(name for text in headers for name in pattern.findall(text))

    @remembered
    def members(self, name: str) -> list[str]:
        """The sources that define member functions of a class, or instantiate it.

        If several have the same file name, the deeper ones are copies and are left out.
        """
        sources = (f for f in self.holding(name) if f.endswith(SOURCE_KINDS))
        matching = [f for f in sources if name in self[f].implements]
        first = {os.path.basename(f): f for f in sorted(matching, key=lambda f: -f.count("/"))}
        return [f for f in matching if first[os.path.basename(f)] == f]

    def members_of(self, cls: Class) -> list[str]:
        """The sources of this class, where several classes may have its name.

        A source with the file name of the class's header comes first. Another source that defines the same functions
        is another version, and is left out.
        """
        is_unique = len(self.classes(cls.name)) == 1
        candidates = [f for f in self.members(cls.name) if is_unique or cls.file in self[f].visible]
        stem = os.path.splitext(os.path.basename(cls.file))[0]
        own = [f for f in candidates if os.path.splitext(os.path.basename(f))[0] == stem]
        defined = {part for f in own for part in self._defined(cls.name, f)}
        return [f for f in candidates if f in own or not defined & self._defined(cls.name, f)]

    def _defined(self, name: str, file: str) -> set[tuple[str, str, int]]:
        """The member functions of a class that a source defines, as (file extension, name, number of parameters)."""
        members = (f for f in self[file].source.functions if f.scope == name and not f.member)
        return {(os.path.splitext(file)[1], f.name, len(f.parameters)) for f in members}

    def header_of(self, source: str) -> str | None:
        """The header of a source, or None. A .hpp, such as util/math_functions.hpp, comes before a .cuh."""
        stem = Path(source).stem
        headers = (f for f in self.files if is_header(f) and Path(f).stem == stem)
        return min(headers, key=lambda f: HEADER_KINDS.index(Path(f).suffix), default=None)

    @cached_property
    def sources_by_stem(self) -> dict[str, list[str]]:
        by_stem: dict[str, list[str]] = {}
        for file in (f for f in self.files if f.endswith(SOURCE_KINDS)):
            by_stem.setdefault(file.rpartition(".")[0], []).append(file)
        return by_stem


def is_header(file: str) -> bool:
    """Is the file a header in include/? A header in src/, beside a source, is not."""
    return file.startswith(tuple(f"{top}/" for top in HEADERS_IN)) and file.endswith(HEADER_KINDS)


def reached(file: str, follow) -> set[str]:
    """The file, and all files that repeated calls of `follow` lead to."""
    found, waiting = {file}, [file]
    while waiting:
        new = [f for f in follow(waiting.pop()) if f not in found]
        found.update(new)
        waiting += new
    return found


def check_folder(root: str) -> None:
    """Raise Refused unless `root` is a folder, and not the toolkit's own."""
    folder = Path(root)
    if not root or not folder.is_dir():
        what = "there is no such folder. It is a Caffe tree's root, with include/ and src/."
        raise Refused(f"CAFFE={root}: {what}")
    if folder.resolve() in (Path(ROOT).resolve(), Path(__file__).resolve().parents[1]):
        what = "this is the toolkit itself. Set CAFFE to the tree that has the layer."
        raise Refused(f"CAFFE={root}: {what}")


def trees_in(folder: Path) -> list[Path]:
    """The Caffe trees in the folder, and in the folders in it."""
    return [p for depth in ("*", "*/*") for p in sorted(folder.glob(depth)) if p.is_dir() and is_tree(p)]


def is_caffes(path: str) -> bool:
    """Is the path Caffe's own, not in a folder of tests, or of a library outside of caffe/?"""
    parts = path.split("/")
    return not NOT_CAFFE & set(parts) and (parts[1:2] == ["caffe"] or not LIBRARIES & set(parts))


def is_tree(folder: Path) -> bool:
    """Does the folder look like a Caffe tree? It needs no caffe.proto, because some layers are published without."""
    return (folder / "include/caffe").is_dir() and (folder / "src/caffe").is_dir()
