"""Decide which files of its fork a layer needs, and what prevents porting it.

The search begins with the layer's class. It takes a class's header and sources. It follows their includes to headers
that the toolkit does not have, and to the sources of those headers. It also takes the classes and functions that these
files name.
Core classes (Blob, Layer, Net ...) are always the toolkit's own. If a fork changed them and the layer uses the change,
the layer is refused. Plain member functions that a fork added to Blob are an exception: they are taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tools.cuda.lexer import Token
from tools.cuda.source import Source

from ..make.includes import NOTHING
from ..make.registers import registrations
from .calls import calls, is_forks, is_forks_member, is_free_call
from .core import BLOB, CORE_FILES
from .cuts import BlobCut, Cut, SourceCut
from .declarations import Class, Place
from .names import Names
from .tree import INCLUDE, PROTO, SOURCE_KINDS, WITHOUT, Tree, is_header, reached
from .unsupported import unsupported_use

# The header of Caffe's core to which forks add structs of their own.
COMMON = "include/caffe/common.hpp"


class Problem(NamedTuple):
    place: Place
    text: str
    fatal: bool

    def __str__(self):
        return f"{self.place}: {self.text}"


class Closure:
    """The files and parts of a fork that some of its code needs. `user` names that code in messages."""

    def __init__(self, names: Names, user: str, start: Callable[[Closure], None], own: Iterable[str] = ()):
        self.names, self.tree, self.toolkit, self._user = names, names.tree, names.toolkit, user
        # Headers of the fork that replace the toolkit's header of the same name, because they define more.
        self._replacing: set[str] = set(own)
        before = None
        while before != self._replacing:
            before = set(self._replacing)
            self.files: dict[str, str] = {}  # file -> why it is copied
            self.problems: list[Problem] = []
            self.class_names: set[str] = set()
            self.seen: dict[str, None] = {}  # headers that a file sees through one that the toolkit replaces
            # Parts of headers that the toolkit also has, and member functions of Blob.
            self.cuts: dict[str, Cut] = {}
            self.stock: set[str] = set()  # headers of layers that the toolkit replaces by its own
            self.links: dict[str, str] = {}  # by name in the layer's folder: folders of libraries of headers
            self.scanned: list[tuple[str, list[Token]]] = []  # (file, tokens that are certainly compiled)
            # All files that the scanned files include, directly or indirectly.
            self._visible: set[str] = set()
            self._named: list[tuple[str, str]] = []  # (file, header of a class that it names)
            # By source: the header of helpers that declares its functions.
            self._companions: dict[str, str] = {}
            # (header of helpers, tokens of its function, by name): functions that nothing has used so far.
            self._waiting: dict[tuple[str, str], list[Token]] = {}
            start(self)
            self._calls()
            self._changed_layers()
        for file, header in self._named:
            if _is_behind_the_toolkit(self, file, header):
                self.seen[header] = None

    def problem(self, place: Place, text: str, fatal: bool):
        problem = Problem(place, text, fatal)
        if problem not in self.problems:
            self.problems.append(problem)

    # ------------------------------------------------------------------------------ the closure

    def take_class(self, namer: str, cls: Class, why: str):
        """Take a class, which the file `namer` names, with its header and its sources."""
        self._named.append((namer, cls.file))
        if cls.name in self.class_names:
            return
        self.class_names.add(cls.name)
        members = self.tree.members_of(cls)
        self._visible.update(*(self.tree[file].visible for file in (cls.file, *members)))
        self._file(cls.file, why)
        for file in members:
            if not _is_commented_out(self.tree, cls, file):
                self._named.append((file, cls.file))
                self._file(file, f"functions of {cls.name}")
        self.scan(cls.file, cls.tokens)

    def scan(self, file: str, tokens: list[Token], using: list[Token] | None = None):
        self.scanned.append((file, tokens if using is None else using))
        self._visible |= self.tree[file].visible
        for word in dict.fromkeys(t.text for t in tokens if t.kind == "name"):
            self._word(word, file)
        if tokens:
            self._conditions(file, tokens[0].start, tokens[-1].end)

    def _conditions(self, file: str, start: int, end: int):
        """Take the fork's macros that conditions name. Without them another branch would be compiled silently."""
        for condition in self.tree[file].source.lexed.conditions:
            for token in condition.tokens if start <= condition.start < end else ():
                self._macro(token.text)

    def _macro(self, word: str):
        """Take the fork's macro of this name, unless the toolkit has it."""
        header = self.names.macros.get(word)
        if header in self._visible and header not in self._replacing:
            self._cut(word, header)

    def _word(self, word: str, file: str):
        """Take the fork's class or macro of this name, unless the toolkit has it."""
        self._macro(word)
        if cls := self._class(word):
            self._class_named(cls, file)

    def _class(self, word: str) -> Class | None:
        return self.tree.header_class(word, self._visible)

    def _class_named(self, cls: Class, file: str):
        if cls.file not in self._replacing:
            if cls.name in self.toolkit.classes:
                return
            if cls.file in CORE_FILES - {COMMON}:
                return
            if self.toolkit.has(cls.file):
                if self.toolkit.has_source(cls.file):
                    if self._cut(cls.name, cls.file):
                        for source in self.tree.members_of(cls):
                            if not self.toolkit.replaces(source):
                                self._file(source, f"functions of {cls.name}")
                    return
                self._replacing.add(cls.file)
        if cls.name.endswith("Layer") or cls.file in self.files or self.tree.members(cls.name):
            self.take_class(file, cls, f"{cls.name}, which {Path(file).name} uses")

    def _file(self, file: str, why: str):
        if file in self.files:
            return
        self.files[file] = why
        self._visible |= self.tree[file].visible
        source = self.tree[file].source
        for include, included in self.tree[file].resolved.items():
            is_strange = (
                "/" in include and not include.startswith("caffe/") and not self.toolkit.header(include)
            )
            if included is None and is_strange:
                included = self.tree.library(include)
            if included:
                self._include(include, included, file)
        self._conditions(file, 0, len(source.text))
        if file.endswith(SOURCE_KINDS):
            self.scan(file, source.lexed.tokens)
        elif not any(name.endswith("Layer") for name in source.classes):  # a header of helpers: all of it
            self.scan(file, source.lexed.tokens, self._without_idle(file))
            for companion in self.tree[file].companions:
                if not self.toolkit.replaces(companion):
                    self._companions[companion] = file
        else:
            self._rest_of_header(file)

    def _rest_of_header(self, file: str):
        """Take the classes that an aggregate header names, except layers. Without them it would not compile."""
        for word in sorted({t.text for t in self.tree[file].source.lexed.tokens if t.kind == "name"}):
            cls = None if word.endswith("Layer") else self._class(word)
            if not cls or word in self.toolkit.classes:
                continue
            if cls.file not in CORE_FILES and not self.toolkit.has(cls.file):
                self._named.append((file, cls.file))
                self._file(cls.file, f"{word}, which {Path(file).name} names")

    def _include(self, include: str, file: str, includer: str):
        if file == PROTO:
            return
        if not self.tree[file].is_caffes and not NOTHING.match(include):
            self._library(include, file, includer)
        elif file in self._replacing or not self.toolkit.header(include):
            self._file(file, f"included by {Path(includer).name}")
        elif file.startswith("include/caffe/layers/"):
            self.stock.add(file)

    def _library(self, include: str, file: str, includer: str):
        """Link to a header-only library, such as Eigen. The user must build any other library."""
        text = self.tree[includer].text
        offset = next(m.start() for m in INCLUDE.finditer(text) if m[1] == include)
        message = f"{self._user} needs {file}, a library that the tree carries with it"
        found = f"/{file}".endswith(f"/{include}")
        name, _, rest = include.partition("/")
        if found and rest and name != ".." and self.tree.is_of_headers(file):
            self.links[name] = file.removesuffix(rest).rstrip("/")
            return
        if found:
            folder = self.tree.root / file.removesuffix(include)
            message += f". If it is header-only: CPLUS_INCLUDE_PATH={folder} make ..."
        self.problem(self.tree[includer].place(offset), message, not found)

    def _changed_layers(self):
        """Take the fork's version of a stock layer if this code uses members that the toolkit's version lacks."""
        core = self.names.core
        self._replacing |= {
            h for h in self.stock - self._replacing if core.adds_what_is_used(h, self.scanned)
        }

    def _without_idle(self, file: str) -> list[Token]:
        """The tokens of a header of helpers that use something. Templates and inline functions use nothing until code
        names them.
        """
        using = self.tree[file].using
        for function in self.tree[file].source.functions:
            is_idle = function.words & {"template", "inline"} and not function.scope
            tokens = [t for t in using if function.head <= t.start < function.end] if is_idle else []
            is_specialization = [t.text for t in tokens[:3]] == ["template", "<", ">"]
            if not tokens or is_specialization or any(unsupported_use(self, tokens)):
                continue
            self._waiting.setdefault((file, function.name), []).extend(tokens)
            using = [t for t in using if not function.head <= t.start < function.end]
        return using

    def _takes_helper(self) -> bool:
        """Take a function or one source of a header of helpers, if the scanned code uses it. False if none is
        needed.
        """
        used = {token.text for _, tokens in self.scanned for token in tokens}
        for file, name in self._waiting:
            if name in used:
                self.scanned.append((file, self._waiting.pop((file, name))))
                return True
        for file, header in self._companions.items():
            defined = self.tree[file].defines
            needed = not defined or defined & used or "extern" in self.tree[header].words
            if needed and self._source(file, f"what {Path(header).name} declares", defined & used):
                return True
        return False

    def _source(self, file: str, why: str, names: set[str]) -> bool:
        """Take a source of functions. If it uses what the toolkit lacks, only the parts that define these names.

        Returns False if that was taken before.
        """
        before = self.cuts.get(file)
        if file in self.files or (before and names <= before.names):
            return False
        source = self.tree[file]
        if names and any(unsupported_use(self, source.source.lexed.tokens)):
            cut = before or SourceCut(self.tree, self.toolkit, file)
            parts = [part for name in sorted(names) for part in cut.take(name) or ()]
            if parts and not any(use for _, tokens in parts for use in unsupported_use(self, tokens)):
                self.cuts[file] = cut
                for _, tokens in parts:
                    self.scan(file, tokens)
                return True
        self._file(file, why)
        return True

    # ---------------------------------------------------------------------------------- calls

    def _calls(self):
        """Take the sources of functions that are called and that the toolkit lacks, and layers that calls create."""
        done: set[tuple[str, str]] = set()
        blob: BlobCut | None = None
        end = 0  # the entries of self.scanned before this one are done
        while end < len(self.scanned) or self._takes_helper():
            start, end = end, len(self.scanned)
            called: dict[tuple[str, str], Token] = {}
            members: dict[str, Place] = {}
            for file, tokens in self.scanned[start:]:
                heads = self.tree[file].source.defined_at
                for i in calls(tokens, heads):
                    token = tokens[i]
                    # A layer may create a sub-layer by its type: set_type("SmoothL1Loss").
                    creates = token.text == "set_type" and i + 2 < len(tokens)
                    if creates and (cls := self.names.sublayer(tokens[i + 2].text[1:-1])):
                        self._class_named(cls, cls.file)
                    if is_free_call(tokens, i) and is_forks(tokens, i, self.toolkit):
                        called.setdefault((token.text, file), token)
                    elif i and is_forks_member(tokens, i, self.names):
                        members.setdefault(token.text, self.tree[file].place(token))
            if members and self.tree.has(BLOB):
                blob = blob or BlobCut(self.tree, self.toolkit)
                for name, place in sorted(members.items()):
                    taken = self._take(f"{BLOB}, class Blob", blob, name)
                    if not taken and (overloads := self.names.core.overloads.get(name)):
                        definition = next(iter(overloads.values()))
                        text = f"{self._user} uses {of_core(f'an overload of {name}', definition)}"
                        self.problem(place, text, True)
            for (name, file), token in called.items():
                if (name, file) not in done:
                    done.add((name, file))
                    self._function(name, file, token)

    def _function(self, name: str, file: str, token: Token):
        """Take the file that defines a function which `file` calls, or report why that is impossible."""
        place = self.names.definition(name, self._visible)
        if not place and file in self.tree.with_opencv and self.tree.needs_opencv(name):
            self.problem(self.tree[file].place(token), f"{self._user} {WITHOUT['USE_OPENCV']} ({name})", True)
        if not place or place.file in self.files:
            return
        header = place.file if is_header(place.file) else self.tree.header_of(place.file)
        why = f"{name}, which {Path(file).name} calls"
        if self.toolkit.replaces(place.file):
            if header and self._cut(name, header):
                return
            if header and not self.toolkit.has_source(header):
                # The toolkit's header of this name has no source, so the fork's header and source are taken.
                self._replacing.add(header)
                self._file(header, f"declares {why}")
                self._file(place.file, why)
                return
            text = (
                f"{name} is the fork's own, at {place}, in a file that the toolkit replaces: copy that function "
                "into additions.hpp in the layer's folder, which all of its files see"
            )
            self.problem(self.tree[file].place(token), text, False)
        elif header is None or header in self.files or not self.toolkit.has(header):
            if not place.file.endswith(SOURCE_KINDS) and place.file not in self._visible:
                self.seen[place.file] = None
            if is_header(place.file):
                self._file(place.file, why)
            else:
                self._source(place.file, why, {name})

    def _cut(self, name: str, header: str) -> bool:
        """Take the part of a header that defines `name`. False if the header's text does not show it."""
        return self._take(header, self.cuts.get(header) or Cut(self.tree, self.toolkit, header), name)

    def _take(self, title: str, cut: Cut, name: str) -> bool:
        if name in cut.names:
            return True
        parts = cut.take(name)
        for file, tokens in parts or ():
            self.cuts[title] = cut
            self.scan(file, tokens)
        return parts is not None


def _is_commented_out(tree: Tree, cls: Class, file: str) -> bool:
    """Does a .cu define GPU functions whose declarations are comments in the header? The fork does not build it."""
    functions = {f.name for f in tree[file].source.functions if f.scope == cls.name}
    text, words = tree[cls.file].text, {token.text for token in cls.tokens}
    return file.endswith(".cu") and any(name in text and name not in words for name in functions)


def _is_behind_the_toolkit(closure: Closure, file: str, header: str) -> bool:
    """Does a file see a header only through one that the toolkit replaces? additions.hpp includes such headers."""
    tree, toolkit = closure.tree, closure.toolkit

    def included(file: str) -> list[str]:
        """The copied files that this file includes, directly or through the toolkit's headers."""
        in_fork = tree[file].includes
        in_toolkit = (
            f"include/{name}" for f in in_fork for name in toolkit.behind(f.removeprefix("include/"))
        )
        return [f for f in (*in_fork, *in_toolkit) if f in closure.files]

    return header in tree[file].visible and header not in reached(file, included)


class Pick(Closure):
    """The parts of the fork for one type.

    `problems` are those that the search finds; refusals.py finds the others.
    """

    def __init__(self, names: Names, type_name: str):
        self.type, self.target = type_name, names.class_of(type_name)
        cls, tree = self.target, names.tree
        # If the class's type() returns another type, or none, only the registered function creates it for this type.
        place, creator, _ = tree.types[type_name]
        needed = creator.name if creator and cls.type != type_name else ""
        self.creator: tuple[Place, str] | None = None

        def start(closure: Closure) -> None:
            closure.take_class(cls.file, cls, "the layer itself")
            if needed and place.file not in closure.files:
                file = tree[place.file]
                item = next(item for item in file.declarations if item.name == needed and item.defines)
                self.creator = place, file.text[item.start : item.tokens[-1].end]
                closure.scan(place.file, item.tokens)

        super().__init__(names, cls.name, start, own=[cls.file])
        if not any(file.endswith(SOURCE_KINDS) for file in self.files):
            self.problem(cls.place, f"no source defines {cls.name}'s functions", True)

    @cached_property
    def switches(self) -> list[str]:
        """Macros of the fork's Makefile without which the type is not registered, such as USE_WARP_CTC."""
        file = self.tree.types[self.type].place.file
        text = self.tree[file].text if file in self.files else ""  # not the fork's layer_factory.cpp
        conditions = "\n".join(re.findall(r"^[ \t]*#[ \t]*(?:el)?if.*", text, re.M))
        names, defined = dict.fromkeys(re.findall(r"\b[A-Z]\w+", conditions)), self.tree[file].defined
        return [
            name
            for name in names
            if all(
                registration.type != self.type
                for registration in registrations(Source(text, file, defined | {name: 0}))
            )
        ]


def of_core(what: str, where: Place) -> str:
    """The words of messages about a member that the toolkit's core does not have. Stock Caffe may have it."""
    return f"{what} of its fork's core ({where}), which the toolkit's core does not have"
