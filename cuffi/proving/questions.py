"""What is asked of a kernel's accesses: is one outside of its array, do two threads race, do all meet at a barrier?"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import Any

import z3

from .expressions import Expressions
from .queries import leaves, renamed
from .thread import BLOCK, LAUNCH, THREAD, Thread
from .values import Access

MOST_COUNTEREXAMPLES = 3


@dataclass
class Counterexample:
    """What may be wrong, and with which block, grid and numbers."""

    kind: str  # race, bounds or barrier, as the judge says
    text: str
    line: Any
    model: dict[str, int]


@dataclass
class Answers:
    counterexamples: list[Counterexample] = field(default_factory=list)
    open: list[tuple[str, Any]] = field(default_factory=list)  # what z3 does not know, and where
    asked: set[str] = field(default_factory=set)  # race, barrier, and the arrays whose bounds were asked


class Questions:
    def __init__(self, thread: Thread, expressions: Expressions, seconds: float):
        self.thread, self.its, self.queries = thread, expressions, thread.queries
        self.until = time.process_time() + seconds
        self.answers = Answers(asked={"race"})
        of = {whose: [n for n, its in thread.whose.items() if its == whose] for whose in (THREAD, BLOCK)}
        self.of_block = [(z3.Int(name), z3.Int(f"{name}'")) for name in of[THREAD]]
        self.of_others = self.of_block + [(z3.Int(name), z3.Int(f"{name}'")) for name in of[BLOCK]]
        self.differ = self._differ("threadIdx")
        self.elsewhere = self._differ("blockIdx")
        self._done: set[tuple] = set()

    @staticmethod
    def _differ(word: str):
        return z3.Or(*(z3.Int(f"{word}.{axis}") != z3.Int(f"{word}.{axis}'") for axis in "xyz"))

    def answer(self) -> Answers:
        self._reached()
        self._barriers()
        self._bounds()
        self._races()
        return self.answers

    def _ask(self, formulas: list, kind: str, text: str, line, rename=(), extra=()) -> None:
        """These must not hold together."""
        key = (kind, *sorted(one.sexpr() for one in formulas))
        if key in self._done or len(self.answers.counterexamples) >= MOST_COUNTEREXAMPLES:
            return
        self._done.add(key)
        if time.process_time() > self.until:
            self.answers.open.append(("out of time", line))
            self.until = float("inf") if len(self.answers.open) > 20 else self.until
            return
        found = self.queries.ask(formulas, rename, extra)
        if found == "never":
            return
        if found is None:
            self.answers.open.append((f"{text}: z3 does not know", line))
            return
        names = sorted(set().union(*(leaves(one) for one in formulas)) | self._of_launch())
        model = {}
        for name in names:
            value = found.eval(z3.Int(name), model_completion=True)
            if z3.is_int_value(value):
                model[name] = value.as_long()
        self.answers.counterexamples.append(Counterexample(kind, text, line, model))

    def _of_launch(self) -> set[str]:
        return {name for name, whose in self.thread.whose.items() if whose == LAUNCH}

    def _reached(self):
        """What is never reached is told: a fact may be wrong."""
        seen = set()
        for one in self.thread.accesses:
            key = tuple(sorted(each.sexpr() for each in one.guard))
            if key in seen or not one.guard:
                continue
            seen.add(key)
            if self.queries.is_impossible(one.guard):
                self.answers.open.append(("this is never reached", one.line))

    def _barriers(self):
        if self.thread.barriers:
            self.answers.asked.add("barrier")
        for one in self.thread.barriers:
            if not one.guard:
                continue
            here = z3.And(*one.guard)
            other = renamed(z3.Not(here), self.of_block)
            text = "a barrier that not all threads of a block reach"
            self._ask([here, other, self.differ], "barrier", text, one.line, self.of_block)

    def _bounds(self):
        for one in self.thread.accesses:
            size = one.array.size
            if size is None:
                continue
            if one.array.space != "local":
                self.answers.asked.add(f"bounds of {one.array.name}")
            outside = z3.Or(one.offset < 0, one.offset + one.width > size)
            text = f"an access outside of {one.array.name}"
            self._ask([*one.guard, outside], "bounds", text, one.line)
        for guard, index, extent, line in self.its.indices:
            outside = z3.Or(index < 0, index >= extent)
            self._ask([*guard, outside], "bounds", "an index outside of its row", line)

    def _races(self):
        accesses = [one for one in self.thread.accesses if one.array.space != "local"]
        for a, b in itertools.combinations_with_replacement(accesses, 2):
            if a.array is not b.array or (a.kind == b.kind and a.kind in "ra"):
                continue
            if a.ids & b.ids:
                self._race(a, b, self.of_block, self.differ, "of one block")
            if a.array.space == "global":
                self._race(a, b, self.of_others, self.elsewhere, "of two blocks")

    def _race(self, a: Access, b: Access, rename: list, apart, where: str):
        its = renamed(b.offset, rename)
        meet = (
            a.offset == its
            if a.width == b.width == 1
            else z3.And(a.offset < its + b.width, its < a.offset + a.width)
        )
        formulas = [*a.guard, *(renamed(one, rename) for one in b.guard), apart, meet]
        text = f"a race on {a.array.name}, of two threads {where}, lines {a.line.line} and {b.line.line}"
        self._ask(formulas, "race", text, b.line if b.kind != "r" else a.line, rename, self._counted(rename))

    def _counted(self, rename: list) -> list:
        """atomicAdd gives each thread another number, if nothing else is done to that memory."""
        added = self.its.calls.added
        made = []
        for (v, array, offset, by), (w, other, place, more) in itertools.product(added, repeat=2):
            if array is not other or (array.space == "shared" and rename is self.of_others):
                continue
            if self._is_counter(array):
                w, place = renamed(w, rename), renamed(place, rename)
                made.append(z3.Implies(offset == place, z3.Or(v + by <= w, w + more <= v)))
        return made

    def _is_counter(self, array) -> bool:
        amounts = [by for _, its, _, by in self.its.calls.added if its is array]
        return all(by > 0 for by in amounts) and all(
            one.kind == "a" for one in self.thread.accesses if one.array is array
        )
