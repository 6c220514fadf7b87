"""Which loops over the grid become ranges."""

import pytest

from tools.cuda.analysis import Unit
from tools.cuda.reasons import Reason
from tools.cuda.strides import strides_of

HEAD = """
__device__ int counter;
__device__ float work(const float* x, int i) { return 2 * x[i]; }
#define TID (blockIdx.x * blockDim.x + threadIdx.x)
"""
KERNEL = "__global__ void k(float* y, const float* x, int n, int m) { %s }"
INDEX = "blockIdx.x * blockDim.x + threadIdx.x"
W = "blockDim.x * gridDim.x"
J = "blockIdx.y * blockDim.y + threadIdx.y"
H = "gridDim.y * blockDim.y"
BODY = "y[i] = x[i];"
FOR = f"for (int i = {INDEX}; i < n; i += {W}) "

LOOPS = {
    FOR + BODY: 1,
    FOR + "{ float v = x[i]; if (v < 0) continue; for (;;) { if (v > 2) break; v += 1; } y[i] = v; }": 1,
    FOR + "y[i] = work(x, i);": 1,
    FOR + "atomicAdd(y, x[i]);": 1,
    f"int t = {INDEX}; int s = {W}; for (size_t i = t; i < n; i += s) " + BODY: 1,
    f"const auto t = {INDEX}; const auto s = {W}; for (unsigned i = t; n > i; i = i + s) " + BODY: 1,
    f"for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n * m; i += gridDim.x * blockDim.x) {{ {BODY} }}": 1,
    f"int i = {INDEX}; while (i < n) {{ {BODY} i += {W}; }}": 1,
    f"int i = {INDEX}; const int s = {W}; float a = x[0]; while (i < n) {{ y[i] = a; i += s; }}": 1,
    f"int t = {INDEX}; if (t >= n) return; for (int i = t; i < n; i += {W}) " + BODY: 1,
    f"for (int j = {J}; j < m; j += {H}) for (int i = {INDEX}; i < n; i += {W}) y[j * n + i] = x[i];": 2,
    FOR + f"{{ const int r = i * m; for (int j = {J}; j < m; j += {H}) y[r + j] = 1; }}": 2,
    # Another start, step or end.
    f"for (int i = threadIdx.x; i < n; i += {W}) " + BODY: 0,
    f"for (int i = {INDEX}; i < n; i += blockDim.x) " + BODY: 0,
    f"for (int i = {INDEX}; i < n; i += 2 * {W}) " + BODY: 0,
    f"for (int i = {INDEX}; i <= n; i += {W}) " + BODY: 0,
    f"for (int i = {INDEX} + 1; i < n; i += {W}) " + BODY: 0,
    f"for (int i = {INDEX}; i < x[0]; i += {W}) " + BODY: 0,
    f"for (int i = {INDEX}; i < counter; i += {W}) " + BODY: 0,
    f"for (int i = {J}; i < n; i += {H}) " + BODY: 0,  # threads of other columns run it, too
    # An iteration has something of another one, or of its thread.
    "float sum = 0; " + FOR + "sum += x[i]; y[0] = sum;": 0,
    "float last = 0; " + FOR + "{ y[i] = last; last = x[i]; }": 0,
    "float own[2]; " + FOR + "{ own[i % 2] = x[i]; y[i] = own[0]; }": 0,
    FOR + "{ y[i] = x[i]; m++; }": 0,
    FOR + "{ y[i] = x[i]; i++; }": 0,
    FOR + "{ if (x[i] < 0) break; y[i] = x[i]; }": 0,
    FOR + "{ if (x[i] < 0) return; y[i] = x[i]; }": 0,
    FOR + "y[i] = threadIdx.x;": 0,
    FOR + "y[i] = blockDim.x;": 0,
    f"int t = {INDEX}; for (int i = t; i < n; i += {W}) y[i] = t;": 0,
    f"int s = {W}; for (int i = {INDEX}; i < n; i += s) y[i] = i < s ? 0 : x[i - s];": 0,
    # Something beside the loop.
    FOR + BODY + " y[n] = 1;": 0,
    "y[n] = 1; " + FOR + BODY: 0,
    "atomicAdd(y, 1.f); " + FOR + BODY: 0,
    "float a = work(x, 0); " + FOR + "y[i] = a;": 0,
    f"int t = {INDEX}; if (t >= m) return; for (int i = t; i < n; i += {W}) " + BODY: 0,
    f"int t = {INDEX}; if (t == 0) y[n] = 1; for (int i = t; i < n; i += {W}) " + BODY: 0,
    FOR + BODY + FOR.replace("n;", "m;") + BODY: 0,
    f"int i = {INDEX}; while (i < n) {{ if (x[i] < 0) continue; {BODY} i += {W}; }}": 0,
    f"int i = {INDEX}; while (i < n) {{ {BODY} i += {W}; }} y[i] = 1;": 0,
    f"int i = {INDEX}; while (i < n) {{ i += {W}; {BODY} }}": 0,
    FOR + 'printf("%d", i);': 0,
    "auto f = [&](int i) { y[i] = 1; }; " + FOR + "f(i);": 0,
}  # fmt: skip


@pytest.mark.parametrize("body", LOOPS)
def test_loops(body):
    unit = Unit(HEAD + KERNEL % body, "x.cu")
    found = strides_of(unit.main, unit.main.functions[-1], unit.names)
    assert (0 if isinstance(found, Reason) else found[1]) == LOOPS[body], found


@pytest.mark.parametrize(
    "name, is_atomic", [("sum_atomic", False), ("gpuAtomicAdd", True), ("atomicAdd", True)]
)
def test_a_name_says_nothing_if_its_text_is_known(name, is_atomic):
    """A kernel beside it keeps its rows. A function that is not known may be an atomic."""
    other = f"__global__ void {name}(float* y, int n) {{ y[threadIdx.x] = n; }}" if not is_atomic else ""
    call = f"{name}(y, 1.f);" if is_atomic else ""
    guarded = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i];"
    unit = Unit(other + KERNEL % (guarded + call), "x.cu")
    assert unit.kernels(unit.main)[-1].in_rows != is_atomic
