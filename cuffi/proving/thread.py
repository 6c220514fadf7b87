"""The generic thread: its variables, the conditions under which it is where it is, and what it has accessed.

Each variable of z3 is the launch's, the block's, or the thread's own (`whose`).
A second thread is the first one with names of its own (questions.py).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import z3

from .arithmetic import Arithmetic
from .queries import Queries, leaves
from .types import BOOL, INT, UNSIGNED, Integer, NotFollowed, Real
from .values import Access, Array, Lost, Number, Opaque, Place, Pointer, Value, Variable

LAUNCH, BLOCK, THREAD = "launch", "block", "thread"
MOST_THREADS = 1024


@dataclass(eq=False)
class Frame:
    """A function that the thread is in."""

    has_returned: Any = field(default_factory=lambda: z3.BoolVal(False))
    value: Value | None = None
    ids: frozenset[int] = frozenset()  # of its returns
    has_met: bool = True  # at a barrier, before each of its returns
    depth: int = 0  # how many conditions there were when it began
    loops: int = 0  # how many loops there were


@dataclass(eq=False)
class Loop:
    """A loop's iteration, or a switch."""

    has_broken: Any = field(default_factory=lambda: z3.BoolVal(False))
    has_continued: Any = field(default_factory=lambda: z3.BoolVal(False))
    depth: int = 0
    is_left: bool = False  # by a break or a return
    ids: frozenset[int] = frozenset()  # where it is continued
    has_met: bool = True
    is_switch: bool = False


@dataclass(eq=False)
class Barrier:
    guard: list
    line: Place


class Thread:
    def __init__(self, queries: Queries):
        self.queries = queries
        self.math = Arithmetic(queries, self.path, self.fresh)
        self.whose: dict[str, str] = {}
        self.unknown: set[str] = set()  # variables of values that were not followed
        self.scopes: list[dict[str, Variable]] = [{}]
        self.conditions: list = []
        self.frames: list[Frame] = []
        self.loops: list[Loop] = []
        self.accesses: list[Access] = []
        self.barriers: list[Barrier] = []
        self.ids: frozenset[int] = frozenset([0])
        self.has_met = False  # at a barrier, on each way since the loop's iteration began
        self.meetings = 0  # how often a barrier was executed here
        self.is_recording = True
        self.arrays: dict[str, Array] = {}
        self.index: dict[str, Number] = {}
        self._count = itertools.count(1)
        self._has_several_axes = False
        for axis in "xyz":
            self._axis(axis)

    # ---- variables of z3
    def named(self, name: str, whose: str, type: Integer, low=None, high=None) -> Number:
        """A number with bounds: those of its type, if no others are given."""
        self.whose[name] = whose
        if whose == LAUNCH:
            self.queries.of_launch.add(name)
        term = z3.Int(name)
        low, high = type.low if low is None else low, type.high if high is None else high
        self.queries.fact(term >= low)
        self.queries.fact(term <= high)
        if low >= 0:
            self.math.at_least_zero.add(name)
        return Number(term, type)

    def fresh(self, type: Integer, hint: str = "value", whose: str = THREAD) -> Number:
        """An unknown number."""
        if type == BOOL:
            return Number(self.fresh(INT, hint, whose).term != 0, BOOL)
        name = f"{hint}!{next(self._count)}"
        self.unknown.add(name)
        return self.named(name, whose, type)

    def new_id(self) -> int:
        return next(self._count)

    def _axis(self, axis: str):
        """The four indices along an axis."""
        threads, blocks = {"x": (MOST_THREADS, 2**31 - 1), "y": (MOST_THREADS, 65535), "z": (64, 65535)}[axis]
        block = self.named(f"blockDim.{axis}", LAUNCH, UNSIGNED, 1, threads)
        grid = self.named(f"gridDim.{axis}", LAUNCH, UNSIGNED, 1, blocks)
        thread = self.named(f"threadIdx.{axis}", THREAD, UNSIGNED, 0, threads - 1)
        its = self.named(f"blockIdx.{axis}", BLOCK, UNSIGNED, 0, blocks - 1)
        self.queries.fact(thread.term < block.term)
        self.queries.fact(its.term < grid.term)
        self.queries.products += [(grid.term, block.term), (its.term, block.term)]
        self.queries.fact(grid.term * block.term < 2**31)
        for word, value in (("blockDim", block), ("gridDim", grid), ("threadIdx", thread), ("blockIdx", its)):
            self.index[f"{word}.{axis}"] = value

    def several_axes(self):
        """How many threads a block has at most."""
        if self._has_several_axes:
            return
        self._has_several_axes = True
        x, y, z = (self.index[f"blockDim.{axis}"].term for axis in "xyz")
        self.queries.products += [(x, y), (x * y, z)]
        self.queries.fact(x * y * z <= MOST_THREADS)
        self.queries.fact(x * y <= MOST_THREADS)

    def is_uniform(self, term) -> bool:
        """Is it the same for all threads of a block?"""
        return all(self.whose.get(name, THREAD) != THREAD for name in leaves(term))

    # ---- where it is
    def path(self) -> list:
        return [*self.conditions, *self._still_here()]

    def _still_here(self) -> list:
        gone = [frame.has_returned for frame in self.frames]
        gone += [one for loop in self.loops for one in (loop.has_broken, loop.has_continued)]
        return [z3.Not(one) for one in gone if not z3.is_false(one)]

    def _in_loops(self) -> list:
        gone = [one for loop in self.loops for one in (loop.has_broken, loop.has_continued)]
        return [z3.Not(one) for one in gone if not z3.is_false(one)]

    def leaves_by(self, depth: int):
        """The condition to be here, of those since a depth, and not yet gone."""
        return z3.And(*self.conditions[depth:], *self._in_loops(), z3.BoolVal(True))

    # ---- variables of C++
    def lookup(self, name: str) -> Variable | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def declare(self, name: str, variable: Variable):
        self.scopes[-1][name] = variable

    def assign(self, variable: Variable, value: Value):
        """If the thread may have left the loop's iteration, it has the old value then."""
        left = self._in_loops()
        variable.value = self.merged(z3.And(*left), value, variable.value) if left else value

    def snapshot(self) -> list[tuple[Variable, Value]]:
        return [(one, one.value) for scope in self.scopes for one in scope.values()]

    @staticmethod
    def restore(saved: list[tuple[Variable, Value]]):
        for variable, value in saved:
            variable.value = value

    def merged(self, condition, yes: Value, no: Value) -> Value:
        if yes is no:
            return yes
        if isinstance(yes, Pointer) and isinstance(no, Pointer):
            same = yes.array is no.array and (yes.unit, yes.type) == (no.unit, no.type)
            if not same or len(yes.dims) != len(no.dims):
                return Lost("a pointer to one of several arrays")
            offset = yes.offset if yes.offset.eq(no.offset) else z3.If(condition, yes.offset, no.offset)
            return Pointer(yes.array, offset, yes.type, yes.unit, yes.dims)
        if isinstance(yes, Number) and isinstance(no, Number) and yes.type == no.type:
            return yes if yes.term.eq(no.term) else Number(z3.If(condition, yes.term, no.term), yes.type)
        if (isinstance(yes, Opaque) and isinstance(no, Opaque)) or yes == no:
            return yes
        lost = next((one for one in (yes, no) if isinstance(one, Lost)), None)
        return lost or Lost("a value of one of several types")

    # ---- memory
    def access(self, to: Pointer, kind: str, line: Place):
        if kind == "r":
            to.array.is_read = True
        else:
            to.array.is_written = True
        if self.is_recording:
            made = Access(to.array, z3.simplify(to.offset), to.unit, kind, self.path(), self.ids, line)
            self.accesses.append(made)

    def read(self, to: Pointer, line: Place, written: set[str]) -> Value:
        """What is there. `written`: names of arrays that are written."""
        self.access(to, "r", line)
        type = to.type
        if not isinstance(type, Integer):
            return Opaque(type)
        if to.array.space != "global" or to.array.name in written or to.unit != 1 or type != to.array.type:
            return self.fresh(type, "memory")
        memory = z3.Function(f"memory of {to.array.name}", z3.IntSort(), z3.IntSort())
        value = memory(z3.simplify(to.offset))
        self.queries.fact(z3.And(value >= type.low, value <= type.high))
        return Number(value != 0, BOOL) if type == BOOL else Number(value, type)

    def meet(self, line: Place):
        """At __syncthreads()."""
        if self.is_recording:
            self.barriers.append(Barrier(self.path(), line))
        self.meetings += 1
        self.has_met = True
        self.ids = frozenset([self.new_id()])


def element(to: Pointer, by, math: Arithmetic) -> Pointer:
    """The pointer `to + by`, for a term of elements."""
    step = by * to.unit if to.unit != 1 else by
    for extent in to.dims:
        step = math.product(step, extent)
    return Pointer(to.array, z3.simplify(to.offset + step), to.type, to.unit, to.dims)


def is_followed(value: Value, node=None) -> Value:
    if isinstance(value, Lost):
        raise NotFollowed(value.why, node)
    return value


def opaque_of(type) -> Opaque:
    return Opaque(type if isinstance(type, Real) else None)
