"""Cooperative groups of blocks and tiles as barriers and shuffles."""

import pytest

from tools.cuda.groups import without_groups

BLOCK = "auto b = cg::this_thread_block(); "
TILE = BLOCK + "cg::thread_block_tile<8> t = cg::tiled_partition<8>(b); "
WARP = "auto w = cg::tiled_partition<32>(cg::this_thread_block()); "
RANK = "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)"
BODIES = {
    BLOCK + "b.sync(); cg::sync(b);": "; __syncthreads(); __syncthreads();",
    BLOCK + "int i = b.thread_rank(), k = b.group_index().x;": f"; int i = {RANK}, k = blockIdx.x;",
    TILE + "v += t.shfl_down(v, 1);": "; ; v += __group_shfl_down_sync(0xffffffff, v, 1, 8);",
    TILE + "v = t.shfl(t.shfl_up(v, 2), t.size() - 1);": (
        "; ; v = __group_shfl_sync(0xffffffff, __group_shfl_up_sync(0xffffffff, v, 2, 8), 8u - 1, 8);"
    ),
    WARP + "v = cg::reduce(w, v + 1, cg::plus<float>{});": (
        "; v = __group_reduce_sync(0xffffffff, v + 1, 32, cooperative_groups::plus<float>{});"
    ),
    WARP + "if (w.any(v > 0)) w.sync();": "; if (__any_sync(0xffffffff, v > 0)) __syncwarp();",
    WARP + "int r = w.meta_group_rank();": f"; int r = ({RANK} / 32u);",
    "namespace cg = cooperative_groups; "
    + WARP
    + "int l = w.thread_rank();": "; ; int l = (threadIdx.x % 32u);",
}
# What stays as it is.
OTHERS = [
    "auto g = cg::coalesced_threads(); v = g.shfl(v, 0);",
    "auto g = cg::tiled_partition<N>(cg::this_thread_block()); v = g.shfl(v, 0);",
    WARP + "v = cg::reduce(w, v, [](int a, int b) { return a - b; });",
    WARP + "v = of_a_group(w, v);",
    WARP + "v = w.match_any(v);",
    WARP + "{ int w = 3; v = w; }",
    WARP + "auto parts = cg::labeled_partition(w, v);",
    TILE + "auto w = cg::tiled_partition<32>(t);",
    "auto g = cg::this_grid(); g.sync();",
    "x.sync(); y[0] = v;",
]


@pytest.mark.parametrize("body", BODIES)
def test_groups(body):
    text, has_tiles = without_groups(f"{{ {body} }}")
    assert text == f"{{ {BODIES[body]} }}"
    assert has_tiles == ("tiled_partition" in body)


@pytest.mark.parametrize("body", OTHERS)
def test_other_groups(body):
    assert without_groups(f"{{ {body} }}")[0] == f"{{ {body} }}"


def test_lines_stay():
    text = without_groups("{\nauto b =\n  cg::this_thread_block();\nb\n.sync();\n}")[0]
    assert text.splitlines()[1:] == [";", "", "__syncthreads()", ";", "}"]
