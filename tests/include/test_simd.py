"""CUDA's functions for integers in one word, its scoped and rarer atomics, compared with Python's integers."""

import random

import pytest
import torch

from cuffi import load_inline

SATURATED = {"addss": "+", "addus": "+", "subss": "-", "subus": "-"}
COMPARED = {"eq": "==", "ne": "!=", "ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


def lanes(word: int, width: int, signed: bool) -> list[int]:
    found = [word >> at & (1 << width) - 1 for at in range(0, 32, width)]
    return [x - (1 << width) if signed and x >> width - 1 else x for x in found]


def packed(values: list[int], width: int) -> int:
    return sum((v & (1 << width) - 1) << k * width for k, v in enumerate(values))


def of_lanes(name: str, width: int, function, signed: bool):
    """A function of words, by its function of lanes."""
    return f"__v{name}{32 // width}", lambda a, b: packed(
        [function(x, y) for x, y in zip(lanes(a, width, signed), lanes(b, width, signed), strict=True)], width
    )


def table() -> dict:
    """Each function with its reference."""
    found = []
    for width in (8, 16):
        top, high = (1 << width) - 1, (1 << width - 1) - 1

        def clip(x, signed, top=top, high=high):
            return min(max(x, -high - 1), high) if signed else min(max(x, 0), top)

        for name, sign in SATURATED.items():
            signed = name.endswith("ss")
            found.append(
                of_lanes(
                    name,
                    width,
                    lambda x, y, s=sign, g=signed, c=clip: c(x + y if s == "+" else x - y, g),
                    signed,
                )
            )
        for name, sign in COMPARED.items():
            for kind in ("",) if name in ("eq", "ne") else ("s", "u"):
                test = eval(f"lambda x, y: x {sign} y")
                found.append(
                    of_lanes(f"set{name}{kind}", width, lambda x, y, t=test: int(t(x, y)), kind == "s")
                )
                found.append(
                    of_lanes(f"cmp{name}{kind}", width, lambda x, y, t=test: -int(t(x, y)), kind == "s")
                )
        for kind, signed in (("s", True), ("u", False)):
            found.append(of_lanes("max" + kind, width, max, signed))
            found.append(of_lanes("min" + kind, width, min, signed))
            found.append(of_lanes("absdiff" + kind, width, lambda x, y: abs(x - y), signed))
            total = lambda a, b, w=width, g=signed: sum(  # noqa: E731
                abs(x - y) for x, y in zip(lanes(a, w, g), lanes(b, w, g), strict=True)
            )
            found.append((f"__vsad{kind}{32 // width}", total))
        found.append(of_lanes("add", width, lambda x, y: x + y, False))
        found.append(of_lanes("sub", width, lambda x, y: x - y, False))
        found.append(of_lanes("avgu", width, lambda x, y: (x + y + 1) // 2, False))
        found.append(of_lanes("haddu", width, lambda x, y: (x + y) // 2, False))
    return dict(found)


TABLE = table()
UNARY = {
    "__vabs": lambda x, high: abs(x),
    "__vabsss": lambda x, high: min(abs(x), high),
    "__vneg": lambda x, high: -x,
    "__vnegss": lambda x, high: min(-x, high),
}
TEXT = "__global__ void all(const int n, const unsigned* a, const unsigned* b, int64_t* o) {\n"
TEXT += " CUDA_KERNEL_LOOP(i, n) {\n"
TEXT += "".join(f"  o[{k} * n + i] = {name}(a[i], b[i]);\n" for k, name in enumerate(TABLE))
TEXT += (
    " }\n}\n__global__ void one(const int n, const unsigned* a, int64_t* o) {\n CUDA_KERNEL_LOOP(i, n) {\n"
)
TEXT += "".join(
    f"  o[{2 * k} * n + i] = {name}2(a[i]); o[{2 * k + 1} * n + i] = {name}4(a[i]);\n"
    for k, name in enumerate(UNARY)
)
TEXT += """ }
}
__global__ void __maxnreg__(64) dots(const int n, const int* a, const int* b, int* o) {
  CUDA_KERNEL_LOOP(i, n) {
    __builtin_assume(n > 0);
    o[i] = __dp4a(a[i], b[i], 7);
    o[n + i] = __dp2a_lo(a[i], b[i], 7);
    o[2 * n + i] = __dp2a_hi(a[i], b[i], 7);
    o[3 * n + i] = __fns(a[i], b[i] & 31, (b[i] >> 5) % 5);
  }
}
extern "C" int simd_all(const int* a, const int* b, int64_t* o, int n) {
  all<<<1, 32>>>(n, (const unsigned*)a, (const unsigned*)b, o);
  return CAFFE_LAUNCH_STATUS();
}
extern "C" int simd_one(const int* a, int64_t* o, int n) {
  one<<<1, 32>>>(n, (const unsigned*)a, o);
  return CAFFE_LAUNCH_STATUS();
}
extern "C" int simd_dots(const int* a, const int* b, int* o, int n) {
  dots<<<1, 32>>>(n, a, b, o);
  return CAFFE_LAUNCH_STATUS();
}
__global__ void change(int* o, long long* l, float* f) {
  atomicAdd_block(o, 1);
  atomicMax_system(o + 1, (int)threadIdx.x);
  atomicMin(l, (long long)-1 - threadIdx.x);
  atomicAdd((float2*)f, make_float2(1, 2));
  atomicAdd((float4*)(f + 4), make_float4(1, 2, 3, 4));
  unsigned short* s = (unsigned short*)(o + 2);
  for (unsigned short seen = *s, next; (next = atomicCAS(s, seen, seen + 1)) != seen; seen = next);
}
extern "C" int simd_change(int* o, int64_t* l, float* f) {
  change<<<4, 64>>>(o, (long long*)l, f);
  return CAFFE_LAUNCH_STATUS();
}
"""
DRAW = random.Random(1)
EDGES = [0, 0xFFFFFFFF, 0x80808080, 0x80008000, 0x7F7F7F7F, 0x7FFF7FFF, 0x01FF00FE]
WORDS = [(a, b) for a in EDGES for b in EDGES] + [
    (DRAW.getrandbits(32), DRAW.getrandbits(32)) for _ in range(200)
]


def ints(words) -> torch.Tensor:
    return torch.tensor([w - 2**32 if w >= 2**31 else w for w in words], dtype=torch.int32)


@pytest.fixture
def simd(cache):
    return load_inline("simd", TEXT, backends="host")


def test_functions_of_two_words(simd):
    a, b = (ints(column) for column in zip(*WORDS, strict=True))
    top = torch.zeros(len(TABLE), len(WORDS), dtype=torch.int64)
    simd.simd_all(a, b, top, len(WORDS))
    for (name, reference), row in zip(TABLE.items(), top.tolist(), strict=True):
        assert row == [reference(x, y) for x, y in WORDS], name


def test_functions_of_a_word(simd):
    words = [a for a, _ in WORDS]
    top = torch.zeros(len(UNARY), 2, len(words), dtype=torch.int64)
    simd.simd_one(ints(words), top, len(words))
    for (name, function), rows in zip(UNARY.items(), top.tolist(), strict=True):
        for width, row in zip((16, 8), rows, strict=True):
            high = (1 << width - 1) - 1
            assert row == [
                packed([function(x, high) for x in lanes(w, width, True)], width) for w in words
            ], name


def nth_set(mask: int, base: int, offset: int) -> int:
    """Bit `base` itself for 0; else the offset-th set bit from there, upwards or downwards."""
    if offset == 0:
        return base if mask >> base & 1 else -1
    order = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [k for k in order if mask >> k & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else -1


def test_dot_products(simd):
    a, b = (ints(column) for column in zip(*WORDS, strict=True))
    top = torch.zeros(4, len(WORDS), dtype=torch.int32)
    simd.simd_dots(a, b, top, len(WORDS))

    def dot(x, y, width, first=0):
        return 7 + sum(p * q for p, q in zip(lanes(x, width, True), lanes(y, 8, True)[first:], strict=False))

    wanted = [[dot(x, y, 8), dot(x, y, 16), dot(x, y, 16, 2)] for x, y in WORDS]
    assert top[:3].T.tolist() == wanted
    signed = [(x, y - 2**32 if y >= 2**31 else y) for x, y in WORDS]
    offsets = [int((y >> 5) / 5) * -5 + (y >> 5) for _, y in signed]  # C's remainder has the dividend's sign
    assert top[3].tolist() == [
        nth_set(x, y & 31, offset) for (x, y), offset in zip(signed, offsets, strict=True)
    ]


def test_atomics(simd):
    o, low, f = torch.zeros(3, dtype=torch.int32), torch.zeros(1, dtype=torch.int64), torch.zeros(8)
    simd.simd_change(o, low, f)
    assert o.tolist() == [256, 63, 256] and low.item() == -64
    assert f.tolist() == [256, 512, 0, 0, 256, 512, 768, 1024]
