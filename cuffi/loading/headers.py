"""The headers of a CUDA file that lies in a project: found as the project's compiler would find them."""

import functools
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..backends import HOST
from . import toolkit

# Where headers lie in each folder above a file.
FOLDERS = ("", "include", "src", "inc")
# How many folders above a file are searched, if none of them is a repository's.
MOST_FOLDERS = 5
INCLUDE = re.compile(rb'^([ \t]*#[ \t]*include[ \t]*)(["<])([^">\n]+)[">]', re.MULTILINE)
OF_MACRO = re.compile(
    rb"^([ \t]*#[ \t]*include[ \t]+)([A-Za-z_]\w*)(?=[ \t]*(?://.*|/\*.*)?\r?$)", re.MULTILINE
)
DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n\r]*?)[ \t]*(?://.*)?\r?$", re.MULTILINE)
# A definition that does nothing if the macro has one.
DEFAULT = re.compile(
    rb"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)[ \t]*\r?\n[ \t]*#[ \t]*define[ \t]+\1\b", re.MULTILINE
)
# Headers of C and C++ themselves.
OF_COMPILER = re.compile(
    r"[a-z_\d]+|(assert|ctype|errno|float|limits|math|stdbool|stddef|stdint|stdio|stdlib|string|time)\.h|(sys|bits)/.*"
)
# The folder of the headers in a layer's.
PLACE = PurePosixPath("headers")


class Project:
    """The folders in which a file's headers may lie: its own and those above it, up to its repository's."""

    def __init__(self, file: Path, given: Sequence[Path] = ()):
        """`given`: folders that the project's makefile names."""
        self.given = given
        folders = [file.parent, *list(file.parent.parents)[:MOST_FOLDERS]]
        last = next((i for i, folder in enumerate(folders) if (folder / ".git").exists()), None)
        self.folders = folders if last is None else folders[: last + 1]
        self.is_repository = last is not None

    def header(self, name: tuple[str, bool], source: Path) -> Path | None:
        """The header that an #include in `source` names; None if it is the compiler's, the toolkit's, or nowhere."""
        header, angles = name
        if os.path.isabs(header) or (angles and OF_COMPILER.fullmatch(header)):
            return None
        near = Path(os.path.normpath(source.parent / header))
        if not angles and near.is_file():
            return near
        if any((toolkit.root() / "include" / own / header).is_file() for own in ("", HOST.name)):
            return None
        searched = (folder / part for folder in self.folders for part in FOLDERS)
        places = (Path(os.path.normpath(folder / header)) for folder in (*self.given, *searched))
        if place := next((place for place in places if place.is_file()), None):
            return place
        if angles and "/" not in header:  # <unistd.h> is not some file of this name
            return None
        ends = [file for file in self._files if f"/{file}".endswith(f"/{header}")]
        return self.folders[-1] / ends[0] if len(ends) == 1 else None

    @functools.cached_property
    def _files(self) -> list[str]:
        """The paths of the repository's files. A project may name include folders that nobody else knows."""
        found, root = [], self.folders[-1]
        for folder, inner, files in os.walk(root if self.is_repository else os.devnull):
            inner[:] = [name for name in inner if not name.startswith(".")]
            found += [os.path.relpath(os.path.join(folder, file), root) for file in files]
        return found


class Gathered(NamedTuple):
    """A file with its headers."""

    original: bytes
    text: bytes  # with the headers' places in its lines
    headers: dict[PurePosixPath, bytes]  # by their paths in a layer's folder
    paths: dict[PurePosixPath, Path]  # theirs in the project
    root: Path  # the last folder in which headers were searched


def with_headers(
    file: Path, include_dirs: Sequence[Path] = (), others: Sequence[Path] = (), macros: bytes = b""
) -> Gathered:
    """Read a file and the headers of its project that it includes.

    Each #include that names one of the headers gets its path in the layer's folder. Lines stay.

    Args:
        include_dirs: folders that are searched first.
        others: files that are compiled with this one.
        macros: the definitions before each of them.
    """
    file, *others = (Path(os.path.normpath(path)) for path in (file, *others))
    given = [*include_dirs, *(other.parent for other in others)]
    project, texts, waiting = Project(file, given), {}, [file, *others]
    root = project.folders[-1]
    while waiting:
        source = waiting.pop()
        if source not in texts:
            texts[source] = source.read_bytes()
        named = (project.header(_name(match), source) for match in INCLUDE.finditer(texts[source]))
        for header in filter(None, named):
            if not header.is_relative_to(root):
                root = Path(os.path.commonpath([root, header]))
            waiting += [header] * (header not in texts)
        if not waiting:  # now the macros of all of them are known
            without = {path: _without_macros(text, texts.values(), macros) for path, text in texts.items()}
            waiting = [path for path, text in without.items() if text != texts[path]]
            texts = without
    places = {header: PLACE / _built_as(header.relative_to(root)) for header in texts}
    places[file] = PurePosixPath(file.name)
    places |= {other: PurePosixPath(f"{i}.cu") for i, other in enumerate(others, 1)}  # no layer is called so
    written = {}
    for source, text in texts.items():

        def renamed(match, source=source):
            header = project.header(_name(match), source)
            if header is None:
                return match[0]
            there = os.path.relpath(places[header], places[source].parent)
            return match[1] + b'"' + os.fsencode(there) + b'"'

        written[places[source]] = INCLUDE.sub(renamed, text)
    paths = {place: header for header, place in places.items() if header != file}
    return Gathered(file.read_bytes(), written.pop(places[file]), written, paths, project.folders[-1])


def _without_macros(text: bytes, texts: Iterable[bytes], given: bytes) -> bytes:
    """The text with `#include "cases/a.h"` for `#include CASE`, if the given macros and the files' have one meaning."""
    if not re.search(OF_MACRO, text):
        return text
    defined: dict[bytes, set[bytes]] = {}
    names = {name for name, _ in DEFINE.findall(given)}
    texts = [given, *(DEFAULT.sub(lambda its: b"" if its[1] in names else its[0], one) for one in texts)]
    for name, value in (found for one in texts for found in DEFINE.findall(one)):
        defined.setdefault(name, set()).add(value.strip())
    once = {name: min(values) for name, values in defined.items() if len(values) == 1}

    def named(match):
        value = once.get(match[2], b"")
        if inside := re.fullmatch(rb"\w+\(([^()]*)\)", value):  # a macro that makes a string of its argument
            value = inside[1]
            for _ in range(8):
                value = re.sub(rb"[A-Za-z_]\w*", lambda word: once.get(word[0], word[0]), value)
            value = b'"' + value.replace(b" ", b"") + b'"'
        return match[1] + value if re.fullmatch(rb'"[^"\n]+"|<[^>\n]+>', value) else match[0]

    return OF_MACRO.sub(named, text)


def _name(match) -> tuple[str, bool]:
    """(the header's name, is it in <>?)"""
    return os.fsdecode(match[3]), match[2] == b"<"


def _built_as(header: Path) -> PurePosixPath:
    """The header's path without what make would misread, and with a header's suffix."""
    parts = [re.sub(r"[^\w.+-]", "_", part) for part in header.parts]
    suffix = "" if header.suffix in (".h", ".hpp", ".cuh", ".hh", ".inl") else ".h"
    return PurePosixPath(*parts[:-1], parts[-1] + suffix)
