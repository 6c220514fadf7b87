"""Find the arguments by which a call may convert a real number to an integer.

    f(x), where f takes an int   f(::cuda_host::gpu_into<int> = x)
    object[x]                    object[::cuda_host::gpu_whole = x]
    op(x), of an object          op(::cuda_host::gpu_into<::cuda_host::gpu_takes<decltype(op), 0>> = x)

The files' own functions are known by their heads. Of several with one name, all that fit must take the same type there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .casts import Edit
from .constructors import ClassType
from .number_types import REALS, Signature, text_of, type_at
from .outline import skip_angles, split_commas
from .sides import Sides, opening_angle

ACCESS = (".", "->", "::")
# Whatever integer is taken there; the same, unless the function takes a real number.
WHATEVER, CHOSEN = "::cuda_host::gpu_whole", "::cuda_host::gpu_whole_unless("


class Call(NamedTuple):
    """A call of a function of the files, or an object that is made: `name<given>(...)`, `Class name(...)`."""

    at: int  # the name
    opening: int
    callee: str  # the name, with its scope and what its template is given
    signatures: list[Signature]
    given: list[str]
    is_own: bool  # no member of an object, and no name of a scope
    is_class: bool


class Arguments(Sides):
    """The arguments of calls."""

    def edits(self) -> Iterator[Edit]:
        tokens = self.tokens
        for i in range(self.first, self.last - 1):
            if tokens[i].kind == "name":
                yield from self._call(i)
            elif tokens[i].text == ")" and tokens[i + 1].text == "(":
                yield from self._called(i)
            elif tokens[i].text == "[" and self.names.types.has_whole_indices:
                yield from self._index(i)

    def _index(self, opening: int) -> Iterator[Edit]:
        """`object[x]`, and not the size of an array."""
        tokens, close = self.tokens, self.partner.get(opening)
        if close is None or not self.ends_operand(opening - 1) or self.is_clear(opening + 1, close):
            return
        if tokens[opening - 1].text == "auto":  # auto [a, b] = c
            return
        begin = self.statement(opening)
        declared = type_at(tokens, self.partner, begin, opening)
        if (
            declared is not None
            and tokens[declared[1]].text != "("
            and "=" not in {t.text for t in tokens[begin:opening]}
        ):
            return
        yield tokens[opening].end, tokens[opening].end, f"{WHATEVER} = "

    def _call(self, at: int) -> Iterator[Edit]:
        """The arguments of a function of the files, or of an object that is called, where `at` is its name."""
        tokens, names = self.tokens, self.names
        signatures, given = names.types.constructors.of(tokens[at].text)
        is_class, is_own = names.types.constructors.has(tokens[at].text), tokens[at - 1].text not in ACCESS
        is_object = names.is_variable(tokens[at].text) and is_own
        if not signatures and not is_object and not is_class:
            return
        end = at + 1
        if tokens[end].text == "<":
            end = skip_angles(tokens, self.partner, end, self.last)
            inside = [token.text for token in tokens[at + 1 : end]]
            closing = sum(text.count(">") for text in inside if text in (">", ">>"))
            if end == at + 2 or closing != inside.count("<"):  # i < (n - 1), Outer<Box<int>>(x)
                return
            given = [text_of(tokens[a:b]) for a, b in split_commas(tokens, self.partner, at + 2, end - 1)]
        names_object = (
            tokens[end].kind == "name"
            and tokens[at].text in names.types.classes | names.types.constructors.names
        )
        opening = end + names_object
        if opening >= self.last or tokens[opening].text not in ("(", "{"):
            return
        if is_object:
            if tokens[opening].text == "(" and not self.ends_operand(at - 1):
                yield from self._arguments(opening, lambda k: self._takes(at, opening, k))
            return
        callee = text_of(tokens[self._scoped(at) : end])
        yield from self._given_to(Call(at, opening, callee, signatures, given, is_own, is_class))

    def of_object(self, at: int, opening: int, of: ClassType) -> Iterator[Edit]:
        """What a constructor is given, where another name than the class's stands before the brackets."""
        signatures, given = self.names.types.constructors.of(of.name)
        given = list(of.arguments) or given
        yield from self._given_to(Call(at, opening, of.text, signatures, given, True, True))

    def _given_to(self, call: Call) -> Iterator[Edit]:
        parts = split_commas(self.tokens, self.partner, call.opening + 1, self.partner.get(call.opening, 0))
        count = len(list(parts))
        fitting = [s for s in call.signatures if s.least <= count <= len(s.takes) and not s.is_pack]
        yield from self._arguments(call.opening, lambda k: self._taken_by(call, fitting, k, count))

    def _taken_by(self, call: Call, fitting: list[Signature], k: int, count: int) -> str | None:
        """What a call takes there: an integer type, or what C++ finds out."""
        different = {(s.takes[k], s.templates, s.of_class): s for s in fitting}
        every = {self._taken(s, k, call.given, call.is_own) for s in different.values()}
        one = next(iter(every)) if len(every) == 1 else None
        if (
            one is None
            and call.is_class
            and count == 1
            and self.names.types.constructors.is_made(call.callee)
        ):
            return None if self._declares(call.opening) else call.callee
        if one is None and len(every) > 0 and None not in every:
            return WHATEVER
        if one is None and self._is_chosen_by_others(fitting, k):
            return self._chosen(call, k)
        if one is not None or call.is_class:
            return one
        if len(call.signatures) == 1 and fitting and self._is_made_of(fitting[0], k):
            takes = f"::cuda_host::gpu_takes<decltype({call.callee}), {k}>"
            return takes if call.is_own else self._of_member(call.at, call.opening, k)
        scopes = [s.scope for s in call.signatures]
        alone = len(set(scopes)) == len(scopes) and () not in scopes  # in its class
        alone = alone and not any(s.templates or s.is_pack for s in call.signatures)
        unclear = any(
            s.takes[k].split()[-1] in s.of_class or self.names.types.may_be_whole(s.takes[k])
            for s in different.values()
        )
        return self._of_member(call.at, call.opening, k) if alone and unclear else None

    def _is_made_of(self, signature: Signature, k: int) -> bool:
        """Does a function take an object there that a number may become?"""
        text = signature.takes[k]
        text = text.removesuffix("&").strip() if "const" in text.split() else text
        return not signature.templates and self.constructs(text)

    def _scoped(self, at: int) -> int:
        """The index at which `ns::Name` begins, where `at` is the name."""
        tokens = self.tokens
        while at > self.first + 1 and tokens[at - 1].text == "::" and tokens[at - 2].kind == "name":
            at -= 2
        return at

    def _declares(self, opening: int) -> bool:
        """Are these the brackets of a constructor's declaration: `Cell(float x)`, `Cell(const Cell&)`?"""
        tokens, close = self.tokens, self.partner[opening]
        found = type_at(tokens, self.partner, opening + 1, close)
        if found is not None and self.is_declaration(opening + 1, found[1]):
            return True
        inside = tokens[opening + 1 : close]
        return inside[-1].text in ("&", "&&", "*") or self.names.is_type(text_of(inside))

    def _is_chosen_by_others(self, fitting: list[Signature], k: int) -> bool:
        """Do some of these functions take an integer there, others a real number, and something else elsewhere?"""
        wholes = [s for s in fitting if self.names.types.whole(s.takes[k])]
        reals = [s for s in fitting if set(s.takes[k].split()) & REALS and "*" not in s.takes[k]]
        plain = not any(s.templates or s.of_class for s in fitting)
        others = {tuple(t for i, t in enumerate(s.takes) if i != k) for s in (*wholes, *reals)}
        return bool(wholes and reals) and plain and len(others) > 1

    def _chosen(self, call: Call, k: int) -> str:
        """Asks C++ whether the call with a real number there has a function of its own."""
        tokens, start = self.tokens, None
        parts = [*split_commas(tokens, self.partner, call.opening + 1, self.partner[call.opening])]
        texts = ["caffe_x" if i == k else text_of(tokens[a:b]) for i, (a, b) in enumerate(parts)]
        if not call.is_own and not call.is_class:
            start = self.left(call.opening)
        head = call.callee if start is None else text_of(tokens[start : call.opening])
        return f"{CHOSEN}[&](auto caffe_x) -> decltype((void){head}({', '.join(texts)})) {{}})"

    def _called(self, close: int) -> Iterator[Edit]:
        """`To<int>()(x)`, where `close` ends the callee."""
        tokens, start = self.tokens, self.partner.get(close, close) - 1
        if start != close - 2 or start < self.first:
            return
        if tokens[start].text == ">":
            start = opening_angle(tokens, self.first, start) - 1
        if tokens[start - 1].text in (".", "->", "::"):
            start = self.left(close + 1)
        if start is not None and tokens[start].kind == "name" and not self.ends_operand(start - 1):
            yield from self._arguments(close + 1, lambda k: self._takes(start, close + 1, k))

    def _arguments(self, opening: int, taken) -> Iterator[Edit]:
        tokens, close = self.tokens, self.partner.get(opening, opening)
        for k, (begin, end) in enumerate(split_commas(tokens, self.partner, opening + 1, close)):
            one = None if self.is_clear(begin, end) else taken(k)
            if one:
                of = one if one.startswith("::cuda_host::gpu_whole") else f"{self.space}gpu_into<{one}>"
                yield tokens[begin].start, tokens[begin].start, f"{of} = "

    def _takes(self, start: int, end: int, k: int) -> str:
        return f"::cuda_host::gpu_takes<decltype({text_of(self.tokens[start:end])}), {k}>"

    def _of_member(self, at: int, opening: int, k: int) -> str | None:
        """What `object.set(x)` takes, where a class's template decides it."""
        tokens, sign = self.tokens, self.tokens[at - 1].text
        start = self.left(at - 1) if sign in (".", "->") and opening == at + 1 else None
        if sign == "::" and opening == at + 1:
            start = self.left(opening)
            if start is None:
                return None
            return f"::cuda_host::gpu_takes<decltype(&{text_of(tokens[start:opening])}), {k}>"
        if start is None:
            return None
        text = text_of(tokens[start : at - 1])
        owner = f"::cuda_host::gpu_plain<decltype({text if sign == '.' else f'*({text})'})>"
        return f"::cuda_host::gpu_takes<decltype(&{owner}::{tokens[at].text}), {k}>"

    def _taken(self, signature: Signature, k: int, given: list[str], is_own: bool) -> str | None:
        """The integer type that a function takes there."""
        text = signature.takes[k]
        if "const" in text.split():
            text = text.removesuffix("&").strip()
        word = text.removeprefix("const ").removesuffix(" const")
        if word in signature.of_class and word in self.names.templates and is_own:
            return word
        if word in signature.parameters and signature.is_constructor:
            place = signature.parameters.index(word)
            return self._given(given[place]) if place < len(given) else None
        if word in signature.templates:
            place = signature.templates.index(word)
            return self._given(given[place]) if place < len(given) else None
        return self.names.types.whole(text)

    def _given(self, text: str) -> str | None:
        return text if self.names.types.may_be_whole(text) and not self.constructs(text) else None
