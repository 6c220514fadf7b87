"""Build kernels by NVRTC and by nvcc, run both on a GPU, and compare every bit that they write.

    python -m lab.kernels.compilers /fetched [--word WORD] [--written 8] [--workers 12]     a GPU, nvcc and NVRTC
    python -m lab.kernels.compilers /fetched --build                                        NVRTC alone, for sm_90

The kernels are those of public repositories that called.py calls (they lie in /fetched/owner+name), and `--written`
sources of random kernels with barriers, strides and warps, whose numbers a simulator on the processor tells. Each runs
twice by each compiler: one whose own two runs differ has an order of its own, such as that of atomics. A line for each
kernel that is not right or not the same; then the totals. Returns 1 if a kernel is wrong, or differs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

import torch

from cuffi import load_inline

from ..launches import lanes, phases, strides
from ..launches.simulated import BLOCKS, GRIDS, PLACES, Simulated, text_of
from .called import Call, error_of
from .cases import CASES

COMPILERS = ("nvrtc", "nvcc")
WRITERS = {
    "phases": (phases.kernels_of, phases.HEAD),
    "strides": (strides.kernels_of, phases.HEAD),
    "lanes": (lanes.kernels_of, phases.HEAD + lanes.HELPERS),
}
KERNELS = 12  # of a written source
# By kind: grids and blocks. Strided kernels add to an element in each block along an axis that they do not walk by, and
# lanes need whole warps.
GEOMETRY = {
    "phases": (GRIDS, BLOCKS),
    "strides": (((1, 1, 1), (3, 1, 1), (7, 1, 1)), ((32, 1, 1), (50, 1, 1), (256, 1, 1))),
    "lanes": (GRIDS, ((32, 1, 1), (64, 2, 1), (8, 4, 1))),
}
# A GPU may not ask a lane that has ended for its value; the simulator can.
ASKS_THE_ENDED = re.compile(r"\breturn;.*(_sync\(|FULL|warp_sum|scan\(|DOWN|MEET)", re.DOTALL)


class Row(NamedTuple):
    """What became of a kernel: `said` is empty if both compilers' are right and the same."""

    kernel: str
    kind: str  # same, "own order", differs, wrong, "not built", failed
    said: str = ""


class OnGpu:
    """Calls a launcher with copies of its tensors on the GPU, and writes back what it wrote."""

    def __init__(self, launcher):
        self.launcher = launcher
        self.__signature__ = launcher.__signature__
        self.written: list[torch.Tensor] = []

    def __call__(self, **given):
        moved = {id(v): v.cuda() for v in given.values() if isinstance(v, torch.Tensor)}
        self.launcher(**{name: moved.get(id(value), value) for name, value in given.items()})
        torch.cuda.synchronize()
        for value in given.values():
            if isinstance(value, torch.Tensor):
                value.copy_(moved[id(value)])
                self.written.append(value.clone())


def same_bits(ours: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return len(ours) == len(others) and all(
        torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
        for a, b in zip(ours, others, strict=True)
    )


def built(compiler: str, name: str, source, **more):
    os.environ["CUFFI_CUDA"] = compiler
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what gets no launcher
        return load_inline(name, source, backends="cuda", **more)


def short(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


def modules_of(label: str, name: str, source, **more) -> tuple[dict, list[Row]]:
    """(a module of each compiler, rows for those that do not build)"""
    modules, rows = {}, []
    for compiler in COMPILERS:
        try:
            modules[compiler] = built(compiler, name, source, **more)
        except Exception as error:  # a row of its own
            rows.append(Row(label, "not built", f"{compiler}: {short(error)}"))
    return modules, rows


def compared(label: str, run) -> Row:
    """run(compiler) -> (the tensors that the kernel wrote, what is wrong with them); it is called twice for each."""
    bits, wrong = {}, []
    for compiler in COMPILERS:
        try:
            runs = [run(compiler) for _ in range(2)]
        except Exception as error:  # a row of its own
            return Row(label, "failed", f"{compiler}: {short(error)}")
        wrong += [f"{compiler}: {runs[0][1]}"] * bool(runs[0][1])
        if not same_bits(runs[0][0], runs[1][0]):
            return Row(label, "own order", "; ".join(wrong))
        bits[compiler] = runs[0][0]
    is_same = same_bits(*(bits[compiler] for compiler in COMPILERS))
    if wrong:
        return Row(label, "wrong", f"{'; '.join(wrong)}; both are {'the same' if is_same else 'different'}")
    return Row(label, "same" if is_same else "differs")


def of_file(folder: Path, file: str, word: str) -> list[Row]:
    """The called kernels of a public file."""
    modules, rows = modules_of(file, "called", folder / file)
    if rows:
        return rows
    for case in CASES:
        if case.file != file or not (word in case.file or word in case.kernel):
            continue

        def run(compiler: str, case=case):
            torch.manual_seed(46)
            call = OnGpu(getattr(modules[compiler], case.kernel))
            _, pairs = case.check(Call(call))
            worst = max(error_of(got, expected) for got, expected in pairs)
            return call.written, "" if worst <= case.tolerance else f"an error of {worst:.1e}"

        rows.append(compared(f"{file}: {case.kernel}", run))
    return rows


def of_writer(kind: str, seed: int) -> list[Row]:
    """Random kernels, which a simulator runs, too."""
    rng = random.Random(seed)
    kernels_of, head = WRITERS[kind]
    kernels = kernels_of(KERNELS, rng)
    name = f"{kind}{seed}"
    modules, rows = modules_of(name, name, head + text_of(kernels))
    if rows:
        return rows
    simulated = Simulated(head, kernels)
    grids, blocks = GEOMETRY[kind]
    for kernel in kernels:
        given = (rng.choice(grids), rng.choice(blocks), rng.randint(-1, 7), rng.randint(-3, 9))
        if kind == "lanes" and ASKS_THE_ENDED.search(kernel.body):
            continue
        wanted = simulated.run(kernel, *given, 0)
        if not torch.equal(wanted, simulated.run(kernel, *given, 777)):
            continue  # a race

        def run(compiler: str, kernel=kernel, given=given, wanted=wanted):
            grid, block, n, m = given
            y, x = torch.zeros(PLACES, dtype=torch.int32), simulated.x.clone()
            call = OnGpu(getattr(modules[compiler], kernel.name))
            Call(call)(y=y, x=x, n=n, m=m, grid=grid, block=block, shared_bytes=kernel.shared_bytes)
            return [y], "" if torch.equal(y, wanted) else "it is not what the simulator tells"

        rows.append(compared(f"{name}: {kernel.name}", run))
    return rows


def of_build(folder: Path, file: str) -> list[Row]:
    try:
        built("nvrtc", "called", folder / file, arch="sm_90")
    except Exception as error:  # a row of its own
        return [Row(file, "not built", short(error))]
    return [Row(file, "built")]


def in_a_process(function, *arguments) -> list[Row]:
    """A process for each file: after a wrong address a GPU's context is of no use."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            return [Row(str(arguments), "failed", "its process died")]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--word", default="", help="only kernels whose file or name has it")
    parser.add_argument("--written", type=int, default=0, help="sources of random kernels of each kind")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--build", action="store_true", help="build by NVRTC for sm_90, and run nothing")
    options = parser.parse_args(argv)
    files = sorted({c.file for c in CASES if options.word in c.file or options.word in c.kernel})
    found: Counter[str] = Counter()
    tasks: list[tuple] = []
    if options.build:
        tasks += [(of_build, options.folder, file) for file in files]
    else:
        tasks += [(of_file, options.folder, file, options.word) for file in files]
        tasks += [(of_writer, kind, seed) for seed in range(1, options.written + 1) for kind in WRITERS]
    with ThreadPoolExecutor(options.workers) as pool:
        for rows in pool.map(lambda task: in_a_process(*task), tasks):
            for row in rows:
                found[row.kind] += 1
                if row.kind not in ("same", "built"):
                    print(f"{row.kind}: {row.kernel} {row.said}", flush=True)
    what = "files built" if options.build else "kernels by both compilers"
    print(f"{found.total()} {what}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(found.items())))
    return bool(found["wrong"] or found["differs"] or found["failed"])


if __name__ == "__main__":
    sys.exit(main())
