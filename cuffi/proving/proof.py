"""Prove that a file's kernels have no race, no divergent barrier and no access out of bounds, for all numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import z3

from ..judging.promises import Promise
from .constants import Constants
from .expressions import Expressions
from .queries import Queries
from .questions import Answers, Counterexample, Questions
from .reading import ARCH, Code, Text
from .statements import Statements
from .thread import Frame, Thread
from .types import Integer, NotFollowed, PointerTo, Real, Vector, Void
from .values import Array, Lost, Number, Opaque, Place, Pointer, Variable

SECONDS = 20.0  # for a kernel's questions
NO_OVERFLOW = "no whole number overflows, and a grid has less than 2^31 threads along an axis"
NO_OVERLAP = "arrays do not overlap"
NAMED = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->)\w+)*")
CAST = re.compile(r"\([\w\s:]*\*\s*\)|\w+_cast\s*<[^<>]*>|\bthrust\s*::\s*raw_pointer_cast")


@dataclass
class Proof:
    """Of one kernel. It is proved if there are no reasons why not.

    Attributes:
        reasons: texts, and where.
        asked: race, barrier, bounds of ...
        not_asked, assumed: lines.
    """

    kernel: str
    place: str
    reasons: list[tuple[str, str]] = field(default_factory=list)
    counterexamples: list[Counterexample] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    not_asked: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    promise: Promise = field(default_factory=Promise)
    numbers: set[str] = field(default_factory=set)  # its parameters that are whole numbers

    @property
    def requires(self) -> list[str]:
        return self.promise.requires

    @property
    def is_proved(self) -> bool:
        return not self.reasons and not self.counterexamples


def proofs(
    file: Path,
    options: Sequence[str] = (),
    promises: Mapping | None = None,
    seconds: float = SECONDS,
    is_searching: bool = True,
) -> list[Proof]:
    """Of each kernel of a file. `is_searching`: for counterexamples, too, which takes time."""
    try:
        text = Text(file.resolve(), options, promises)
    except NotFollowed as error:
        place = str(error.node) if isinstance(error.node, Place) else f"{file.resolve()}:1"
        return [Proof("", place, [(error.text, place)])]
    made = [_proof(text, code, seconds, is_searching) for code in text.kernels]
    return made or [Proof("", f"{file.resolve()}:1", [("there is no kernel", f"{file.resolve()}:1")])]


def _proof(text: Text, code: Code, seconds: float, is_searching: bool) -> Proof:
    written: set[str] = set()
    for _ in range(3):
        attempt = Attempt(text, code, written, seconds, Queries(is_searching=is_searching))
        try:
            if (more := attempt.run()) <= written:
                attempt.ask()
                return attempt.proof
            written |= more
        except NotFollowed as error:
            attempt.refused(error)
            return attempt.proof
        except (
            RecursionError,
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            z3.Z3Exception,
        ) as error:
            attempt.refused(NotFollowed(f"the proof's own error, {type(error).__name__}: {str(error)[:80]}"))
            return attempt.proof
    attempt.refused(NotFollowed("which arrays are written is not followed"))
    return attempt.proof


class Attempt:
    """`written`: names of arrays that the kernel writes, as far as they are known."""

    def __init__(self, text: Text, code: Code, written: set[str], seconds: float, queries: Queries):
        self.text, self.code, self.seconds = text, code, seconds
        self.thread = Thread(queries)
        self.its = Expressions(self.thread, text, code, written)
        self.statements = Statements(self.thread, self.its)
        self.constants = Constants(text, code, self.its)
        self.proof = Proof(code.name, str(code.head), assumed=[NO_OVERFLOW])

    def refused(self, error: NotFollowed):
        place = self.proof.place
        if error.node is not None:
            place = str(error.node if isinstance(error.node, Place) else self.its.code.line(error.node))
        self.proof.reasons.append((error.text, place))

    def run(self) -> set[str]:
        """Run the kernel. The names of the arrays that it writes."""
        self.code.check()
        if re.search(r"\b(threadIdx|blockDim)\s*\.\s*[yz]", self.text.source.text):
            self.thread.several_axes()
        self.constants.declare()
        self._template()
        for one in self.code.function.parameters:
            self._parameter(one.type, one.name)
        self._promises()
        self._launches()
        self.constants.remember()
        self.thread.frames.append(Frame())
        self.thread.scopes.append({})
        self.statements.run(self.code.body.root)
        return {one.name for one in self.thread.arrays.values() if one.is_written}

    def ask(self):
        self.constants.check()
        self._axes()
        if self.thread.queries.is_impossible(self.thread.queries.facts):
            raise NotFollowed("no numbers are as it is promised")
        answers = Questions(self.thread, self.its, self.seconds).answer()
        self.proof.counterexamples = answers.counterexamples
        self.proof.reasons += [(text, str(line)) for text, line in answers.open]
        self._report(answers)

    # ---- what it gets
    def _template(self):
        for one in self.code.template:
            if one.type:
                self.constants.number(self.its.type(one.type), one.name)
            else:
                self.its.names[one.name] = Real(one.name)

    def _parameter(self, words: str, name: str):
        try:
            type = self.its.type(words.replace("[]", "*").replace("[ ]", "*"))
        except NotFollowed as error:
            self.thread.declare(name, Variable(None, Lost(f"{name}: {error.text}")))
            return
        if isinstance(type, Integer):
            self.constants.number(type, name)
            self.proof.numbers.add(name)
        elif isinstance(type, PointerTo) and isinstance(type.to, Integer | Real | Vector):
            array = self.thread.arrays[name] = Array(name, "global", type.to)
            self.thread.declare(name, Variable(type, Pointer(array, z3.IntVal(0), type.to)))
        elif isinstance(type, PointerTo | Void):
            self.thread.declare(name, Variable(type, Lost(f"{name}: such a pointer is not followed")))
        else:
            self.thread.declare(name, Variable(type, Opaque(type)))

    def _promises(self):
        promise = self.text.promises.get(self.code.name)
        if promise is None:
            return
        for one in promise.requires:
            made = self.constants.value(one, self.code.head)
            if not isinstance(made, Number):
                raise NotFollowed(f"requires: {one} is not followed")
            self.thread.queries.fact(self.its.math.formula(made))
        self.proof.promise = promise
        for name, words in promise.size.items():
            made = self.constants.value(words, self.code.head)
            if name not in self.thread.arrays or not isinstance(made, Number):
                raise NotFollowed(f"size: {name} {words} is not followed")
            size = self.thread.arrays[name].size = self.its.math.plain(made)
            self.thread.queries.fact(size >= 0)

    def _launches(self):
        """A launch in the file that gives an array twice, or blocks along axes that nobody asks for."""
        names = [one.name for one in self.code.function.parameters if "*" in one.type]
        where = [i for i, one in enumerate(self.code.function.parameters) if "*" in one.type]
        for launch in (one for one in self.text.source.launches if one.kernel == self.code.name):
            given = [
                NAMED.search(CAST.sub(" ", launch.arguments[i])) for i in where if i < len(launch.arguments)
            ]
            first = [match[0] if match else "" for match in given]
            for word in first:
                shared = [n for n, other in zip(names, first, strict=False) if word and other == word]
                if len(shared) > 1 and word not in ("nullptr", "NULL"):
                    place = self.text.place(launch.start)
                    raise NotFollowed(
                        f"{' and '.join(shared)} may overlap: a launch gives {word} for both", place
                    )

    def _axes(self):
        """A kernel that does not ask for an index has one thread or block along that axis: this is assumed."""
        promised = " ".join(self.proof.requires)
        idle = []
        for word, index in (("blockDim", "threadIdx"), ("gridDim", "blockIdx")):
            for axis in "yz":
                if f"{index}.{axis}" not in self.its.used and f"{word}.{axis}" not in promised:
                    self.thread.queries.fact(z3.Int(f"{word}.{axis}") == 1)
                    idle.append(f"{word}.{axis}")
        if idle:
            self._several(idle)
            self.proof.assumed.append(f"{', '.join(idle)} {'are' if len(idle) > 1 else 'is'} 1")

    def _several(self, idle: list[str]):
        """Raises NotFollowed if a launch in the file may have more along an axis that is taken for 1."""
        for launch in (one for one in self.text.source.launches if one.kernel == self.code.name):
            for word, words in (("blockDim", launch.block), ("gridDim", launch.grid)):
                extents = self._extents(words, launch.start)
                for axis, extent in zip("xyz", extents, strict=False):
                    if f"{word}.{axis}" in idle and extent.strip() != "1":
                        place = self.text.place(launch.start)
                        raise NotFollowed(
                            f"{word}.{axis} may be more than 1 in a launch, and is not asked for", place
                        )

    def _extents(self, words: str, before: int) -> list[str]:
        """Of `dim3(a, b)`, or of a variable that is declared so."""
        if match := re.fullmatch(r"\s*dim3\s*[({](.*)[)}]\s*", words, re.DOTALL):
            return _apart(match[1])
        if re.fullmatch(r"\s*\w+\s*", words):
            text = self.text.source.text[:before]
            found = re.findall(rf"\b{words.strip()}\s*[({{]((?:[^(){{}};]|\([^()]*\))*)[)}}]\s*[,;]", text)
            found += re.findall(
                rf"\b{words.strip()}\s*=\s*dim3\s*[({{]((?:[^(){{}};]|\([^()]*\))*)[)}}]", text
            )
            changed = re.search(rf"\b{words.strip()}\s*\.\s*[yz]\s*=", text)
            return ["?", "?", "?"] if changed else _apart(found[-1]) if found else [words]
        return [words]

    def _report(self, answers: Answers):
        self.proof.asked = sorted(answers.asked)
        if len([one for one in self.thread.arrays.values() if one.space == "global"]) > 1:
            self.proof.assumed.append(NO_OVERLAP)
        if any(
            one.type.name in self.its.names
            for one in self.thread.arrays.values()
            if isinstance(one.type, Real)
        ):
            self.proof.assumed.append("a template's types are numbers")
        if ARCH in self.text.file.read_text(errors="replace"):
            self.proof.assumed.append(f"{ARCH} is 900")
        unsized = [
            one.name
            for one in self.thread.arrays.values()
            if one.size is None and (one.is_read or one.is_written)
        ]
        if unsized:
            self.proof.not_asked.append(
                f"bounds of {', '.join(unsized)}: nobody says their sizes (// size: x n)"
            )
        if self.its.calls.has_shuffles:
            self.proof.not_asked.append("whether the lanes of shuffles and votes take part")


def _apart(words: str) -> list[str]:
    parts, depth = [""], 0
    for letter in words:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
