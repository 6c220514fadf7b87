"""The names of CUDA 13's device functions and headers: each is on the host, or refused with file and line."""

import bisect
import csv
import math
import re
import struct
import subprocess
import sys

import pytest
import torch
from conftest import ROOT
from support.compiler import WORDS

from cuffi import CaffeBuildError, load_inline
from tools.cuda.branches import NOT_ON_THE_HOST

with open(ROOT / "docs" / "evidence" / "cuda13_names.csv", newline="") as file:
    NAMES = {row["name"]: row["on the host"] for row in csv.DictReader(file)}
FUNCTIONS = {name: said for name, said in NAMES.items() if not name.endswith(".h")}
INCLUDED = (
    "caffe_cuda_macro.h",
    "cuda_fp16.h",
    "cuda_bf16.h",
    "cuda_fp8.h",
    "cuComplex.h",
    "math_constants.h",
    "cuda_pipeline.h",
)
FOLDERS = (ROOT / "include" / "host", ROOT / "include")


def test_functions_that_the_host_has(tmp_path):
    lines = [f'#include "{header}"' for header in INCLUDED]
    for name in (name for name, said in FUNCTIONS.items() if said == "here"):
        lines += [
            f"#ifndef {name}",
            f'#line 1 "{name}"',
            f"namespace has_{name} {{ using ::{name}; }}",
            "#endif",
        ]
    (tmp_path / "all.cpp").write_text("\n".join(lines) + "\n")
    command = [*WORDS, "-std=c++17", "-fsyntax-only", "-fmax-errors=0", "-DCAFFE_HOST_BACKEND"]
    command += [*(f"-I{folder}" for folder in FOLDERS), str(tmp_path / "all.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    lacking = set(re.findall(r"^(\w+):1:\d+: error", done.stderr, re.M))
    assert not lacking and done.returncode == 0, " ".join(sorted(lacking)) or done.stderr[-2000:]


def test_functions_that_are_refused(tmp_path):
    """All of them in one file: each with its line."""
    refused = [name for name, said in FUNCTIONS.items() if said == "refused"]
    lines = ["__global__ void uses(float* x) {", *(f"  {name}(x);" for name in refused), "}"]
    (tmp_path / "uses.cu").write_text("\n".join(lines))
    command = [
        sys.executable,
        "-m",
        "tools.cuda.to_host",
        str(tmp_path / "uses.cu"),
        str(tmp_path / "uses.cpp"),
    ]
    command += ["--depfile", str(tmp_path / "uses.d")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    told = {int(line) for line in re.findall(r"uses\.cu:(\d+):\d+: error: ", done.stdout + done.stderr)}
    assert told == set(range(2, len(refused) + 2)) and len(refused) > 70


def test_headers():
    for name, said in NAMES.items():
        if name.endswith(".h"):
            here = any((folder / name).exists() for folder in FOLDERS)
            assert (
                "here" if here else "refused" if NOT_ON_THE_HOST.fullmatch(name) else "unknown"
            ) == said, name


def test_a_refused_function_with_a_branch_for_the_host(cache):
    text = """
    __global__ void where(int* out) {
      #ifdef __CUDA_ARCH__
      out[0] = __isLocal(out);
      #else
      out[0] = 7;
      #endif
    }"""
    out = torch.zeros(1, dtype=torch.int32)
    load_inline("branches", text, backends="host").branches_where(out, 1, 1, 1, 1, 1, 1)
    assert out.item() == 7
    with pytest.raises(
        CaffeBuildError, match=r"branches\.cu:2:\d+: error: __isLocal has a meaning on a GPU alone"
    ):
        load_inline("branches", "\n__global__ void where(int* o) { o[0] = __isLocal(o); }", backends="host")


ROUNDED = """
#include <cuda_fp16.h>
__global__ void rounded(const int n, const float* x, const int64_t* k, uint16_t* o) {
  CUDA_KERNEL_LOOP(i, n) {
    o[i] = __half_as_ushort(__float2half_rz(x[i]));
    o[n + i] = __half_as_ushort(__float2half_rd(x[i]));
    o[2 * n + i] = __half_as_ushort(__float2half_ru(x[i]));
    o[3 * n + i] = __half_as_ushort(__ll2half_rz(k[i]));
    o[4 * n + i] = __half_as_ushort(__ll2half_rd(k[i]));
    o[5 * n + i] = __half_as_ushort(__ll2half_ru(k[i]));
  }
}"""


def test_halves_in_a_direction(cache):
    halves = [struct.unpack("<e", struct.pack("<H", bits))[0] for bits in range(1 << 16)]
    ordered = sorted({h for h in halves if h == h})
    x = torch.cat([torch.randn(300) * scale for scale in (1e-7, 1e-3, 1, 5e4)])
    x = torch.cat(
        [x, torch.tensor([0.0, 1.0, 65504, 65519, 65520, 1e9, -1e9, 1e-10, -1e-10, math.inf, -math.inf])]
    )
    k = (x.clamp(-1e9, 1e9) * 1000).long()
    out = torch.zeros(6, len(x), dtype=torch.uint16)
    load_inline("rounds", ROUNDED, backends="host").rounds_rounded(len(x), x, k, out)
    given = out.view(torch.float16).double()
    for row, numbers in ((0, x.double()), (3, k.double())):
        down = [ordered[bisect.bisect_right(ordered, number) - 1] for number in numbers.tolist()]
        up = [ordered[bisect.bisect_left(ordered, number)] for number in numbers.tolist()]
        zero = [d if number > 0 else u for d, u, number in zip(down, up, numbers.tolist(), strict=True)]
        assert given[row : row + 3].tolist() == [zero, down, up]


LANES = """
__global__ void lanes(const int n, const int* a, const int* b, const int* c, int* o) {
  CUDA_KERNEL_LOOP(i, n) {
    bool high, low;
    o[i] = __viaddmax_s16x2(a[i], b[i], c[i]);
    o[n + i] = __viaddmin_u16x2(a[i], b[i], c[i]);
    o[2 * n + i] = __vimax3_s16x2_relu(a[i], b[i], c[i]);
    o[3 * n + i] = __vibmax_s16x2(a[i], b[i], &high, &low);
    o[4 * n + i] = 2 * high + low;
    o[5 * n + i] = __vibmin_u16x2(a[i], b[i], &high, &low);
    o[6 * n + i] = 2 * high + low;
  }
}"""


def test_lanes_of_16_bits(cache):
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(-(2**31), 2**31, (3, 400), dtype=torch.int64, generator=generator).to(torch.int32)
    words[1, :9] = words[0, :9]
    out = torch.zeros(7, 400, dtype=torch.int32)
    load_inline("lanes", LANES, backends="host").lanes_kernel(400, *words, out)
    s = words.view(torch.int16).view(3, 400, 2).long()
    u = s % 2**16

    def wrapped(lanes):
        return (lanes + 2**15) % 2**16 - 2**15

    a, b, c = s
    wanted = [
        torch.maximum(wrapped(a + b), c),
        torch.minimum((u[0] + u[1]) % 2**16, u[2]),
        s.amax(0).clamp(min=0),
        torch.maximum(a, b),
        torch.minimum(u[0], u[1]),
    ]
    rows = out[[0, 1, 2, 3, 5]].view(torch.int16).view(5, 400, 2).long()
    for row, lanes in zip(rows, wanted, strict=True):
        assert torch.equal(row, wrapped(lanes))
    for row, is_a in ((out[4], a >= b), (out[6], u[0] <= u[1])):
        assert torch.equal(row.long(), 2 * is_a[:, 1].long() + is_a[:, 0])


# The words of crt/host_defines.h before a function, and of a variable.
BEFORE_FUNCTIONS = (
    "__noinline__", "__forceinline__", "__inline__", "__inline_hint__", "__nv_pure__", "__device_builtin__",
    "__cudart_builtin__", "__host__",
)  # fmt: skip
SPECIFIED = r"""
#define NEVER_INLINE __noinline__
NEVER_INLINE __device__ int by_macro(int x) { return x + 1; }
__attribute__((__noinline__)) __device__ int by_attribute(int x) { return x + 1; }
__device__ int words(int x) {
  __align__(16) int a[4] = {x}; __builtin_align__(8) int b = x; const int* __restrict__ c = a;
  return a[0] + b - c[0] + 1; }
%s
__global__ void __launch_bounds__(256, 2) __maxnreg__(64) all(const __grid_constant__ int n, int* o) {
  if (threadIdx.x < n) o[threadIdx.x] = by_macro(by_attribute(words(threadIdx.x))) + %s; }
"""


def test_words_before_functions():
    names = [word.strip("_") for word in BEFORE_FUNCTIONS]
    functions = "\n".join(
        f"__device__ {word} int of_{name}(int x) {{ return x; }}"
        for word, name in zip(BEFORE_FUNCTIONS, names, strict=True)
    )
    text = SPECIFIED % (functions, " + ".join(f"of_{name}(threadIdx.x)" for name in names))
    out = torch.empty(200, dtype=torch.int32)
    load_inline("specifiers", text, backends="host").all(200, out, 1, 1, 1, 256, 1, 1)
    assert torch.equal(out, torch.arange(200, dtype=torch.int32) * (1 + len(names)) + 3)
