"""Asynchronous copies to shared memory: cp.async. Those of Hopper (bulk copies, tensors) are refused."""

from __future__ import annotations

from .loads import without_hints
from .text import Operand, PtxError
from .writer import HOST, NS, Writer, expect, family, none_left, take


@family("cp")
def _cp(w: Writer, words: list[str], ops: list[Operand]) -> str:
    if words[:1] != ["async"] or "bulk" in words or "mbarrier" in words or "reduce" in words:
        raise PtxError("a copy of Hopper's")
    words.pop(0)
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
