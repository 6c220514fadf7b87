"""Which values are the same for all threads of a block, and which each thread can compute again."""

import pytest

from tools.cuda.analysis import Unit
from tools.cuda.body import Body, walk
from tools.cuda.uniform import Uniform
from tools.cuda.uses import Uses

HEAD = """
constexpr int FOUR = 4;
__device__ int counter;
template <typename V> __device__ V load_cast(const V* p) { return *p; }
__device__ int min(int& a, int b) { return a += b; }
"""
KERNEL = """__global__ void k(int n, const int* x) {
  __shared__ int s[64];
  int t = threadIdx.x; int d = n;
  const auto a = t + 1;
  auto real = t * 0.5f;
  enum { WIDE = 9 };
  while (d > 0) { int v = %s; __syncthreads(); d -= 1; }
}"""


def uniform(value: str) -> Uniform:
    unit = Unit(HEAD + KERNEL % value, "x.cu")
    function = next(f for f in unit.main.functions if f.is_kernel)
    body = Body(unit.main, function)
    loop = next(node for node in walk(body.root) if node.type == "while_statement")
    found = Uniform(Uses(body, function, unit.names, set()), {loop.id, loop.child_by_field_name("body").id})
    found.find()
    return found


VALUES = {  # the same for all threads; computed again by each
    "n + FOUR * WIDE": (True, True),
    "blockIdx.x * blockDim.x + d / 2": (True, False),  # d changes in this loop
    "(int)(blockDim.x >> 1) + warpSize": (True, True),
    "static_cast<int>(n)": (True, True),
    "max(n, 3)": (True, True),
    "t + a": (False, True),
    "threadIdx.x * n": (False, True),
    "min(t, 3)": (False, False),  # the file has its own
    "load_cast<int>(x)": (False, False),
    "x[0]": (False, False),
    "s[0]": (False, False),
    "counter": (False, False),
    "(int)real": (False, False),
    "n * 0.5f": (True, False),
}


@pytest.mark.parametrize("value", VALUES)
def test_values(value):
    found = uniform(value)
    variable = next(v for v in found.uses.scopes if v.name == "v")
    assert (found.is_same(variable.value), found.is_again(variable)) == VALUES[value]
    assert [v.name for v in found.uses.scopes if v.is_uniform and v.name != "v"] == ["d"]
