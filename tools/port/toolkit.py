"""What the toolkit offers a layer: headers by their names, and the names that they declare."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from ..caffe.folder import CUDA_NAMES, NOTHING, with_slashes
from ..cuda.source import Source
from ..cuda.tokens import position_from, split_commas
from ..files import read
from ..make.backends import BACKENDS, HOST
from .items import Arity, items_of
from .tree import classes_in, reached

ROOT = Path(__file__).resolve().parent.parent.parent
# Of ours, the headers of which the names are all that there is: a layer that uses one of these is refused.
DECLARED = ("caffe/readers.hpp", "caffe/data_layers.hpp")
INCLUDE = [ROOT / "include", ROOT / "include" / "legacy", ROOT / "include" / HOST.name]


class Toolkit:
    def header(self, include: str) -> Path | None:
        """The toolkit's header of that name; caffe.pb.h is made from the fork's messages."""
        include = with_slashes(include)
        if include.endswith("caffe/proto/caffe.pb.h") or include == "caffe.pb.h":
            return Path(include)
        found = next((folder / include for folder in INCLUDE if (folder / include).is_file()), None)
        return found or (Path(include) if NOTHING.match(include) or CUDA_NAMES.match(include) else None)

    def has_source(self, header: str) -> bool:
        """Is there a source behind this header of ours, include/caffe/...?"""
        source = ROOT / header.replace("include/", "src/", 1)
        return any(source.with_suffix(kind).exists() for kind in (".cpp", ".cu"))

    @cached_property
    def headers(self) -> dict[str, Source]:
        """Our caffe/ headers, by the name an include says, but for those of names alone."""
        found = {}
        for path in sorted((ROOT / "include").rglob("*")):
            name = path.relative_to(ROOT / "include").as_posix().removeprefix("legacy/")
            is_ours = name not in DECLARED and name.partition("/")[0] not in BACKENDS
            if is_ours and path.suffix in (".hpp", ".h", ".cuh"):
                found[name] = Source(read(path), str(path))
        return found

    def behind(self, include: str) -> set[str]:
        """The header of ours of that name, and all that it includes of ours, by the names that includes say."""
        if include not in self.headers:
            return set()
        return reached(include, lambda name: [i for i in self.headers[name].includes() if i in self.headers])

    @cached_property
    def declared_classes(self) -> set[str]:
        """Those of which there are the names alone."""
        texts = (read(ROOT / "include" / name) for name in DECLARED)
        return {name for text in texts for name in Source(text, "").classes}

    @cached_property
    def classes(self) -> set[str]:
        return {name for source in self.headers.values() for name in source.classes}

    @cached_property
    def words(self) -> set[str]:
        """The names that our headers declare: of functions, classes, members and macros, not of parameters."""
        sources = self.headers.values()
        return set().union(*map(declared, sources), *map(pasted, sources))

    @cached_property
    def words_of_layers(self) -> set[str]:
        """Those of Layer's header, and of its heirs'."""
        headers = (h for h in self.headers if h == "caffe/layer.hpp" or h.startswith("caffe/layers/"))
        return set().union(*(declared(self.headers[header]) for header in headers))

    @cached_property
    def _arities(self) -> dict[str, list[Arity]]:
        found: dict[str, list[Arity]] = {}
        for source in self.headers.values():
            for item in items_of(source):
                if item.arity:
                    found.setdefault(item.name, []).append(item.arity)
        made = set().union(
            *map(given_to_macros, self.headers.values())
        )  # further ones, of which no text shows
        return {name: arities for name, arities in found.items() if name not in made}

    @cached_property
    def _blob(self) -> dict[str, list[Arity]]:
        """The member functions of our Blob, the constructors among them."""
        source = self.headers["caffe/blob.hpp"]
        found: dict[str, list[Arity]] = {}
        for one in classes_in(source, ""):
            for item in items_of(source, within=one.tokens) if one.name == "Blob" else ():
                found.setdefault(item.name, []).append(item.arity)
        return found

    def blob_has(self, function: str, arguments: int) -> bool:
        """May a call of this member function of our Blob have so many arguments?"""
        return any(one.least <= arguments <= one.most for one in self._blob.get(function, ()))

    def accepts(self, function: str, arguments: int) -> bool:
        """May a call of this function of ours have so many arguments?"""
        known = self._arities.get(function)
        return known is None or any(one.least <= arguments <= one.most for one in known)

    def has(self, name: str, arity: Arity | None = None) -> bool:
        """Is there something of that name, and if it is a function, one that takes as many arguments?"""
        return name in self.words and (arity is None or self.accepts(name, arity.most))

    @cached_property
    def thrust(self) -> set[str]:
        """The names of thrust that there are."""
        headers = ("caffe/util/thrust.hpp", "caffe/util/thrust_functions.hpp")
        return {name for header in headers for name in declared(self.headers[header])}

    @cached_property
    def base_names(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self.headers:
            found.setdefault(Path(name).name, []).append(name)
        return found


def given_to_macros(source: Source) -> set[str]:
    """The names that a macro is given, alone between commas, outside of functions: DEFINE_TWICE(caffe_cpu_sqr)."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    calls = (i for i, t in enumerate(tokens[1:], 1) if t.text == "(" and tokens[i - 1].text.isupper())
    given = (one for i in calls for one in split_commas(tokens, partner, i + 1, partner.get(i, i + 1)))
    return {tokens[first].text for first, last in given if last - first == 1 and tokens[first].kind == "name"}


def pasted(source: Source) -> set[str]:
    """The names that calls of macros make: cblas_sgemm, of cblas_##s##gemm."""
    found: set[str] = set()
    for macro in source.macros:
        name, body = macro.tokens[0].text, "".join(f"{t.text} " for t in macro.tokens)
        head = re.match(r"\w+ \( ([\w , .]*) \) ", body)
        parts = [re.sub(" ", "", m[0]) for m in re.finditer(r"\w+(?: # ?# \w+)+", body)]
        if not head or not parts:
            continue
        parameters = [p.strip() for p in head[1].split(",")]
        for call in re.finditer(rf"\b{name}\(([^()\n]*)", source.text):
            given = dict(zip(parameters, (a.strip() for a in call[1].split(",")), strict=False))
            found |= {"".join(given.get(word, word) for word in part.split("##")) for part in parts}
    return found


def declared(source: Source) -> set[str]:
    """Names at namespace and class scope, and those of macros and what their bodies mention."""
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
        if (
            token.text == "(" and i and not lexed.tokens[i - 1].text.isupper()
        ):  # parameters; a macro's are names
            i = lexed.partner.get(i, i) + 1
            continue
        if token.kind == "name":
            names.add(token.text)
        i += 1
    for macro in source.macros:
        names.update(t.text for t in macro.tokens if t.kind == "name")
    return names
