"""Which loops of threads run turn by turn."""

import pytest

from tools.cuda.analysis import Unit
from tools.cuda.phases import phases_of
from tools.cuda.to_host import WarpsRewriter

HEAD = """
__device__ float halved(float v) { return v / 2; }
__device__ float told(float v) { printf("%f", v); return v; }
__device__ void counted(int* to) { atomicAdd(to, 1); }
__device__ float counting(float v, int* to) { counted(to); return v; }
__device__ float warp_sum(float v) { for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d); return v; }
"""
KERNEL = (
    "__global__ void k(const float* x, float* y, int* c, int n, unsigned m) { __shared__ float s[256]; %s }"
)
S = "int t = threadIdx.x; float v = 0; "
E = " s[threadIdx.x] = v; __syncthreads(); y[threadIdx.x] = s[255 - threadIdx.x];"
STRIDED = {
    "for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[i];": True,
    "for (unsigned i = t; i <= m; i += 256) { v += x[i]; }": True,
    "for (size_t i = n * 8 + t; i < n * 9; i += blockDim.x) y[i] = halved(x[i]);": True,
    "for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x) v += x[i];": True,
    "for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < n; i += blockDim.x) v += x[i];": True,
    "for (int i = t; i < n; i += 256) { for (int k = 0; k < 9; ++k) { if (k == n) continue; break; } }": True,
    # Neighbours do not begin at neighbours, or go on by what is their own.
    "for (int i = t * 2; i < n; i += blockDim.x) v += x[i];": False,
    "for (int i = t + threadIdx.x; i < n; i += blockDim.x) v += x[i];": False,
    "for (int i = n - t; i < n; i += blockDim.x) v += x[i];": False,
    "for (int i = t % 32; i < n; i += blockDim.x) v += x[i];": False,  # of the block
    "for (int i = t; i < n; i += t) v += x[i];": False,
    "for (int i = t; i < n + t; i += 256) v += x[i];": False,
    "for (int i = t; i < n; i -= 256) v += x[i];": False,
    "for (int i = t; i != n; i += 256) v += x[i];": False,
    "for (short i = t; i < n; i += 256) v += x[i];": False,
    # The index or the end changes, or a thread leaves the loop.
    "for (int i = t; i < n; i += 256) { v += x[i]; i += 1; }": False,
    "for (int i = t; i < n; i += 256) { if (x[i] > 0) break; }": False,
    "for (int i = t; i < n; i += 256) { if (x[i] > 0) continue; v += 1; }": False,
    # Somebody is told in which order.
    "for (int i = t; i < n; i += 256) atomicAdd(c, 1);": False,
    "for (int i = t; i < n; i += 256) counted(c);": False,
    "for (int i = t; i < n; i += 256) v = counting(v, c);": False,
    "for (int i = t; i < n; i += 256) v = told(v);": False,
}


def phases(body: str) -> str:
    unit = Unit(HEAD + KERNEL % body, "x.cu")
    function = next(f for f in unit.main.functions if f.is_kernel)
    edits = phases_of(unit.main, function, unit.names)
    assert isinstance(edits, list), edits
    return "".join(text() if callable(text) else text for _, _, text in edits)


@pytest.mark.parametrize("loop", STRIDED)
def test_strided_loops(loop):
    text = phases(S + loop + E)
    assert ("each_turn" in text) == STRIDED[loop]
    assert text.count("each_turn") == text.count("each_row")


def test_a_loop_ends_where_its_index_is_compared():
    assert "each_turn<false>(threadIdx, caffe_t, caffe_x, blockDim.x, i, n * 2," in phases(
        S + "for (int i = t; i < n * 2; i += 256) v += x[i];" + E
    )
    assert "each_turn<true>" in phases(S + "for (int i = t; i <= n; i += 256) v += x[i];" + E)


def test_threads_that_may_have_returned_take_no_turns():
    text = phases(S + "for (int i = t; i < n; i += 256) v += x[i]; if (v > 0) return;" + E)
    assert "caffe_gone" in text and "each_turn" not in text


def test_what_has_no_place_for_each_thread_takes_no_turns():
    """Rather no turns than fibres: a loop between them lets variables live on."""
    many = "".join(f"float w{k} = x[t + {k}]; " for k in range(40))
    used = "".join(f" + w{k}" for k in range(40))
    loop = f"for (int i = t; i < n; i += 256) v += x[i]{used};"
    assert "each_turn" not in phases(S + many + loop + E)


COMMON = {
    "float4 a = make_float4(0, 0, 0, 0); for (int k = 0; k < 32; ++k) { float4 b = a; a.x += b.y; }": True,
    "float2 a = make_float2(0, 0); for (int k = 0; k < n; k += 2) { a.x += x[k]; a.y -= k; }": True,
    # No vector, or one of each turn alone; another number of turns for each thread; somebody is told.
    "float a = 0; for (int k = 0; k < 32; ++k) { a += x[k]; }": False,
    "float4 a = make_float4(0, 0, 0, 0); for (int k = 0; k < 32; ++k) { float4 b = a; b.x += x[k]; v += b.x; }": False,
    "float4 a = make_float4(0, 0, 0, 0); for (int k = 0; k < t; ++k) { a.x += x[k]; }": False,
    "float4 a = make_float4(0, 0, 0, 0); for (int k = 0; k < 32; ++k) { a.x += x[k]; atomicAdd(c, 1); }": False,
}


@pytest.mark.parametrize("loop", COMMON)
def test_common_loops(loop):
    body = S + loop + ("v += a.x;" if "a.x" in loop else "v += a;" if "float a" in loop else "") + E
    unit = Unit(HEAD + KERNEL % body, "x.cu")
    source = unit.main
    edits = phases_of(source, next(f for f in source.functions if f.is_kernel), unit.names)
    assert isinstance(edits, list)
    inside = (
        source.text.index("{", source.text.index("for (int k")),
        source.text.index("}", source.text.index("for (int k")),
    )
    assert (
        any("CAFFE_HOST_EACH" in text and inside[0] < start < inside[1] for start, _, text in edits)
        == COMMON[loop]
    )


def test_loops_of_lanes():
    """The index of a warp's lane counts, too."""
    loop = "for (int i = lane; i < n; i += 32) v += x[i];"
    body = f"int lane = threadIdx.x % 32; float v = 0; {loop} y[lane] = warp_sum(v);"
    unit = Unit(HEAD + KERNEL % body, "x.cu")
    rewriter = WarpsRewriter.of(unit, unit.main)
    assert "each_turn<false>(threadIdx, caffe_t, caffe_x, 32, i, n," in next(iter(rewriter.texts.values()))
