"""Call kernels of public repositories, and compare each with a reference of our own in double precision.

    python -m lab.kernels.called /fetched [WORD]      the repositories lie in /fetched/owner+name

A row for each kernel: its file, its name, the shapes, the largest error relative to the largest value, and whether
that is within its tolerance. Kernels whose name or file has WORD, if it is given. Returns 1 if one is wrong.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import torch

from cuffi import load_inline

from .cases import CASES


class Call:
    """Calls a launcher by names. Of grid, block and shared_bytes it gets what it asks for."""

    def __init__(self, launcher):
        self.launcher = launcher
        self.asked = list(launcher.__signature__.parameters)

    def __call__(self, grid=1, block=1, shared_bytes=0, **given):
        values = {**given, "shared_bytes": shared_bytes}
        for what, value in (("grid", grid), ("block", block)):
            sizes = (*value, 1, 1)[:3] if isinstance(value, tuple) else (value, 1, 1)
            values |= {f"{what}_{axis}": size for axis, size in zip("xyz", sizes, strict=True)}
            values[what] = sizes[0]
        self.launcher(**{name: values[name] for name in self.asked})


def error_of(got: torch.Tensor, expected: torch.Tensor) -> float:
    if got.shape != expected.shape:
        raise ValueError(f"{tuple(got.shape)}, not {tuple(expected.shape)}")
    if not got.is_floating_point() and not got.is_complex():
        return float((got.long() != expected.long()).any())
    wide = torch.complex128 if got.is_complex() else torch.float64
    difference = (got.to(wide) - expected.to(wide)).abs().max().item()
    return difference / max(expected.abs().max().item(), 1e-30)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("word", nargs="?", default="")
    options = parser.parse_args(argv)
    modules: dict[str, object] = {}
    bad = 0
    chosen = [c for c in CASES if options.word in c.file or options.word in c.kernel]
    for number, one in enumerate(chosen):
        torch.manual_seed(46)
        try:
            if one.file not in modules:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # what gets no launcher
                    modules[one.file] = load_inline(f"c{number}", options.folder / one.file, backends="host")
            shapes, pairs = one.check(Call(getattr(modules[one.file], one.kernel)))
            worst = max(error_of(got, expected) for got, expected in pairs)
            right = worst <= one.tolerance
            said = f"{shapes} | {worst:.1e} | {'right' if right else 'WRONG'}"
        except Exception as error:  # a row of its own
            right, said = False, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        bad += not right
        print(f"| {one.file} | {one.kernel} | {said} |", flush=True)
    print(f"{len(chosen)} kernels of {len({c.file for c in chosen})} files called, {bad} not right")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
