"""A Caffe fork as its text tells it: which types are registered, which class and which files make one."""

from __future__ import annotations

import difflib
import os
import re
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from caffe_build import types_said
from cuda_lexer import NVCC_WORDS
from cuda_source import Source, position_from, read

# What a ported layer is compiled without. Code behind these does not count.
DEFINED = {
    **dict.fromkeys(NVCC_WORDS, 0),
    **dict.fromkeys(("CPU_ONLY", "USE_CUDNN", "USE_OPENCV", "USE_LMDB", "USE_LEVELDB", "USE_HDF5", "USE_NCCL"), 0),
    **dict.fromkeys(("WITH_PYTHON_LAYER", "USE_MPI", "_MSC_VER", "_WIN32", "WIN32", "_WINDOWS"), 0),
    "__cplusplus": 1,
}  # fmt: skip
# Folders of tests, and of other people's libraries that a tree carries.
NOT_CAFFE = {"test", "gtest", "proto", "thirdparty", "3rdparty", "third_party"}
HEADER_KINDS = (".hpp", ".h", ".cuh")
SOURCE_KINDS = (".cpp", ".cc", ".cu")
PROTO = "src/caffe/proto/caffe.proto"


class PortError(Exception):
    """Why there is nothing to port, and what to do."""


class Place(NamedTuple):
    """Where something stands in the tree."""

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
        if not root or not self.root.is_dir():
            raise PortError(
                f"CAFFE={root}: there is no such folder. It is the root of a Caffe tree, with include/ and src/."
            )
        if self.root.resolve() == Path(__file__).resolve().parent.parent.parent:
            raise PortError(
                f"CAFFE={root}: that is the toolkit itself. CAFFE= names the tree that has the layer."
            )
        if not _is_tree(self.root):
            inside = [
                p
                for depth in ("*", "*/*")
                for p in sorted(self.root.glob(depth))
                if p.is_dir() and _is_tree(p)
            ]
            hint = (
                f" There is one in it: CAFFE={inside[0]}"
                if inside
                else f" A Caffe tree has include/caffe, src/caffe/layers and {PROTO}. One layer's files alone are"
                " put into a folder of layers/ by hand: docs/port-a-caffe-layer.md."
            )
            raise PortError(f"CAFFE={root}: not a Caffe tree.{hint}")
        self._sources: dict[str, Source] = {}
        self._texts: dict[str, str] = {}
        self._members: dict[str, list[str]] = {}

    # ---------------------------------------------------------------------------------- files

    @cached_property
    def files(self) -> list[str]:
        """The headers and sources of the library itself, its tests left out."""
        found = []
        for top in ("include", "src"):
            for folder, folders, names in os.walk(self.root / top):
                folders[:] = sorted(f for f in folders if f not in NOT_CAFFE)
                found += [Path(folder, n).relative_to(self.root).as_posix() for n in sorted(names)
                          if n.endswith(HEADER_KINDS + SOURCE_KINDS)]  # fmt: skip
        return found

    def text(self, file: str) -> str:
        if file not in self._texts:
            self._texts[file] = read(str(self.root / file))
        return self._texts[file]

    def source(self, file: str) -> Source:
        if file not in self._sources:
            self._sources[file] = Source(self.text(file), file, DEFINED)
        return self._sources[file]

    def resolve(self, include: str, includer: str) -> str | None:
        """The file of the tree that an #include in `includer` names."""
        for folder in (Path(includer).parent.as_posix(), "include", "src", "."):
            file = os.path.normpath(f"{folder}/{include}")
            if not file.startswith("..") and (self.root / file).is_file():
                return file
        return None

    # ---------------------------------------------------------------------------------- types

    @cached_property
    def types(self) -> dict[str, Place]:
        """Registered types, and where."""
        found = {}
        for file in self.files:
            if not file.endswith(SOURCE_KINDS) or "REGISTER_LAYER_C" not in self.text(file):
                continue
            lexed = self.source(file).lexed
            for i, token in enumerate(lexed.tokens[:-3]):
                if token.text in ("REGISTER_LAYER_CLASS", "REGISTER_LAYER_CREATOR"):
                    place = Place(file, lexed.position(token.start)[0])
                    if lexed.tokens[i + 3].text == "," and token.text == "REGISTER_LAYER_CLASS":
                        raise PortError(
                            f"{place}: a tree of 2014, whose layers have types in capitals and get their tops by "
                            "pointer. Take a later tree of the same layer, or change its four signatures by hand."
                        )
                    found[lexed.tokens[i + 2].text] = place
        return found

    def nearest(self, type_name: str) -> str:
        """For an error's text: the registered types that look like this one, or all."""
        lower = {t.lower().removesuffix("layer"): t for t in self.types}
        wanted = type_name.lower().removesuffix("layer").replace("_", "")
        near = difflib.get_close_matches(wanted, lower, n=5, cutoff=0.55)
        near += [k for k in lower if k not in near and wanted and wanted in k]
        if not near:
            return "It has: " + ", ".join(sorted(self.types))
        return "Near it: " + ", ".join(lower[k] for k in near)

    def class_of(self, type_name: str) -> Class:
        """The class that is made for a type."""
        if type_name not in self.types:
            if type_name == "Python":
                raise PortError("it runs Python code that the prototxt names: call that code from PyTorch")
            raise PortError(f"{self.root} registers no layer {type_name}. {self.nearest(type_name)}")
        said = [c for c in self.classes.values() if c.type == type_name]
        named = self.classes.get(type_name + "Layer")
        if named or said:
            return named or said[0]
        raise PortError(
            f"{self.types[type_name]}: {type_name} is registered, but no header defines a class {type_name}Layer "
            f'nor one whose type() says "{type_name}"'
        )

    # -------------------------------------------------------------------------------- classes

    @cached_property
    def classes(self) -> dict[str, Class]:
        """The classes that headers, and sources for their own use, define."""
        found = {}
        for file in sorted(self.files, key=lambda f: f.endswith(SOURCE_KINDS)):
            if file.endswith(SOURCE_KINDS) and not re.search(r"^\s*(class|struct)\b", self.text(file), re.M):
                continue
            for one in classes_in(self.source(file), file):
                found.setdefault(one.name, one)
        return found

    def members(self, name: str) -> list[str]:
        """The sources that define member functions of a class, or instantiate it."""
        if name not in self._members:
            mention = re.compile(rf"\b{name}\b")
            texts = ((f, self.text(f)) for f in self.files if f.endswith(SOURCE_KINDS))
            self._members[name] = [
                f for f, text in texts if mention.search(text) and name in members_in(self.source(f))
            ]
        return self._members[name]

    def companions(self, header: str) -> list[str]:
        """The sources that lie where a header's do: src/caffe/util/nms.cpp and .cu of include/caffe/util/nms.hpp."""
        stem = re.sub(r"\.\w+$", "", header)
        stems = {stem, stem.replace("include/", "src/", 1)}
        return [f for f in self.files if f.endswith(SOURCE_KINDS) and f.rpartition(".")[0] in stems]

    @cached_property
    def declared(self) -> set[str]:
        """Words before a parenthesis or a template argument in headers: what is not among them is a source's own."""
        headers = (self.source(file).lexed.tokens for file in self.files if file.startswith("include/caffe/"))
        return {t.text for tokens in headers for t, after in pairwise(tokens) if after.text in "(<"}

    def definition(self, function: str) -> Place | None:
        """Where the tree defines a function outside classes that its headers declare."""
        if function not in self.declared:
            return None
        pattern = re.compile(rf"\b{function}\s*(<[^<>;]*>)?\s*\(")
        for file in self.files:
            if pattern.search(self.text(file)):
                source = self.source(file)
                for one in source.functions:
                    if one.name == function and not one.member:
                        return Place(file, source.lexed.position(one.at)[0])
        return None


def members_in(source: Source) -> set[str]:
    """The classes whose member functions a source defines, or which it instantiates."""
    tokens, found = source.lexed.tokens, set()
    for function in source.functions:
        i = position_from(tokens, function.at) - 1
        if i > 0 and tokens[i].text == "~":
            i -= 1
        if i > 0 and tokens[i].text == "::":
            i -= 1
            if tokens[i].text == ">":
                i = next((k for k in range(i, 0, -1) if tokens[k].text == "<"), 1) - 1
            found.add(tokens[i].text)
    found |= {tokens[i + 2].text for i, t in enumerate(tokens[:-2]) if t.text == "INSTANTIATE_CLASS"}
    return found


def _is_tree(folder: Path) -> bool:
    return all((folder / part).exists() for part in ("include/caffe", "src/caffe/layers", PROTO))


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
