"""The guard of a kernel: the `if` before all that it does, which lets a stretch of a row's threads in.

    int i = blockIdx.x * blockDim.x + threadIdx.x;        int c = ..., r = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n) y[i] = x[i];                               if (c >= w || r >= h) return;

If the launcher knows the first and the last thread of a row that come in, it runs those in a loop without the question,
which g++ vectorises (call_blocks in include/host/cuda_launch.h). It asks at both ends of the row. So each comparison
must be true from some thread on, or up to one: the index along x stands alone on one side, and nothing on the other
side depends on it. Everything before the `if`, and in it, is arithmetic on the kernel's own numbers. So the answer is
the same whenever it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from .conditions import Token
from .outline import Function
from .source import Source
from .tokens import position_from

IDENTITY = ("threadIdx", "blockIdx", "blockDim", "gridDim")
ARITHMETIC = {"+", "-", "*", "/", "%", "(", ")"}
COMPARISONS = {"<", ">", "<=", ">="}
EQUALITIES = {"==", "!="}
WORDS_OF_NUMBERS = {
    *("const", "int", "unsigned", "signed", "long", "size_t", "ssize_t", "ptrdiff_t"),
    *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (32, 64)),
}
NUMBER = re.compile(r"(0|[1-9]\d*)[uUlL]*\Z")
SMALL = re.compile(r"\d{1,6}\Z")
# The index along x, without casts.
ALONG_X = {
    f"{b} + {t}" if order else f"{t} + {b}"
    for t in ("threadIdx . x",)
    for b in ("blockIdx . x * blockDim . x", "blockDim . x * blockIdx . x")
    for order in (True, False)
} | {f"( {b} ) + threadIdx . x" for b in ("blockIdx . x * blockDim . x", "blockDim . x * blockIdx . x")}


class Guard(NamedTuple):
    after: int  # offset behind the token before the `if`
    condition: tuple[int, int]  # offsets of what stands in its parentheses
    leaves: bool  # `if (...) return;`: who is not let in
    text: str  # the condition, on one line


class _Variable(NamedTuple):
    type: str
    along: str  # "x": the index along x. "": nothing of it. "?": anything else


def _without_casts(texts: list[str]) -> list[str]:
    found, i = [], 0
    while i < len(texts):
        close = i + 1
        while close < len(texts) and texts[close] in WORDS_OF_NUMBERS:
            close += 1
        if texts[i] == "(" and close > i + 1 and texts[close : close + 1] == [")"]:
            i = close + 1
        else:
            found.append(texts[i])
            i += 1
    return found


class _Reader:
    """Reads the beginning of a kernel's body."""

    def __init__(self, source: Source, function: Function):
        self.source, self.function = source, function
        self.tokens, self.partner = source.lexed.tokens, source.lexed.partner
        self.first = position_from(self.tokens, function.body + 1)
        self.last = position_from(self.tokens, function.end - 1)
        self.variables = {
            p.name: _Variable(p.type, "") for p in function.parameters if self._is_number(p.type.split())
        }

    @staticmethod
    def _is_number(words: list[str]) -> bool:
        return bool(words) and set(words) <= WORDS_OF_NUMBERS and words != ["const"]

    def _along(self, texts: list[str]) -> str | None:
        """How an expression depends on the thread's place along x. None: it may be no arithmetic on numbers."""
        texts, along, i = _without_casts(texts), "", 0
        if " ".join(texts) in ALONG_X:
            return "x"
        before = "("
        while i < len(texts):
            text = texts[i]
            if text in IDENTITY and texts[i + 1 : i + 2] == ["."] and texts[i + 2] in ("x", "y", "z"):
                along = "?" if (text, texts[i + 2]) in (("threadIdx", "x"), ("blockIdx", "x")) else along
                i += 2
            elif text in self.variables:
                along = "?" if self.variables[text].along else along
            elif text in ARITHMETIC:
                if text in ("*", "/", "%") and (before in ARITHMETIC and before != ")"):
                    return None  # the memory at an address
                if text == "(" and before not in ARITHMETIC:
                    return None  # a call
            elif not NUMBER.match(text):
                return None
            before = text
            i += 1
        return along if texts else None

    def _declare(self, i: int) -> int | None:
        """Read a declaration of numbers from here. The index after it."""
        words = []
        while self.tokens[i].text in WORDS_OF_NUMBERS:
            words.append(self.tokens[i].text)
            i += 1
        end = next((j for j in range(i, self.last) if self.tokens[j].text == ";"), None)
        if end is None or not self._is_number(words):
            return None
        texts = [t.text for t in self.tokens[i:end]]
        while texts:
            depth, comma = 0, len(texts)
            for j, text in enumerate(texts):
                depth += (text == "(") - (text == ")")
                if text == "," and depth == 0:
                    comma = j
                    break
            one, texts = texts[:comma], texts[comma + 1 :]
            if len(one) < 3 or one[1] != "=" or not one[0].isidentifier() or one[0] in IDENTITY:
                return None
            along = self._along(one[2:])
            if along is None or one[0] in self.variables:
                return None
            kind = " ".join(word for word in words if word != "const")
            self.variables[one[0]] = _Variable(kind, along)
        return end + 1

    def _terms(self, first: int, last: int, between: str) -> list[list[Token]]:
        """What stands between `&&` or `||`."""
        terms: list[list[Token]] = [[]]
        depth = 0
        for token in self.tokens[first:last]:
            depth += (token.text == "(") - (token.text == ")")
            if token.text == between and depth == 0:
                terms.append([])
            else:
                terms[-1].append(token)
        return terms

    def _is_one_sided(self, term: list[Token]) -> bool:
        """Is this comparison true from one thread of a row on, or up to one, or the same for all?"""
        texts = [token.text for token in term]
        while texts and texts[0] == "(" and texts[-1] == ")" and not {"(", ")"} & set(texts[1:-1]):
            texts = texts[1:-1]
        at = [i for i, text in enumerate(texts) if text in COMPARISONS | EQUALITIES]
        if len(at) != 1:
            return False
        sides = [texts[: at[0]], texts[at[0] + 1 :]]
        along = [self._along(side) for side in sides]
        if along == ["", ""]:
            return True
        if None in along or "" not in along or texts[at[0]] in EQUALITIES:
            return False
        index, other = sides if along[1] == "" else sides[::-1]
        name = self.variables.get(index[0])
        if name is None or name.along != "x":
            return False
        if len(index) == 1:
            return True
        # A sum must not overflow, nor be compared as unsigned.
        numbers = [text for text in other if text not in ARITHMETIC]
        as_int = all(
            SMALL.match(n) or (n in self.variables and self._is_int(self.variables[n].type)) for n in numbers
        )
        return (
            len(index) == 3
            and index[1] in ("+", "-")
            and bool(SMALL.match(index[2]))
            and as_int
            and self._is_int(name.type)
        )

    @staticmethod
    def _is_int(kind: str) -> bool:
        return kind.replace("const", "").strip() == "int"

    def guard(self, macros: Collection[str]) -> Guard | None:
        tokens, i = self.tokens, self.first
        while i is not None and i < self.last and tokens[i].text in WORDS_OF_NUMBERS:
            i = self._declare(i)
        if i is None or i + 1 >= self.last or tokens[i].text != "if" or tokens[i + 1].text != "(":
            return None
        close = self.partner.get(i + 1)
        if close is None or close + 1 >= self.last:
            return None
        if set(macros) & {token.text for token in tokens[self.first : close]}:
            return None
        leaves = [t.text for t in tokens[close + 1 : close + 3]] == ["return", ";"]
        if not leaves and self._end_of_statement(close + 1) != self.last:
            return None
        terms = self._terms(i + 2, close, "||" if leaves else "&&")
        if not all(self._is_one_sided(term) for term in terms):
            return None
        text = " ".join(token.text for token in tokens[i + 2 : close])
        return Guard(tokens[i - 1].end, (tokens[i + 1].end, tokens[close].start), leaves, text)

    def _end_of_statement(self, i: int) -> int:
        """The index after a block, or after a statement that is an expression."""
        if self.tokens[i].text == "{":
            return self.partner.get(i, self.last) + 1
        if self.tokens[i].text in ("if", "for", "while", "do", "switch"):
            return -1
        return next((j + 1 for j in range(i, self.last) if self.tokens[j].text == ";"), -1)


def _has_directives(source: Source, function: Function) -> bool:
    lexed = source.lexed
    return any(function.body < d.start < function.end for d in (*lexed.directives, *lexed.conditions))


def guard_of(source: Source, function: Function, macros: Collection[str]) -> Guard | None:
    """The guard of a kernel whose threads wait for nobody; None: each thread asks for itself."""
    words = {t.text for t in source.lexed.tokens[slice(*_inside(source, function))]}
    if _has_directives(source, function) or words & {"goto", "static", "__shared__"}:
        return None
    return _Reader(source, function).guard(macros)


def _inside(source: Source, function: Function) -> tuple[int, int]:
    tokens = source.lexed.tokens
    return position_from(tokens, function.body + 1), position_from(tokens, function.end - 1)


def counts_along_x(source: Source, function: Function) -> bool:
    """Does the kernel use threadIdx.x and blockIdx.x only as `blockIdx.x * blockDim.x + threadIdx.x`?"""
    first, last = _inside(source, function)
    texts = [t.text for t in source.lexed.tokens[first:last]]
    rest = " ".join(_without_casts(texts))
    for form in sorted(ALONG_X, key=len, reverse=True):
        # Not as a part of a product, or of a difference.
        rest = re.sub(rf"(?<=[=(,\[] ){re.escape(form)}(?= [;),\]])", "", rest)
    return not re.search(r"\b(threadIdx|blockIdx)( \. x| (?!\.)|\Z)", rest)
