"""A thread's variables that live across a barrier: computed again, or kept in a place for each thread.

int v = x[t], w = t + n;      int& v = caffe_kept_0[caffe_t]; v = x[t]; const int w = t + n;
float a[2] = {1, 2};          float caffe_own_a[2] = {1, 2}; auto& a = keep(caffe_kept_1[caffe_t], caffe_own_a);
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .body import walk
from .uniform import Uniform
from .unit_names import NUMBERS
from .variables import LISTS, Variable

MOST_KEPT = 128  # bytes of a thread, on a stack of 640 KiB
# What a reference may be bound to: memory, and no value that ends with the phase.
MEMORY = {"subscript_expression", "identifier", "pointer_expression", "field_expression"}


class KeptVariables:
    """The variables of a body that are kept, each with its number."""

    def __init__(self, uniform: Uniform, text_of):
        self.uniform, self.uses, self.of, self.text_of = uniform, uniform.uses, uniform.of, text_of
        self.variables: list[Variable] = []
        self.carried: list[Variable] = []

    def choose(self, own: list[Variable], carried: list[Variable]):
        """Keep all of one declaration, if one of them is used behind a barrier and cannot be computed again."""
        self.carried = carried
        again = [v for v in carried if self.uniform.is_again(v)]
        for variable in own:
            beside = [v for v in carried if v.statement == variable.statement]
            variable.is_kept = any(v not in again for v in beside)
        self.variables = [v for v in own if v.is_kept]
        for variable in self.variables:
            self._check(variable)
        numbers = [v for v in self.variables if self._is_number(v)]
        if sum(8 if v.is_of(NUMBERS) else 32 for v in numbers) > MOST_KEPT:
            raise self.uses.unclear(
                "more variables behind a barrier than a stack has places for", numbers[-1].declaration
            )

    def _is_number(self, variable: Variable) -> bool:
        """May it be declared without a value, and assigned?"""
        return variable.is_of(NUMBERS | self.uses.templates)

    def _is_reference(self, variable: Variable) -> bool:
        return variable.declarator.type == "reference_declarator"

    def _check(self, variable: Variable):
        """Can it be kept at all?"""
        refuse = self.uses.unclear(f"{variable.name}, which is used behind a barrier", variable.declaration)
        if variable.declaration.type != "declaration":
            raise refuse
        if self._is_number(variable):
            return
        beside = [v for v in self.variables if v.statement == variable.statement]
        if len(beside) > 1 and any(v.value is not None for v in beside):
            raise refuse
        if self._is_reference(variable):
            value = variable.value
            if value is None or value.type not in MEMORY or "const" in variable.words:
                raise refuse
        elif "auto" in variable.words:
            if variable.value is None or variable.value.type in LISTS or not variable.is_auto:
                raise refuse
            if self.uses.names.with_destructor:
                raise refuse
        elif not self.uses.is_plain_at_its_end(variable) or "volatile" in variable.words:
            raise refuse
        sizes = [n for n in walk(variable.declarator) if n.type == "array_declarator"]
        for size in (n.child_by_field_name("size") for n in sizes):
            if size is None or any(not v.is_constant for v in self.uses.variables(size)):
                raise refuse

    def type_of(self, variable: Variable) -> str:
        words = [w for w in variable.words if w != "const" or variable.stars]
        if not self._is_number(variable):
            inner = variable.declarator
            text, at = self.of(inner), variable.start - inner.start_byte
            words = [w for w in variable.words if w != "const" or inner.type != "array_declarator"]
            return " ".join([*words, *(text[:at] + text[at + len(variable.name) :]).split()])
        return " ".join(w for w in words if w not in ("constexpr", "static")) + "*" * (variable.stars or 0)

    def arrays(self) -> str:
        """The declarations of the places for numbers, at the body's beginning."""
        numbered = [(i, v) for i, v in enumerate(self.variables) if self._is_number(v)]
        return "".join(f" {self.type_of(v)} caffe_kept_{i}[1024];" for i, v in numbered)

    def structures(self, region: int) -> str:
        """The declarations of the other places, before the region in which the variables are declared."""
        texts = []
        for i, variable in enumerate(self.variables):
            if variable.region != region or self._is_number(variable):
                continue
            kind = "KeptBytes" if variable.is_auto else f"Kept<{self.type_of(variable)}>"
            texts.append(f" static thread_local ::cuda_host::{kind} caffe_kept_{i};")
        return "".join(texts)

    def place(self, variable: Variable) -> str:
        """A thread's place for the variable."""
        number = self.variables.index(variable)
        if variable.is_auto and not self._is_number(variable):
            value = " ".join(self.text_of(variable.value).split())
            return f"caffe_kept_{number}.as<decltype({value})>(caffe_t)"
        return f"caffe_kept_{number}[caffe_t]"

    def reference(self, variable: Variable) -> str:
        kind = f"{self.type_of(variable)}&" if self._is_number(variable) else "auto&"
        return f"[[maybe_unused]] {kind} {variable.name} = {self.place(variable)}; "

    def carried_into(self, region: int | None, used: list[Variable]) -> str:
        """The declarations of what a region uses of earlier ones, and of what that is computed from."""
        wanted, waiting = [], list(used)
        while waiting:
            variable = waiting.pop()
            if variable not in wanted and variable.region not in (region, None):
                wanted.append(variable)
                by_value = not variable.is_kept or (variable.is_auto and not self._is_number(variable))
                waiting += self.uses.variables(variable.value) if by_value else []
        wanted.sort(key=lambda v: v.start)
        return "".join(self.reference(v) if v.is_kept else self.again(v) for v in wanted)

    def again(self, variable: Variable) -> str:
        """It is const, so that g++ tells of a change that nobody has seen."""
        assert variable.value is not None  # it is computed again
        kind = "auto" if variable.is_auto else self.type_of(variable)
        constant = "const " if not variable.stars and "const" not in kind.split() else ""
        after = " const" if variable.stars else ""
        text = " ".join(self.text_of(variable.value).split())
        return f"[[maybe_unused]] {constant}{kind}{after} {variable.name} = {text}; "

    def declaration(self, statement) -> Iterator[tuple[int, int, str]]:
        """The edits of a declaration of variables that are kept."""
        variables = [v for v in self.uses.scopes if v.statement == statement]
        start, end = self.uses.body.place(statement)
        if not all(map(self._is_number, variables)):
            yield from self._moved(variables, start, end)
            return
        shift, text = self.uses.body.shift, self.uses.body.source_text
        references = "".join(map(self.reference, variables))
        declarators = statement.children_by_field_name("declarator")
        for variable, declarator in zip(variables, declarators, strict=True):
            last = variable.start + shift  # of the type, or of the stars before the name
            first = start if variable is variables[0] else declarator.start_byte + shift
            blanks = re.sub(r"\S", " ", text[first:last])
            nothing = "(void)" if variable.value is None else ""
            yield first, last, (references if variable is variables[0] else "") + blanks + nothing

    def _moved(self, variables: list[Variable], start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """What is declared by the user's own words goes to its place. What has no value begins there."""
        text = self.uses.body.source_text
        if all(v.value is None for v in variables):
            begun = (
                f"[[maybe_unused]] auto& {v.name} = ::cuda_host::begin({self.place(v)});" for v in variables
            )
            yield start, end, " ".join(begun) + re.sub(r"[^\n]", "", text[start:end])
            return
        (variable,) = variables
        at = variable.start + self.uses.body.shift
        yield at, at, "caffe_own_"
        own = f"caffe_own_{variable.name}"
        place = self.place(variable)
        if self._is_reference(variable):
            place = f"caffe_kept_{self.variables.index(variable)}"
            yield end, end, f" [[maybe_unused]] auto& {variable.name} = {place}.refer(caffe_t, {own});"
        else:
            yield end, end, f" [[maybe_unused]] auto& {variable.name} = ::cuda_host::keep({place}, {own});"
