"""Which kernels' phases become loops, and which variables are computed again or kept for each thread."""

import re

import pytest

from tools.cuda.analysis import Unit
from tools.cuda.phases import phases_of
from tools.cuda.reasons import Reason

HEAD = """
#define TILE 16
#define HALF 0.5f
#define MEET __syncthreads()
constexpr int FOUR = 4;
__device__ int counter;
__device__ int twice(int v) { return 2 * v; }
__device__ void change(int& v) { v = 0; }
__device__ int own_index() { return threadIdx.x; }
__device__ void meet() { __syncthreads(); }
"""
KERNEL = "template <typename T, int N> __global__ void k(int n, const T* x, float* y) { __shared__ float s[256]; %s }"
S = "int t = threadIdx.x; s[t] = x[t]; "
B = "__syncthreads(); "
E = " y[t] = s[255 - t];"


def edits_of(body: str, kernel: str = KERNEL):
    unit = Unit(HEAD + kernel % body, "x.cu")
    function = next(f for f in unit.main.functions if f.is_kernel)
    found = unit.kernels(unit.main)[0]
    if found.mode != "kThreads" or not found.in_phases or not found.asks_as_itself:
        return None
    edits = phases_of(unit.main, function, unit.names)
    return None if isinstance(edits, Reason) else edits


LOOPS = {
    S + B + E: True,
    S + "for (int d = blockDim.x / 2; d > 0; d >>= 1) { __syncthreads(); if (t < d) s[t] += s[t + d]; }" + B + E: True,
    S + "int d = blockDim.x / 2; while (d) { __syncthreads(); if (t < d) s[t] += s[t + d]; d /= 2; }" + B + E: True,
    S + "for (int i = 0, j = n; i < j; ++i, j -= 2) { __syncthreads(); s[t] += i + j; }" + B + E: True,
    S + "do { __syncthreads(); s[t] += 1; n--; } while (n > 0);" + B + E: True,
    S + "if (n > TILE * FOUR + N) { __syncthreads(); s[t] += 1; } else { s[t] = 2; }" + B + E: True,
    S + "\n#pragma unroll\nfor (int i = 0; i < 4; ++i) { __syncthreads(); s[t] += HALF; }" + B + E: True,
    S + "if (n > 2) { if (t < 3) s[t] = 4; __syncthreads(); } else if (n > 1) { int k = t; s[t] = k; }" + B + E: True,
    S + "if (n < 3) return;" + B + E: True,
    S + B + E + " if (s[t] > 3) return; y[t] = 1;": True,
    S + "{" + B + "}" + E: True,
    S + "int m = min(n, 3); for (int i = 0; i < m; ++i) { __syncthreads(); if (m == 2) break; }" + B + E: True,
    S + "x += blockIdx.x * n; const T* row = x + n;" + B + "y[t] = row[t] + s[255 - t];": True,
    S + "for (int k = 0; k < 3; ++k) { if (k == t) continue; s[t] += 1; }" + B + E: True,
    S + "float own[4]; own[0] = s[t]; s[t] = own[0] + twice(t);" + B + E: True,
    S + "int k = x[t]; change(k);" + B + "y[t] = k;": True,
    S + "float own[4]; own[0] = s[t];" + B + "y[t] = own[0];": True,
    S + "float& own = s[t];" + B + "y[t] = own;": True,
    S + "auto own = s[t];" + B + "y[t] = own;": True,
    S + "float v = s[t], *p = &v;" + B + "y[t] = *p;": True,
    # Not all threads need to come to the barrier.
    S + "if (t < n) { __syncthreads(); }" + E: False,
    S + "if (s[0] > 1) { __syncthreads(); }" + E: False,
    S + "if (counter > 1) { __syncthreads(); }" + E: False,
    S + "for (int i = 0; i < t; ++i) { __syncthreads(); }" + E: False,
    S + "for (int i = 0; i < n; i += t) { __syncthreads(); }" + E: False,
    S + "int d = n; if (t == 3) d = 1; while (d > 0) { __syncthreads(); --d; }" + E: False,
    S + "int d = n; change(d); while (d > 0) { __syncthreads(); --d; }" + E: False,
    S + "int d = n; int* p = &d; while (d > 0) { __syncthreads(); --d; }" + E: False,
    S + "int d = n; int& p = d; while (d > 0) { __syncthreads(); --p; }" + E: False,
    S + "int d = x[0]; while (d > 0) { __syncthreads(); --d; }" + E: False,
    S + "if (x[t] > 0) return;" + B + E: True,
    S + "for (int i = 0; i < n; ++i) { if (x[t] > i) break; __syncthreads(); s[t] = 1; }" + B + E: False,
    S + "while (n) { if (x[t] > 2) continue; __syncthreads(); }" + B + E: False,
    S + "n > 2 ? __syncthreads() : __syncthreads();" + E: False,
    S + "switch (n) { case 1: __syncthreads(); }" + E: False,
    S + "if (n > 2) __syncthreads();" + E: False,
    S + B + "goto out; out:" + E: False,
    # Threads meet elsewhere, or ask for themselves.
    S + B + "__syncwarp();" + E: False,
    S + B + "s[t] += __shfl_down_sync(0xffffffff, s[t], 1);" + E: False,
    S + "if (__syncthreads_or(n)) s[t] = 1;" + B + E: False,
    S + B + "meet();" + E: False,
    S + "MEET;" + B + E: False,
    S + B + "s[own_index()] = 1;" + E: False,
    # A parameter that is each thread's own.
    S + "n -= t;" + B + "y[t] = n;": False,
    S + "change(n);" + B + "y[t] = n;": False,
    # What no array can keep, or what may point to memory of an earlier phase.
    S + "float v[2], *p = v; p[0] = 1;" + B + "y[t] = *p;": False,
    S + "".join(f"double d{i} = x[t];" for i in range(33)) + B + "".join(f"y[t] += d{i};" for i in range(33)): False,
    S + B + "auto f = [=](int i) { return i; }; y[f(t)] = s[t];": False,
    S + B + "{ static int k; k = t; }" + E: False,
    # Names that hide others.
    S + "for (int i = 0; i < n; ++i) { __syncthreads(); float t = i; y[0] += t; }": False,
}  # fmt: skip


@pytest.mark.parametrize("body", LOOPS)
def test_loops(body):
    assert (edits_of(body) is not None) == LOOPS[body]


def test_nothing_without_a_barrier():
    assert edits_of("y[threadIdx.x] = 1;") is None


VARIABLES = {
    "const int v = t + n;": "again",
    "int v = (blockIdx.x * TILE + t) % N;": "again",
    "const T* v = x + t;": "again",
    "float* v = s + t;": "again",
    "float* v = &s[t];": "kept",
    "int a = t * 2; int v = a + 1;": "again",
    "int v = x[t];": "kept",
    "float v = t * 2;": "kept",
    "int v = t * HALF;": "kept",
    "T v = x[t];": "kept",
    "int v = t; v += 1;": "kept",
    "int v = t, w = x[t];": "again",
    "int v = t, w = x[t]; y[0] = w; __syncthreads(); y[1] = w;": "kept",
    "int d = n; int v = t + d; d = 3;": "kept",
    "int v = twice(t);": "kept",
    "int v = n + 1;": "uniform",
    "float* v = s + n;": "uniform",
}


@pytest.mark.parametrize("text", VARIABLES)
def test_variables(text):
    edits = edits_of(S + text + B + "y[t] = v ? s[t] : 0;")
    opening = next(text for _, _, text in reversed(edits) if "CAFFE_HOST_EACH" in text)
    how = (
        "kept" if re.search(r"& v = caffe_kept_\d", opening) else "again" if " v = " in opening else "uniform"
    )
    assert how == VARIABLES[text]


def test_a_loops_variable_stays_in_its_turn():
    """What is computed from it is computed again, but not beyond the loop's step."""
    loop = S + "for (int i = 0; i < n; ++i) { int v = i + t; s[t] = v; __syncthreads(); y[t] += v; }"
    assert not any("caffe_kept" in text for _, _, text in edits_of(loop + B))
    beyond = S + "int i = 0; int v = i + t; for (; i < n; ++i) { __syncthreads(); y[t] += v; }"
    assert any("& v = caffe_kept" in text for _, _, text in edits_of(beyond + B))


def test_the_index_along_x_is_counted():
    edits = edits_of(
        S + "int i = blockIdx.x * blockDim.x + t;" + B + "y[i] = x[threadIdx.x + blockDim.x * blockIdx.x];"
    )
    assert [text for _, _, text in edits].count("caffe_x") == 2
    assert any("int i = caffe_x;" in text for _, _, text in edits)


def test_a_pragma_stays_beside_its_loop():
    body = S + B + "\n#pragma unroll 4\nfor (int k = 0; k < 9; ++k) y[k] = s[k];"
    text = HEAD + KERNEL % body
    start = next(start for start, _, text in reversed(edits_of(body)) if "CAFFE_HOST_EACH" in text)
    assert text[start:].startswith(" \n#pragma unroll 4\nfor")
