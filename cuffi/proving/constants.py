"""What is the same for all threads: a file's constants, its constant memory, and numbers that a kernel gets."""

from __future__ import annotations

from typing import Any

import z3

from .expressions import Expressions
from .reading import Code, Snippet, Text
from .thread import LAUNCH
from .types import BOOL, INT, Integer, NotFollowed, Real, Type, Vector
from .values import Array, Number, Opaque, Place, Pointer, Variable


class Constants:
    def __init__(self, text: Text, code: Code, expressions: Expressions):
        self.text, self.code, self.its, self.thread = text, code, expressions, expressions.thread
        self.fixed: set[str] = set()  # names of constant memory
        self._before: dict = {}

    def declare(self):
        self._numbers()
        self._memory()

    def remember(self):
        """What constant memory is before the kernel runs."""
        self._before = {name: self.thread.scopes[0][name].value for name in self.fixed}

    def _numbers(self):
        for name, (words, value) in self.text.constants.items():
            try:
                type = self.its.type(words)
                made = self.value(value, self.code.head)
            except NotFollowed:
                continue
            if isinstance(type, Integer) and isinstance(made, Number):
                self.thread.declare(name, Variable(type, self.its.math.into(made, type)))
            elif isinstance(type, Real):
                self.thread.declare(name, Variable(type, Opaque(type)))

    def _memory(self):
        """Arrays, and numbers that are the same for all threads. A kernel cannot write them."""
        names = [name for _, name, _ in self.text.constant_memory]
        for words, name, extents in self.text.constant_memory:
            type = self._type_or_none(words)
            if names.count(name) > 1 or not isinstance(type, Integer | Real | Vector):
                continue
            if not extents:
                if isinstance(type, Integer):
                    self.number(type, name)
                else:
                    self.thread.declare(name, Variable(type, Opaque(type)))
                self.fixed.add(name)
                continue
            terms = [
                self.its.math.plain(made)
                for one in extents
                if isinstance(made := self.value(one, self.code.head), Number)
            ]
            if len(terms) < len(extents):
                continue
            size = z3.IntVal(1)
            for one in terms:
                self.thread.queries.fact(one > 0)
                size = self.its.math.product(size, one)
            array = self.thread.arrays[name] = Array(name, "global", type, z3.simplify(size))
            pointer = Pointer(array, z3.IntVal(0), type, 1, tuple(terms[1:]))
            self.thread.declare(name, Variable(type, pointer, is_array=True))
            self.fixed.add(name)

    def _type_or_none(self, words: str) -> Type | None:
        try:
            return self.its.type(words)
        except NotFollowed:
            return None

    def check(self):
        """Raises NotFollowed if constant memory is changed."""
        changed = [
            one.name for one in self.thread.arrays.values() if one.is_written and one.name in self.fixed
        ]
        changed += [
            name
            for name in self.fixed
            if name in self._before and self._before[name] is not self.thread.scopes[0][name].value
        ]
        if changed:
            raise NotFollowed(f"{changed[0]} is constant memory, and is changed")

    def value(self, words: str, place: Place):
        """Of an expression that stands in no function."""
        snippet: Any = Snippet(words, place)
        if snippet.expression is None:
            raise NotFollowed(f"{words} is not followed")
        outer, self.its.code = self.its.code, snippet
        try:
            return self.its.value(snippet.expression)
        except NotFollowed as error:
            raise NotFollowed(f"{words}: {error.text}") from None
        finally:
            self.its.code = outer

    def number(self, type: Type, name: str):
        if not isinstance(type, Integer):
            raise NotFollowed(f"{name} is not followed")
        if type == BOOL:
            made = Number(self.thread.named(name, LAUNCH, INT, 0, 1).term != 0, BOOL)
        else:
            made = self.thread.named(name, LAUNCH, type)
        self.thread.declare(name, Variable(type, made))
