"""Compare random kernels that walk over a range by the grid's width, as ranges and on fibres, with a simulator.

    python -m lab.launches.strides [--count 12] [--seed 1] [--seeds 1]

A kernel has one loop over the grid, along x or along y and x, with a guard before it at times, and in its body the
statements of phases.py. At times something stands in it that no range may have: a second loop, a break, a sum that
outlives an iteration, the thread's own place. Grids have other shapes than the range, too.
"""

from __future__ import annotations

import random
import re
import sys

from .phases import HEAD, OWN, SAME, Writer, command
from .simulated import Comparison, Kernel, Outcome

X = (
    "blockIdx.x * blockDim.x + threadIdx.x",
    "threadIdx.x + blockIdx.x * blockDim.x",
    "(blockIdx.x * blockDim.x) + threadIdx.x",
    "(int)(blockDim.x * blockIdx.x + threadIdx.x)",
)
WIDTHS = ("blockDim.x * gridDim.x", "gridDim.x * blockDim.x", "(int)(gridDim.x * blockDim.x)")
# The most is 8,000, for n of at most 7. Those of unsigned kinds are never negative.
ENDS = ("(n + 1) * 97", "(n + 1) * 1000", "total - 5", "blockDim.x * 20", "(m > 0 ? m : 0) * 300")
SIGNED_ENDS = (*ENDS, "n", "m * 50", "n * 3 - m")
KINDS = ("int", "int", "int", "const int", "long long", "size_t", "unsigned", "auto")
# What depends on the thread, or on its block, keeps a kernel from being a range.
OF_THREADS = ("threadIdx", "blockIdx", "load_cast", "t % 7")
VALUES = [text for text in OWN if text != "t" and not any(word in text for word in OF_THREADS)]
SAMES = [text for text in SAME if "blockIdx" not in text]


class StrideWriter(Writer):
    """Writes kernels with one loop over the grid."""

    values, sames = VALUES, SAMES

    def __init__(self, rng: random.Random):
        super().__init__(rng)
        self.leaves = False  # a return ends all other iterations of a thread, too
        if rng.random() < 0.15:
            self.values, self.sames = OWN, SAME
        self.declare = [text for text in self.declare if "s[id]" not in text and " t % 9" not in text]
        self.change = [text for text in self.change if not re.search(r"blockIdx|\bid\b|\bs\[", text)]
        self.names["own"] = ["i", "acc"]

    def statements(self, count: int) -> str:
        return "\n".join(self.statement(1) for _ in range(count))

    def before(self) -> str:
        """Statements before the loop, where there is no index."""
        if self.rng.random() < 0.8:
            return ""
        values, own = self.values, self.names["own"]
        self.values = [text for text in values if not re.search(r"\bi\b", text)]
        self.names["own"] = ["n", "acc"]
        text = self.statements(1)
        self.values, self.names["own"] = values, [*own, *self.names["own"][2:]]
        return text

    def result(self) -> str:
        names = [f"(int){name}" for name in self.names["own"][2:]]
        names += [f"{name}[1]" for name in self.names["array"]] + [
            f"{name}.sum()" for name in self.names["pair"]
        ]
        return " + ".join(["acc", *names, *(f"*{name}" for name in self.names["pointer"])])

    def inner(self, place: str, count: int) -> str:
        """The loop's body."""
        rng = self.rng
        ends = rng.choice(("", "", f"if (acc % {rng.randint(2, 5)} == 0) {{ y[{place}] = -7; continue; }}"))
        ends = rng.choice((ends, ends, ends, ends, f"if (i == {rng.randint(0, 300)}) break;"))
        return f"int acc = 1; {self.statements(count)}\n{ends} y[{place}] {rng.choice(('', '', '+'))}= {self.result()};"

    def line(self) -> str:
        """A loop along x."""
        rng = self.rng
        kind = rng.choice(KINDS)
        end = rng.choice(SIGNED_ENDS if kind in ("int", "long long") else ENDS)
        first, width = rng.choice(X), rng.choice(WIDTHS)
        kind = kind.removeprefix("const ")
        if kind == "auto":
            first = "blockIdx.x * blockDim.x + threadIdx.x"
        guard = rng.choice(("", "", f"if ({first} >= {end}) return; "))
        before = self.before()
        if rng.random() < 0.3:
            width_at = f"const int step = {width}; "
            begin = f"{guard}{width_at}{kind} i = {first};"
            body = self.inner("i", rng.randint(1, 4))
            if "continue" in body:
                body = f"if (i % 3 == 1) {{ {body.replace('continue', 'i += step; continue')} }}"
            return f"int acc = 1; {before} {begin} while (i < {end}) {{ {body} i += step; }}"
        walk = f"for ({kind} i = {first}; i < {end}; i += {width}) {{ {self.inner('i', rng.randint(1, 4))} }}"
        after = rng.choice(("", "", "", f"for (int k = {first}; k < 99; k += {width}) y[k] += 3;"))
        return f"int acc = 1; {before} {guard}{walk} {after}"

    def plane(self) -> str:
        """A loop along x in one along y."""
        rng = self.rng
        rows, columns = (
            rng.choice(("n + 2", "9", "(m & 7) + 1")),
            rng.choice(("(n + 1) * 90", "blockDim.x * 3", "77")),
        )
        between = rng.choice(("", "const int row = j * 2;", "y[j] = 3;" if rng.random() < 0.3 else ""))
        body = self.inner(f"j * ({columns}) + i", rng.randint(1, 3))
        x = f"for (int i = {rng.choice(X)}; i < {columns}; i += {rng.choice(WIDTHS)}) {{ {body} }}"
        y = "blockIdx.y * blockDim.y + threadIdx.y"
        return f"for (int j = {y}; j < {rows}; j += blockDim.y * gridDim.y) {{ {between} {x} }}"

    def kernel(self) -> str:
        part = self.line if self.rng.random() < 0.75 else self.plane
        return f"const int t = threadIdx.x; const int total = 8000;\n{part()}"


def kernels_of(count: int, rng: random.Random) -> list[Kernel]:
    return [Kernel(f"k{i}", StrideWriter(rng).kernel()) for i in range(count)]


def compare(count: int, seed: int, outcome: Outcome, fibres: bool = True):
    rng = random.Random(seed)
    kernels = kernels_of(count, rng)
    Comparison(f"strides{seed}", HEAD, kernels, fibres).run(rng, 3, outcome)


if __name__ == "__main__":
    sys.exit(command(compare, "strides of random kernels"))
