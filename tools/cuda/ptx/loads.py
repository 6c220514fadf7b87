"""Loads and stores: ld, st, atom, red, fences, and hints to caches, which do nothing here."""

from __future__ import annotations

import re

from .text import Operand, PtxError
from .writer import (
    FAMILIES,
    HOST,
    NS,
    Writer,
    bits_of,
    expect,
    family,
    flag,
    none_left,
    take,
    take_type,
    vector_of,
    width_of,
)

# Hints to caches.
CACHE = re.compile(r"(ca|cg|cs|lu|cv|wb|wt|nc|weak|L[12]::\w+|level::\w+|evict_\w+|no_allocate|unified)\Z")
ORDERS = ("relaxed", "acquire", "release", "acq_rel", "volatile", "mmio")
SCOPES = ("cta", "cluster", "gpu", "sys")


def _space(words: list[str]) -> str:
    space = take(words, "global", "shared", "shared::cta", "local", "const", "param", "param::entry")
    if space in ("local", "param", "param::entry"):
        raise PtxError("." + space)
    return "shared" if space.startswith("shared") else space


def without_hints(words: list[str]):
    words[:] = [word for word in words if not CACHE.match(word)]


def _count(words: list[str]) -> int:
    return int(take(words, "v2", "v4", "v8")[1:] or 1)


def _access(words: list[str], ops: list[Operand]) -> tuple[int, str, str]:
    """Take what ld and st have in common: the number of elements, the space, the order."""
    count, space = _count(words), _space(words)
    policy = bool(take(words, "L2::cache_hint"))
    order = take(words, *ORDERS)
    take(words, *SCOPES)
    without_hints(words)
    none_left(words)
    expect(ops, 3 if policy else 2)
    return count, space, order


@family("ld", "ldu")
def _ld(w: Writer, words: list[str], ops: list[Operand]) -> str:
    kind = take_type(words)
    count, space, order = _access(words, ops)
    parts, size = vector_of(ops[0]), bits_of(kind)
    expect(parts, count)
    raw = kind if kind[0] == "s" else size  # a signed value is extended by its sign
    width = width_of(kind) // 8
    text = f"{{ char* const ptx_at = {w.address(ops[1], space)}; "
    text += f"{NS}aligned(ptx_at, {width * count}); " if count > 1 else ""
    for i in range(count):
        where = f"ptx_at + {i * width}"
        if order in ("volatile", "mmio"):
            value = f"{NS}load_volatile<{NS}{raw}>({where})"
        elif order and width <= 8:
            value = f"{NS}load_atomic<{NS}{raw}>({where}, {flag(order == 'acquire')})"
        else:
            value = f"{NS}load<{NS}{raw}>({where})"
        text += f"const auto ptx_v{i} = {value}; "
    return text + "".join(w.set(p, f"ptx_v{i}") + " " for i, p in enumerate(parts) if p.text != "_") + "}"


@family("st")
def _st(w: Writer, words: list[str], ops: list[Operand]) -> str:
    kind = take_type(words)
    count, space, order = _access(words, ops)
    parts, size = vector_of(ops[1]), bits_of(kind)
    expect(parts, count)
    width = width_of(kind) // 8
    text = f"{{ char* const ptx_at = {w.address(ops[0], space)}; "
    text += f"{NS}aligned(ptx_at, {width * count}); " if count > 1 else ""
    for i, part in enumerate(parts):
        where, value = f"ptx_at + {i * width}", w.get(part, size)
        if order in ("volatile", "mmio"):
            text += f"{NS}store_volatile<{NS}{size}>({where}, {value}); "
        elif order and width <= 8:
            text += f"{NS}store_atomic<{NS}{size}>({where}, {value}, {flag(order == 'release')}); "
        else:
            text += f"{NS}store<{NS}{size}>({where}, {value}); "
    return text + "}"


# What is stored, of `old` and the operand.
CHANGES = {
    "add": "{N}added<{T}>(ptx_at, old, ptx_b)",
    "and": "static_cast<{T}>(old & ptx_b)",
    "or": "static_cast<{T}>(old | ptx_b)",
    "xor": "static_cast<{T}>(old ^ ptx_b)",
    "min": "{N}min_max<false, {T}>(0, old, ptx_b)",
    "max": "{N}min_max<true, {T}>(0, old, ptx_b)",
    "inc": "old >= ptx_b ? 0u : old + 1u",
    "dec": "old == 0u || old > ptx_b ? ptx_b : old - 1u",
}


def _atomic(has_result: bool):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        kind, space = take_type(words), _space(words)
        order, scope = take(words, "relaxed", "acquire", "release", "acq_rel"), take(words, *SCOPES)
        if take(words, "L2::cache_hint"):
            ops.pop()
        take(words, "noftz")
        count, change = _count(words), words.pop()
        none_left(words)
        if count > 1 and has_result:
            raise PtxError("vectors")
        to, at, values = (ops[0], ops[1], ops[2:]) if has_result else (None, ops[0], ops[1:])
        orders = f"{flag(order in ('release', 'acq_rel'))}, {flag(order in ('acquire', 'acq_rel'))}"
        text = "{ ::cuda_host::BlockScope ptx_scope; (void)ptx_scope; " if scope == "cta" else "{ "
        text += f"char* const ptx_at = {w.address(at, space)}; "

        def keep(call: str) -> str:
            return w.set(to, call) if to is not None and to.text != "_" else f"{call};"

        if change in ("exch", "cas"):
            expect(values, 2 if change == "cas" else 1)
            name = "exchange" if change == "exch" else "compare_exchange"
            size = bits_of(kind)
            return text + keep(f"{NS}{name}<{NS}{size}>(ptx_at, {orders}, {w.gets(values, size)})") + " }"
        expect(values, 1)
        parts, width = vector_of(values[0]), width_of(kind) // 8
        expect(parts, count)
        body = CHANGES[change].format(N=NS, T=NS + kind)
        changed = f"[=]({NS}{kind} old) -> {NS}{kind} {{ return {body}; }}"
        for i, part in enumerate(parts):
            call = f"{NS}change<{NS}{kind}>(ptx_at + {i * width}, {orders}, {changed})"
            text += f"{{ const auto ptx_b = {w.get(part, kind)}; {keep(call)} }} "
        return text + "}"

    return write


FAMILIES["atom"], FAMILIES["red"] = _atomic(True), _atomic(False)


@family("membar", "fence")
def _fence(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 0)
    if words[:2] == ["proxy", "async"]:  # here bulk copies see memory as threads do
        none_left([word for word in words[2:] if word not in ("global", "shared::cta", "shared::cluster")])
        return f"{NS}fence(true);"
    take(words, "mbarrier_init")
    take(words, "acq_rel", "sc", "acquire", "release")
    scope = take(words, "cta", "gl", "gpu", "sys", "cluster")
    none_left(words)
    return f"{NS}fence({flag(scope == 'cta')});"


@family("prefetch", "prefetchu", "applypriority")
def _hint(w: Writer, words: list[str], ops: list[Operand]) -> str:
    if "tensormap" in words:
        raise PtxError(".tensormap")
    return ";"


@family("createpolicy")
def _createpolicy(w: Writer, words: list[str], ops: list[Operand]) -> str:
    return w.set(ops[0], f"{NS}u64(0)")


@family("nanosleep")
def _nanosleep(w: Writer, words: list[str], ops: list[Operand]) -> str:
    return f"{HOST}may_spin();"
