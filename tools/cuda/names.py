"""CUDA's names that say how threads run: one table, which all passes ask. A new name goes here, and nowhere else.

identity   "thread": a thread asks for itself by it. "place": for its block, or for how many there are.
           "loop": a loop of the toolkit's asks for the thread.
shares     the threads are not alike by it, so that no loop over a range of indices can stand for them
meets      threads may wait for each other by it, or see which threads run
lane       all lanes of a warp meet there: what a loop over them writes in place of the call (warps.py)
told       its call is told where it stands: "block", or "lanes" if it asks which lanes are there
refused    the host has nothing for it
semantics  what it is, in the words of a message
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple


class Name(NamedTuple):
    """A row. Its pattern is that of whole names."""

    pattern: str
    semantics: str
    identity: str = ""
    shares: bool = False
    meets: bool = False
    lane: str = ""
    told: str = ""
    refused: bool = False


THREAD, BLOCK, WIDTH, GRID = INDEX = ("threadIdx", "blockIdx", "blockDim", "gridDim")
WARP_SIZE, BARRIER, WARP_BARRIER = "warpSize", "__syncthreads", "__syncwarp"
FENCE, ALL, MERGE = "__threadfence", "__all_sync", "__group_reduce_sync"
ASM = ("asm", "__asm__", "__asm")

NAMES = (
    Name(THREAD, "the thread's index", "thread", shares=True),
    *(Name(name, "the place in the grid", "place", shares=True) for name in (BLOCK, WIDTH, GRID)),
    Name(f"{WARP_SIZE}|lane_?id|warp_?id", "the place in the warp", shares=True),
    Name("__shared__", "shared memory", shares=True),
    Name(r"KernelPosition|CUDA_\w*LOOP\w*|CAFFE_KERNEL_LOOP_OVER|CAFFE_VECTOR_\w+", "a kernel loop", "loop"),
    Name(BARRIER, "a barrier of the block", shares=True, meets=True, told="block"),
    Name(rf"{BARRIER}\w+", "a barrier of the block that counts", shares=True, meets=True),
    Name(rf"{FENCE}\w*", "a fence", shares=True, meets=True),
    Name(WARP_BARRIER, "a barrier of the warp", shares=True, meets=True, lane=" "),
    Name("__shfl_sync", "a shuffle", shares=True, meets=True, lane="warp_at"),
    Name("__shfl_up_sync", "a shuffle", shares=True, meets=True, lane="warp_up"),
    Name("__shfl_down_sync", "a shuffle", shares=True, meets=True, lane="warp_down"),
    Name("__shfl_xor_sync", "a shuffle", shares=True, meets=True, lane="warp_xor"),
    Name(r"__shfl(?!(_up|_down|_xor)?_sync\Z)\w*", "a shuffle without a mask", shares=True, meets=True),
    Name("__ballot_sync", "a vote", shares=True, meets=True, lane="{}"),
    Name("__any_sync", "a vote", shares=True, meets=True, lane="({} != 0)"),
    Name(ALL, "a vote", shares=True, meets=True, lane="{}"),
    Name(r"__ballot(?!_sync\Z)\w*|__any|__all", "a vote without a mask", shares=True, meets=True),
    Name("__activemask", "the lanes that are there", shares=True, meets=True, told="lanes"),
    Name("coalesced_threads", "the lanes that are there", shares=True, meets=True, told="lanes"),
    *(
        Name(f"__match_{a}_sync", "a comparison of the warp's values", shares=True, meets=True, lane=f"warp_match_{a}")
        for a in ("any", "all")
    ),
    *(
        Name(f"__reduce_{a}_sync", "a reduction of the warp", shares=True, meets=True, lane=f"warp_reduce_{a}")
        for a in ("add", "min", "max", "and", "or", "xor")
    ),
    # What groups.py writes in place of those of cooperative groups.
    Name("__group_shfl_sync", "a shuffle of a group", meets=True, lane="warp_at"),
    Name("__group_shfl_up_sync", "a shuffle of a group", meets=True, lane="warp_up"),
    Name("__group_shfl_down_sync", "a shuffle of a group", meets=True, lane="warp_down"),
    Name("__group_shfl_xor_sync", "a shuffle of a group", meets=True, lane="tile_xor"),
    Name(MERGE, "a reduction of a group", meets=True, lane="merge"),
    Name("__nanosleep", "a thread that sleeps", shares=True, meets=True),
    Name("clock(64)?", "the clock", shares=True, meets=True),
    Name("cooperative_groups", "cooperative groups", shares=True),
    Name("this_thread_block|this_grid|tiled_partition", "a cooperative group", shares=True, meets=True),
    Name(
        r"this_(thread|cluster|multi_grid)|\w+tiled_partition|(labeled|binary)_partition"
        r"|(thread|grid|coalesced|cluster|multi_grid)_group|thread_block(_tile)?",
        "a cooperative group",
        meets=True,
    ),
    Name(r"atomic(CAS|Exch)\w*|atomic_ref", "an atomic by which threads may wait", meets=True),
    Name("volatile", "memory that another thread may change", meets=True),
    Name("|".join(ASM), "inline PTX", meets=True),
    Name("wmma|mma_sync|(load|store)_matrix_sync", "matrices of a warp", meets=True),
    Name(r"__pipeline_\w+|memcpy_async|pipeline\w*|make_pipeline|(consumer|producer)_\w+", "a pipeline", meets=True),
    Name(r"barrier|arrive\w*", "a barrier in memory", meets=True),
    Name(
        r"tex[123]D(?!(fetch)?\Z)\w*|texCubemap\w*|surf([123]D|Cubemap)\w*",
        "a texture of layers, levels or a cube, or a surface", refused=True,
    ),
    # Clusters, most address spaces, barriers in memory, 128-bit atomics.
    Name(
        r"__cluster\w+|__cvta_(?!generic_to_(shared|global)|(shared|global)_to_generic)\w+"
        r"|__is(Local|Constant|GridConstant|ClusterShared|CtaShared)|__mbarrier_\w+"
        r"|__barrier_sync\w*|__threadfence_cluster|__u128Atomic\w+|__pipeline_arrive_on|__block_size__"
        r"|__tile\w*__",
        "what only a GPU has",
        refused=True,
    ),
)  # fmt: skip


def _with(wanted: Callable[[Name], object]) -> re.Pattern:
    return re.compile("|".join(f"(?:{name.pattern})" for name in NAMES if wanted(name)))


def _plain(wanted: Callable[[Name], object]) -> dict[str, Name]:
    """The rows whose pattern is a name."""
    return {name.pattern: name for name in NAMES if wanted(name)}


# To be asked by fullmatch().
ASKS = _with(lambda name: name.identity in ("thread", "loop"))
SHARES = _with(lambda name: name.shares)
MEETS = _with(lambda name: name.meets)
TEXTURES = _with(lambda name: name.refused and "texture" in name.semantics)
GPU_ONLY = _with(lambda name: name.refused and "texture" not in name.semantics)
# Any function with "atomic" in its name.
ATOMIC = re.compile(r"\w*atomic\w*", re.IGNORECASE)

SHUFFLES = {
    name: row.lane for name, row in _plain(lambda row: row.lane.startswith(("warp_", "tile_"))).items()
}
VOTES = {name: row.lane for name, row in _plain(lambda row: "{" in row.lane).items()}
# By which all lanes of a warp meet.
IN_WARPS = set(_plain(lambda row: row.lane))
TOLD = set(_plain(lambda row: row.told))
LANES = set(_plain(lambda row: row.told == "lanes"))


def semantics(word: str) -> str:
    """What a name is, in plain words; "" if the table does not have it."""
    return next((name.semantics for name in NAMES if re.fullmatch(name.pattern, word)), "")
