"""Kernels whose threads run as a plain loop (kBlocks) on the host: the same numbers and the same errors."""

import math
import re

import pytest
import torch
from support.processor import division_traps
from support.typed import not_none

from cuffi import load_inline
from cuffi.runtime import CaffeRuntimeError

HEADER = """
__device__ int index_of_a_header() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ void meet() { __syncthreads(); }
#define INDEX_OF_A_HEADER index_of_a_header()
"""

TEXT = r"""
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
__device__ int by_a_function() { return INDEX; }
struct Adds {
  int value;
  __device__ int operator()(int v) const { return value + v + threadIdx.x; }
};
__global__ void guarded(int n, const float* in, float* o) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) o[i] = 2 * in[i] + 1;
}
__global__ void early(int n, const float* in, float* o) {
  unsigned i = INDEX;
  if (i >= n) return;
  o[i] = 2 * in[i] + 1;
}
__global__ void function(int n, const float* in, float* o) {
  const size_t i = by_a_function();
  if (i < n) o[i] = 2 * in[i] + 1;
}
__global__ void strided(int n, const float* in, float* o) {
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) o[i] = 2 * in[i] + 1;
}
__global__ void own_parameters(int n, const float* in, float* o) {
  const int i = INDEX;
  n -= i, in += i, o += i;
  if (n > 0) *o = 2 * *in + 1;
}
__global__ void lambda(int n, const float* in, float* o) {
  auto at = [](int k) { return k + threadIdx.x; };
  const int i = at(blockIdx.x * blockDim.x);
  if (i < n) o[i] = 2 * in[i] + 1;
}
__global__ void local_class(int n, const float* in, float* o) {
  struct At { static __device__ int it() { return blockIdx.x * blockDim.x + ::threadIdx.x; } };
  if (At::it() < n) o[At::it()] = 2 * in[At::it()] + 1;
}
__global__ void functor(int n, const float* in, float* o) {
  const int i = Adds{int(blockIdx.x * blockDim.x)}(0);
  if (i < n) o[i] = 2 * in[i] + 1;
}
__global__ void three(int* o) {
  const int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  int* own = o + 6 * (b * blockDim.x * blockDim.y * blockDim.z + t);
  own[0] = threadIdx.x, own[1] = threadIdx.y, own[2] = threadIdx.z;
  own[3] = blockIdx.x, own[4] = blockIdx.y, own[5] = blockIdx.z;
}
__global__ void in_order(int* count, int* o) { o[atomicAdd(count, 1)] = INDEX; }
__global__ void shared(int* o) {
  __shared__ int before;
  extern __shared__ int dynamic[];
  if (threadIdx.x == 0) before = 0, dynamic[0] = 5;
  o[INDEX] = before + dynamic[0];
  before = INDEX;
}
__device__ int deep(int n, volatile char* above) {
  char own[1024];
  own[n % 1024] = above[0];
  return n ? deep(n - 1, own) + own[0] : 0;
}
__global__ void stack(int kib, int* o) {
  char first[1] = {1};
  o[INDEX] = deep(kib, first);
}
__global__ void divides(int by, int* o) { o[0] = 7 / by; }
__global__ void divides_by_constant(int by, int* o) { o[0] = 7 / (by - by); }
__global__ void reaches(long at, int* o) { o[at] = 7; }
__global__ void beyond(int* o) {
  extern __shared__ int dynamic[];
  dynamic[threadIdx.x + 5] = o[0];
}
"""


# Conditions over a grid of columns c and rows r: guards (tools/cuda/guard.py), and what looks like one.
GUARDS = [
    "c < w && r < h",
    "(r < h) && (c < w)",
    "w > c && r <= h",
    "c > 0 && r > 0 && c < w - 1 && r < h - 1",
    "c - 1 >= 0 && c + 2 < w && r < h",
    "c >= w - 5 && r >= h / 2",
    "r == 3 && c < 2 * w",
    "r < h",
    "c < -3",
    "c > -3 && w > 1",
    "c != 5 && c < w",
    "c % 2 == 0 && c < w",
    "w - c < 4 && c < w",
    "c * c < w && r < h",
    "c < w && c > r",
]
TYPES = ["int", "unsigned", "size_t"]


def guarded(number: int, kind: str) -> str:
    index = "blockIdx.x * blockDim.x + threadIdx.x, r = threadIdx.y + blockIdx.y * blockDim.y"
    head = f"(int w, int h, int pitch, float* o) {{ {kind} c = {index};"
    leaves = " || ".join(f"!({term})" for term in GUARDS[number].split(" && "))
    for text in ("<", ">", "<=", ">="):  # c < w becomes c >= w
        other = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}[text]
        leaves = re.sub(rf"!\(([^<>=()!]*) {text} ([^<>=()!]*)\)", rf"\1 {other} \2", leaves)
    return f"""
__global__ void in_{kind}_{number}{head} if ({GUARDS[number]}) {{ o[r * pitch + c] += 1 + c; }} }}
__global__ void out_{kind}_{number}{head}
  if ({leaves}) return;
  o[r * pitch + c] += 1 + c;
}}"""


@pytest.fixture(scope="module")
def guards():
    return load_inline(
        "guards",
        "".join(guarded(n, kind) for n in range(len(GUARDS)) for kind in TYPES),
        backends="host",
    )


def admitted(number: int, kind: str, w: int, h: int, width: int, height: int) -> torch.Tensor:
    """Each thread's own answer, computed as C computes it."""
    top = torch.zeros(height, width)
    bits = {"int": None, "unsigned": 32, "size_t": 64}[kind]
    for r in range(height):
        for c in range(width):
            there = True
            for term in GUARDS[number].split(" && "):
                parts = re.fullmatch(r"(.*?) (<=|>=|==|!=|<|>) (.*)", term.strip("()"))
                left, sign, right = not_none(parts).groups()
                values = {"c": c, "r": r, "w": w, "h": h}
                sides = [eval(side.replace("/", "//"), {}, values) for side in (left, right)]
                if bits and re.search(r"\b[cr]\b", term):
                    sides = [side % 2**bits for side in sides]
                there = there and eval(f"a {sign} b", {}, {"a": sides[0], "b": sides[1]})
            top[r, c] = 1 + c if there else 0
    return top


@pytest.mark.parametrize(
    "grid, block", [((3, 3, 1), (32, 4, 1)), ((9, 2, 1), (5, 3, 1)), ((1, 1, 1), (1, 1, 1))]
)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("number", range(len(GUARDS)))
def test_guards(guards, number, kind, grid, block):
    width, height = grid[0] * block[0], grid[1] * block[1]
    for w, h in ((17, 5), (40, 6), (0, 1), (1000, 1000)):
        wanted = admitted(number, kind, w, h, width, height)
        for name in (f"in_{kind}_{number}", f"out_{kind}_{number}"):
            top = torch.zeros(height, width)
            launch(guards, name, w, h, width, top, grid=grid, block=block)
            assert torch.equal(top, wanted), (name, w, h)


@pytest.fixture(scope="module")
def blocks():
    return load_inline("blocks", TEXT, backends="host")


def launch(module, name, *arguments, grid=(1, 1, 1), block=(1, 1, 1), shared=()):
    getattr(module, f"{module.__name__.split('.')[-1]}_{name}")(*arguments, *grid, *block, *shared)


SAME = ["guarded", "early", "function", "strided", "own_parameters", "lambda", "local_class", "functor"]


@pytest.mark.parametrize("count, threads", [(1, 32), (16, 256), (1000, 96), (70001, 256), (5000, 1024)])
@pytest.mark.parametrize("name", SAME)
def test_each_element_once(blocks, name, count, threads):
    bottom = torch.arange(count, dtype=torch.float32)
    top = torch.full((count + 2000,), -1.0)
    grid = (-(-count // threads) + 1, 1, 1)
    launch(blocks, name, count, bottom, top, grid=grid, block=(threads, 1, 1))
    assert torch.equal(top[:count], 2 * bottom + 1) and (top[count:] == -1).all()


@pytest.mark.parametrize(
    "grid, block", [((3, 2, 4), (4, 3, 2)), ((70, 3, 1), (7, 5, 9)), ((1, 1, 6), (1, 1, 64))]
)
def test_three_axes(blocks, grid, block):
    top = torch.full((math.prod(grid) * math.prod(block), 6), -1, dtype=torch.int32)
    launch(blocks, "three", top, grid=grid, block=block)
    axes = [torch.arange(n, dtype=torch.int32) for n in (*grid[::-1], *block[::-1])]
    b3, b2, b1, t3, t2, t1 = (axis.reshape(-1) for axis in torch.meshgrid(*axes, indexing="ij"))
    assert torch.equal(top, torch.stack([t1, t2, t3, b1, b2, b3], 1))


def test_threads_run_in_order(blocks):
    top, count = torch.zeros(96 * 40, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    launch(blocks, "in_order", count, top, grid=(40, 1, 1), block=(96, 1, 1))
    assert top.tolist() == list(range(96 * 40))


def test_shared_memory(blocks):
    top = torch.zeros(64, dtype=torch.int32)
    launch(blocks, "shared", top, grid=(2, 1, 1), block=(32, 1, 1), shared=(4,))
    assert top.tolist() == [5, *range(5, 36), 5, *range(37, 68)]


def test_a_thread_has_the_stack_of_a_gpus(blocks):
    top = torch.zeros(64, dtype=torch.int32)
    launch(blocks, "stack", 400, top, grid=(2, 1, 1), block=(32, 1, 1))
    with pytest.raises(CaffeRuntimeError, match="kernel stack: a thread needs more stack than 640 KiB"):
        launch(blocks, "stack", 2000, top, grid=(2, 1, 1), block=(32, 1, 1))
    launch(blocks, "stack", 400, top, grid=(2, 1, 1), block=(32, 1, 1))


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        pytest.param("divides", (0,), "kernel divides: an integer was divided by zero", marks=division_traps),
        # g++ writes an instruction that is none: the signal is SIGILL, which ended Python.
        ("divides_by_constant", (1,), "kernel divides_by_constant: came to what C\\+\\+ does not define"),
        ("reaches", (1 << 44,), "kernel reaches: used memory that is not there"),
    ],
)
def test_errors(blocks, name, arguments, words):
    top = torch.zeros(4, dtype=torch.int32)
    with pytest.raises(CaffeRuntimeError, match=words):
        launch(blocks, name, *arguments, top)
    launch(blocks, "divides", 1, top)
    assert top[0] == 7


def test_dynamic_shared_memory_is_looked_after(blocks):
    with pytest.raises(CaffeRuntimeError, match=r"dynamic shared memory.*asked for 16 bytes"):
        launch(blocks, "beyond", torch.zeros(4, dtype=torch.int32), shared=(16,))


@pytest.mark.parametrize("index", ["index_of_a_header()", "INDEX_OF_A_HEADER"])
def test_a_header_that_is_not_read(tmp_path, index):
    """A function of a header from another folder asks for its thread, or meets others."""
    (tmp_path / "my_index.h").write_text(HEADER)
    text = f"""#include "{tmp_path}/my_index.h"
    __global__ void header(int* o) {{
      int i = {index};
      __shared__ int last;
      last = i;
      meet();
      o[i] = i + last * 100;
    }}"""
    top = torch.zeros(12, dtype=torch.int32)
    launch(load_inline("others", text, backends="host"), "header", top, grid=(3, 1, 1), block=(4, 1, 1))
    assert top.tolist() == [i + (i // 4 * 4 + 3) * 100 for i in range(12)]
