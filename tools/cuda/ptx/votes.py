"""Warps and blocks: barriers, votes, shuffles, jumps, and what ends a kernel."""

from __future__ import annotations

from .text import Operand, PtxError
from .writer import HOST, NS, Writer, expect, family, flag, none_left, take, take_type, word_of


@family("bra")
def _bra(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 1)
    take(words, "uni")
    none_left(words)
    if ops[0].kind != "name" or not any(ops[0].text in labels for labels in w.labels):
        raise PtxError("its label")
    return f"goto {word_of(ops[0].text)};"


@family("trap", "brkpt")
def _trap(w: Writer, words: list[str], ops: list[Operand]) -> str:
    none_left(words)
    return f"{HOST}trap();"


@family("pmevent", "griddepcontrol", "setmaxnreg")
def _nothing(w: Writer, words: list[str], ops: list[Operand]) -> str:
    """A kernel begins when the one before it has ended, and registers have no number here."""
    return ";"


@family("bar", "barrier")
def _bar(w: Writer, words: list[str], ops: list[Operand]) -> str:
    if words == ["warp", "sync"]:
        expect(ops, 1)
        return f"::__syncwarp({w.get(ops[0], 'u32')});"
    take(words, "cta")
    take(words, "aligned")
    kind = take(words, "sync", "arrive", "red")
    if kind == "red":
        return _bar_red(w, words, ops)
    none_left(words)
    expect(ops, *((1, 2) if kind == "sync" else (2,)))
    number, threads = w.get(ops[0], "u32"), w.get(ops[1], "u32") if len(ops) > 1 else "0u"
    return f"{HOST}named_barrier({number}, {threads}, {flag(kind == 'sync')});"


def _bar_red(w: Writer, words: list[str], ops: list[Operand]) -> str:
    operation = take(words, "popc", "and", "or")
    take(words, "u32", "pred")
    none_left(words)
    if len(ops) != 3 or ops[1].text != "0":
        raise PtxError("named barriers")
    call = {"popc": "count", "and": "and", "or": "or"}[operation]
    value = f"::__syncthreads_{call}({w.get(ops[2], 'bool')})"
    return w.set(ops[0], f"static_cast<{NS}u32>({value})" if operation == "popc" else f"{value} != 0")


@family("vote")
def _vote(w: Writer, words: list[str], ops: list[Operand]) -> str:
    take(words, "b32", "pred")
    sync, how = bool(take(words, "sync")), words.pop()
    none_left(words)
    expect(ops, 3 if sync else 2)
    mask, p = w.get(ops[2], "u32") if sync else "0xffffffffu", w.get(ops[1], "bool")
    if how == "ballot":
        return w.set(ops[0], f"::__ballot_sync({mask}, {p})")
    if how == "uni":
        return f"{w.name(ops[0])} = {NS}uniform({mask}, {p});"
    if how in ("all", "any"):
        return f"{w.name(ops[0])} = ::__{how}_sync({mask}, {p});"
    raise PtxError(f".{how}")


@family("match")
def _match(w: Writer, words: list[str], ops: list[Operand]) -> str:
    kind = take_type(words)
    take(words, "sync")
    how = words.pop()
    none_left(words)
    expect(ops, 3)
    mask, value = w.get(ops[2], "u32"), w.get(ops[1], kind)
    if how == "any":
        return w.set(ops[0], f"::__match_any_sync({mask}, {value})")
    if how != "all":
        raise PtxError(f".{how}")
    to, p = ops[0].parts if ops[0].kind == "pair" else (ops[0], None)
    text = f"{{ int ptx_all; const {NS}u32 ptx_same = ::__match_all_sync({mask}, {value}, &ptx_all); "
    text += w.set(to, "ptx_same") + (f" {w.name(p)} = ptx_all != 0;" if p else "")
    return text + " }"


@family("shfl")
def _shfl(w: Writer, words: list[str], ops: list[Operand]) -> str:
    words.remove("b32")
    sync = take(words, "sync")
    how = {"idx": "kIdx", "up": "kUpwards", "down": "kDownwards", "bfly": "kBfly"}[words.pop()]
    none_left(words)
    expect(ops, 5 if sync else 4)
    mask = w.get(ops[4], "u32") if sync else "0xffffffffu"
    to, valid = ops[0], "nullptr"
    if ops[0].kind == "pair":
        to, valid = ops[0].parts[0], "&" + w.name(ops[0].parts[1])
    return f"{NS}shfl({w.name(to)}, {valid}, {NS}{how}, {w.gets(ops[1:4], 'u32')}, {mask});"


@family("redux")
def _redux(w: Writer, words: list[str], ops: list[Operand]) -> str:
    kind = take_type(words)
    take(words, "sync")
    how = words.pop()
    none_left(words)
    expect(ops, 3)
    if kind not in ("u32", "s32"):
        raise PtxError("." + kind)
    return w.set(ops[0], f"::__reduce_{how}_sync({w.get(ops[2], 'u32')}, {w.get(ops[1], kind)})")


@family("elect")
def _elect(w: Writer, words: list[str], ops: list[Operand]) -> str:
    none_left([word for word in words if word != "sync"])
    expect(ops, 2)
    lane, p = ops[0].parts
    mask = w.get(ops[1], "u32")
    text = f"{{ const {NS}u32 ptx_first = static_cast<{NS}u32>(__builtin_ctz(::__ballot_sync({mask}, 1))); "
    text += "" if lane.text == "_" else w.set(lane, "ptx_first") + " "
    return text + w.set(p, f"{NS}laneid() == ptx_first") + " }"
