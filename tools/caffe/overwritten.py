"""Find results that a layer's functions surely overwrite, so that the Caffe core need not zero their memory first.

In Caffe a blob's memory starts as zeros, and some layers never write some elements of a result. So the core zeroes new
memory before a layer sees it. For a result that is written in full, that costs a launch and a pass over the memory.

A result counts only if, on each path through the function, its first use is one of these:

    kernel<<<...>>>(count, ..., top_data, ...);    and the kernel's loop writes top_data[i] for each i below count
    for (int i = 0; i < count; ++i) ...            which does so, too
    caffe_gpu_set(count, Dtype(0), top_data);      or another of the WRITERS

Here `count` is a blob's count(), and top_data is `top[k]->mutable_gpu_data()`, or a variable of this value. The core
compares the two counts in each call. A name by which the layer may reach the result besides its list (kept.py) counts
as a use of the result.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..cuda.analysis import CHANGES, Unit
from ..cuda.certain import DIRECTIVE, REPEATS, Loop, statement_end, written_elements
from ..cuda.outline import Function, split_commas
from ..cuda.tokens import macro_body, position_from
from .cpu_code import PASSES
from .kept import kept_names

# Caffe's functions f(count, ..., y, ...) that write y[0] to y[count - 1], and the place of y.
WRITERS = {"set": 2, "scale": 3, "powx": 3, "add": 3, "sub": 3, "mul": 3, "div": 3}
WRITERS |= dict.fromkeys(("abs", "exp", "log", "sqr", "sqrt", "sign", "sgnbit"), 2)
WRITERS = {
    f"caffe_{device}{name}": place for name, place in WRITERS.items() for device in ("", "gpu_", "cpu_")
}
WRITERS["caffe_copy"] = 2

# A blob's functions that read none of its memory.
SHAPE = {"count", "shape", "num", "channels", "height", "width", "num_axes", "offset", "shape_string"}
DATA = {"cpu_data", "gpu_data"}
LEAVES = {"return", "break", "continue", "goto", "do", "switch", "try", "throw"}


class Blob(NamedTuple):
    of: str  # "bottom" or "top"
    index: int


class Overwritten(NamedTuple):
    """A top of Forward, or a bottom's diff of Backward, of which as many elements are overwritten as `like` has."""

    layer: str  # the class
    function: str
    result: int
    like: Blob


class _Unsure(Exception):
    """A use of the result that may read its memory, or a path that may not write it."""


# By a kernel's name: its parameters, the one that counts the elements, and the pointers to what it overwrites.
Kernels = dict[str, tuple[list[str], str, list[str]]]


def overwritten(units: list[Unit]) -> list[Overwritten]:
    """What the functions of a layer's source files overwrite. The units were read with CUDA_BUILD."""
    found = []
    for unit in units:
        passes = [f for f in unit.main.functions if f.scope and f.name in PASSES]
        own_writers = {f.name for source in unit.sources for f in source.functions} & WRITERS.keys()
        if passes and not own_writers:
            kernels = _kernels(unit)
            kept = {layer: kept_names(units, layer) for layer in {f.scope for f in passes}}
            found += [one for f in passes for one in _of_function(unit, f, kernels, kept[f.scope])]
    return found


def _of_function(unit: Unit, function: Function, kernels: Kernels, kept: set[str]) -> list[Overwritten]:
    names = [p.name for p in function.parameters]
    forward = function.name.startswith("Forward")
    text = unit.main.text[function.body : function.end]
    if len(names) != (2 if forward else 3) or DIRECTIVE.search(text):
        return []
    result = names[1] if forward else names[2]
    found = []
    for index in sorted({int(i) for i in re.findall(rf"\b{result}\s*\[\s*(\d+)\s*\]", text)}):
        try:
            likes = _Path(unit, function, index, kernels, kept).walk()
        except _Unsure:
            continue
        found += [Overwritten(function.scope, function.name, index, like) for like in sorted(likes)]
    return found


def _kernels(unit: Unit) -> Kernels:
    """For each kernel's name: its parameters, and what written_elements says.

    If kernels of one name differ in this, none of them counts.
    """
    kernels: dict[str, tuple | None] = {}
    for source in unit.sources:
        for kernel in unit.kernels(source):
            written = written_elements(source, kernel)
            said = written and ([p.name for p in kernel.parameters], *written)
            kernels[kernel.name] = said if kernels.get(kernel.name, said) == said else None
    return {name: said for name, said in kernels.items() if said}


class _Path:
    """The paths through a function, to the first use of one result."""

    def __init__(self, unit: Unit, function: Function, index: int, kernels: Kernels, kept: set[str]):
        self.lexed, self.function = unit.main.lexed, function
        self.tokens, self.partner = self.lexed.tokens, self.lexed.partner
        self.launches = {x.start: x for x in unit.main.launches if x.function == function.name}
        self.kernels, self.kept = kernels, kept
        self.macros = {
            m.tokens[0].text: {t.text for t in macro_body(m)} for s in unit.sources for m in s.macros
        }
        names = [p.name for p in function.parameters]
        if function.name.startswith("Forward"):
            self.lists, self.result = {names[0]: "bottom", names[1]: "top"}, names[1]
            self.wanted, kind, self.harmless = [], "data", SHAPE
        else:
            self.lists, self.result = {names[0]: "top", names[2]: "bottom"}, names[2]
            self.wanted, kind, self.harmless = [names[1], "[", str(index), "]"], "diff", SHAPE | DATA
        self.here = [self.result, "[", str(index), "]", "->"]
        # On its own side: the core would copy the other side's memory first.
        self.memory = [*self.here, f"mutable_{function.name[-3:]}_{kind}", "(", ")"]
        self.pointer = ""  # the variable that holds the result's address
        self.counts: dict[str, Blob] = {}
        self.returned: set[Blob] = set()  # what branches write that end with a return

    def walk(self) -> set[Blob]:
        """The blobs whose count of elements is written first. Empty if the function does not use the result."""
        first = position_from(self.tokens, self.function.body) + 1
        written = self._block(first, position_from(self.tokens, self.function.end) - 1)
        if self.returned and not written:
            raise _Unsure
        return written | self.returned

    def _block(self, at: int, last: int) -> set[Blob]:
        written: set[Blob] = set()
        while at < last and not written:
            at, written = self._statement(at, last)
        return written

    def _statement(self, at: int, last: int) -> tuple[int, set[Blob]]:
        """The end of a statement, and what it writes first."""
        word = self.tokens[at].text
        if word == "{":
            return self.partner[at] + 1, self._block(at + 1, self.partner[at])
        if word == "if":
            return self._choice(at, last)
        if word in LEAVES:
            raise _Unsure
        end = statement_end(self.lexed, at, last)
        if word in REPEATS:
            if any(token.text in LEAVES for token in self.tokens[at:end]):
                raise _Unsure
            if written := self._loop(at, end):
                return end, {written}
        elif written := self._write(at, end):
            return end, {written}
        elif self._declaration(at, end):
            return end, set()
        self._check_unused(at, end)
        return end, set()

    def _choice(self, at: int, last: int) -> tuple[int, set[Blob]]:
        condition = self._texts(at + 2, self.partner[at + 1])
        branch = self.partner[at + 1] + 1
        if self.wanted and condition == ["!", *self.wanted]:
            return statement_end(self.lexed, branch, last), set()
        self._check_unused(at + 2, branch - 1)
        end, written = self._statement(branch, last)
        if self.wanted and condition == self.wanted and self.tokens[end].text != "else":
            return end, written
        other: set[Blob] = set()
        if end < last and self.tokens[end].text == "else":
            end, other = self._statement(end + 1, last)
        elif written and self._texts(end - 3, end) == ["return", ";", "}"]:
            self.returned |= written
            return end, set()
        if bool(written) != bool(other):
            raise _Unsure
        return end, written | other

    def _write(self, at: int, end: int) -> Blob | None:
        """The blob whose count of elements a statement writes to the result."""
        opening, places = self._call(at)
        if not opening or self._texts(self.partner[opening] + 1, end) != [";"]:
            return None
        arguments = list(split_commas(self.tokens, self.partner, opening + 1, self.partner[opening]))
        for count, destination in places:
            if max(count, destination) < len(arguments) and self._is_result(*arguments[destination]):
                like = self._count(*arguments[count])
                rest = [a for i, a in enumerate(arguments) if i != destination]
                if like is not None and not self._uses(at, opening) and not any(self._uses(*a) for a in rest):
                    return like
        return None

    def _loop(self, at: int, end: int) -> Blob | None:
        """The blob whose count of elements a `for` writes to the result."""
        close = self.partner[at + 1]
        head = self._texts(at + 2, close)
        if head[:1] not in (["int"], ["size_t"]) or head[2:7] != ["=", "0", ";", head[1], "<"]:
            return None
        if "".join(head[-3:]) not in (f";{head[1]}++", f";++{head[1]}"):
            return None
        like, opened = self._count(at + 9, close - 3), self.tokens[close + 1].text == "{"
        loop = Loop(self.lexed, head[1], "", close + 1 + opened, end - opened)
        if like is None or loop.changes_index or not self.pointer or not loop.overwrites(self.pointer):
            return None
        write = next(k for k in range(loop.first, end) if self.tokens[k].text == self.pointer)
        used = self._uses(at, write) or self._uses(write + 1, statement_end(self.lexed, write, end))
        return None if used else like

    def _call(self, at: int) -> tuple[int, list[tuple[int, int]]]:
        """The opening bracket of a call that writes, and the places of (count, written pointer) in it."""
        launch = self.launches.get(self.tokens[at].start)
        if launch and launch.kernel in self.kernels:
            parameters, count, written = self.kernels[launch.kernel]
            if len(parameters) != len(launch.arguments):
                return 0, []
            opening = position_from(self.tokens, launch.chevrons[1])
            return opening, [(parameters.index(count), parameters.index(name)) for name in written]
        if self.tokens[at].text in WRITERS:
            at_type = self._texts(at + 1, at + 4)
            opening = at + 4 if at_type[0] == "<" and at_type[2] == ">" else at + 1
            if self.tokens[opening].text == "(":
                return opening, [(0, WRITERS[self.tokens[at].text])]
        return 0, []

    def _is_result(self, first: int, last: int) -> bool:
        texts = self._texts(first, last)
        return texts in ([self.pointer], self.memory)

    def _count(self, first: int, last: int) -> Blob | None:
        """The blob whose count() an expression is."""
        texts = self._texts(first, last)
        if len(texts) == 1:
            return self.counts.get(texts[0])
        is_count = len(texts) == 8 and texts[0] in self.lists and texts[2].isdigit()
        if is_count and texts[1] + "".join(texts[3:]) == "[]->count()":
            return Blob(self.lists[texts[0]], int(texts[2]))
        return None

    def _declaration(self, at: int, end: int) -> bool:
        """Note a variable that holds the result's address, or a blob's count. False for other statements."""
        texts = [t for t in self._texts(at, end) if t != "const"]
        if "=" not in texts or texts[-1] != ";":
            return False
        equals = texts.index("=")
        name, value = texts[equals - 1], texts[equals + 1 : -1]
        if not self._keeps_value(name):
            return False
        if equals == 3 and texts[1] == "*" and value == self.memory and not self.pointer:
            self.pointer = name
            return True
        start = position_from(self.tokens, self.tokens[end - 1].start) - len(value)
        if equals == 2 and (like := self._count(start, end - 1)) is not None:
            self.counts[name] = like
        return False

    def _keeps_value(self, name: str) -> bool:
        """Is the variable declared once in the function, and never changed?"""
        first = position_from(self.tokens, self.function.body)
        last = position_from(self.tokens, self.function.end)
        around = [self._texts(k - 1, k + 2) for k in range(first, last - 1)]
        uses = [
            (before, after) for before, word, after in around if word == name and before not in ("->", ".")
        ]
        assigned = [after for _, after in uses if after in CHANGES]
        others = any(before in ("++", "--", "&") or after in ("(", "{") for before, after in uses)
        return len(assigned) == 1 and not others

    def _check_unused(self, first: int, last: int) -> None:
        if self._uses(first, last):
            raise _Unsure

    def _uses(self, first: int, last: int) -> bool:
        """May these tokens read the result's memory, change its shape, or leave the function?"""
        hidden = {self.result, self.pointer, "return", "goto", *self.kept}
        for k in range(first, last):
            word = self.tokens[k].text
            if word in ("Reshape", "ReshapeLike", *self.kept) or (word and word == self.pointer):
                return True
            if self.macros.get(word, set()) & hidden:
                return True
            if word == self.result and not self._is_harmless(k):
                return True
        return False

    def _is_harmless(self, k: int) -> bool:
        """Does the list's name at k stand for another blob, or for something other than the result's memory?"""
        after = self._texts(k + 1, k + 6)
        if after[:2] == [".", "size"]:
            return True
        if after[0] == "[" and {self.tokens[k - 1].text, after[3]} & {"==", "!="}:  # in place?
            return True
        if after[0] != "[" or after[2:4] != ["]", "->"] or not after[1].isdigit():
            return False
        return [self.result, *after[:4]] != self.here or after[4] in self.harmless

    def _texts(self, first: int, last: int) -> list[str]:
        return [token.text for token in self.tokens[first:last]]
