"""Read the text of inline PTX: instructions, registers, labels and blocks.

{ .reg .pred p; setp.ne.u32 p, %1, 0; @p ld.global.u32 %0, [%2]; }
"""

from __future__ import annotations

import re
from typing import NamedTuple

PTX = re.compile(
    r"""
      (?P<blank>   \s+ | //[^\n]*(?:\n|\Z) | /\*.*?\*/ )
    | (?P<operand> %\d+ | %\[\w+\] )
    | (?P<float>   0[fF][0-9a-fA-F]{8}(?!\w) | 0[dD][0-9a-fA-F]{16}(?!\w) | \d+\.\d*(?:[eE][-+]?\d+)? )
    | (?P<number>  0[xX][0-9a-fA-F]+U? | 0[bB][01]+U? | \d+U?(?![\w.]) )
    | (?P<name>    %{0,2}[A-Za-z_$][\w$]*(?:(?:\.|::)[\w$]+)* )
    | (?P<dot>     \.[A-Za-z_]\w*(?:(?:\.|::)[\w$]+)* )
    | (?P<punct>   [{}\[\]();,:@!|+\-<>*&=~^] )
    """,
    re.VERBOSE | re.DOTALL,
)


class PtxError(Exception):
    """Why a template cannot be read or written as C++."""


class Operand(NamedTuple):
    """kind: operand (%0), name, number, float: their text. vector, memory (its terms are added), pair (p|q), not (!p),
    negative, comma (of a memory operand with coordinates): their parts."""

    kind: str
    text: str = ""
    parts: tuple[Operand, ...] = ()


class Instruction(NamedTuple):
    opcode: str
    operands: list[Operand]
    guard: tuple[bool, Operand] | None = None  # (negated, predicate)

    @property
    def words(self) -> list[str]:
        return self.opcode.split(".")


class Registers(NamedTuple):
    type: str
    names: list[tuple[str, int]]  # the count of name<count>, or 0


class Label(NamedTuple):
    name: str


class Block(NamedTuple):
    items: list


class PtxReader:
    """Reads the tokens of a template, one after another."""

    def __init__(self, text: str):
        self.tokens: list[tuple[str, str]] = []
        at = 0
        text = text.replace("%=", "")
        while at < len(text):
            match = PTX.match(text, at)
            if not match:
                raise PtxError(f"a template with {text[at : at + 12]!r}")
            if match.lastgroup != "blank":
                self.tokens.append((match.lastgroup or "", match.group()))
            at = match.end()
        self.at = 0

    @property
    def text(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, text: str = "") -> str:
        found = self.text
        if not found or (text and found != text):
            raise PtxError(f"{text or 'more'} expected" + (f" before {found!r}" if found else ""))
        self.at += 1
        return found

    def read_items(self) -> list:
        found = []
        while self.text and self.text != "}":
            if self.text == ";":
                self.take()
            elif self.text == "{":
                self.take()
                found.append(Block(self.read_items()))
                self.take("}")
            elif self.kind == "dot":
                found += self.directive()
            elif self.kind == "name" and self.tokens[self.at + 1 : self.at + 2] == [("punct", ":")]:
                found.append(Label(self.take()))
                self.take()
            else:
                found.append(self.instruction())
        return found

    def directive(self) -> list:
        word = self.take()
        if word.split(".")[1] != "reg":
            if word.startswith((".pragma", ".loc")):
                while self.text and self.take() != ";":
                    pass
                return []
            raise PtxError(f"the directive {word}")
        types = word.split(".")[2:]
        while self.kind == "dot":
            types += self.take().split(".")[1:]
        names = []
        while True:
            name, count = self.take(), 0
            if self.text == "<":
                self.take()
                count = int(self.take())
                self.take(">")
            names.append((name, count))
            if self.text != ",":
                break
            self.take()
        if self.text == ";":
            self.take()
        return [Registers(".".join(types), names)]

    def instruction(self) -> Instruction:
        guard = None
        if self.text == "@":
            self.take()
            negated = self.text == "!"
            if negated:
                self.take()
            guard = negated, self.operand()
        if self.kind != "name":
            raise PtxError(f"an instruction expected before {self.text!r}")
        opcode, operands = self.take(), []
        while self.kind == "dot":  # `add .u32`
            opcode += self.take()
        while self.text and self.text not in (";", "}"):
            operands.append(self.operand())
            if self.text != ",":
                break
            self.take()
        if self.text == ";":
            self.take()
        elif self.text and self.text != "}":
            raise PtxError(f"; expected before {self.text!r}")
        return Instruction(opcode, operands, guard)

    def operand(self) -> Operand:
        one = self.single()
        if self.text == "|":
            self.take()
            one = Operand("pair", "", (one, self.single()))
        return one

    def vector(self) -> Operand:
        self.take("{")
        parts = []
        while self.text != "}":
            parts.append(self.operand())
            if self.text == ",":
                self.take()
        self.take()
        return Operand("vector", "", tuple(parts))

    def memory(self) -> Operand:
        self.take("[")
        base, terms = self.operand(), []
        while self.text in ("+", "-", ","):
            sign = self.take()
            one = self.operand()
            kind = {"-": "negative", ",": "comma"}.get(sign)
            terms.append(Operand(kind, "", (one,)) if kind else one)
        self.take("]")
        return Operand("memory", "", (base, *terms))

    def single(self) -> Operand:
        kind, text = self.kind, self.text
        if text == "{":
            return self.vector()
        if text == "[":
            return self.memory()
        if text in ("!", "-"):
            self.take()
            return Operand("not" if text == "!" else "negative", "", (self.single(),))
        if text == "(":  # a constant expression
            self.take()
            one = self.single()
            self.take(")")
            return one
        if kind in ("operand", "name", "number", "float"):
            self.take()
            return Operand(kind, text)
        raise PtxError(f"an operand expected before {text!r}")


def read_ptx(template: str) -> list:
    """The items of a template: instructions, registers, labels, blocks."""
    reader = PtxReader(template)
    found = reader.read_items()
    if reader.text:
        raise PtxError(f"{reader.text!r} is left over")
    return found
