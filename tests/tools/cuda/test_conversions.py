"""Conversions and shifts in kernels, in all ways to write them: what PTX's cvt.rzi, shl and shr give."""

import re

import pytest
import torch
from support.hard_numbers import (
    AMOUNTS,
    COMMON,
    CONVERSIONS,
    HARD,
    INTEGERS,
    OF_TYPE,
    REALS,
    SHIFTS,
    VECTORS,
    WAYS,
    converted,
    rounded,
    shifted,
    wrapped,
)

from cuffi import load_inline
from tools.cuda import rewrite as cuda_rewrite
from tools.cuda.analysis import Unit
from tools.cuda.to_host import HostRewriter

KERNEL = """
__global__ void {name}(int n, const {given}* in, const int* amounts, long long* o) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {way}
  if (i < n) {{
    const {given} {variables};
    long long* to = o + i;
{lines}
  }}
}}
"""
ONE = "    {{ {t} r; {form} to[{f}ll * n] = (long long)r; }}"


def of_types(text: str, t: str, real: str, k: str) -> str:
    words = {"T": t, "R": real, "NAME2": f"{VECTORS[t]}2", "NAME4": f"{VECTORS[t]}4"}
    text = re.sub(r"\b(\w+_)K\b", rf"\g<1>{k}", text).replace("make_NAME2", f"make_{VECTORS[t]}2")
    return re.sub(r"\b(T|R|NAME2|NAME4)\b", lambda m: words[m[0]], text)


def kernels(way: str) -> tuple[str, dict[str, tuple]]:
    """A file with a kernel for each pair of types, and what each has."""
    made, known = [COMMON], {}
    for a, t in enumerate(INTEGERS):
        for b, real in enumerate(REALS):
            name = f"convert_{a}_{b}"
            made.append(of_types(OF_TYPE, t, real, f"{a}{b}"))
            forms = [of_types(form, t, real, f"{a}{b}") for form in CONVERSIONS.values()]
            lines = "\n".join(ONE.format(t=t, form=form, f=f) for f, form in enumerate(forms))
            made.append(
                KERNEL.format(name=name, given=real, way=WAYS[way], variables="v = in[i]", lines=lines)
            )
            known[name] = (t, real)
    return "".join(made), known


def shift_kernels(way: str) -> tuple[str, dict[str, tuple]]:
    made, known = [COMMON], {}
    for a, t in enumerate(INTEGERS):
        made.append(of_types(OF_TYPE, t, "float", f"{a}"))
        for b, sign in enumerate(SHIFTS):
            forms = [of_types(form, t, "float", f"{a}") for form in SHIFTS[sign]]
            lines = "\n".join(ONE.format(t=t, form=form, f=f) for f, form in enumerate(forms))
            name = f"shift_{a}_{b}"
            variables = "a = in[i]; const int n_ = n; { const int n = amounts[i];"
            text = KERNEL.format(name=name, given=t, way=WAYS[way], variables=variables, lines=lines + " }")
            made.append(text.replace("ll * n]", "ll * n_]"))
            known[name] = (t, sign)
    return "".join(made), known


OPTIONS = {"grid_x": 2, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1}


def test_conversions(cache):
    check_conversions("loop")


@pytest.mark.parametrize("way", [way for way in WAYS if way != "loop"])
def test_conversions_in_phases_warps_and_fibres(cache, way):
    check_conversions(way)


def check_conversions(way: str):
    text, known = kernels(way)
    m = load_inline(f"conversions_{way}", text, backends="host")
    wrong = []
    for name, (t, real) in known.items():
        x = torch.tensor(HARD, dtype=getattr(torch, f"float{REALS[real]}"))
        out = torch.full((len(CONVERSIONS), len(HARD)), 77, dtype=torch.int64)
        getattr(m, name)(len(HARD), x, torch.zeros(1, dtype=torch.int32), out, **OPTIONS)
        for v, column in zip(x.tolist(), out.T.tolist(), strict=True):
            wanted = wrapped(converted(v, *INTEGERS[t], REALS[real]), 64, True)
            for form, got in zip(CONVERSIONS, column, strict=True):
                right = wanted
                if form == "a cast of a cast":
                    again = rounded(float(converted(v, *INTEGERS[t], REALS[real])), REALS[real])
                    right = wrapped(converted(again, *INTEGERS[t], REALS[real]), 64, True)
                if got != right:
                    wrong.append(f"{form}, {t} of {real} {v}: {got}, right is {right}")
    assert not wrong, f"{len(wrong)}: " + "\n".join(wrong[:20])


def test_shifts(cache):
    check_shifts("loop")


@pytest.mark.parametrize("way", [way for way in WAYS if way != "loop"])
def test_shifts_in_phases_warps_and_fibres(cache, way):
    check_shifts(way)


def check_shifts(way: str):
    text, known = shift_kernels(way)
    m = load_inline(f"shifts_{way}", text, backends="host")
    wrong = []
    for name, (t, sign) in known.items():
        bits, signed = INTEGERS[t]
        values = [wrapped(v, bits, signed) for v in (1, -1, -5, 0x5A5A5A5A5A5A5A5A, 1 << (bits - 1))]
        pairs = [(v, n) for v in values for n in AMOUNTS]
        as_signed = [wrapped(v, bits, True) for v, _ in pairs]
        x = torch.tensor(as_signed, dtype=getattr(torch, f"int{bits}"))
        x = x.view(getattr(torch, f"{'' if signed else 'u'}int{bits}"))
        amounts = torch.tensor([n for _, n in pairs], dtype=torch.int32)
        out = torch.full((len(SHIFTS[sign]), len(pairs)), 77, dtype=torch.int64)
        getattr(m, name)(len(pairs), x, amounts, out, **OPTIONS)
        for (v, n), column in zip(pairs, out.T.tolist(), strict=True):
            right = wrapped(shifted(sign, v, n, bits, signed), 64, True)
            for form, got in zip(SHIFTS[sign], column, strict=True):
                if got != right:
                    wrong.append(f"{form} {t} {v} {sign} {n}: {got}, right is {right}")
    assert not wrong, f"{len(wrong)}: " + "\n".join(wrong[:20])


def test_a_comparison_with_brackets_is_no_call(tmp_path):
    loop = "for (unsigned i = 0; i < (12 - n); i++) x[i] = 1;"
    (tmp_path / "k.cu").write_text(f"__global__ void k(int* x, int n) {{\n{loop}\n}}\n")
    texts, problems, _ = cuda_rewrite.rewrite(str(tmp_path / "k.cu"), HostRewriter, "tool", "")
    assert not problems and loop in texts[""].splitlines()


@pytest.mark.parametrize("word", ["sizeof", "alignof"])
def test_an_operator_of_types_is_no_call(tmp_path, word):
    """`(ROW * sizeof(x))` looks like the declaration of a pointer."""
    line = f"x[(j * N + (j % 4) * {word}(uint32_t)) % M] = n + j % (ROW * {word}(uint32_t) / 4);"
    (tmp_path / "k.cu").write_text(f"__global__ void k(int* x, int j, int n) {{\n{line}\n}}\n")
    texts, problems, _ = cuda_rewrite.rewrite(str(tmp_path / "k.cu"), HostRewriter, "tool", "")
    assert not problems and texts[""].count(f"{word}(uint32_t)") == 2


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("auto [a, b] = r;", "auto [a, b] = r;"),  # no index, though operator[] takes integers
        ("const auto [a, b] = r;", "const auto [a, b] = r;"),
        ("r[x] = 1;", "r[::cuda_host::gpu_whole = x]"),
        ("r.of()(x);", "gpu_takes<decltype(r . of ( )), 0>> = x);"),  # the object is part of what is called
        ("r.in()->of()(x);", "gpu_takes<decltype(r . in ( ) -> of ( )), 0>> = x);"),
        ("To<int>()(x);", "gpu_takes<decltype(To < int > ( )), 0>> = x);"),
        ("Mine m(x);", "struct Mine : Row { using Base = Row; typedef Row Old;"),
    ],
)
def test_what_is_no_index_or_no_whole_callee(line, told):
    """Forms of CuTe's headers, which did not compile."""
    text = (
        "template <typename T> struct To { __device__ int operator()(T n) const { return n; } };\n"
        "struct Row { int a, b; __device__ int& operator[](int i); __device__ To<int> of(); __device__ Row* in(); };\n"
        "struct Mine : Row { using Base = Row; typedef Row Old; int n;\n"
        "  __device__ Mine(float x) : Base(float(x)), n(x) {} };\n"
        f"__global__ void k(Row r, float x) {{ {line} }}\n"
    )
    unit = Unit(text, "x.cu")
    rewritten = HostRewriter(unit, unit.main).rewritten()
    assert told in rewritten
    assert (
        ": Base(float(x)), n(::cuda_host::gpu_into<::cuda_host::gpu_plain<decltype(n)>> = x) {}" in rewritten
    )
