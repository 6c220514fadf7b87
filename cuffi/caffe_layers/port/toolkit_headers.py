"""The toolkit's headers, and the names that they declare."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from tools.cuda.source import Source
from tools.cuda.tokens import position_from
from tools.files import read
from tools.make.backends import BACKENDS, HOST
from tools.make.settings import ROOT

from ..make.includes import CUDA_NAMES, NOTHING, spelled_here
from .declarations import Arity, classes_in, declarations_of, expansions
from .tree import reached

WING = (
    Path(__file__).resolve().parents[1]
)  # its include/ has the fork's names, and core/ what a fork has in src/caffe
TOOLKIT = Path(ROOT)
# The toolkit's headers that only declare names. A layer that uses one of these is refused.
DECLARED = ("caffe/readers.hpp", "caffe/data_layers.hpp")
# A container has members of the names that a fork gives its core's.
CONTAINERS = ("caffe_thrust/vectors.h",)
# Old forks define it for double, in common.cuh. CUDA has it since version 8. Theirs would hide it for the other types.
CUDAS_OWN = {"atomicAdd"}
INCLUDE = [
    WING / "include",
    WING / "include" / "legacy",
    TOOLKIT / "include",
    TOOLKIT / "include" / HOST.name,
]


class Toolkit:
    """The toolkit's own headers and sources, and what they declare."""

    def header(self, include: str) -> Path | None:
        """The path of the toolkit's header of this name, or None. The build makes caffe.pb.h of the fork's messages."""
        include = spelled_here(include)
        if include.endswith("caffe/proto/caffe.pb.h") or include == "caffe.pb.h":
            return Path(include)
        path = next((folder / include for folder in INCLUDE if (folder / include).is_file()), None)
        return path or (Path(include) if NOTHING.match(include) or CUDA_NAMES.match(include) else None)

    def has(self, file: str) -> bool:
        """Do we have a header of the name that a fork's file has?"""
        return self.header(file.removeprefix("include/")) is not None

    def replaces(self, file: str) -> bool:
        """Do we have our own version of a fork's file? It is that of its header."""
        name = re.sub(r"^(include|src)/", "", file)
        return any(self.header(re.sub(r"\.\w+$", kind, name)) for kind in (".hpp", ".cuh", ".h"))

    def has_source(self, header: str) -> bool:
        """Does our header include/caffe/... have a source? Each layer's has one, though not always one of its name."""
        if header.startswith("include/caffe/layers/"):
            return (WING / header).exists()
        source = WING / header.replace("include/caffe/", "core/", 1)
        return any(source.with_suffix(kind).exists() for kind in (".cpp", ".cu"))

    @cached_property
    def headers(self) -> dict[str, Source]:
        """Our caffe/ headers by the name in an include, without those that have only names."""
        by_name = {}
        found = [(path, path.relative_to(top)) for top in INCLUDE[::2] for path in top.rglob("*")]
        for path, below in sorted(found, key=lambda item: item[1]):
            name = below.as_posix().removeprefix("legacy/")
            is_ours = name not in (*DECLARED, *CONTAINERS) and name.partition("/")[0] not in BACKENDS
            if is_ours and path.suffix in (".hpp", ".h", ".cuh"):
                by_name[name] = Source(read(path), str(path))
        return by_name

    def behind(self, include: str) -> set[str]:
        """Our header of that name, and all headers of ours that it includes, by their names in includes."""
        if include not in self.headers:
            return set()
        return reached(include, lambda name: [i for i in self.headers[name].includes() if i in self.headers])

    @cached_property
    def classes(self) -> set[str]:
        return {name for source in self.headers.values() for name in source.classes}

    @cached_property
    def words(self) -> set[str]:
        """The names that our headers declare: functions, classes, members and macros, but no parameters."""
        return CUDAS_OWN.union(*map(declared, [*self.headers.values(), *self._expansions]))

    @cached_property
    def words_of_layers(self) -> set[str]:
        """The words of Layer's header, and of the headers of classes that derive from it."""
        headers = (h for h in self.headers if h == "caffe/layer.hpp" or h.startswith("caffe/layers/"))
        return set().union(*(declared(self.headers[header]) for header in headers))

    @cached_property
    def _arities(self) -> dict[str, list[Arity]]:
        by_name: dict[str, list[Arity]] = {}
        for source in (*self.headers.values(), *self._expansions):
            for item in declarations_of(source):
                if item.arity:
                    by_name.setdefault(item.name, []).append(item.arity)
        return by_name

    @cached_property
    def _expansions(self) -> list[Source]:
        """The expansions of the macro calls in our headers."""
        sources = self.headers.values()
        return [expansion for source in sources for _, expansion in expansions(source, source.macros)]

    @cached_property
    def _members(self) -> dict[str, dict[str, list[Arity]]]:
        """The public and protected member functions of our Blob, Layer and the other core classes, by class."""
        by_class: dict[str, dict[str, list[Arity]]] = {}
        for stem in ("blob", "syncedmem", "filler", "layer", "net"):
            source = self.headers[f"caffe/{stem}.hpp"]
            texts = [token.text for token in source.lexed.tokens]
            for cls in classes_in(source, ""):
                first, last = cls.span
                last = texts.index("private", first, last) if "private" in texts[first:last] else last
                for item in declarations_of(source, within=(first, last)):
                    if item.arity:
                        by_class.setdefault(cls.name, {}).setdefault(item.name, []).append(item.arity)
        return by_class

    def has_member(self, of: str, function: str, arguments: int) -> bool:
        """Does our class have a member function of this name that takes this many arguments?"""
        arities = self._members.get(of, {}).get(function, ())
        return any(arity.least <= arguments <= arity.most for arity in arities)

    def accepts(self, function: str, arguments: int) -> bool:
        """Do we have a function of this name that takes this many arguments?"""
        arities = self._arities.get(function)
        return arities is None or any(arity.least <= arguments <= arity.most for arity in arities)

    def declares(self, name: str, arity: Arity | None = None) -> bool:
        """Do we have this name? If it is a function, do we have one that takes as many arguments?"""
        return name in self.words and (arity is None or self.accepts(name, arity.most))

    @cached_property
    def base_names(self) -> dict[str, list[str]]:
        by_name: dict[str, list[str]] = {}
        for name in self.headers:
            by_name.setdefault(Path(name).name, []).append(name)
        return by_name


def declared(source: Source) -> set[str]:
    """The names at namespace and class scope, the macros, and the names in their bodies."""
    lexed = source.lexed
    bodies = {
        position_from(lexed.tokens, f.body): position_from(lexed.tokens, f.end) for f in source.functions
    }
    names, i = set(), 0
    while i < len(lexed.tokens):
        token = lexed.tokens[i]
        if i in bodies:
            i = bodies[i]
            continue
        # Parameters do not count, but the arguments of a macro's call do.
        if token.text == "(" and i and not lexed.tokens[i - 1].text.isupper():
            i = lexed.partner.get(i, i) + 1
            continue
        if token.kind == "name":
            names.add(token.text)
        i += 1
    for macro in source.macros:
        names.update(t.text for t in macro.tokens if t.kind == "name")
    return names
