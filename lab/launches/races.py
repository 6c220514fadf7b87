"""Look for false alarms of the race finder in random kernels, which have no races.

    python -m lab.launches.races [--count 24] [--seed 1] [--seeds 1]

The kernels are those of phases.py and lanes.py. The simulator runs each in two orders, and leaves out what then
differs. The race finder runs the others from the first thread and from the last. Lanes that exchange values are in
whole warps: what a lane gets from one that is not there is undefined, and is told.
"""

from __future__ import annotations

import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from cuffi.judging.findings import of_log
from cuffi.judging.limits import Limits
from cuffi.judging.programs import Program

from . import lanes, phases
from .simulated import BLOCKS, GRIDS, Kernel, Outcome, Simulated, text_of

MAIN = """#include <cstdlib>
int main() {{
  int *y, *x;
  cudaMallocManaged(&y, 4 << 15);
  cudaMallocManaged(&x, 4 * 4096);
  for (int i = 0; i < 4096; ++i) x[i] = i * 7919 % 1000;
{launches}  return 0;
}}
"""
LAUNCH = (
    "  cudaMemset(y, 0, 4 << 15); {name}<<<dim3({grid}), dim3({block}), {bytes}>>>(y, x, {n}, {m});"
    " cudaDeviceSynchronize();\n"
)


def file_of(head: str, kernels: list[Kernel], launches: list[tuple]) -> str:
    calls = "".join(
        LAUNCH.format(
            name=kernel.name,
            grid=", ".join(map(str, grid)),
            block=", ".join(map(str, block)),
            bytes=kernel.shared_bytes,
            n=n,
            m=m,
        )
        for kernel, (grid, block, n, m) in zip(kernels, launches, strict=True)
    )
    return f"#include <cuda_runtime.h>\n{head}{text_of(kernels)}{MAIN.format(launches=calls)}"


WHOLE = tuple(block for block in lanes.BLOCKS if block[0] % 32 == 0)


def compare(count: int, seed: int, outcome: Outcome):
    parts = ((phases, phases.HEAD, BLOCKS), (lanes, lanes.HEAD + lanes.HELPERS, WHOLE))
    for part, head, blocks in parts:
        rng = random.Random(seed)
        # A barrier behind an early return is told.
        kernels = [k for k in part.kernels_of(count, rng) if phases.EARLY not in k.body]
        launches = [
            (rng.choice(GRIDS), rng.choice(blocks), rng.randint(-1, 7), rng.randint(-3, 9)) for _ in kernels
        ]
        simulated = Simulated(head, kernels)
        right = []
        for kernel, launch in zip(kernels, launches, strict=True):
            one, other = (simulated.run(kernel, *launch, order) for order in (0, 777))
            (right.append((kernel, launch)) if one.equal(other) else outcome.races.append(kernel.name))
        outcome.kernels += len(right)
        _judge(head, right, outcome)


def _judge(head: str, right: list[tuple[Kernel, tuple]], outcome: Outcome):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "k.cu")
        file.write_text(file_of(head, [k for k, _ in right], [launch for _, launch in right]))
        program = Program([file], [], [], None)
        for settings in ({}, {"CAFFE_RACES_BACKWARDS": "1"}):
            ran = program.run("races", Path(folder), replace(Limits(), seconds=300), **settings)
            if ran.status:
                outcome.wrong.append(f"status {ran.status}: {ran.errors[-2000:]}")
                continue
            found, seen, _ = of_log(ran.log)
            outcome.calls += len(seen)
            for one in found:
                body = next((k.body for k, _ in right if k.name == one.kernel), "")
                outcome.wrong.append(f"{one}\n{body}")


if __name__ == "__main__":
    sys.exit(phases.command(compare, __doc__ or ""))
