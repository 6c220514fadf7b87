"""Matrices in the registers of a warp: ldmatrix, stmatrix, movmatrix, mma."""

from __future__ import annotations

import re

from .text import Operand, PtxError
from .writer import HOST, NS, Writer, expect, family, flag, none_left, take, vector_of

# The name of an element's type, and its bits.
ELEMENTS = {
    **{
        "f16": ("kF16", 16),
        "bf16": ("kBf16", 16),
        "tf32": ("kTf32", 32),
        "f32": ("kF32", 32),
        "f64": ("kF64", 64),
    },
    **{
        "s8": ("kS8", 8),
        "u8": ("kU8", 8),
        "s4": ("kS4", 4),
        "u4": ("kU4", 4),
        "b1": ("kB1", 1),
        "s32": ("kS32", 32),
    },
    **{"e4m3": ("kE4M3", 8), "e5m2": ("kE5M2", 8)},
}
# The shapes of each type of A: m, n, k (PTX ISA, "Matrix shape").
SHAPES = {
    **{"f16": ((8, 8, 4), (16, 8, 8), (16, 8, 16)), "bf16": ((16, 8, 8), (16, 8, 16))},
    **{"tf32": ((16, 8, 4), (16, 8, 8)), "f64": ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16))},
    **dict.fromkeys(("s8", "u8"), ((8, 8, 16), (16, 8, 16), (16, 8, 32))),
    **dict.fromkeys(("s4", "u4"), ((8, 8, 32), (16, 8, 32), (16, 8, 64))),
    **dict.fromkeys(("e4m3", "e5m2"), ((16, 8, 16), (16, 8, 32))),
    "b1": ((8, 8, 128), (16, 8, 128), (16, 8, 256)),
}
# The types of C and D that A's type has.
SUMS = {
    **{"f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "f64": ("f64",), "b1": ("s32",)},
    **dict.fromkeys(("s8", "u8", "s4", "u4"), ("s32",)),
    **dict.fromkeys(("e4m3", "e5m2"), ("f16", "f32")),
}
PAIRS = ({"s8", "u8"}, {"s4", "u4"}, {"e4m3", "e5m2"})


def _matrices(words: list[str]) -> tuple[int, str, str]:
    """The number of matrices, whether they are transposed, and the space."""
    space = take(words, "shared", "shared::cta")
    for word in ("sync", "aligned", "m8n8", "b16"):
        words.remove(word)
    count = int(take(words, "x1", "x2", "x4")[1:])
    transposed = flag(take(words, "trans"))
    none_left(words)
    return count, transposed, "shared" if space else ""


@family("ldmatrix")
def _ldmatrix(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 2)
    count, transposed, space = _matrices(words)
    parts = vector_of(ops[0])
    expect(parts, count)
    sets = " ".join(w.set(part, f"ptx_to[{i}]") for i, part in enumerate(parts))
    call = f"{NS}ldmatrix<{count}, {transposed}>(ptx_to, {w.address(ops[1], space)});"
    return f"{{ {NS}u32 ptx_to[{count}]; {call} {sets} }}"


@family("stmatrix")
def _stmatrix(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 2)
    count, transposed, space = _matrices(words)
    parts = vector_of(ops[1])
    expect(parts, count)
    call = f"{NS}stmatrix<{count}, {transposed}>({w.address(ops[0], space)}, ptx_from);"
    return f"{{ {NS}u32 ptx_from[{count}] = {{{w.gets(parts, 'u32')}}}; {call} }}"


@family("movmatrix")
def _movmatrix(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 2)
    none_left([word for word in words if word not in ("sync", "aligned", "m8n8", "trans", "b16")])
    return w.set(ops[0], f"{NS}movmatrix({w.get(ops[1], 'u32')})")


def _registers(elements: int, bits: int) -> tuple[int, str]:
    """How many registers of a lane hold so many elements of a warp's matrix, and their type."""
    total = elements * bits // 32
    return (total // 64, "u64") if bits == 64 else (max(1, total // 32), "u32")


def _fragments(w: Writer, parts: list[list[Operand]], counts: list[tuple[int, str]]) -> str:
    """Declarations of arrays for d, a, b and c, each with as many numbers; a, b and c have their values."""
    for part, (count, _) in zip(parts, counts, strict=True):
        expect(part, count)
    text = ""
    for letter, part, (count, kind) in list(zip("dabc", parts, counts, strict=True))[1:]:
        text += f"{NS}{kind} ptx_{letter}[{count}] = {{{w.gets(part, kind)}}}; "
    return text + f"{NS}{counts[0][1]} ptx_d[{counts[0][0]}]; "


def _check(shape: tuple[int, int, int], types: list[str], layouts: list[str], counts_bits: bool):
    """Refuse what PTX does not have."""
    d, a, b, c = types
    volta = shape == (8, 8, 4) and a == "f16"
    if shape not in SHAPES.get(a, ()):
        raise PtxError("its shape")
    if a != b and {a, b} not in PAIRS:
        raise PtxError("its types")
    if d not in SUMS[a] or c not in SUMS[a] or (d != c and not volta and a != "f16"):
        raise PtxError("its types")
    if len(layouts) != 2 or (layouts != ["row", "col"] and not volta):
        raise PtxError("its layout")
    if (a == "b1") != counts_bits:
        raise PtxError("its operation")


@family("mma")
def _mma(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 4)
    words.remove("sync")
    words.remove("aligned")
    m, n, k = _take_shape(words)
    saturate, operation, counts_bits = (
        take(words, "satfinite"),
        take(words, "and", "xor"),
        bool(take(words, "popc")),
    )
    types = [words.pop() for _ in range(4)][::-1]
    d, a, b, c = types
    layouts = [word for word in words if word in ("row", "col")]
    words[:] = [word for word in words if word not in ("row", "col")]
    _check((m, n, k), types, layouts, counts_bits)
    none_left(words)
    volta = (m, n, k) == (8, 8, 4) and a == "f16"
    quads = 4 if volta else 1
    counts = [
        _registers(elements * quads, ELEMENTS[kind][1])
        for elements, kind in ((m * n, d), (m * k, a), (k * n, b), (m * n, c))
    ]
    parts = [vector_of(operand) for operand in ops]
    text = _fragments(w, parts, counts)
    flags = [
        saturate,
        operation == "and",
        volta,
        volta and layouts[0] == "col",
        volta and layouts[1] == "row",
    ]
    kinds = ", ".join(HOST + ELEMENTS[kind][0] for kind in (a, b, c, d))
    shape = f"{NS}Shape<{m}, {n}, {k}, {kinds}, {', '.join(map(flag, flags))}>"
    text += f"{HOST}mma(&{shape}::value, ptx_a, ptx_b, ptx_c, ptx_d); "
    return "{ " + text + " ".join(w.set(part, f"ptx_d[{i}]") for i, part in enumerate(parts[0])) + " }"


# wmma: the shapes of each type of A.
FRAGMENTS = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), ((16, 16, 16), (32, 8, 16), (8, 32, 16))),
    **{"tf32": ((16, 16, 8),), "f64": ((8, 8, 4),)},
}
USES = {"a": 0, "b": 1, "c": 2, "d": 2}


def _held(use: int, shape: tuple[int, int, int], kind: str) -> int:
    """The elements of a lane. Since Volta halves of A and B are there twice."""
    m, n, k = shape
    return 16 if use < 2 and kind == "f16" else (m * k, k * n, m * n)[use] // 32


def _fragment(use: int, shape: tuple[int, int, int], kind: str) -> tuple[int, str]:
    """How many registers hold a lane's elements, and their type."""
    return _registers(_held(use, shape, kind) * 32, ELEMENTS[kind][1])


def _take_shape(words: list[str]) -> tuple[int, int, int]:
    name = next((word for word in words if re.fullmatch(r"m\d+n\d+k\d+", word)), "")
    if not name:
        raise PtxError("without a shape")
    words.remove(name)
    m, n, k = (int(number) for number in re.findall(r"\d+", name))
    return m, n, k


@family("wmma")
def _wmma(w: Writer, words: list[str], ops: list[Operand]) -> str:
    what = words.pop(0)
    use = words.pop(0) if what in ("load", "store") else ""
    for word in ("sync", "aligned"):
        words.remove(word)
    shape = _take_shape(words)
    if what == "mma":
        return _wmma_mma(w, words, ops, shape)
    if what not in ("load", "store") or use not in (("a", "b", "c") if what == "load" else ("d",)):
        raise PtxError(f".{what}")
    kind, by_rows = words.pop(), take(words, "row", "col") == "row"
    space = take(words, "shared", "shared::cta", "global")
    none_left(words)
    types = {*FRAGMENTS} if use in "ab" else {"f16", "f32", "s32", "f64"}
    if kind not in types or shape not in (FRAGMENTS[kind] if use in "ab" else sum(FRAGMENTS.values(), ())):
        raise PtxError("its shape")
    expect(ops, 2, 3)
    at, given = (ops[0], ops[1]) if what == "store" else (ops[1], ops[0])
    number = USES[use]
    rows, columns = ((shape[0], shape[2]), (shape[2], shape[1]), (shape[0], shape[1]))[number]
    stride = w.get(ops[2], "u32") if len(ops) > 2 else f"{columns if by_rows else rows}u"
    count, size = _fragment(number, shape, kind)
    parts, memory = vector_of(given), w.address(at, "shared" if space.startswith("shared") else space)
    expect(parts, count)
    held, bits = _held(number, shape, kind), ELEMENTS[kind][1]
    numbers = ", ".join(map(str, shape))
    tail = f"{numbers}, {HOST}{ELEMENTS[kind][0]}, {flag(by_rows)}, {NS}u{bits}, {held}>"
    if what == "store":
        given_text = f"{NS}{size} ptx_from[{count}] = {{{w.gets(parts, size)}}}; "
        return f"{{ {given_text}{NS}wmma_store<{tail}({memory}, ptx_from, {stride}); }}"
    sets = " ".join(w.set(part, f"ptx_to[{i}]") for i, part in enumerate(parts))
    return f"{{ {NS}{size} ptx_to[{count}]; {NS}wmma_load<{number}, {tail}(ptx_to, {memory}, {stride}); {sets} }}"


def _wmma_mma(w: Writer, words: list[str], ops: list[Operand], shape: tuple[int, int, int]) -> str:
    expect(ops, 4)
    saturate = bool(take(words, "satfinite"))
    layouts = [word for word in words if word in ("row", "col")]
    types = [word for word in words if word not in ("row", "col")]
    if len(types) == 2:  # of halves only those of D and C are named
        types[1:1] = ["f16", "f16"]
    if len(layouts) != 2 or len(types) != 4 or any(kind not in ELEMENTS for kind in types):
        raise PtxError("its types")
    d, a, b, c = types
    if a != b or shape not in FRAGMENTS.get(a, ()) or d not in SUMS[a] or c not in SUMS[a]:
        raise PtxError("its types")
    parts = [vector_of(operand) for operand in ops]
    kinds = [(2, d), (0, a), (1, b), (2, c)]
    counts = [_fragment(use, shape, kind) for use, kind in kinds]
    text = _fragments(w, parts, counts)
    names = ", ".join(HOST + ELEMENTS[kind][0] for kind in (a, b, c, d))
    value = f"&{NS}Shape<{', '.join(map(str, shape))}, {names}, {flag(saturate)}>::value"
    held = ", ".join(str(_held(use, shape, kind)) for use, kind in kinds[1:3])
    text += f"{HOST}wmma({value}, ptx_a, ptx_b, ptx_c, ptx_d, {held}); "
    return "{ " + text + " ".join(w.set(part, f"ptx_d[{i}]") for i, part in enumerate(parts[0])) + " }"
