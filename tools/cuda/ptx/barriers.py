"""Barriers in shared memory: mbarrier, which counts arrivals and the bytes of bulk copies."""

from __future__ import annotations

from .text import Operand, PtxError
from .writer import NS, Writer, expect, family, flag, none_left, take

SPACES = ("shared", "shared::cta", "shared::cluster")


@family("mbarrier")
def _mbarrier(w: Writer, words: list[str], ops: list[Operand]) -> str:
    words.remove("b64")
    what = words.pop(0)
    if what == "pending_count":
        none_left(words)
        expect(ops, 2)
        return w.set(ops[0], f"{NS}mbarrier_pending({w.get(ops[1], 'u64')})")
    space = "shared" if take(words, *SPACES) else ""
    if what in ("test_wait", "try_wait"):
        return _wait(w, what, words, ops, space)
    if what in ("arrive", "arrive_drop"):
        return _arrive(w, what, words, ops, space)
    _order(words)
    none_left(words)
    if what == "inval":
        expect(ops, 1)
        return ";"
    expect(ops, 2)
    at, number = w.address(ops[0], space), w.get(ops[1], "u32")
    if what == "init":
        return f"{NS}mbarrier_init({at}, {number});"
    if what not in ("expect_tx", "complete_tx"):
        raise PtxError(f".{what}")
    sign = "-" if what == "complete_tx" else ""
    return f"{NS}mbarrier_expect({at}, {sign}static_cast<{NS}s32>({number}));"


def _order(words: list[str], default: str = "") -> str:
    """The order of memory. A scope says how far it reaches."""
    order = take(words, "release", "acquire", "relaxed") or default
    take(words, "cta", "cluster")
    return order


def _arrive(w: Writer, what: str, words: list[str], ops: list[Operand], space: str) -> str:
    expects, drops = bool(take(words, "expect_tx")), what == "arrive_drop"
    take(words, "noComplete")  # a promise that the phase does not end
    releases = _order(words, "release") == "release"
    none_left(words)
    state = None if ops and ops[0].kind == "memory" else ops.pop(0)
    expect(ops, *((2,) if expects else (1, 2)))
    given = w.get(ops[1], "u32") if len(ops) > 1 else "1u"
    count, size = ("1u", f"static_cast<{NS}s32>({given})") if expects else (given, "0")
    call = (
        f"{NS}mbarrier_arrive({w.address(ops[0], space)}, {flag(releases)}, {count}, {size}, {flag(drops)})"
    )
    return f"{call};" if state is None or state.text == "_" else w.set(state, call)


def _wait(w: Writer, what: str, words: list[str], ops: list[Operand], space: str) -> str:
    parity = bool(take(words, "parity"))
    acquires = _order(words, "acquire") == "acquire"
    none_left(words)
    expect(ops, 3, *((4,) if what == "try_wait" else ()))
    wanted = w.get(ops[2], "u32" if parity else "u64")
    test = "mbarrier_test" if parity else "mbarrier_test_state"
    return w.set(ops[0], f"{NS}{test}({w.address(ops[1], space)}, {flag(acquires)}, {wanted})")
