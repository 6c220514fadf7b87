"""Kernels whose phases are loops on the host (tools/cuda/phases.py): the numbers and errors of threads on fibres."""

import math
import uuid

import pytest
import torch
from support.processor import division_traps

from cuffi import load_inline
from cuffi.runtime import CaffeRuntimeError
from tools.cuda.analysis import Unit
from tools.cuda.rewrite import rewrite_unit
from tools.cuda.to_host import HostRewriter

# id is the thread's number in the block, place that in the grid. s is shared.
HEAD = """
#define TILE 8
__device__ int twice(int v) { return 2 * v; }
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define BUMP(v) v += 3
struct Pair { int first, more[2]; __device__ void add(int v) { first += v; } };
__device__ void put(int* to, int v) { *to = v; }
__device__ void raise_by(int& v, int by) { v += by; }
"""
IDS = """
  __shared__ int s[1024];
  const int id = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int count = blockDim.x * blockDim.y * blockDim.z;
  const int place = ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * count + id;
  s[id] = x[place];
  __syncthreads();
"""
BODIES = {
    "neighbour": "y[place] = s[(id + 1) % count];",
    "sum": """for (int d = 512; d > 0; d >>= 1) { if (id < d && id + d < count) s[id] += s[id + d]; __syncthreads(); }
              y[place] = s[0] + id;""",
    "scan": """int d = 1;
               while (d < count) {
                 int v = id >= d ? s[id - d] : 0;
                 __syncthreads();
                 s[id] += v;
                 __syncthreads();
                 d *= 2;
               }
               y[place] = s[id];""",
    "kept": """int a = 3, b, c = x[place]; float f = c * 0.5f; long long wide = c; b = a + id;
               for (int m = 0; m < n % 5; ++m) { raise_by(c, s[(id + m) % count]);
                 f += b; wide = wide * 3 + c; __syncthreads(); }
               y[place] = a + b + c + (int)f + (int)(wide % 1000);""",
    "index": """unsigned t = threadIdx.x; int i = blockIdx.x * blockDim.x + t;
                __syncthreads(); y[place] = i + s[(id + 2) % count]
                + (threadIdx.x + blockDim.x * blockIdx.x);""",
    "pointers": """const int* row = x + (place / TILE) * TILE; int* own = &s[id];
                   __syncthreads(); y[place] = row[0] + *own; __syncthreads(); y[place] += row[place % TILE];""",
    "branches": """if (n % 2) { int v = s[(id + 1) % count]; __syncthreads(); s[id] = v; }
                   else if (n > 4) { s[id] += 7; }
                   __syncthreads(); y[place] = s[(id + 3) % count];""",
    "leaves": """if (n < 3) return;
                 for (int m = 0;; ++m) { __syncthreads(); if (m >= n) break; y[place] += m;
                 if (m == 4) continue; y[place] += 10; }
                 if (id % 3 == 0) return;
                 y[place] += 100;""",
    "loops": """int best = 0;
                for (int k = 0; k < 9; ++k) { if (k == id) continue; if (k > n) break; best += s[(id + k) % count]; }
                __syncthreads(); y[place] = best;
                for (int k = 0; k < 2; ++k) { __syncthreads(); y[place] += k * best; }""",
    "atomics": """int own = atomicAdd(&s[0], 1); __syncthreads(); y[place] = s[0] * 2 + (own < s[0]);""",
    "own_arrays": """int own[3] = {id, n, 1}; for (int k = 0; k < 3; ++k) s[id] += own[k];
                     __syncthreads(); y[place] = s[(id + 1) % count];""",
    "places": """int own[2][2] = {{id, n}, {s[id], 4}}, rest[3]; const auto v = s[id] * 2; const auto half = id / 2;
                 Pair p = {id, {v, 2}}, *at = &p; float4 f; f.x = f.y = v; f.z = f.w = 1; int& mine = s[id]; auto g = f;
                 int (*rows)[4] = reinterpret_cast<int (*)[4]>(s); for (int k = 0; k < 3; ++k) rest[k] = s[id] + k;
                 for (int k = 0; k < n; ++k) { __syncthreads(); own[k % 2][1] += v; p.add(half); at->more[1] += k;
                 mine += 1; g.x += f.y; rest[1] += own[0][1]; __syncthreads(); }
                 y[place] = own[0][0] + own[1][1] + p.first + p.more[1] + (int)g.x + rows[0][0] + rest[1] + rest[2];""",
    "words": """enum { WIDTH = 3, LAST = WIDTH - 1 }; int turn = 1; __syncthreads(); turn += s[(id + LAST) % count];
                BUMP(turn); __syncthreads(); return put(y + place, MAX(turn, s[(id + WIDTH) % count]));""",
    "lists": """int row[1][2] = {{n, id}}; s[id] += row[0][0]; __syncthreads();
                int pair[2][1] = {{n}, {id}}; y[place] = s[(id + 1) % count] + pair[0][0] + pair[1][0];""",
}  # fmt: skip
ON_FIBRES = {
    "places"
}  # a class and a list across a barrier, a pointer to a variable of the thread, rows of shared memory
TEMPLATED = """
template <typename T> __global__ void templated(T* y, const T* x) {
  extern __shared__ unsigned char raw[];
  T* s = reinterpret_cast<T*>(raw);
  T v = x[threadIdx.x];
  s[threadIdx.x] = v;
  __syncthreads();
  y[threadIdx.x] = v + s[blockDim.x - 1 - threadIdx.x];
}
extern "C" int templated_float(float* y, const float* x, int n) {
  templated<float><<<1, n, n * sizeof(float)>>>(y, x);
  return CAFFE_LAUNCH_STATUS();
}
extern "C" int templated_double(double* y, const double* x, int n) {
  templated<double><<<1, n, n * sizeof(double)>>>(y, x);
  return CAFFE_LAUNCH_STATUS();
}
"""
OTHERS = r"""
__global__ void divides(int by, int* y) { __shared__ int s; s = by; __syncthreads(); y[0] = 7 / s; }
__global__ void reaches(long at, int* y) { __syncthreads(); y[at] = 7; }
__global__ void beyond(int* y) { extern __shared__ int d[]; d[threadIdx.x + 5] = 1; __syncthreads(); y[0] = d[0]; }
__device__ int deep(int n, volatile char* above) {
  char own[1024];
  own[n % 1024] = above[0];
  return n ? deep(n - 1, own) + own[0] : 0;
}
"""


def kernels(suffix: str, end: str) -> str:
    head = "(int* y, const int* x, int n) {"
    return "".join(
        f"__global__ void {name}{suffix}{head}{IDS}{body} {end} }}\n" for name, body in BODIES.items()
    )


@pytest.fixture(scope="module")
def phases():
    """Each kernel twice: a goto that nobody reaches lets its threads run on fibres."""
    text = HEAD + kernels("", "") + kernels("_fibres", "if (n == -12345) goto out; out:;") + OTHERS
    return load_inline("phases", text, backends="host")


def launch(module, name, *arguments, grid=(1, 1, 1), block=(1, 1, 1), shared=()):
    getattr(module, f"phases_{name}")(*arguments, *grid, *block, *shared)


def test_all_but_the_fibres_are_loops():
    text = HEAD + kernels("", "") + kernels("_fibres", "if (n == -12345) goto out; out:;") + OTHERS
    texts, _, _ = rewrite_unit(Unit(text, "x.cu"), HostRewriter, "", "")
    assert texts[""].count("::cuda_host::kPhases") == len(BODIES) + 3 - len(ON_FIBRES)
    assert (
        texts[""].count("\n") == text.count("\n") + 2
    )  # each statement keeps its line, for messages and gdb


@pytest.mark.parametrize(
    "grid, block",
    [((3, 1, 1), (96, 1, 1)), ((2, 2, 2), (5, 3, 2)), ((70, 1, 1), (1, 1, 1)), ((1, 1, 1), (1024, 1, 1))],
)
@pytest.mark.parametrize("name", BODIES)
def test_the_numbers_of_fibres(phases, name, grid, block):
    total = math.prod(grid) * math.prod(block)
    x = torch.randint(0, 50, (total,), dtype=torch.int32, generator=torch.Generator().manual_seed(1))
    for n in range(-1, 8):
        ours, theirs = torch.zeros(2, total, dtype=torch.int32)
        launch(phases, name, ours, x, n, grid=grid, block=block)
        launch(phases, f"{name}_fibres", theirs, x, n, grid=grid, block=block)
        assert torch.equal(ours, theirs), n


def test_sums_and_neighbours(phases):
    """Against torch."""
    x = torch.arange(4 * 64, dtype=torch.int32)
    rows = x.reshape(4, 64)
    for name, wanted in {
        "neighbour": rows.roll(-1, 1),
        "sum": rows.sum(1, keepdim=True, dtype=torch.int32) + torch.arange(64, dtype=torch.int32),
        "scan": rows.cumsum(1, dtype=torch.int32),
    }.items():
        y = torch.zeros_like(x)
        launch(phases, name, y, x, 1, grid=(4, 1, 1), block=(64, 1, 1))
        assert torch.equal(y.reshape(4, 64), wanted), name


def test_templates_and_dynamic_memory():
    templated = load_inline("templated", TEMPLATED, backends="host")
    for call, dtype in (
        (templated.templated_float, torch.float32),
        (templated.templated_double, torch.float64),
    ):
        x, y = torch.randn(40, dtype=dtype), torch.zeros(40, dtype=dtype)
        call(y, x, 40)
        assert torch.equal(y, x + x.flip(0))


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        pytest.param("divides", (0,), "kernel divides: an integer was divided by zero", marks=division_traps),
        ("reaches", (1 << 44,), "kernel reaches: used memory that is not there"),
    ],
)
def test_errors(phases, name, arguments, words):
    y = torch.zeros(4, dtype=torch.int32)
    with pytest.raises(CaffeRuntimeError, match=words):
        launch(phases, name, *arguments, y)
    launch(phases, "divides", 1, y)
    assert y[0] == 7


def test_dynamic_shared_memory_is_looked_after(phases):
    with pytest.raises(CaffeRuntimeError, match=r"dynamic shared memory.*asked for 16 bytes"):
        launch(phases, "beyond", torch.zeros(4, dtype=torch.int32), shared=(16,))


BELOW = """
__global__ void below(int* y, int n, int m) {
  __shared__ int s[64];
  const unsigned t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  if (t < n) s[t] += 1;
  if (t < (unsigned)m) s[t] += 2;
  if (t >= n) s[t] += 4;
  if (threadIdx.x >= (unsigned)m) s[t] += 8;
  if (threadIdx.x < (long long)m || t >= n + 3) s[t] += 16;
  __syncthreads();
  y[t] = s[t ^ 1];
}
"""


def test_unsigned_comparisons_of_a_thread():
    """The other side is unsigned, too: a negative number is beyond all threads."""
    text = rewrite_unit(Unit(BELOW, "x.cu"), HostRewriter, "", "")[0][""]
    assert text.count("::cuda_host::below(") == 6
    module, y = load_inline("below", BELOW, backends="host"), torch.zeros(64, dtype=torch.int32)
    for n, m in ((-5, -1), (0, 0), (10, 64), (63, 5), (2**31 - 4, -(2**31)), (-(2**31), 2**31 - 1)):
        module.below_kernel(y, n, m, 1, 1, 1, 64, 1, 1)
        least, most, third = n % 2**32, m % 2**32, (n + 3) % 2**32
        wanted = [
            (t < least) + 2 * (t < most) + 4 * (t >= least) + 8 * (t >= most) + 16 * (t < m or t >= third)
            for t in range(64)
        ]
        assert y.tolist() == [wanted[t ^ 1] for t in range(64)], (n, m)


NO_LOOPS = """
struct Double { int v; __device__ Double(int a) : v(2 * a) {} __device__ Double(const Double& o) : v(o.v) {} };
__device__ Double doubled(int v) { return Double(v); }
__global__ void k(int* y, const int* x) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  auto own = doubled(x[t]);
  s[t] = own.v;
  __syncthreads();
  y[t] = s[63 - t] + own.v;
}
"""


def test_what_does_not_compile_as_loops_runs_on_fibres():
    """`auto` hides that the variable behind the barrier is no plain memory: only the compiler sees it."""
    assert 'kPhases>("k"' in rewrite_unit(Unit(NO_LOOPS, "x.cu"), HostRewriter, "", "")[0][""]
    text = f"{NO_LOOPS}// {uuid.uuid4()}"  # a build of before says nothing
    with pytest.warns(
        RuntimeWarning, match="No loops: no_loops/no_loops.cu: its kernels do not compile as loops"
    ):
        module = load_inline("no_loops", text, backends="host")
    x, y = torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    module.no_loops_k(y, x, 1, 1, 1, 64, 1, 1)
    assert y.tolist() == [126] * 64
    broken = NO_LOOPS.replace("s[63 - t]", "s[63 - t] + unknown")
    with pytest.raises(RuntimeError) as error:
        load_inline("no_loops", broken, backends="host")
    assert str(error.value).count("unknown") <= 3, error.value
