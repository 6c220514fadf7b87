"""Run kernels by a simulator that shares nothing with the toolkit (simulator.h), and compare the toolkit's numbers.

The simulator runs each kernel twice, in two orders of its threads and blocks. If the numbers differ, it has a race, and
is left out. The toolkit runs it as it chooses, and, if `fibres`, once more with a goto that keeps it on fibres.
"""

from __future__ import annotations

import ctypes
import os
import random
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from cuffi import load_inline
from tools.cuda.analysis import Unit
from tools.cuda.rewrite import rewrite_unit
from tools.cuda.to_host import HostRewriter

PARAMETERS = "int* y, const int* x, int n, int m"
PLACES = 1 << 15  # of y
BLOCKS = ((1, 1, 1), (5, 1, 1), (32, 1, 1), (33, 1, 1), (8, 4, 1), (3, 2, 4), (50, 2, 1), (64, 2, 1))
GRIDS = ((1, 1, 1), (3, 1, 1), (2, 2, 2), (5, 2, 1))
DYNAMIC = re.compile(r"extern\s+__shared__\s+([\w ]+?)\s+(\w+)\[\];")
# Numbers may overflow, and then both must wrap. With this pragma g++ 12 reads x[v] of a bool v from anywhere in a
# vectorised loop; without, or by -fwrapv, it is right.
QUIET = '#pragma GCC optimize("wrapv")\n#pragma GCC diagnostic ignored "-Wall"\n' + "".join(
    f'#pragma GCC diagnostic ignored "-W{name}"\n'
    for name in (
        "unused",
        "unused-variable",
        "unused-but-set-variable",
        "tautological-compare",
        "parentheses",
        "sign-compare",
    )
)
FIBRES = " if (n == -12345) goto out; out:;"


class Kernel(NamedTuple):
    name: str
    body: str
    shared_bytes: int = 0


@dataclass
class Outcome:
    """What a row of comparisons found."""

    kernels: int = 0
    calls: int = 0
    modes: Counter = field(default_factory=Counter)
    races: list[str] = field(default_factory=list)  # faults of the generator
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        modes = ", ".join(f"{count} {mode}" for mode, count in sorted(self.modes.items()))
        found = f"{len(self.races)} with a race, {len(self.wrong)} differ"
        return "\n".join([*self.wrong, f"{self.kernels} kernels ({modes}), {self.calls} calls, {found}"])


def text_of(kernels: list[Kernel], suffix: str = "", end: str = "") -> str:
    return "".join(f"__global__ void {k.name}{suffix}({PARAMETERS}) {{\n{k.body}{end}\n}}\n" for k in kernels)


def simulated(head: str, kernels: list[Kernel], folder: str) -> ctypes.CDLL:
    """The library that runs the kernels by the simulator."""
    source = '#include "simulator.h"\n' + head
    for kernel in kernels:
        source += DYNAMIC.sub(
            r"\1* \2 = reinterpret_cast<\1*>(simulator::dynamic_shared.data());", text_of([kernel])
        )
        source += (
            f'extern "C" void run_{kernel.name}({PARAMETERS}, const unsigned int* g, int bytes, int order) {{'
            " simulator::order = order;"
            " simulator::launch(dim3(g[0], g[1], g[2]), dim3(g[3], g[4], g[5]), bytes,"
            f" [=] {{ {kernel.name}(y, x, n, m); }}); }}\n"
        )
    source = source.replace("static __shared__", "__shared__")
    path, library = os.path.join(folder, "kernels.cpp"), os.path.join(folder, "kernels.so")
    with open(path, "w") as file:
        file.write(source)
    flags = ["-std=c++17", "-O1", "-fwrapv", "-fno-strict-aliasing", "-w", "-shared", "-fPIC"]
    include = f"-I{os.path.dirname(os.path.abspath(__file__))}"
    subprocess.run(["g++", *flags, include, "-o", library, path], check=True)
    return ctypes.CDLL(library)


def modes_of(text: str) -> dict[str, str]:
    """The mode of each kernel, by its name."""
    rewritten = rewrite_unit(Unit(text, "x.cu"), HostRewriter, "", "")[0][""]
    return {
        name: mode
        for mode, name in re.findall(r'cuda_host::run<::cuda_host::(\w+)[^>]*>\("(\w+)"', rewritten)
    }


class Simulated:
    """The kernels of one source, by the simulator."""

    def __init__(self, head: str, kernels: list[Kernel]):
        with tempfile.TemporaryDirectory() as folder:
            self.library = simulated(head, kernels, folder)
        self.x = torch.randint(
            0, 1000, (4096,), dtype=torch.int32, generator=torch.Generator().manual_seed(7)
        )

    def run(self, kernel: Kernel, grid, block, n: int, m: int, order: int) -> torch.Tensor:
        """What y has."""
        y = torch.zeros(PLACES, dtype=torch.int32)
        pointers = (ctypes.c_void_p(t.data_ptr()) for t in (y, self.x))
        geometry = (ctypes.c_uint * 6)(*grid, *block)
        getattr(self.library, f"run_{kernel.name}")(*pointers, n, m, geometry, kernel.shared_bytes, order)
        return y


class Comparison:
    """The kernels of one source, by the simulator and by the toolkit."""

    def __init__(self, name: str, head: str, kernels: list[Kernel], fibres: bool = True):
        self.kernels, self.suffixes = kernels, ("", "_fibres") if fibres else ("",)
        text = QUIET + head + text_of(kernels) + (text_of(kernels, "_fibres", FIBRES) if fibres else "")
        self.modes = modes_of(text)
        self.simulated = Simulated(head, kernels)
        self.name, self.module = name, load_inline(name, text, backends="host")

    def by_toolkit(self, kernel: Kernel, suffix: str, grid, block, n: int, m: int) -> torch.Tensor:
        y = torch.zeros(PLACES, dtype=torch.int32)
        call = getattr(self.module, f"{self.name}_{kernel.name}{suffix}")
        call(
            y, self.simulated.x, n, m, *grid, *block, *([kernel.shared_bytes] if kernel.shared_bytes else [])
        )
        return y

    def run(self, rng: random.Random, launches: int, outcome: Outcome, blocks=BLOCKS):
        for kernel in self.kernels:
            outcome.kernels += 1
            outcome.modes[self.modes[kernel.name]] += 1
            for _ in range(launches):
                given = (rng.choice(GRIDS), rng.choice(blocks), rng.randint(-1, 7), rng.randint(-3, 9))
                wanted = self.simulated.run(kernel, *given, 0)
                if not torch.equal(wanted, self.simulated.run(kernel, *given, 777)):
                    outcome.races.append(kernel.name)
                    break
                for suffix in self.suffixes:
                    outcome.calls += 1
                    self._compare(kernel, suffix, given, wanted, outcome)

    def _compare(self, kernel: Kernel, suffix: str, given, wanted: torch.Tensor, outcome: Outcome):
        mode = self.modes[kernel.name + suffix]
        try:
            found = self.by_toolkit(kernel, suffix, *given)
        except RuntimeError as error:
            outcome.wrong.append(f"{kernel.name}{suffix} ({mode}) {given}: {error}")
            return
        if not torch.equal(found, wanted):
            at = int((found != wanted).nonzero()[0])
            said = f"y[{at}] is {int(found[at])}, and right is {int(wanted[at])}"
            outcome.wrong.append(f"{kernel.name}{suffix} ({mode}) {given}: {said}\n{kernel.body}")
