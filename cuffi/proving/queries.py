"""Questions to z3 about whole numbers.

First a linear problem: each product of two variables, and each division by one, becomes a variable of its own, with
lemmas about those that share a factor. That alone proves the usual indices. What it leaves open is asked as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import z3

MOST_FACTORS = 14  # that share another one: lemmas are of pairs
NO_RENAME: tuple = ()
FIRST_BLOCKS = (None, (64, 1), (8, 8), (32, 8), (256, 1), (1024, 1))
_KNOWN: dict[int, tuple[Any, frozenset[str]]] = {}  # with the terms, so that their numbers stay theirs


def leaves(term) -> frozenset[str]:
    """The names of a term's variables."""
    hit = _KNOWN.get(term.get_id())
    if hit is not None and hit[0].eq(term):
        return hit[1]
    found, todo, seen = set(), [term], set()
    while todo:
        one = todo.pop()
        if one.get_id() in seen:
            continue
        seen.add(one.get_id())
        if z3.is_const(one) and one.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found.add(one.decl().name())
        todo += one.children()
    _KNOWN[term.get_id()] = (term, frozenset(found))
    return _KNOWN[term.get_id()][1]


def renamed(term, rename: Sequence):
    return z3.substitute(term, *rename) if rename else term


class Queries:
    """What is known of the variables, and what follows from it. `is_searching`: for counterexamples, too."""

    def __init__(self, milliseconds: int = 4000, is_searching: bool = True):
        self.milliseconds, self.is_searching = milliseconds, is_searching
        self.facts: list = []
        self.products: list[tuple] = []  # pairs of factors
        self.of_launch: set[str] = set()  # names of what is the same for all threads of a launch
        self._known: set[int] = set()
        self._valid: dict[tuple, bool] = {}
        self._version = 0  # another one if facts were forgotten
        self._linear = Linear()
        self._lemma_of: dict[tuple, list] = {}
        self._renamed: dict[tuple, Any] = {}

    def fact(self, formula):
        if formula.get_id() not in self._known:
            self._known.add(formula.get_id())
            self.facts.append(formula)

    def without(self, formulas: Iterable):
        """Forget these facts."""
        gone = {one.get_id() for one in formulas}
        self.facts = [one for one in self.facts if one.get_id() not in gone]
        self._known -= gone
        self._version += 1

    def mark(self) -> tuple[int, int]:
        return len(self.facts), len(self.products)

    def back_to(self, mark: tuple[int, int]):
        """Forget what was said since then, of what is gone."""
        self._known -= {one.get_id() for one in self.facts[mark[0] :]}
        self._version += 1
        del self.facts[mark[0] :], self.products[mark[1] :]

    def valid(self, claim, path: Iterable) -> bool:
        """Does the claim surely hold on this path?"""
        claim = z3.simplify(claim)
        if z3.is_true(claim) or z3.is_false(claim):
            return z3.is_true(claim)
        asked = [*path, z3.Not(claim)]
        key = (self._version, len(self.facts), *(one.sexpr() for one in asked))
        if key not in self._valid:
            self._valid[key] = self.is_impossible(asked, 800)
        return self._valid[key]

    def is_impossible(self, formulas: list, milliseconds: int = 2000) -> bool:
        facts, names = self._about(formulas, self.facts)
        return self._check(formulas + facts, self._lemmas(names, [NO_RENAME]), milliseconds) == z3.unsat

    def ask(self, formulas: list, rename: Sequence = NO_RENAME, extra: Iterable = ()):
        """ "never" if these cannot hold together, else a model of them, or None. With a rename: of two threads."""
        renames = [NO_RENAME, rename] if rename else [NO_RENAME]
        facts = [self._by(one, names) for names in renames for one in self.facts]
        facts, names = self._about(formulas, [*facts, *extra])
        lemmas = self._lemmas(names, renames)
        if self._check(formulas + facts, lemmas, self.milliseconds) == z3.unsat:
            return "never"
        if not self.is_searching:
            return None
        return self._model(formulas + facts, lemmas, names)

    def _by(self, term, rename: Sequence):
        """The term with other names."""
        if not rename:
            return term
        key = term.get_id(), len(rename)
        if key not in self._renamed:
            self._renamed[key] = (term, renamed(term, rename))
        return self._renamed[key][1]

    def _check(self, formulas: list, lemmas: list, milliseconds: int):
        """Of the linear problem."""
        solver = z3.Solver()
        solver.set("timeout", milliseconds)
        solver.add(*(self._linear.of(one) for one in (*formulas, *lemmas)))
        return solver.check()

    def _model(self, base: list, lemmas: list, names: set[str]):
        """Sizes are small first: then it is linear, and the judge can run it."""
        small = [z3.And(z3.Int(n) >= -2, z3.Int(n) <= 300) for n in names & self.of_launch if "Dim." not in n]
        grid = [z3.Int("gridDim.x") <= 4, z3.Int("gridDim.y") <= 4]
        for block in FIRST_BLOCKS:
            fixed = [*small, *grid] if block is None else grid
            if block is not None:
                fixed = [*grid, *(z3.Int(f"blockDim.{a}") == n for a, n in zip("xy", block, strict=True))]
            solver = z3.Solver()
            solver.set("timeout", self.milliseconds // 8)
            solver.add(*base, *fixed)
            if solver.check() == z3.sat:
                return solver.model()
        solver = z3.Solver()
        solver.set("timeout", self.milliseconds // 2)
        solver.add(*base, *lemmas)
        result = solver.check()
        return "never" if result == z3.unsat else solver.model() if result == z3.sat else None

    def _about(self, formulas: list, facts: Iterable) -> tuple[list, set[str]]:
        """The facts that have to do with these formulas, and the names of all variables in them.

        A fact of what was made on the way (a name with "!") has to do with those who name that.
        """
        names: set[str] = set().union(*(leaves(one) for one in formulas))
        rest = [(one, leaves(one)) for one in facts]
        rest = [(one, its, frozenset(n for n in its if "!" in n) or its) for one, its in rest]
        chosen, grows = [], True
        while grows:
            grows, kept = False, []
            for one, its, subjects in rest:
                if its and not subjects & names:
                    kept.append((one, its, subjects))
                    continue
                chosen.append(one)
                grows |= not its <= names
                names |= its
            rest = kept
        return chosen, names

    def _lemmas(self, names: set[str], renames: Sequence) -> list:
        groups: dict[int, tuple[Any, dict]] = {}
        for (a, b), rename in itertools.product(self.products, renames):
            x, y = self._by(a, rename), self._by(b, rename)
            if leaves(x) | leaves(y) <= names:
                for one, other in ((x, y), (y, x)):
                    groups.setdefault(other.get_id(), (other, {}))[1][one.get_id()] = one
        made = []
        for factor, members in groups.values():
            some = list(members.values())[:MOST_FACTORS]
            for x in some:
                made += self._lemma(factor, x, None)
            for x, y in itertools.permutations(some, 2):
                made += self._lemma(factor, x, y)
        return made

    def _lemma(self, factor, x, y) -> list:
        key = factor.get_id(), x.get_id(), y.get_id() if y is not None else 0
        if key in self._lemma_of:
            return self._lemma_of[key]
        if y is None:
            made = [
                z3.Implies(z3.And(factor >= 0, x >= 0), x * factor >= 0),
                z3.Implies(z3.And(factor >= 0, x >= 1), x * factor >= factor),
                z3.Implies(x == 0, x * factor == 0),
            ]
        else:
            made = [
                z3.Implies(z3.And(factor >= 0, x < y), x * factor + factor <= y * factor),
                z3.Implies(x == y, x * factor == y * factor),
            ]
        self._lemma_of[key] = made
        return made


class Linear:
    """Formulas with each product, and each division by a variable, as a variable of its own."""

    def __init__(self):
        self._own: dict[tuple, Any] = {}
        self._memo: dict[int, tuple] = {}  # with the terms, so that they stay
        self._whole: dict[int, tuple] = {}

    def of(self, formula):
        key = formula.get_id()
        if key not in self._whole:
            made = self._walk(z3.simplify(formula, som=True, flat=True))
            self._whole[key] = (formula, made)
        return self._whole[key][1]

    def _variable(self, *key):
        return self._own.setdefault(key, z3.Int(f"product!{len(self._own)}"))

    def _walk(self, term):
        if (hit := self._memo.get(term.get_id())) is not None:
            return hit[1]
        kids = [self._walk(one) for one in term.children()]
        kind = term.decl().kind() if z3.is_app(term) else None
        rest = sorted(one.sexpr() for one in kids if not z3.is_int_value(one)) if kind == z3.Z3_OP_MUL else []
        if kind == z3.Z3_OP_MUL and len(rest) > 1:
            made = self._variable("*", *rest)
            for one in (one for one in kids if z3.is_int_value(one)):
                made = one * made
        elif kind in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD) and not z3.is_int_value(kids[1]):
            made = self._variable(kind, kids[0].sexpr(), kids[1].sexpr())
        elif kind == z3.Z3_OP_POWER:
            made = self._variable("*", *[kids[0].sexpr()] * kids[1].as_long())
        else:
            made = term.decl()(*kids) if kids else term
        self._memo[term.get_id()] = (term, made)
        return made
