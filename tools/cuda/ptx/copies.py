"""Asynchronous copies: cp.async, and Hopper's of bytes (cp.async.bulk). Its copies of tensors are refused."""

from __future__ import annotations

from .loads import without_hints
from .text import Operand, PtxError
from .writer import HOST, NS, Writer, expect, family, flag, none_left, take


@family("cp")
def _cp(w: Writer, words: list[str], ops: list[Operand]) -> str:
    if words[:1] != ["async"] or {"tensor", "prefetch", "reduce"} & {*words}:
        raise PtxError("a copy of Hopper's")
    words.pop(0)
    if take(words, "bulk"):
        return _bulk(w, words, ops)
    if words[:2] == ["mbarrier", "arrive"]:
        return _arrive(w, words[2:], ops)
    if words == ["commit_group"]:
        return f"{HOST}async_commit();"
    if words == ["wait_all"]:
        return f"{HOST}async_wait(-1);"
    if words == ["wait_group"]:
        expect(ops, 1)
        return f"{HOST}async_wait({w.get(ops[0], 's32')});"
    if take(words, "L2::cache_hint"):
        ops.pop()
    without_hints(words)
    none_left([word for word in words if word not in ("shared", "shared::cta", "global")])
    expect(ops, 3, 4)
    size = w.get(ops[2], "u32")
    given = w.value(ops[3]) if len(ops) > 3 else size
    return f"{NS}cp_async({w.address(ops[0], 'shared')}, {w.address(ops[1], 'global')}, {size}, {given});"


def _arrive(w: Writer, words: list[str], ops: list[Operand]) -> str:
    """cp.async.mbarrier.arrive: the copies of this thread so far."""
    is_expected = bool(take(words, "noinc"))
    none_left([word for word in words if word not in ("shared", "shared::cta", "b64")])
    expect(ops, 1)
    space = "shared" if {"shared", "shared::cta"} & {*words} else ""
    return f"{NS}mbarrier_arrive_with_copies({w.address(ops[0], space)}, {flag(is_expected)});"


def _bulk(w: Writer, words: list[str], ops: list[Operand]) -> str:
    if words == ["commit_group"]:
        return f"{HOST}bulk_commit();"
    if words[:1] == ["wait_group"]:
        none_left([word for word in words[1:] if word != "read"])
        expect(ops, 1)
        return f"{HOST}bulk_wait({w.get(ops[0], 's32')});"
    if take(words, "L2::cache_hint"):
        ops.pop()
    if words in (["global", "shared", "bulk_group"], ["global", "shared::cta", "bulk_group"]):
        expect(ops, 3)
        to, from_ = w.address(ops[0], "global"), w.address(ops[1], "shared")
        return f"{NS}bulk_store({to}, {from_}, {w.get(ops[2], 'u32')});"
    if words not in (
        [to, "global", "mbarrier::complete_tx::bytes"] for to in ("shared::cluster", "shared::cta")
    ):
        raise PtxError("this form")
    expect(ops, 4)
    to, from_, barrier = w.address(ops[0], "shared"), w.address(ops[1], "global"), w.address(ops[3], "shared")
    return f"{NS}bulk_copy({to}, {from_}, {w.get(ops[2], 'u32')}, {barrier});"
