"""Compare the launchers of random launches with the host code, run as plain C++.

    python -m lab.launches.fuzz --count 5000 --seed 1

Each case is a kernel and a host function that launches it, with random geometry: literals, constants, macros, local
variables, expressions with and without the names of arguments, templates, shared sizes. The host function is written
twice: as CUDA, from which the toolkit makes a launcher, and as plain C++, where a launch is a function call that notes
its geometry. Both run in one program. A launcher that gets the arguments of a launch must launch the same, or ask for
it. Where an argument of the launch is a constant, the launcher gets another number: that does not change the launch.
Every second case is written as people write launches (usual.py), so that its launch can mostly be computed.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.new_layer.from_kernels import make_launchers
from tools.new_layer.kernel_file import kernels_of
from tools.new_layer.kernel_launcher import CHECKED_AS, CHECKED_INT

from .case import PRELUDE, Case
from .usual import Usual


class Outcome:
    """What a run found: lines of the wrong cases with their texts, and how many launchers ask for what."""

    def __init__(self):
        self.wrong: list[str] = []
        self.cases = self.asking = 0


def compare(count: int, seed: int, folder: Path, outcome: Outcome, cxx: str = "g++") -> None:
    """Make `count` cases, and run them in one program."""
    rng = random.Random(seed)
    cases = [(Usual if i % 2 else Case)(i, rng) for i in range(count)]
    launchers, left_out = make_launchers(
        "f", kernels_of("".join(case.cuda() for case in cases), "/x/fuzz.cu")
    )
    assert not left_out and len(launchers) == count, left_out
    named = {launcher.kernel.name: launcher for launcher in launchers}
    pairs = [(case, named[f"run_{case.number}"]) for case in cases]
    texts = [case.plain() for case in cases]
    texts += [CHECKED_INT, CHECKED_AS]
    texts += [case.launcher(launcher) + case.trial(launcher) for case, launcher in pairs]
    calls = "".join(f"  trial_{case.number}();\n" for case in cases)
    program = PRELUDE + "".join(texts) + f"int main() {{\n{calls}  return wrong != 0;\n}}\n"
    source, binary = folder / f"fuzz_{seed}.cpp", folder / f"fuzz_{seed}"
    source.write_text(program)
    done = subprocess.run(
        [cxx, "-std=c++17", "-O0", "-w", "-fwrapv", "-o", binary, source], capture_output=True, text=True
    )
    if done.returncode:
        outcome.wrong.append(done.stderr[:4000])
        return
    done = subprocess.run([binary], capture_output=True, text=True, timeout=300)
    outcome.cases += count
    outcome.asking += sum(any(not a.value for a in launcher.arguments) for _, launcher in pairs)
    for line in done.stdout.splitlines():
        case, launcher = pairs[int(line.split(":")[0].split()[1])]
        outcome.wrong.append(f"seed {seed}, {line}\n{case.cuda()}{launcher.definition()}")
    if done.returncode not in (0, 1):
        outcome.wrong.append(f"seed {seed}: the program ended with {done.returncode}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    outcome, size = Outcome(), 500
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, arguments.count, size):
            seed = arguments.seed + start // size
            compare(min(size, arguments.count - start), seed, Path(folder), outcome)
    print("\n".join(outcome.wrong[:20]))
    print(f"{outcome.cases} launches, {outcome.asking} ask for a part, {len(outcome.wrong)} wrong")
    return bool(outcome.wrong)


if __name__ == "__main__":
    sys.exit(main())
