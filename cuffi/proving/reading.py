"""A CUDA file as the proof reads it: macros expanded by g++'s preprocessor, functions and trees by tools/cuda."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..judging.harness import promise_of
from ..judging.programs import compiler
from ..judging.promises import Promise, Refused
from ..judging.rewriters import LOOP, Body, Function, HostRewriter, Source, Unit, parse_code, read, walk
from ..loading.headers import Project
from .types import NotFollowed, Type, Void, type_of
from .values import Place

# What NVIDIA's samples and C have for the host: no name of a kernel's.
HARMLESS = re.compile(r"<(helper_(cuda|timer|functions|string)|stdarg|ctype|sys/time|unistd)\.h>")
CONSTANT = re.compile(r"\b__constant__\s+([\w\s]+?)\s+(\w+)((?:\s*\[[^\]]+\])*)\s*;")
MARKER = re.compile(r'# (\d+) "([^"]*)".*')
ARCH = "__CUDA_ARCH__"
PROMISE = "cuffi_promise_"
KERNEL_LOOP = (
    "CUDA_KERNEL_LOOP(i,n)=for(int i=blockIdx.x*blockDim.x+threadIdx.x;i<(n);i+=blockDim.x*gridDim.x)"
)
DEFINED = ["__CUDACC__=1", f"{ARCH}=900", "__NVCC__=1", KERNEL_LOOP]
_TEMPLATE = re.compile(r"\s*template\s*<")


@dataclass(frozen=True)
class TemplateParameter:
    """`type`: the words of a number's type; "" of typename T."""

    name: str
    type: str
    default: str = ""


class Code:
    """A function: its head, and the tree of its body."""

    def __init__(self, text: Text, function: Function):
        self.text, self.function, self.name = text, function, function.name
        self.body = Body(text.source, function)

    @cached_property
    def template(self) -> list[TemplateParameter]:
        head = self.text.source.text[self.function.head : self.function.at]
        if not (found := _TEMPLATE.match(head)):
            return []
        inside, depth = "", 1
        for letter in head[found.end() :]:
            depth += (letter == "<") - (letter == ">")
            if not depth:
                break
            inside += letter
        return [self._parameter(one) for one in inside.split(",") if one.strip()]

    def _parameter(self, words: str) -> TemplateParameter:
        said, _, default = (one.strip() for one in words.partition("="))
        match = re.fullmatch(r"(.*?)\s*\b(\w+)", said, re.DOTALL)
        if not match or "<" in words or "..." in words:
            raise NotFollowed(f"a template's parameter is not followed: {words.strip()}")
        kind = match[1].strip()
        return TemplateParameter(match[2], "" if kind in ("typename", "class") else kind, default)

    def line(self, node) -> Place:
        return self.text.place(self.body.place(node)[0])

    @property
    def head(self) -> Place:
        return self.text.place(self.function.at)

    def check(self):
        """Raises NotFollowed if the tree is not whole."""
        unread = self.body.unread()
        if unread is not None or self.body.root is None:
            raise NotFollowed("the grammar does not know this", unread)
        for token in self.body.tokens:
            if token.kind == "name" and (
                LOOP.match(token.text) or token.text in ("goto", "asm", "__asm__", "try")
            ):
                raise NotFollowed(f"{token.text} is not followed")

    def is_character(self, node) -> bool:
        """Is it a character's literal, which the tree has as 0?"""
        return self.body.source_text[self.body.place(node)[0]] != "0"


class Text:
    """A file with its headers and without macros."""

    def __init__(self, file: Path, options: Sequence[str] = (), said: Mapping | None = None):
        self.file = file
        self.promises: dict[str, Promise] = {}
        text, self._lines = self._expanded(file, options, said)
        self.source = Source(text, str(file))
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.functions: dict[str, list[Code]] = {}
        for function in self.source.functions:
            self.functions.setdefault(function.name, []).append(Code(self, function))
        self.types = self._types()

    def _expanded(self, file: Path, options: Sequence[str], said: Mapping | None) -> tuple[str, list[Place]]:
        """The text, and the place of each of its lines. Raises NotFollowed if a header is not read."""
        unit, find, root = _unit(file, options)
        read_here = {Path(source.path).resolve() for source in unit.sources}
        promised = self._promised(unit, said)
        with tempfile.TemporaryDirectory() as folder:
            for source in unit.sources:
                to = Path(folder) / Path(source.path).resolve().relative_to(root)
                to.parent.mkdir(parents=True, exist_ok=True)
                text = _without_others(source, find, root, read_here, folder)
                if source is unit.main:
                    text += "".join(f"\n{PROMISE}{i} {one}" for i, one in enumerate(promised)) + "\n"
                to.write_text(text, encoding="latin-1")
            main = Path(folder) / file.relative_to(root)
            words = [word for word in options if word.startswith("-D")] + [f"-D{word}" for word in DEFINED]
            command = [*compiler(), "-E", "-x", "c++", "-undef", "-nostdinc", "-w", *words, str(main)]
            done = subprocess.run(command, capture_output=True)
            if done.returncode:
                error = done.stderr.decode("latin-1").replace(folder, str(root)).splitlines()
                raise NotFollowed(f"the preprocessor: {(error or ['it ended'])[0]}")
            text, places = _lines_of(done.stdout.decode("latin-1"), folder, root)
        return self._without_promises(text), places

    def _promised(self, unit: Unit, said: Mapping | None) -> list[str]:
        """The texts of all promises of kernels."""
        texts = []
        for function in (one for one in unit.main.functions if one.is_kernel):
            try:
                promise = promise_of(function, unit.main.text, said)
            except Refused as error:
                raise NotFollowed(str(error)) from None
            if function.name in self.promises:
                raise NotFollowed(f"two kernels of one name: {function.name}")
            self.promises[function.name] = promise
            texts += [*promise.requires, *promise.size.values()]
        return texts

    def _without_promises(self, text: str) -> str:
        """Take the promises with macros expanded from the end of the text."""
        found = [match[1].strip() for match in re.finditer(rf"^{PROMISE}\d+ (.*)$", text, re.M)]
        for promise in self.promises.values():
            count, names = len(promise.requires), list(promise.size)
            promise.requires, found = found[:count], found[count:]
            promise.size, found = dict(zip(names, found, strict=False)), found[len(names) :]
        return re.sub(rf"^{PROMISE}\d+ .*$", "", text, flags=re.M)

    @property
    def kernels(self) -> list[Code]:
        return [one for each in self.functions.values() for one in each if one.function.is_kernel]

    def place(self, offset: int) -> Place:
        row = self.source.lexed.position(offset)[0] - 1
        return self._lines[min(row, len(self._lines) - 1)]

    def _types(self) -> dict[str, Type]:
        """Of the file's typedefs; those of others are not followed."""
        text, made = self.source.text, dict[str, Type]()
        found = [(m[2], m[1]) for m in re.finditer(r"\btypedef\s+([\w\s]+?)\s+(\w+)\s*;", text)]
        found += [(m[1], m[2]) for m in re.finditer(r"\busing\s+(\w+)\s*=\s*([\w\s:]+?)\s*;", text)]
        names = [name for name, _ in found]
        for name, words in found:
            if names.count(name) == 1 and not isinstance(type := _type_or_none(words, made), Void):
                made[name] = type
        return made

    @cached_property
    def constant_memory(self) -> list[tuple[str, str, list[str]]]:
        """The file's variables in constant memory: types, names, extents."""
        found = CONSTANT.findall(self.source.text)
        return [(words, name, re.findall(r"\[([^\]]+)\]", extents)) for words, name, extents in found]

    @cached_property
    def constants(self) -> dict[str, tuple[str, str]]:
        """The file's constants of whole numbers: their types, and their values' text."""
        made: dict[str, tuple[str, str]] = {}
        tokens = self.source.lexed.tokens
        for part in self.source.parts:
            if part.kind != "declaration":
                continue
            words = self.source.text[tokens[part.first].start : tokens[part.last].start]
            match = re.fullmatch(
                r"([\w\s:]*?)\b(\w+)\s*(?:=\s*([^=;]+)|\{([^;{}]+)\})", words.strip(), re.DOTALL
            )
            if not match or not re.search(r"\bconst(expr)?\b", match[1]) or "," in (match[3] or ""):
                continue
            if match[2] in made:
                raise NotFollowed(f"two constants of one name: {match[2]}")
            made[match[2]] = (match[1], match[3] or match[4])
        return made


def _type_or_none(words: str, names) -> Type:
    try:
        return type_of(words, names)
    except NotFollowed:
        return Void()


def _unit(file: Path, options: Sequence[str]) -> tuple[Unit, Any, Path]:
    """The file with its headers, how they are found, and below which folder. Raises NotFollowed."""
    project = Project(file)
    given = [Path(word[2:]) for word in options if word.startswith("-I")]
    root = project.folders[-1]

    def find(name: str) -> str | None:
        own = next((folder / name for folder in given if (folder / name).is_file()), None)
        header = own or project.header((name, not name.endswith((".cuh", ".hpp", ".cu"))), file)
        return str(header.relative_to(root)) if header and header.is_relative_to(root) else None

    unit = Unit(read(str(file)), str(file), HostRewriter.defined, find, root=str(root))
    for one in unit.unread:
        if not HARMLESS.search(one.why):
            raise NotFollowed(one.why, Place(one.path, one.line))
    return unit, find, root


def _without_others(source: Source, find: Any, root: Path, read_here: set[Path], folder: str) -> str:
    """The text with #includes of what is read alone, by their paths."""
    text = source.text
    for directive in reversed(source.lexed.directives):
        if directive.word not in ("include", "include_next", "import"):
            continue
        name = source.included(directive) or ""
        beside = (Path(source.path).parent / name).resolve()
        found = beside if beside in read_here else root / (find(name) or "?")
        new = f'#include "{Path(folder) / found.relative_to(root)}"' if found.resolve() in read_here else ""
        text = text[: directive.start] + new + text[directive.end :]
    return text


def _lines_of(text: str, folder: str, root: Path) -> tuple[str, list[Place]]:
    lines, places, path, number = [], [], "", 1
    for line in text.split("\n"):
        if match := MARKER.fullmatch(line):
            number, path = int(match[1]), os.path.normpath(match[2].replace(folder, f"{root}/"))
            continue
        lines.append(line)
        places.append(Place(path, number))
        number += 1
    return "\n".join(lines), places


class Snippet:
    """An expression that stands in no function: a promise, or a constant's value."""

    def __init__(self, words: str, place: Place):
        self._text = f"void f(){{ x = {words}; }}"
        self.name, self._place, self.body = "", place, self
        tree = parse_code(self._text)
        found = [one for one in walk(tree) if one.type == "assignment_expression"]
        self.expression = None if tree.has_error or not found else found[0].child_by_field_name("right")

    def of(self, node) -> str:
        return self._text[node.start_byte : node.end_byte]

    def line(self, node) -> Place:
        return self._place

    def is_character(self, node) -> bool:
        return False
