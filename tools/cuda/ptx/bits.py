"""Bits: logic, shifts, fields, permutations, counts."""

from __future__ import annotations

from .text import Operand
from .writer import FAMILIES, NS, Writer, bits_of, expect, family, flag, none_left, take, take_type


def _logic(operator: str):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        expect(ops, 3)
        kind = take_type(words)
        none_left(words)
        value = f"{w.get(ops[1], kind)} {operator} {w.get(ops[2], kind)}"
        if kind == "bool":
            return f"{w.name(ops[0])} = {value};"
        return w.set(ops[0], f"static_cast<{NS}{kind}>({value})")

    return write


for _root, _operator in {"and": "&", "or": "|", "xor": "^"}.items():
    FAMILIES[_root] = _logic(_operator)


@family("not")
def _not(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 2)
    kind = take_type(words)
    none_left(words)
    if kind == "bool":
        return f"{w.name(ops[0])} = !{w.get(ops[1], kind)};"
    return w.set(ops[0], f"static_cast<{NS}{kind}>(~{w.get(ops[1], kind)})")


@family("cnot")
def _cnot(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 2)
    kind = take_type(words)
    none_left(words)
    return w.set(ops[0], f"static_cast<{NS}{kind}>({w.get(ops[1], kind)} == 0)")


def _shift(root: str):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        expect(ops, 3)
        kind = take_type(words)
        none_left(words)
        kind = bits_of(kind) if root == "shl" else kind
        return w.set(ops[0], f"{NS}{root}<{NS}{kind}>({w.get(ops[1], kind)}, {w.get(ops[2], 'u32')})")

    return write


FAMILIES["shl"], FAMILIES["shr"] = _shift("shl"), _shift("shr")


@family("shf")
def _shf(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 4)
    words.remove("b32")
    left = flag(take(words, "l", "r") == "l")
    clamp = flag(take(words, "clamp", "wrap") == "clamp")
    none_left(words)
    return w.set(ops[0], f"{NS}shf<{left}, {clamp}>({w.gets(ops[1:], 'u32')})")


@family("lop3")
def _lop3(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 5)
    words.remove("b32")
    none_left(words)
    return w.set(ops[0], f"{NS}lop3({w.gets(ops[1:], 'u32')})")


@family("prmt")
def _prmt(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 4)
    words.remove("b32")
    mode = take(words, "f4e", "b4e", "rc8", "ecl", "ecr", "rc16").capitalize() or "Plain"
    none_left(words)
    return w.set(ops[0], f"{NS}prmt({w.gets(ops[1:], 'u32')}, {NS}k{mode})")


@family("bfe")
def _bfe(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 4)
    kind = take_type(words)
    none_left(words)
    return w.set(ops[0], f"{NS}bfe<{NS}{kind}>({w.get(ops[1], kind)}, {w.gets(ops[2:], 'u32')})")


@family("bfi")
def _bfi(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 5)
    kind = take_type(words)
    none_left(words)
    return w.set(ops[0], f"{NS}bfi<{NS}{kind}>({w.gets(ops[1:3], kind)}, {w.gets(ops[3:], 'u32')})")


@family("bfind")
def _bfind(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 2)
    kind = take_type(words)
    amount = flag(take(words, "shiftamt"))
    none_left(words)
    return w.set(ops[0], f"{NS}bfind<{NS}{kind}>({w.get(ops[1], kind)}, {amount})")


@family("bmsk")
def _bmsk(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 3)
    words.remove("b32")
    clamp = flag(take(words, "clamp", "wrap") == "clamp")
    none_left(words)
    return w.set(ops[0], f"{NS}bmsk<{clamp}>({w.gets(ops[1:], 'u32')})")


@family("fns")
def _fns(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 4)
    words.remove("b32")
    none_left(words)
    return w.set(ops[0], f"{NS}fns({w.gets(ops[1:3], 'u32')}, {w.get(ops[3], 's32')})")


def _counting(function: str):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        expect(ops, 2)
        kind = take_type(words)
        none_left(words)
        return w.set(ops[0], f"{NS}{function}<{NS}{kind}>({w.get(ops[1], kind)})")

    return write


for _root in ("clz", "brev", "popc"):
    FAMILIES[_root] = _counting(_root)
