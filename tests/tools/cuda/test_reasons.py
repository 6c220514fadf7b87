"""Every kernel that is no loop has a reason, which names the line where it stands."""

import pytest

from tools.cuda.analysis import Unit
from tools.cuda.to_host import HostRewriter

HEAD = "__device__ float early(float v) { if (v > 0) return v; return __shfl_xor_sync(~0u, v, 1); }\n"
KERNEL = """__global__ void k(float* y, const float* x, int n) {
__shared__ float s[64]; int t = threadIdx.x; float v = x[t];
%s
y[t] = v; }
"""
REASONS = {
    "s[t] = v;\nif (n > 0) __syncthreads();": (4, "a statement with a barrier, without braces"),
    "s[t] = v;\nif (x[0] > 0) { __syncthreads(); }": (4, "may differ between threads"),
    "switch (n) {\ncase 1: __syncthreads(); }": (3, "a barrier in a switch statement"),
    "while (n) { __syncthreads();\nif (v > 1) break;\n__syncthreads(); }": (4, "a jump out of what stands between"),
    "__syncthreads();\n#if UNKNOWN\nv = 1;\n#endif": (4, "a preprocessor line"),
    "__syncthreads();\ngoto out;\nout:;": (4, "goto"),
    "__syncthreads();\nv = 1 +;\n": (4, "that the parser does not know"),
    "for (int i = t; i < n; i++) {\n__syncthreads(); v += s[i]; }": (3, "may differ between threads"),
    "v =\n__shfl_xor_sync(~n, v, 1);": (4, "a mask that may not be of all lanes"),
    "v = n\n? __shfl_xor_sync(~0u, v, 1) : v;": (4, "in a conditional expression"),
    "\nv = v > 0 && early(v);": (4, "behind a condition"),
    "\nv = early(v);": (4, "does not end with its only return"),
}  # fmt: skip


def way_of(text: str):
    unit = Unit(text, "x.cu")
    (way,) = HostRewriter(unit, unit.main).ways
    return way


@pytest.mark.parametrize("body", REASONS)
def test_reasons(body):
    way = way_of(HEAD + KERNEL % body)
    line, words = REASONS[body]
    assert way.mode == "kThreads"
    assert any(words in r.why and (r.path, r.line) == ("x.cu", line + 1) for r in way.reasons), way.reasons


def test_a_loop_has_no_reason():
    way = way_of(KERNEL % "s[t] = v; __syncthreads(); v = s[63 - t];")
    assert (way.kernel, way.line, way.mode, way.reasons) == ("k", 1, "kPhases", ())
