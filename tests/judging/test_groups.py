"""Lanes whose mask does not name them, barriers of cooperative groups in conditional code, parts of groups."""

import pytest

from cuffi.judge import judge

PROGRAM = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void k(int* out) {{
  int l = threadIdx.x, all = 0;
  out[l] = l + all;
  {body}
}}
int main() {{ int* o; cudaMalloc(&o, 256); k<<<1, {threads}>>>(o); return cudaDeviceSynchronize(); }}
"""
LINE = 7  # of the body


def judged(body: str, threads: int, tmp_path) -> dict:
    file = tmp_path / "k.cu"
    file.write_text(PROGRAM.format(body=body, threads=threads))
    return judge([file])


MASKED = [
    "__shfl_sync({mask}, l, 3)",
    "__shfl_xor_sync({mask}, l, 1)",
    "__any_sync({mask}, l)",
    "__all_sync({mask}, l)",
    "__ballot_sync({mask}, l)",
    "__reduce_add_sync({mask}, l)",
    "__match_any_sync({mask}, l)",
    "__match_all_sync({mask}, l, &all)",
    "(__syncwarp({mask}), 1)",
]


@pytest.mark.parametrize("call", MASKED)
def test_a_mask_names_its_callers(call, tmp_path):
    said = judged(f"out[l] = {call.format(mask='0x0000ffffu')};", 32, tmp_path)
    lanes = [one for one in said["findings"] if one["kind"] == "lane"]
    assert lanes and said["status"] == 1 and lanes[0]["place"].endswith(f"k.cu:{LINE}"), said
    assert judged(f"if (l < 16) out[l] = {call.format(mask='0x0000ffffu')};", 32, tmp_path)["verdict"] == "ok"


SYNCS = [
    "cg::this_thread_block().sync();",
    "cg::sync(cg::this_thread_block());",
    "cg::thread_group g = cg::this_thread_block(); g.sync();",
    "cg::thread_block b = cg::this_thread_block(); cg::synchronize(b);",
    "__syncthreads();",
    "__syncthreads_count(l);",
]


@pytest.mark.parametrize("sync", SYNCS)
def test_a_barrier_of_a_group_in_conditional_code(sync, tmp_path):
    said = judged(f"if (l < 40) {{ {sync} }}", 64, tmp_path)
    assert (said["verdict"], said["status"]) == ("barrier", 1), said
    assert said["findings"][0]["place"].endswith(f"k.cu:{LINE}"), said
    assert judged(sync, 64, tmp_path)["verdict"] == "ok"
    warned = judged(f"if (l >= 40) return; {sync}", 64, tmp_path)
    assert (warned["verdict"], warned["status"]) == ("barrier", 0), warned


# Of thread 13 of 64.
RANKS = {
    "cg::tiled_partition(cg::this_thread_block(), 32)": (13, 32),
    "cg::tiled_partition(cg::tiled_partition(cg::this_thread_block(), 32), 8)": (5, 8),
    "cg::tiled_partition(cg::tiled_partition<16>(cg::this_thread_block()), 4)": (1, 4),
    "cg::tiled_partition(cg::coalesced_threads(), 8)": (5, 8),
}


@pytest.mark.parametrize("group", RANKS)
def test_parts_of_groups(group, tmp_path):
    said = judged(f"auto g = {group}; if (l == 13) printf('R', g.thread_rank(), g.size()); g.sync();".replace(
        "'R'", '"%d %d"'), 64, tmp_path)  # fmt: skip
    assert (said["verdict"], said["output"]) == ("ok", "{} {}".format(*RANKS[group])), said


def test_parts_of_lanes_that_came(tmp_path):
    """Every other lane comes; parts of four of them."""
    body = """if (l % 2) { auto g = cg::tiled_partition(cg::coalesced_threads(), 4);
    const int sum = cg::reduce(g, l, cg::plus<int>());
    if (l == 11) printf("%d %d %d", sum, g.thread_rank(), g.meta_group_rank()); }"""
    assert judged(body, 32, tmp_path)["output"] == f"{9 + 11 + 13 + 15} 1 1"


FREES = {
    "cudaFree(o); return cudaFree(o) != cudaErrorInvalidValue || cudaGetLastError() == cudaSuccess;": "ok",
    "return cudaFree(o + 1) != cudaErrorInvalidValue || cudaFree(o);": "ok",
    "int h; return cudaFree(&h) != cudaErrorInvalidValue;": "ok",
    "int* h; cudaMallocHost(&h, 4); return cudaFree(h) == cudaSuccess || cudaFreeHost(h);": "ok",
    "return cudaFreeHost(o) == cudaSuccess || cudaFree(nullptr) || cudaFree(o);": "ok",
    "cudaFree(o); k<<<1, 32>>>(o); return 0;": "bounds",
}


@pytest.mark.parametrize("frees", FREES)
def test_what_is_freed_twice_or_was_never_made(frees, tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(PROGRAM.format(body="", threads=32).replace("return cudaDeviceSynchronize();", frees))
    assert judge([file])["verdict"] == FREES[frees]
