"""Loops: what holds in any iteration, found by running one without recording it.

A variable that each iteration changes by the same is its first value and a multiple. Of another one some guesses are
kept that hold at first, and after an iteration if before. Everything else about it is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import z3

from .expressions import Expressions
from .queries import leaves
from .thread import BLOCK, THREAD, Loop, Thread
from .types import BOOL, INT, Integer, NotFollowed
from .values import Lost, Number, Opaque, Pointer, Value, Variable

MOST_ROUNDS = 6
Values = dict[int, Any]  # terms by the variables' ids


@dataclass
class Iteration:
    loop: Loop
    after: Values
    asked: Any  # the condition
    path: list  # at its end
    known: tuple[int, int] = (0, 0)  # what was known before it


@dataclass
class Head:
    """A loop's text."""

    asked: Any
    update: Any
    body: Any
    node: Any


@dataclass
class Plan:
    """What is known of the variables that a loop changes.

    Attributes:
        start: terms before the loop. before: at the begin of any iteration. step: of those that change by the same.
        guesses: formulas of a term, of the others.
    """

    variables: list[Variable]
    models: dict[int, Value]  # their values before the loop, for their kinds
    start: Values
    before: Values = field(default_factory=dict)
    step: Values = field(default_factory=dict)
    guesses: dict[int, list[Callable]] = field(default_factory=dict)
    meets: bool = False
    is_left: bool = False
    returns: bool = False


class Loops:
    def __init__(self, thread: Thread, expressions: Expressions, run: Callable):
        self.thread, self.its, self.run_body = thread, expressions, run

    def run(self, asked, update, body, node):
        head = Head(asked, update, body, node)
        plan = self._planned(head)
        if plan.meets and (plan.is_left or plan.returns):
            raise NotFollowed("a loop with a barrier is left within, which is not followed", node)
        depth, returned = len(self.thread.conditions), [frame.has_returned for frame in self.thread.frames]
        if plan.meets:
            self._with_barriers(head, plan)
        else:
            self._once(head, plan, plan.before)
        del self.thread.conditions[depth:]
        self._returned(plan, returned)
        self._behind(head, plan)

    def _returned(self, plan: Plan, before: list):
        """Nobody knows whether an iteration has returned."""
        for frame, old in zip(self.thread.frames, before, strict=True):
            if plan.returns and not frame.has_returned.eq(old):
                unknown = self.thread.fresh(BOOL, "returned").term
                frame.has_returned = z3.Or(old, unknown)

    # ---- one iteration
    def _put(self, plan: Plan, values: Values):
        for one in plan.variables:
            model, term = plan.models[id(one)], values.get(id(one))
            if isinstance(model, Number):
                one.value = Number(term, model.type)
            elif isinstance(model, Pointer):
                one.value = Pointer(model.array, term, model.type, model.unit, model.dims)
            else:
                one.value = model

    def _terms(self, plan: Plan) -> Values:
        """Of the variables now. A value of another kind is lost."""
        found: Values = {}
        for one in plan.variables:
            model, now = plan.models[id(one)], one.value
            if isinstance(model, Number) and isinstance(now, Number):
                found[id(one)] = now.term
            elif isinstance(model, Pointer) and isinstance(now, Pointer) and _alike(model, now):
                found[id(one)] = now.offset
            elif not isinstance(model, Opaque | Lost):
                found[id(one)] = None
        return found

    def _once(self, head: Head, plan: Plan, values: Values) -> Iteration:
        """Run an iteration from these values. Its conditions stay."""
        thread = self.thread
        self._put(plan, values)
        asked = self.its.condition(head.asked) if head.asked is not None else z3.BoolVal(True)
        thread.conditions.append(asked)
        loop = Loop(depth=len(thread.conditions))
        thread.loops.append(loop)
        thread.scopes.append({})
        self.run_body(head.body)
        thread.scopes.pop()
        if not z3.is_false(loop.has_continued):
            loop.has_continued = z3.BoolVal(False)
            thread.ids |= loop.ids
            thread.has_met &= loop.has_met
        if head.update is not None:
            self.its.value(head.update)
        path = thread.path()
        thread.loops.pop()
        return Iteration(loop, self._terms(plan), asked, path)

    def _dry(self, head: Head, plan: Plan, values: Values) -> Iteration:
        """Run an iteration of which nothing stays."""
        thread = self.thread
        saved, depth, known = thread.snapshot(), len(thread.conditions), thread.queries.mark()
        frames = [(one, vars(one).copy()) for one in thread.frames]
        loops = [(one, vars(one).copy()) for one in thread.loops]
        kept = thread.is_recording, thread.ids, thread.has_met, thread.meetings
        thread.is_recording = False
        made = self._once(head, plan, values)
        plan.meets |= thread.meetings != kept[3]
        plan.returns |= any(one.has_returned is not old["has_returned"] for one, old in frames)
        plan.is_left |= made.loop.is_left
        thread.is_recording, thread.ids, thread.has_met, thread.meetings = kept
        for one, old in (*frames, *loops):
            vars(one).update(old)
        for variable, value in saved:
            if variable.value is not value and not any(variable is one for one in plan.variables):
                plan.variables.append(variable)
                plan.models[id(variable)] = value
        thread.restore(saved)
        del thread.conditions[depth:]
        made.known = known
        return made

    # ---- what is known of any
    def _planned(self, head: Head) -> Plan:
        plan = Plan([], {}, {})
        for _ in range(MOST_ROUNDS):
            count = len(plan.variables)
            plan.before = self._unknown(plan, THREAD)
            made = self._dry(head, plan, plan.before)
            self.thread.queries.back_to(made.known)
            lost = [one for one in plan.variables if made.after.get(id(one), 0) is None]
            for one in lost:
                plan.models[id(one)] = Lost("a value that another iteration makes")
            if len(plan.variables) == count and not lost:
                break
        else:
            raise NotFollowed("what this loop changes is not followed", head.node)
        plan.start = self._start(plan)
        if plan.meets and not any(isinstance(one, Lost) for one in plan.models.values()):
            plan.before = self._unknown(plan, BLOCK)
            made = self._dry(head, plan, plan.before)
            self._split_by_thread(plan, made)
            self.thread.queries.back_to(made.known)
        mark = self.thread.new_id()
        made = self._dry(head, plan, plan.before)
        self.thread.queries.back_to(made.known)
        self._steps(plan, made, mark)
        self._guessed(head, plan)
        return plan

    def _start(self, plan: Plan) -> Values:
        return {
            id(one): model.term if isinstance(model, Number) else model.offset
            for one in plan.variables
            if isinstance(model := plan.models[id(one)], Number | Pointer)
        }

    def _unknown(self, plan: Plan, whose: str) -> Values:
        """Any values, of a thread's own or of the block's."""
        made = {}
        for one in plan.variables:
            model = plan.models[id(one)]
            if isinstance(model, Number):
                made[id(one)] = self.thread.fresh(model.type, "variable", whose).term
            elif isinstance(model, Pointer):
                made[id(one)] = self.thread.fresh(Integer("offset", 63, True), "offset", whose).term
        return made

    def _split_by_thread(self, plan: Plan, made: Iteration):
        """Which variables are a thread's own: their first or their next value is not the same for the block."""
        thread = self.thread
        for _ in range(len(plan.before) + 1):
            for key, before in plan.before.items():
                its = leaves(plan.start[key]) | leaves(made.after[key])
                if any(thread.whose.get(name, THREAD) == THREAD for name in its):
                    thread.whose.update(dict.fromkeys(leaves(before), THREAD))

    def _steps(self, plan: Plan, made: Iteration, mark: int):
        """Those that change by the same each time."""
        own = {name for term in plan.before.values() for name in leaves(term)}
        whose = BLOCK if plan.meets else THREAD
        turn = self.thread.named(f"turn!{self.thread.new_id()}", whose, INT, 0, 1 << 62).term
        for key, before in list(plan.before.items()):
            if not z3.is_int(before) or made.after[key] is None:
                continue
            step = z3.simplify(made.after[key] - before, som=True)
            names = leaves(step)
            is_new = any("!" in name and int(name.rsplit("!", 1)[1]) > mark for name in names)
            own_step = plan.meets and not self.thread.is_uniform(step)
            if not names & own and not is_new and not _has_memory(step) and not own_step:
                plan.step[key] = step
                plan.before[key] = z3.simplify(plan.start[key] + self.thread.math.product(turn, step))

    def _guessed(self, head: Head, plan: Plan):
        thread, queries = self.thread, self.thread.queries
        rest = [key for key, term in plan.before.items() if key not in plan.step and z3.is_int(term)]
        path = thread.path()
        for key in (key for key in rest if self._begins_as_it_is(plan, key)):
            plan.guesses[key] = [
                one for one in _guesses(plan.start[key]) if queries.valid(one(plan.start[key]), path)
            ]
        for _ in range(MOST_ROUNDS):
            assumed = [one(plan.before[key]) for key in plan.guesses for one in plan.guesses[key]]
            held = [z3.Implies(z3.And(*path, z3.BoolVal(True)), one) for one in assumed]
            new = [one for one in held if one.get_id() not in queries._known]
            for one in new:
                queries.fact(one)
            made = self._dry(head, plan, plan.before)
            dropped = False
            for key in plan.guesses:
                kept = [one for one in plan.guesses[key] if self._holds(plan, key, one, made)]
                dropped |= len(kept) < len(plan.guesses[key])
                plan.guesses[key] = kept
            queries.back_to(made.known)
            if not dropped:
                return
            queries.without(new)
        plan.guesses = {}

    def _begins_as_it_is(self, plan: Plan, key: int) -> bool:
        """Is the first term the value itself? An unsigned one may be it modulo 2^bits."""
        model, start = plan.models[key], plan.start[key]
        if not isinstance(model, Number) or model.type.signed:
            return True
        within = z3.And(start >= 0, start <= model.type.high)
        return self.thread.queries.valid(within, self.thread.path())

    def _holds(self, plan: Plan, key: int, guess: Callable, made: Iteration) -> bool:
        after = made.after[key]
        if after is None:
            return False
        claim = guess(after)
        model = plan.models[key]
        if isinstance(model, Number) and not model.type.signed:  # it may wrap
            claim = z3.And(claim, after <= model.type.high, after >= 0)
        return self.thread.queries.valid(claim, made.path)

    # ---- barriers
    def _with_barriers(self, head: Head, plan: Plan):
        """The first iteration meets what is before the loop; any one meets the next one and what is behind the loop."""
        thread = self.thread
        depth = len(thread.conditions)
        met = thread.has_met
        into, over = thread.new_id(), thread.new_id()
        self._also(thread.ids, {into, over})
        self._part(head, plan, plan.start, into)
        del thread.conditions[depth:]
        begin, back, out = (thread.new_id() for _ in range(3))
        thread.ids, thread.has_met = frozenset([begin]), False
        made = self._once(head, plan, plan.before)
        if not thread.has_met:
            raise NotFollowed("a barrier that some iterations do not reach is not followed", head.node)
        self._also(thread.ids, {back, out})
        if any(one is None for one in made.after.values()):
            raise NotFollowed("what this loop changes is not followed", head.node)
        self._part(head, plan, made.after, back)  # under the conditions of the iteration before
        del thread.conditions[depth:]
        thread.ids, thread.has_met = frozenset([over, out]), met

    def _also(self, ids: frozenset[int], more: set[int]):
        for one in self.thread.accesses:
            if one.ids & ids:
                one.ids |= more

    def _part(self, head: Head, plan: Plan, values: Values, token: int):
        """An iteration of which only what is before its first barrier counts."""
        thread = self.thread
        thread.ids, thread.has_met = frozenset([token]), False
        accesses, barriers, rows = len(thread.accesses), len(thread.barriers), len(self.its.indices)
        self._once(head, plan, values)
        thread.accesses[accesses:] = [one for one in thread.accesses[accesses:] if token in one.ids]
        del thread.barriers[barriers:]
        del self.its.indices[rows:]

    # ---- behind the loop
    def _behind(self, head: Head, plan: Plan):
        thread, queries = self.thread, self.thread.queries
        whose = BLOCK if plan.meets else THREAD
        path = thread.path()
        turn = thread.named(f"turns!{thread.new_id()}", whose, INT, 0, 1 << 62).term
        values = self._unknown(plan, THREAD)
        closed = not plan.is_left and not plan.returns
        if closed:
            for key in plan.step:
                values[key] = z3.simplify(plan.start[key] + thread.math.product(turn, plan.step[key]))
            for key in (key for key in values if key not in plan.step):
                thread.whose.update(
                    {
                        name: thread.whose[old]
                        for name, old in zip(leaves(values[key]), leaves(plan.before[key]), strict=False)
                    }
                )
                for guess in plan.guesses.get(key, ()):
                    queries.fact(z3.Implies(z3.And(*path, z3.BoolVal(True)), guess(values[key])))
        self._put(plan, values)
        if head.asked is None:
            return
        asked = self.its.condition(head.asked)
        if closed:
            here = z3.And(*path, z3.BoolVal(True))
            queries.fact(z3.Implies(here, z3.Not(asked)))
            if len(plan.step) == len(values) and not _is_new(asked, turn):
                queries.fact(z3.Implies(z3.And(here, turn > 0), z3.substitute(asked, (turn, turn - 1))))


def _is_new(asked, turn) -> bool:
    """Does it have values that were made behind the loop's turns?"""
    last = int(turn.decl().name().rsplit("!", 1)[1])
    return any("!" in name and int(name.rsplit("!", 1)[1]) > last for name in leaves(asked))


def _alike(a: Pointer, b: Pointer) -> bool:
    return (a.array is b.array) and (a.unit, a.type, len(a.dims)) == (b.unit, b.type, len(b.dims))


def _has_memory(term) -> bool:
    """Is it made of what is read?"""
    if z3.is_app(term) and term.decl().name().startswith("memory of"):
        return True
    return any(_has_memory(one) for one in term.children())


def _guesses(start) -> list[Callable]:
    made: list[Callable] = [lambda x: x >= start, lambda x: x <= start, lambda x: x >= 0, lambda x: x > 0]
    if z3.is_int_value(start) and start.as_long() in (0, 1):
        made.append(lambda x: x <= 1)
    return made
