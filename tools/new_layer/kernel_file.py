"""The kernels of a file, and the names that a launcher of them may use.

    file = kernels_of(text, "/path/foo.cu")
    print(file.kernels, file.constants)

The file is compiled as it is, with the launchers at its end. So a launcher may use what the file and the headers beside
it declare at namespace level. Code that the preprocessor drops counts for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..cuda.across import foreign_variables
from ..cuda.analysis import Kernel, Unit
from ..cuda.conditions import HOST_BUILD, VALUES
from ..cuda.lexer import Directive, Token, tokens_and_directives
from ..cuda.outline import Function, skip_angles, split_commas
from ..cuda.source import Source
from .declared import CONDITIONALS, PROVIDED, macros_defined, names_in
from .structs import Field
from .symbols import Symbol, defined_elsewhere, symbols_to_fill, uploaded_in


@dataclass
class KernelFile:
    """What launchers are made from."""

    source: Source
    text: str  # of the file and of the headers beside it
    # with its namespace ("caffe::") and the tokens of each template parameter
    kernels: list[tuple[Kernel, str, list[list[Token]]]]
    left_out: list[tuple[str, str]]  # (kernel, why it cannot be launched)
    constants: dict[str, str]  # by name, macros and constants that launches may use: their qualified names
    types: set[str]  # types that the file defines
    enums: dict[str, list[str]]  # those of them that are enums, with the qualified names of their values
    structs: dict[str, tuple[str, list[Field] | None]]  # by name: qualified, and its fields (structs.py)
    rows: dict[
        str, str
    ]  # by name: qualified, the classes without an address in them: a tensor may have their bytes
    constructed: set[str]  # the structs that have a constructor
    aliases: dict[str, str]  # names that it gives to C++'s own types
    symbols: dict[str, list[Symbol]]  # by kernel, the variables that it reads and the host code fills
    cooperative: set[str]  # the kernels whose blocks may wait for each other by cooperative groups
    constants_elsewhere: list[str]  # definitions of the variables that another .cu has
    # By name, declarations of the variables that only files linked with it name. Its kernels call functions of these.
    of_others: dict[str, str]
    instances: dict[str, list[list[str]]]  # by kernel, the template arguments that the caller gives
    # Is a template compiled for the types of its launches alone? Else one for float serves double, too.
    launched_only: bool = False


def kernels_of(
    text: str,
    path: str,
    instances: dict[str, list[list[str]]] | None = None,
    macros: Iterable[str] = (),
    others: Iterable[Unit] = (),
) -> KernelFile:
    """Read the text of a file, as tools.files.read returns it.

    Args:
        macros: are defined before it.
        others: files that are linked with it.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    unit = Unit(text, path, replaced=PROVIDED)
    if known := _of_heads(unit, macros):
        unit = Unit(text, path, defined=HOST_BUILD | known, replaced=PROVIDED)
    linked, names = Linked(unit, list(others)), names_in(unit.sources, macros)
    kernels, left_out = [], []
    for function, kernel in zip(linked.kernels, unit.kernels(unit.main), strict=True):
        if why := linked.why_not(function):
            left_out.append((function.name, why))
        elif function.head in names.scopes:
            kernel = kernel._replace(
                dynamic_shared=kernel.dynamic_shared or linked.has_dynamic_shared(function),
                parameters=_without_aliases(kernel.parameters, names.aliases),
            )
            kernels.append((kernel, names.scopes[function.head], template_parameters(unit.main, function)))
        elif function.member:
            left_out.append((function.name, "is a member of a class, which CUDA does not allow"))
        else:
            left_out.append((function.name, "is in a preprocessor branch that is not compiled"))
    return KernelFile(
        unit.main,
        "\n".join(source.text for source in unit.sources),
        kernels,
        left_out,
        names.constants,
        names.types,
        names.enums,
        names.structs,
        names.rows,
        names.constructed,
        names.aliases,
        linked.read,
        {f.name for f in linked.kernels if {"this_grid", "grid_group"} & linked.words(f)},
        defined_elsewhere(linked.sources, linked.uploaded),
        linked.of_others(),
        instances or {},
    )


def _of_heads(unit: Unit, macros: Iterable[str]) -> dict[str, int]:
    """If #if chooses the head of a kernel: which of the macros that the file asks for are defined."""
    asked = [
        d
        for d in tokens_and_directives(unit.main.text)
        if isinstance(d, Directive) and d.word in CONDITIONALS
    ]
    kernels = [f for f in unit.main.functions if f.is_kernel]
    if not any(f.head < d.start < f.body for f in kernels for d in asked) and not unit.main.lexed.imbalances:
        return {}
    defined = set(macros).union(*map(macros_defined, unit.sources))
    words = {t.text: d.start for d in reversed(asked) for t in d.tokens if t.kind == "name"}
    # What the file defines below its first #if, as a guard against a second #include does, is not yet defined there.
    below = {m.tokens[0].text for m in unit.main.macros if m.start > words.get(m.tokens[0].text, m.start)}
    known = words.keys() - {"defined", *HOST_BUILD, *VALUES} - (below - set(macros))
    return {word: int(word in defined) for word in known if not word.startswith("_")}


class Linked:
    """A file, and those that are linked with it: what its kernels reach and read in all of them.

    Attributes:
        sources: of all files, with their headers.
        uploaded: the variables that host code uploads to.
        symbols: by file, the variables that host code fills.
        reached: by kernel and file, all words of the kernel, and of what it names in its own file and in others.
        read: by the name of a kernel, the variables that it, or a function of another file, reads and host code fills.
    """

    def __init__(self, unit: Unit, others: list[Unit]):
        self.unit, self.others = unit, others
        self.sources = [source for one in (unit, *others) for source in one.sources]
        self.uploaded, self._undefined = uploaded_in(self.sources), foreign_variables(self.sources)
        self.symbols: dict[Unit, dict[str, Symbol]] = {
            one: {
                name: symbol
                for source in one.sources
                for name, symbol in symbols_to_fill(source, one.sources, self.uploaded).items()
            }
            for one in (unit, *others)
        }
        self.kernels = [function for function in unit.main.functions if function.is_kernel]
        self.reached = {function: self._reached(function) for function in self.kernels}
        self.read = {function.name: self._read(self.reached[function]) for function in self.kernels}

    def words(self, function: Function) -> set[str]:
        return set().union(*self.reached[function].values())

    def has_dynamic_shared(self, function: Function) -> bool:
        return any(w & s.dynamic_shared for one, w in self.reached[function].items() for s in one.sources)

    def why_not(self, function: Function) -> str:
        """Why no launcher can give a kernel what it reads; "" if one can."""
        filled = {symbol.name for symbol in self.read[function.name]}
        if lacking := sorted(self._undefined & self.words(function) - filled):
            return f"reads {lacking[0]}, which no file defines: load_inline(..., sources=[...])"
        if hidden := self._hidden(function):
            return f"calls a function of another file that reads {hidden[0]}, which host code fills in that file alone"
        return ""

    def of_others(self) -> dict[str, str]:
        """By name, declarations of the variables that only the other files name."""
        own = self.symbols[self.unit]
        return {s.name: s.declared() for several in self.read.values() for s in several if s.name not in own}

    def _reached(self, function: Function) -> dict[Unit, set[str]]:
        found: dict[Unit, set[str]] = {}
        todo = [(self.unit, self.unit.used_by(self.unit.main, function))]
        while todo:
            file, words = todo.pop()
            new = words - found.setdefault(file, set())
            found[file] |= words
            for other in (self.unit, *self.others):
                if other is not file and (called := new & file.foreign & other.functions):
                    todo.append((other, other.reachable(called)))
        return found

    def _read(self, reached: dict[Unit, set[str]]) -> list[Symbol]:
        own = self.symbols[self.unit]
        found = {name: own[name] for name in sorted(reached[self.unit] & own.keys())}
        for other, words in reached.items():
            theirs = self.symbols[other]
            for name in sorted(words & theirs.keys()) if other is not self.unit else ():
                found.setdefault(name, own.get(name, theirs[name]))
        return list(found.values())

    def _hidden(self, function: Function) -> list[str]:
        """The variables of other files that host code fills and no launcher can name."""
        theirs = [
            self.symbols[other][name]
            for other, words in self.reached[function].items()
            if other is not self.unit
            for name in words & self.symbols[other].keys()
        ]
        return sorted(symbol.name for symbol in theirs if symbol.is_local)


def template_parameters(source: Source, function: Function) -> list[list[Token]]:
    """Tokens of each parameter in the function's `template <...>`."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    first = next(i for i, t in enumerate(tokens) if t.start == function.head)
    if tokens[first].text != "template":
        return []
    after = skip_angles(tokens, partner, first + 1, len(tokens))
    return [tokens[a:b] for a, b in split_commas(tokens, partner, first + 2, after - 1)]


def _without_aliases(parameters, aliases: dict[str, str]):
    """The parameters with C++'s own names for their types."""

    def plain(match):
        return aliases.get(match[1], match[0])

    qualified = r"(?:\b[A-Za-z_]\w*\s*::\s*)*\b([A-Za-z_]\w*)"
    return tuple(p._replace(type=re.sub(qualified, plain, p.type)) for p in parameters)
