"""Which kernels have a guard that the launcher asks at both ends of a row, and which count their threads along x."""

import pytest
from support.rewriting import analyse

from tools.cuda.analysis import Unit
from tools.cuda.guard import Guard, counts_along_x, guard_of

HEAD = """
#define MACRO (i < n)
#define A_BLOCK blockIdx.x
__device__ int of_the_block() { return blockIdx.x; }
__device__ int f(int v) { return v; }
"""
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x; "
PLANE = "int c = threadIdx.x + blockDim.x * blockIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y; "


def read(body: str, head: str = HEAD):
    unit = Unit(f"{head}__global__ void k(int n, long m, const float* x, float* y) {{ {body} }}\n", "x.cu")
    function = next(f for f in unit.main.functions if f.is_kernel)
    return unit, function


GUARDS = {
    INDEX + "if (i < n) y[i] = x[i];": True,
    INDEX + "if (i < n) { y[i] = x[i]; }": True,
    INDEX + "if (i >= n) return; y[i] = x[i]; if (x[i] > 0) return; y[i] = 0;": True,
    INDEX + "if (m > i) y[i] = x[i];": True,
    INDEX + "if (i + 1 < n) y[i] = x[i];": True,
    INDEX + "const int k = n / 2; if (i < k * 3) y[i] = x[i];": True,
    "size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; if (i < m) y[i] = x[i];": True,
    "const auto i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i];": True,
    "auto i = threadIdx.x; auto k = x[i]; if (k < n) y[i] = 1;": False,
    PLANE + "if (c >= n || r >= m) return; y[c + r * n] = 1;": True,
    PLANE + "if (c < n && r < m && (n > 3)) y[c + r * n] = 1;": True,
    "if (n > 0) y[0] = x[0];": True,
    # Something is left that a thread outside does.
    INDEX + "if (i < n) y[i] = x[i]; y[0] = 1;": False,
    INDEX + "if (i < n) y[i] = x[i]; else y[0] = 1;": False,
    INDEX + "y[0] = 1; if (i < n) y[i] = x[i];": False,
    INDEX + "if (i < n) if (x[i] > 0) y[i] = x[i];": False,
    # Not true from one thread on, or up to one.
    INDEX + "if (i != n) y[i] = x[i];": False,
    INDEX + "if (i % 2 < n) y[i] = x[i];": False,
    INDEX + "if (i * n < 100) y[i] = x[i];": False,
    INDEX + "if (i < n - i) y[i] = x[i];": False,
    INDEX + "int j = i / 2; if (j < n) y[i] = x[i];": False,
    INDEX + "if (i < n || i > m) y[i] = x[i];": False,
    INDEX + "if (i >= n && i < m) return; y[i] = 1;": False,
    INDEX + "if (!(i < n)) return; y[i] = 1;": False,
    "short i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 1;": False,
    "unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i - 1 < n) y[i] = 1;": False,
    INDEX + "if (i - 1 < m) y[i] = 1;": False,
    INDEX + "if (i + 2147483647 < n) y[i] = 1;": False,
    # Not arithmetic, or not the same whenever it is asked.
    INDEX + "if (i < x[0]) y[i] = 1;": False,
    INDEX + "if (i < *x) y[i] = 1;": False,
    INDEX + "if (i < f(n)) y[i] = 1;": False,
    INDEX + "if (i++ < n) y[i] = 1;": False,
    INDEX + "if ((n = i) < 5) y[i] = 1;": False,
    INDEX + "if (MACRO) y[i] = 1;": False,
    INDEX + "if (i < other) y[i] = 1;": False,
    "int i = f(blockIdx.x * blockDim.x + threadIdx.x); if (i < n) y[i] = 1;": False,
    "int& i = n; if (i < n) y[i] = 1;": False,
    INDEX + "if (int k = n) y[i] = k;": False,
    INDEX + "\n#ifdef X\nif (i < n)\n#endif\n y[i] = 1;": False,
    INDEX + "static int k; if (i < n) y[i] = k;": False,
    INDEX + "if (i < n) { static int k; y[i] = k; }": False,
    INDEX + "if (i < n) { __shared__ int k; k = 1; y[i] = k; }": False,
    "__shared__ int k; " + INDEX + "if (i < n) y[i] = k;": False,
}


@pytest.mark.parametrize("body", GUARDS)
def test_guard(body):
    unit, function = read(body)
    assert isinstance(guard_of(unit.main, function, unit.macros), Guard) == GUARDS[body]


ROWS = {
    INDEX + "y[i] = x[i];": True,
    PLANE + "y[c + r * n] = x[blockIdx.y];": True,
    "for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += blockDim.x * gridDim.x) y[i] = 1;": True,
    "y[(blockIdx.x * blockDim.x) + threadIdx.x] = 1;": True,
    "y[f(blockIdx.x * blockDim.x + threadIdx.x)] = f(n);": True,
    INDEX + "y[threadIdx.x] = 1;": False,
    INDEX + "y[blockIdx.x] = 1;": False,
    "y[blockIdx.x * blockDim.x + threadIdx.x * 2] = 1;": False,
    "y[n - blockIdx.x * blockDim.x + threadIdx.x] = 1;": False,
    "y[2 * blockIdx.x * blockDim.x + threadIdx.x] = 1;": False,
    "int i = blockIdx.x * 256 + threadIdx.x; y[i] = 1;": False,
    "auto t = threadIdx; y[t.x] = 1;": False,
    "y[blockIdx.y * blockDim.x + threadIdx.x] = 1;": False,
}


@pytest.mark.parametrize("body", ROWS)
def test_counts_along_x(body):
    unit, function = read(body)
    assert counts_along_x(unit.main, function) == ROWS[body]


@pytest.mark.parametrize(
    "body, may",
    [
        (INDEX + "y[i] = f(n);", True),
        (INDEX + "y[i] = of_the_block();", False),
        (INDEX + "y[i] = A_BLOCK;", False),
        (INDEX + "atomicAdd(y, 1.f);", False),
        (INDEX + "const int no_atomic = 2; y[i] = no_atomic;", True),
        (INDEX + "int my_atomic = 2; my_atomic(y);", False),
        (INDEX + "__shared__ int k; k = 1; y[i] = k;", False),
    ],
)
def test_blocks_between_blocks(body, may):
    """No function or macro asks for the block, and nobody sees the order."""
    text = f"{HEAD}__global__ void k(int n, float* y) {{ {body} }}\n"
    assert analyse(text, "x.cu")[0].in_rows == may
