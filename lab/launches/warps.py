"""Compare random kernels whose warps part, meet and part again with a simulation in Python.

    python -m lab.launches.warps [--count 12] [--seed 1] [--device cpu]

Each kernel is a row of steps: votes, shuffles, reductions and scans of the whole warp, of its tiles, of the lanes with
one label or one answer, of those in a branch, and loops of unlike length. Prints each kernel that differs.
"""

from __future__ import annotations

import argparse
import math
import random
import sys

import torch

from cuffi import load_inline

MODULUS = 1000003
HEAD = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
"""
# The text of each step. {p} is a small prime, v the lane's value, l its number.
STEPS = {
    "label": "{{ auto g = cg::labeled_partition(warp, v % {p});"
    " v = cg::reduce(g, v, cg::plus<int>()) + g.thread_rank(); }}",
    "answer": "{{ auto g = cg::binary_partition(warp, v % {p} == 0); v = cg::inclusive_scan(g, v) + (int)g.size(); }}",
    "vote": "v += __popc(__ballot_sync(0xffffffff, v % {p} == 1));",
    "xor": "v += __shfl_xor_sync(0xffffffff, v, {p});",
    "branch": "if (v % {p}) {{ auto g = cg::coalesced_threads(); v += g.shfl(v, 0) + (int)g.size(); }} else v += 3;"
    " __syncwarp();",
    "tile": "{{ auto t = cg::tiled_partition<8>(warp); v += t.shfl_down(v, 1); }}",
    "match": "v += __popc(__match_any_sync(0xffffffff, v % {p}));",
    "loop": "{{ auto g = cg::labeled_partition(warp, l % {p});"
    " for (int i = 0; i <= l % {p}; i++) v = (v + g.shfl(v, i % g.size())) % {m}; }}",
}


def kernel(name: str, steps: list[tuple[str, int]]) -> str:
    lines = [f"  {STEPS[step].format(p=p, m=MODULUS)} v %= {MODULUS};" for step, p in steps]
    return "\n".join((
        f"__global__ void {name}(const int* in, int* out) {{",
        "  auto warp = cg::tiled_partition<32>(cg::this_thread_block());",
        "  int v = in[threadIdx.x], l = threadIdx.x % 32;",
        *lines,
        "  out[threadIdx.x] = v + 0 * l;\n}",
        f'extern "C" int run_{name}(const int* in, int* out) {{',
        f"  {name}<<<1, 64>>>(in, out); return CAFFE_LAUNCH_STATUS();\n}}\n",
    ))  # fmt: skip


def rest(a: int, b: int) -> int:
    """a % b as in C."""
    return int(math.fmod(a, b))


def after(step: str, p: int, v: list[int]) -> list[int]:
    """The lanes' values after a step."""
    lanes = range(32)
    if step in ("label", "answer", "loop"):
        label = {
            "label": [rest(x, p) for x in v], "answer": [rest(x, p) == 0 for x in v], "loop": [i % p for i in lanes],
        }[step]  # fmt: skip
        groups = [[j for j in lanes if label[j] == label[i]] for i in lanes]
    if step == "label":
        return [sum(v[j] for j in group) + group.index(i) for i, group in enumerate(groups)]
    if step == "answer":
        return [sum(v[j] for j in group if j <= i) + len(group) for i, group in enumerate(groups)]
    if step == "loop":
        own = {i: v[i] for i in lanes}
        for group in groups[:p]:
            for i in range(label[group[0]] + 1):
                first = own[group[i % len(group)]]
                own |= {j: rest(own[j] + first, MODULUS) for j in group}
        return [own[i] for i in lanes]
    if step == "vote":
        return [x + sum(rest(y, p) == 1 for y in v) for x in v]
    if step == "xor":
        return [v[i] + v[i ^ p] for i in lanes]
    if step == "branch":
        inside = [i for i in lanes if rest(v[i], p)]
        return [v[i] + v[inside[0]] + len(inside) if i in inside else v[i] + 3 for i in lanes]
    if step == "tile":
        return [v[i] + v[i + (i % 8 < 7)] for i in lanes]
    return [v[i] + sum(rest(y, p) == rest(v[i], p) for y in v) for i in lanes]


def simulated(steps: list[tuple[str, int]], values: list[int]) -> list[int]:
    found = []
    for first in range(0, len(values), 32):
        lanes = values[first : first + 32]
        for step, p in steps:
            lanes = [rest(x, MODULUS) for x in after(step, p, lanes)]
        found += lanes
    return found


def differing(count: int, seed: int, device: str) -> list[list[tuple[str, int]]]:
    """The kernels whose results are not the simulation's."""
    draw = random.Random(seed)
    kernels = [
        [(draw.choice(list(STEPS)), draw.choice((2, 3, 5, 7))) for _ in range(draw.randint(3, 10))]
        for _ in range(count)
    ]
    text = HEAD + "".join(kernel(f"k{i}", steps) for i, steps in enumerate(kernels))
    module = load_inline("warps", text, backends="host" if device == "cpu" else "cuda")
    wrong = []
    for i, steps in enumerate(kernels):
        given = [draw.randrange(2000) for _ in range(64)]
        out = torch.zeros(64, dtype=torch.int32, device=device)
        getattr(module, f"run_k{i}")(torch.tensor(given, dtype=torch.int32, device=device), out)
        if out.tolist() != simulated(steps, given):
            wrong.append(steps)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="lab.launches.warps", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    wrong = differing(given.count, given.seed, given.device)
    for steps in wrong:
        print("differs:", steps)
    print(f"{len(wrong)} of {given.count} kernels differ (seed {given.seed}, {given.device})")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
