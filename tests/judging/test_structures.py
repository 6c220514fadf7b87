"""The race finder watches structures that functions take and return, or the judge says which it does not."""

from support.workshop import FIXTURES

from cuffi.judge import judge
from cuffi.judging.limits import Limits


def test_accesses_of_structures():
    """g++ tells the finder of none where a function takes or returns one, if the function is not inlined."""
    said = judge([FIXTURES / "judge" / "structures.cu"], limits=Limits(60))
    told = {one["kernel"]: one["text"] for one in said["findings"] if one["kind"] == "race"}
    assert len(said["ran"]) == 33 and set(said["ran"]) == set(told), set(said["ran"]) - set(told)
    assert all(text.count("structures.cu:") == 2 for text in told.values()), told


def test_structures_that_are_not_watched_are_listed(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(
        """#include <cuda_runtime.h>
struct Pair { int a, b; };
__device__ Pair down(int i) { if (i > 5) return down(i - 6); return {i, i}; }
__device__ int first(Pair x) { return x.a; }
__device__ int plus(int x) { return x ? plus(x - 1) + 1 : 0; }
__global__ void k(Pair* x) {
  auto call = first;
  x[threadIdx.x] = down(threadIdx.x);
  x[threadIdx.x].b = call(x[threadIdx.x]) + plus(3);
}
int main() { Pair* x; cudaMalloc(&x, 512); k<<<1, 64>>>(x); }
"""
    )
    said = judge([file])
    words = "accesses of the structures that {} takes or returns are not watched, because {}"
    assert said["verdict"] == "ok" and said["not_run"] == [
        f"{file}:3: {words.format('down', 'it calls itself')}",
        f"{file}:4: {words.format('first', 'a pointer calls it')}",
    ]
