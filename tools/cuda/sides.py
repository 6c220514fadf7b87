"""What stands left and right of a sign in a function, by its tokens."""

from __future__ import annotations

from .lexer import Token
from .number_types import KEYWORDS, Names, text_of
from .outline import skip_angles, split_commas
from .tokens import LOOP

STATEMENTS = {"if", "for", "while", "switch", "catch"}
NO_NUMBER = {"{", "[", "new", "&", "&&", "delete", "default", ")", ";"}
NO_NUMBERS = {"nullptr", "NULL", "true", "false"}
UNARY = {"*", "&", "++", "--"}


class Sides:
    """Of the tokens [first, last) of a function, or of a macro's text.

    Args:
        space: where the conversions are, in C++.
    """

    def __init__(
        self, tokens: list[Token], partner: dict[int, int], first: int, last: int, names: Names, space: str
    ):
        self.tokens, self.partner, self.names, self.space = tokens, partner, names, space
        self.first, self.last = first, last

    def ends_operand(self, at: int) -> bool:
        """Is this token the last one of an expression or of a type?"""
        token = self.tokens[at]
        if at < self.first:
            return False
        if token.text == ")":
            before = self.tokens[self.partner.get(at, at) - 1]
            return before.text not in STATEMENTS and not LOOP.match(before.text) and "FOR" not in before.text
        if token.kind == "name":
            return token.text not in KEYWORDS
        return token.kind in ("number", "char", "string") or token.text in ("]", ">")

    def left(self, sign: int) -> int | None:
        """The index at which the left side of an assignment begins."""
        tokens, i = self.tokens, sign - 1
        while i >= self.first:
            text = tokens[i].text
            if text in (")", "]"):
                opening = self.partner.get(i)
                if opening is None or opening <= self.first:
                    return None
                if text == ")" and not self.ends_operand(opening - 1):
                    i = opening
                    break
                i = opening - 1
            elif text in ("++", "--"):
                i -= 1
            elif text == ">" and tokens[opening_angle(tokens, self.first, i) - 1].kind == "name":
                i = opening_angle(tokens, self.first, i) - 1
            elif tokens[i].kind == "name" and text not in KEYWORDS:
                if tokens[i - 1].text in (".", "->") or (
                    tokens[i - 1].text == "::" and tokens[i - 2].text == ">"
                ):
                    i -= 2
                elif tokens[i - 1].text == "::":
                    i -= 2 if tokens[i - 2].kind == "name" and tokens[i - 2].text not in KEYWORDS else 1
                    if tokens[i].text == "::":
                        break
                else:
                    break
            else:
                return None
        return self._with_signs(i) if i >= self.first else None

    def _with_signs(self, i: int) -> int:
        """The index of the first sign or cast before an operand."""
        tokens = self.tokens
        while i > self.first:
            opening = self.partner.get(i - 1, i)
            if tokens[i - 1].text in UNARY and not self.ends_operand(i - 2):
                i -= 1
            elif tokens[i - 1].text == ")" and self.is_of_cast(opening, i - 1):
                i = opening
            else:
                break
        return i

    def is_of_cast(self, opening: int, close: int) -> bool:
        """Are these the brackets of `(int*)p`?"""
        inside = self.tokens[opening + 1 : close]
        is_type = all(t.kind == "name" or t.text in ("*", "&", "::", "<", ">") for t in inside)
        return (
            is_type
            and inside[-1:] != []
            and inside[-1].text in ("*", "&")
            and not self.ends_operand(opening - 1)
        )

    def statement(self, at: int) -> int:
        """Where the statement begins that has this token."""
        tokens = self.tokens
        while at > self.first:
            before = tokens[at - 1]
            if before.text in (";", "{", "(", ":") or before.text in KEYWORDS - {"decltype"}:
                break
            if before.text in (")", "]", "}"):
                opening = self.partner.get(at - 1)
                if opening is None or opening < self.first or before.text == "}":
                    break
                if before.text == ")" and not self.ends_operand(at - 1):
                    break
                at = opening
            else:
                at -= 1
        return at

    def is_declaration(self, begin: int, after: int) -> bool:
        token = self.tokens[begin]
        return after > begin and not (after == begin + 1 and self.names.is_variable(token.text))

    def constructs(self, text: str) -> bool:
        """Is it a class that a number may become?"""
        return self.names.types.constructors.is_made(text)

    def is_one(self, opening: int) -> bool:
        """Is there one argument in these brackets?"""
        return len([*split_commas(self.tokens, self.partner, opening + 1, self.partner[opening])]) == 1

    def is_object(self, begin: int, end: int) -> bool:
        """Is an expression surely an object of one of the files' classes?"""
        types, first, after = self.names.types, self.tokens[begin].text, self.tokens[begin + 1].text
        if end == begin + 1:
            return first in self.names.objects
        if after not in ("(", "{", "<"):
            return False
        returning = (one.words for one in types.signatures.get(first, []))
        known = types.constructors.bodies.keys() | types.constructors.names
        return first in types.constructors.names or any(words & known for words in returning)

    def type_of(self, start: int, end: int) -> str | None:
        """decltype of a left side."""
        tokens = self.tokens
        words = [t for t in tokens[start:end] if t.kind == "name"]
        if not words or words[0].text in self.names.reals or words[0].text in KEYWORDS | {"auto"}:
            return None
        for i in range(start, end - 1):  # `int (*f)(int) = g` declares
            if tokens[i].text == "(" and tokens[i + 1].text in ("*", "&") and i > start:
                return None
        return f"::cuda_host::gpu_plain<decltype({text_of(tokens[start:end])})>"

    def end(self, at: int) -> int:
        """The index after the expression that begins there."""
        tokens = self.tokens
        while at < self.last and tokens[at].text not in (";", ",", ")", "]", "}"):
            if tokens[at].text == "<":
                at = skip_angles(tokens, self.partner, at, self.last)
            else:
                at = self.partner.get(at, at) + 1 if tokens[at].text in ("(", "[", "{") else at + 1
        return at

    def is_clear(self, begin: int, end: int) -> bool:
        """Is an expression surely no real number?"""
        tokens = self.tokens
        if begin >= end or tokens[begin].text in NO_NUMBER or tokens[begin].kind == "string":
            return True
        if any(t.text == "..." for t in tokens[begin:end]):
            return True
        if {t.text for t in tokens[begin:end]} - {"(", ")"} <= NO_NUMBERS:
            return True  # a pointer takes NULL itself, and no number that has its value
        if (
            end == begin + 1 and tokens[begin].text in self.names.types.signatures
        ):  # a function, maybe of several
            return not self.names.is_variable(tokens[begin].text)
        return self.names.are_whole(tokens[begin:end])


def opening_angle(tokens: list[Token], head: int, at: int) -> int:
    """The index of the `<` that the `>` at `at` closes."""
    depth = 0
    while at > head:
        depth += tokens[at].text.count(">") - (tokens[at].text == "<")
        if depth <= 0:
            break
        at -= 1
    return at
