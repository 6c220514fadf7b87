"""Find where device code may convert a real number to an integer without a cast, and say what it converts by.

    int k = x, T k(x), k = x    int k = ::cuda_host::gpu_into<int> = x
    k += x                      k += ::cuda_host::gpu_onto<...> = x
    k <<= n                     k <<= ::cuda_host::gpu_by<...> = n
    return x                    return ::cuda_host::gpu_into<int> = x
    int2 k = {x, y}             int2 k = {::cuda_host::gpu_into<int> = x, ...}

C++ knows the types (include/host/cuda_convert.h), so nothing changes where no real number becomes an integer. Left out
is what is surely none: a left side of real numbers, a right side of integers. If it is unclear what stands left of a
sign, nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .casts import Edit
from .lexer import Token
from .number_types import KEYWORDS, QUALIFIERS, SIZES, VECTORS, Types, text_of, type_at
from .outline import Function, skip_angles, split_commas
from .shifts import is_small
from .sides import UNARY, Sides, opening_angle
from .source import Source
from .tokens import position_from

ARITHMETIC = {"+=", "-=", "*=", "/="}
SHIFTS = {"<<=", ">>="}
ACCESS = {"public", "private", "protected"}
NOT_LEFT = {"using", "namespace", "typename", "class", "operator", "enum", "struct"}


class Assignments(Sides):
    """Of the tokens [first, last) of a function, or of a macro's text."""

    is_statement = False  # is the macro only used as a statement?
    given_types: frozenset[str] = frozenset()  # its parameters that are types

    def edits(self, result: str | None, in_macro: bool = False) -> Iterator[Edit]:
        """
        Args:
            result: the type that the function returns, or None if it is no integer.
        """
        tokens, results, inside = self.tokens, [(self.last, result)], []
        for i in range(self.first, self.last):
            text = tokens[i].text
            while results and i >= results[-1][0]:
                results.pop()
            while inside and i >= inside[-1][1]:
                inside.pop()
            kind_before = inside[-1][0] if inside else ""
            if text in ("[", "{", "(") and i in self.partner:
                inside.append((self._kind(i), self.partner[i]))
                if text == "{" and inside[-1][0] == "lambda":
                    results.append((self.partner[i], self._result_of_lambda(i)))
                elif text == "(" and kind_before == "class" and i > self.first + 2:
                    yield from self._initialiser(i)
                elif text == "{" and len(inside) > 1 and inside[-2][0] == "class":
                    results.append((self.partner[i], self._result_of_member(i)))
            kind = inside[-1][0] if inside else ""
            if text == "=" and kind not in ("[", "enum"):
                yield from self._assignment(i, in_macro)
            elif text in ARITHMETIC:
                yield from self._compound(i, "onto")
            elif text in SHIFTS and not (is_small(tokens[i + 1]) and tokens[i + 2].text in (";", ")", ",")):
                yield from self._compound(i, "by")
            elif text == "return" and not in_macro and results and results[-1][1]:
                yield from self._return(i, results[-1][1])
            elif text in self.names.types.returning and results and results[-1][1]:
                yield from self._returned(i, results[-1][1])
            elif (
                tokens[i].kind == "name"
                and not in_macro
                and i + 1 < self.last
                and tokens[i + 1].text in ("(", "{")
            ):
                yield from self._direct(i)

    def members(self) -> Iterator[Edit]:
        """`int a = x;`, `int a{x};` of a class with these tokens as its body. What is static is constant."""
        tokens, i = self.tokens, self.first
        while i < self.last:
            text = tokens[i].text
            is_value, is_braced = text == "=", tokens[i].kind == "name" and tokens[i + 1].text == "{"
            constant = ("static", "constexpr")
            if (is_value or is_braced) and not any(t.text in constant for t in tokens[self.statement(i) : i]):
                yield from self._assignment(i, in_macro=False) if is_value else self._direct(i)
            if text == "template" and tokens[i + 1].text == "<":  # its `typename = X` is no member
                i = skip_angles(tokens, self.partner, i + 1, self.last)
            else:
                i = self.partner.get(i, i) + 1 if text in ("(", "[", "{") else i + 1

    def _kind(self, opening: int) -> str:
        """What these brackets are: of a lambda, of a class, of an enum, or only their sign."""
        tokens = self.tokens
        if tokens[opening].text != "{":
            return tokens[opening].text
        at = opening - 1
        while at > self.first and tokens[at].text not in (";", "{", "}", "(", ",", "=", ")", "]"):
            at -= 1
        head = {t.text for t in tokens[at:opening]}
        if "enum" in head:
            return "enum"
        if head & {"struct", "class", "union"} and tokens[opening - 1].text not in ("=", ")"):
            return "class"
        if tokens[at].text == ")" and tokens[self.partner.get(at, at) - 1].text == "]":
            return "lambda"
        return "lambda" if tokens[at].text == "]" and at == opening - 1 else "{"

    def _result_of_lambda(self, opening: int) -> str | None:
        tokens, at = self.tokens, opening - 1
        while at > self.first and tokens[at].text not in ("->", ")", "]"):
            at -= 1
        text = text_of(tokens[at + 1 : opening])
        return text if tokens[at].text == "->" and self.names.types.may_be_whole(text) else None

    def _result_of_member(self, opening: int) -> str | None:
        """The result of a function of a class in a function."""
        begin, close = self.statement(opening), opening - 1
        while close > begin and self.tokens[close].text != ")":
            close -= 1
        name = self.partner.get(close, begin + 1) - 1
        text = _before(self.tokens, begin, name) if name > begin else ""
        return text if text and self.names.types.may_be_whole(text) else None

    def _initialiser(self, opening: int) -> Iterator[Edit]:
        """`L(float x) : a(x)` of a class in a function."""
        tokens, close = self.tokens, self.partner[opening]
        starts = tokens[opening - 2].text in (":", ",") and tokens[opening - 3].text not in ACCESS
        if starts and tokens[opening - 1].kind == "name" and not self.is_clear(opening + 1, close):
            target = f"::cuda_host::gpu_plain<decltype({tokens[opening - 1].text})>"
            yield tokens[opening].end, tokens[opening].end, f"{self.space}gpu_into<{target}> = "

    def _target(self, sign: int, start: int, is_list: bool) -> str | None:
        """The type of the left side, as C++ finds it; None if nothing should be written."""
        tokens = self.tokens
        before = tokens[start - 1].text if start else ""
        begin = self.statement(start)
        found = type_at(tokens, self.partner, begin, start + 1)
        plain = sign - start == 1 or (is_list and tokens[start + 1].text == "[")
        if before in NOT_LEFT or any(t.text in ("auto", "using") for t in tokens[max(begin - 1, 0) : start]):
            return None
        declares = found is not None and self.is_declaration(begin, found[1])
        if declares and (self.ends_operand(start - 1) or before == "," or before in UNARY | {"&&"}):
            assert found is not None
            is_bound = before == "&" and any(t.text == "const" for t in tokens[begin:start])
            if is_bound and plain and self.names.types.may_be_whole(found[0]):
                return "&" + found[0]
            if not plain or before in UNARY | {"&&"}:
                return None
            if self.names.types.constructors.is_deduced(found[0], tokens, sign):
                return None
            return found[0] if is_list or self.names.types.may_be_whole(found[0]) else None
        if self.ends_operand(start - 1) or before in ("*", "&", "&&", "::", ".", "->"):
            return None
        return self.type_of(start, sign)

    def _assignment(self, sign: int, in_macro: bool) -> Iterator[Edit]:
        tokens, after = self.tokens, sign + 1
        if after >= self.last or tokens[sign - 1].text == "operator":
            return
        end = self.end(after)
        if in_macro and (end >= self.last or tokens[end].text != ";") and not self.is_statement:
            return
        start = self.left(sign)
        if start is None or (start > self.first and tokens[start - 1].text.startswith("#")):
            return  # of `k##name = x` only the preprocessor knows the left side
        is_list = tokens[after].text == "{"
        if self.is_clear(after, end) and not is_list:
            return
        target = self._target(sign, start, is_list)
        if target is None:
            return
        if not is_list and self.constructs(target.removeprefix("&")) and self.is_object(after, end):
            return
        if is_list:
            if not target.startswith("::cuda_host"):
                yield from self.list_of(after, target)
        elif target.startswith("&"):
            yield self._behind(sign, f"{self.space}gpu_bound<{target[1:]}> =")
        elif not in_macro or target.startswith("::cuda_host") or target in self.given_types:
            yield self._behind(sign, f"{self.space}gpu_into<{target}> =")

    def _behind(self, sign: int, text: str) -> Edit:
        """Insert behind a sign; on the operand's line, because its reads get the place of what takes them."""
        at, operand = self.tokens[sign].end, self.tokens[sign + 1].start
        return (at, at, f" {text}") if operand <= at + 1 else (operand, operand, f"{text} ")

    def _compound(self, sign: int, name: str) -> Iterator[Edit]:
        tokens, start = self.tokens, self.left(sign)
        if start is None or self.ends_operand(start - 1) or tokens[start - 1].text in (".", "->", "::"):
            return
        if name == "onto" and self.is_clear(sign + 1, self.end(sign + 1)):
            return
        target = self.type_of(start, sign)
        if target is not None:
            space = self.space if name == "onto" else "::cuda_host::"
            yield self._behind(sign, f"{space}gpu_{name}<{target}> =")

    def _return(self, at: int, result: str) -> Iterator[Edit]:
        tokens, end = self.tokens, self.end(at + 1)
        if tokens[at + 1].text == "{":
            yield from self.list_of(at + 1, result)
        elif not self.names.types.may_be_whole(result) or (
            self.constructs(result) and self.is_object(at + 1, end)
        ):
            return
        elif end < self.last and tokens[end].text == ";" and not self.is_clear(at + 1, end):
            yield self._behind(at, f"{self.space}gpu_into<{result}> =")

    def _returned(self, at: int, result: str) -> Iterator[Edit]:
        """`RETURN(x)`, of a macro that is `return x`."""
        tokens, close = self.tokens, self.partner.get(at + 1, at)
        if close > at + 2 and not self.is_clear(at + 2, close) and self.names.types.may_be_whole(result):
            yield tokens[at + 2].start, tokens[at + 2].start, f"{self.space}gpu_into<{result}> = "

    def list_of(self, opening: int, target: str, is_array: bool = False) -> Iterator[Edit]:
        """`{x, y}` of integers, or of a plain struct."""
        close = self.partner.get(opening)
        if close is None:
            return
        parts = list(split_commas(self.tokens, self.partner, opening + 1, close))
        name = target.split("<")[0].split("::")[-1].strip()
        fields = self.names.types.fields.get(name)
        for k, (begin, end) in enumerate(parts):
            if self.tokens[begin].text == "{":
                if fields is None:
                    yield from self.list_of(begin, target)
                continue
            of = target
            if fields is not None:
                of = f"::cuda_host::gpu_plain<decltype({target}::{fields[k]})>" if k < len(fields) else ""
            elif name in VECTORS:
                of = VECTORS[name]
            elif not self.names.types.may_be_whole(target) or (
                self.constructs(target) and not is_array and not self._is_argument(opening)
            ):
                return
            if of and not self.is_clear(begin, end) and self.tokens[begin].text != ".":
                start = self.tokens[begin].start
                yield start, start, f"{self.space}gpu_into<{of}> = "

    def _is_argument(self, opening: int) -> bool:
        """Is a class's list one argument of a constructor, or of an array?"""
        before = self.tokens[opening - 2 if self.tokens[opening - 1].text == "=" else opening - 1]
        return before.text == "]" or self.is_one(opening)

    def _direct(self, at: int) -> Iterator[Edit]:
        """`int k(x)`, `int k{x}`, `int k[]{x}`, `Cell{x}`, where `at` is k or Cell."""
        tokens, opening = self.tokens, at + 1
        close = self.partner.get(opening)
        if close is None or tokens[at].text in KEYWORDS or close >= self.last:
            return
        is_list = tokens[opening].text == "{"
        if is_list and (tokens[at].text in self.names.types.fields or tokens[at].text in VECTORS):
            if tokens[at - 1].text not in ("struct", "class", "union", "enum"):
                yield from self.list_of(opening, tokens[at].text)
            return
        begin = self.statement(at)
        found = type_at(tokens, self.partner, begin, at + 1)
        if found is None or found[1] != at or tokens[close + 1].text not in (";", ","):
            return
        if not self.is_declaration(begin, at) or "auto" in found[0]:
            return
        if self.constructs(found[0]):
            return  # see arguments.py
        if is_list:
            yield from self.list_of(opening, found[0])
        elif self.names.types.may_be_whole(found[0]) and not self.is_clear(opening + 1, close):
            one = len(list(split_commas(tokens, self.partner, opening + 1, close))) == 1
            if one and type_at(tokens, self.partner, opening + 1, close) is None:
                yield tokens[opening].end, tokens[opening].end, f"{self.space}gpu_into<{found[0]}> = "


def result_of(source: Source, function: Function, types: Types) -> str | None:
    """The type that a function returns, or None if it is certainly no integer."""
    tokens = source.lexed.tokens
    at, head, body = (position_from(tokens, offset) for offset in (function.at, function.head, function.body))
    arrows = [i for i in range(at, body) if tokens[i].text == "->"]
    if function.is_kernel:
        return None
    if arrows:
        text = text_of(tokens[arrows[-1] + 1 : body])
    elif any(t.text == "operator" for t in tokens[max(head, at - 4) : at + 1]) and tokens[at + 1].text != "=":
        first = next(i for i in range(at, head - 1, -1) if tokens[i].text == "operator") + 1
        last = next(i for i in range(at, body) if tokens[i].text == "(")
        converts = first < last and tokens[first].kind == "name"  # operator int()
        text = text_of(tokens[first:last]) if converts else _before(tokens, head, at)
    else:
        text = _before(tokens, head, at)
    is_type = text and text not in types.device_words | QUALIFIERS
    return text if is_type and (types.may_be_whole(text) or has_fields(text, types)) else None


def has_fields(text: str, types: Types) -> bool:
    """Is it a plain struct of the files, or a vector of integers?"""
    name = text.split("<")[0].split("::")[-1].strip()
    return (name in types.fields or name in VECTORS) and not re.search(r"[*&]", text)


def _before(tokens: list[Token], head: int, at: int) -> str:
    """The type before a function's name."""
    while at > head and tokens[at - 1].text == "::":  # Scope<T>::name
        at -= 2
        if tokens[at].text == ">":
            at = opening_angle(tokens, head, at) - 1
    end = at
    while at > head and tokens[at - 1].text in SIZES | {"const"}:
        at -= 1
    if at > head + 1 and tokens[at - 1].text == ")":
        opening = next((k for k in range(at - 1, head, -1) if tokens[k].text == "("), head)
        if tokens[opening - 1].text == "decltype":
            return text_of(tokens[opening - 1 : at])
    if at < end:
        return text_of([t for t in tokens[at:end] if t.text != "const"])
    if at > head and tokens[at - 1].text == ">":
        at = opening_angle(tokens, head, at - 1)
    if at > head and tokens[at - 1].kind == "name":
        at -= 1
        while at - 1 > head and tokens[at - 1].text == "::":
            at -= 2
            if tokens[at].text == ">":
                at = opening_angle(tokens, head, at) - 1
        if tokens[at - 1].text == "typename" and at > head:
            at -= 1
    return text_of(tokens[at:end])
