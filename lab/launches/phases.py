"""Compare random kernels with barriers, whose phases run as loops, with the same kernels on fibres.

    python -m lab.launches.phases [--count 12] [--seed 1]

A kernel is a row of phases, with loops, conditions and variables of all kinds between the barriers. Its threads write
their own places of shared memory before a barrier, and read others' behind it, so its numbers do not depend on an
order. The second kernel has a goto that nobody reaches, which keeps it on fibres (tools/cuda/phases.py). Prints the
kernels that differ, and how many ran as loops.
"""

from __future__ import annotations

import argparse
import math
import random
import sys

import torch

from cuffi import load_inline
from tools.cuda.analysis import Unit
from tools.cuda.rewrite import rewrite_unit
from tools.cuda.to_host import HostRewriter

HEAD = """#define TILE 8
constexpr int FOUR = 4;
__device__ int twice(int v) { return 2 * v; }
__device__ void raise_by(int& v, int by) { v += by; }
template <typename T> __device__ T larger(T a, T b) { return a > b ? a : b; }
"""
UNIFORM = [
    "{u}",
    "{k}",
    "blockIdx.x",
    "blockDim.x",
    "gridDim.x",
    "{u} + {k}",
    "({u} + {w}) % 5",
    "{u} > {k} ? {w} : {k}",
]
UNIFORM += ["(int)blockDim.x / 2", "TILE", "FOUR", "{u} & 3", "{u} << 1", "min((int)({u}), {k})"]
OWN = [
    "{v}",
    "{v} + {k}",
    "{v} * {k} - {w}",
    "t",
    "t % 7",
    "{v} ^ {u}",
    "x[(unsigned)({v}) % 64]",
    "twice({v})",
    "i + {v}",
]
OWN += ["larger<int>({v}, {w})", "{v} > {w} ? {v} : {k}", "(int)(0.5f * {v})", "{u}"]
OWN += ["blockIdx.x * blockDim.x + threadIdx.x", "(int)(threadIdx.x + blockIdx.x * blockDim.x) + {v}"]
SHARED = ("__shared__ int s[1024];", "extern __shared__ int s[];")
STARTS = (
    "int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;",
    "int t = threadIdx.x; const int i = threadIdx.x + blockDim.x * blockIdx.x;",
    "const unsigned t = threadIdx.x; int i = blockIdx.x * blockDim.x + threadIdx.x;",
)
NUMBER = (
    "const int id = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;"
    " const int count = blockDim.x * blockDim.y * blockDim.z, block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x"
    " + blockIdx.x; const int place = block * count + id; int acc = 1; s[id] = 0; __syncthreads();"
)
BLOCKS = ((1, 1, 1), (5, 1, 1), (32, 1, 1), (33, 1, 1), (8, 4, 1), (3, 2, 4), (64, 2, 1))
GRIDS = ((1, 1, 1), (3, 1, 1), (2, 2, 2), (5, 2, 1))


class Writer:
    """Writes one kernel's body. It knows the names that are there: of a thread, and of all threads (uniform)."""

    def __init__(self, rng: random.Random):
        self.rng, self.number, self.writes = rng, 0, True
        self.own, self.changing, self.floats = ["t", "i", "acc"], ["acc"], []
        self.uniform, self.steps = ["n", "m"], []

    def body(self, shared: str) -> str:
        first = f"if (n == {self.rng.randint(0, 6)}) return; " if self.rng.random() < 0.2 else ""
        inner = self.block(0)
        last = self.rng.choice(
            ("", f"if (acc % {self.rng.randint(2, 4)} == 0) {{ y[place] = -7; return; }} ")
        )
        result = "".join(f" + (int){name}" for name in self.own[3:])
        start = f"{shared} {self.rng.choice(STARTS)} {NUMBER} {first}"
        return f"{start}{inner} {self.barrier()} {last}y[place] = acc{result};"

    def name(self, letter: str) -> str:
        self.number += 1
        return f"{letter}{self.number}"

    def same(self) -> str:
        pick = self.rng.choice
        return pick(UNIFORM).format(u=pick(self.uniform), w=pick(self.uniform), k=self.rng.randint(0, 5))

    def value(self) -> str:
        pick = self.rng.choice
        text = pick(OWN).format(
            v=pick(self.own), w=pick(self.own), u=pick(self.uniform), k=self.rng.randint(1, 9)
        )
        return f"({text})"

    def statement(self, depth: int) -> str:
        rng, value = self.rng, self.value
        kind = rng.randrange(14)
        if kind < 2:
            name, made = self.name("v"), value()
            kept = rng.choice(("int", "const int", "unsigned", "long long", "short"))
            self.own.append(name)
            self.changing += [name] if "const" not in kept else []
            return f"{kept} {name} = {made};"
        if kind == 2:
            a, b = self.name("v"), self.name("v")
            text = f"int {a} = {value()}, {b}; {b} = {value()};"
            self.own += [a, b]
            self.changing += [a, b]
            return text
        if kind == 3:
            name = self.name("q")
            text = f"float {name} = {value()} * 0.25f; acc += (int){name};"
            self.floats.append(name)
            return text
        if kind == 4 and self.floats:
            name = rng.choice(self.floats)
            return f"{name} += {value()} % 3; acc += (int){name};"
        if kind == 5:
            k = self.name("k")
            leaves = rng.choice((f"if ({k} == 2) continue;", f"if ({k} > 3) break;", ""))
            return (
                f"for (int {k} = 0; {k} < {rng.randint(1, 5)}; ++{k}) {{ {leaves} acc += {value()} * {k}; }}"
            )
        if kind == 6:
            return f"if ({value()} % 2) {rng.choice(self.changing)} += {value()}; else {{ acc -= 3; }}"
        if kind == 7:
            return f"{rng.choice(self.changing)} {rng.choice(('=', '+=', '^='))} {value()};"
        if kind == 8:
            return f"raise_by(acc, {value()});"
        if kind == 9:
            name, made = self.name("u"), self.same()
            text = f"{rng.choice(('int', 'const int', 'unsigned', 'size_t'))} {name} = {made};"
            self.uniform.append(name)
            self.steps += [name] if "const" not in text and not depth else []
            return text
        if kind == 10 and self.steps:
            return f"{rng.choice(self.steps)} {rng.choice(('=', '+=', '-='))} {self.same()};"
        if kind == 11:
            return f"atomicAdd(&y[total + {rng.randint(0, 3)}], {value()} % 5);"
        if kind == 12:
            name = self.name("p")
            return f"const int* {name} = x + ({value()} & 15); acc += {name}[{rng.randint(0, 9)}];"
        return f"acc = acc * 3 + {value()};"

    def phase(self, depth: int) -> str:
        parts = []
        for _ in range(self.rng.randint(1, 3)):
            if self.rng.random() < 0.7:
                parts.append(self.statement(depth))
            elif self.writes:
                parts.append(f"s[id] = {self.value()};")
            else:
                parts.append(f"acc += s[(id + {self.rng.randint(0, 40)}) % count];")
        return " ".join(parts)

    def barrier(self) -> str:
        self.writes = not self.writes
        return "__syncthreads();"

    def inside(self, depth: int, *names: str) -> str:
        """A block that leaves shared memory as it found it."""
        writes = self.writes
        self.uniform += names
        text = self.block(depth + 1)
        for name in names:
            self.uniform.remove(name)
        text += " " + self.barrier()
        if self.writes != writes:
            text += " " + self.barrier()
        return text

    def around(self, depth: int) -> str:
        """A loop, a condition or a block with barriers in it."""
        rng, d = self.rng, self.name("d")
        kind = rng.randrange(7)
        if kind == 0:
            step = rng.choice((f"{d}++", f"++{d}", f"{d} += 1"))
            first, end = rng.choice(("0", "1", f"({self.same()}) % 2")), rng.choice(("3", "n % 4", "2"))
            return f"for (int {d} = {first}; {d} < {end}; {step}) {{ {self.inside(depth, d)} }}"
        if kind == 1:
            return f"for (int {d} = blockDim.x / 2; {d} > 0; {d} >>= 1) {{ {self.inside(depth, d)} }}"
        if kind == 2:
            leaves = rng.choice(("", f"if ({d} == 2) break;"))
            inner = self.inside(depth, d)
            return f"int {d} = {rng.randint(1, 4)}; while ({d} > 0) {{ {inner} {leaves} {d} -= 1; }}"
        if kind == 3:
            return f"int {d} = 0; do {{ {self.inside(depth, d)} {d}++; }} while ({d} < 2);"
        if kind == 4:
            return f"{{ {self.inside(depth)} }}"
        condition = self.same()
        if kind == 5:
            return f"if (({condition}) > 2) {{ {self.inside(depth)} }}"
        return f"if (({condition}) % 2) {{ {self.inside(depth)} }} else {{ {self.inside(depth)} }}"

    def block(self, depth: int) -> str:
        saved = [list(names) for names in (self.own, self.changing, self.floats, self.uniform, self.steps)]
        parts = []
        for _ in range(self.rng.randint(1, 3)):
            parts += [self.phase(depth), self.barrier()]
            if depth < 2 and self.rng.random() < 0.55:
                parts.append(self.around(depth))
        if depth:
            self.own, self.changing, self.floats, self.uniform, self.steps = saved
        return " ".join(parts)


def text_of(bodies: list[str]) -> str:
    head = "(int* y, const int* x, int n, int m, int total) {"
    quiet = "".join(
        f'#pragma GCC diagnostic ignored "-W{name}"\n'
        for name in (
            "unused-variable",
            "unused-but-set-variable",
            "tautological-compare",
            "parentheses",
            "sign-compare",
        )
    )
    return quiet + HEAD + "".join(
        f"__global__ void loops{i}{head}\n{body}\n}}\n"
        f"__global__ void fibres{i}{head}\n{body} if (n == -12345) goto out; out:;\n}}\n"
        for i, body in enumerate(bodies)
    )  # fmt: skip


def compare(count: int, seed: int) -> tuple[int, int, list[str]]:
    """The kernels that ran as loops, the calls, and lines of those that differ."""
    rng = random.Random(seed)
    shared = rng.choice(SHARED)
    bodies = [Writer(rng).body(shared) for _ in range(count)]
    text, name = text_of(bodies), f"phases_{seed}"
    loops = rewrite_unit(Unit(text, "x.cu"), HostRewriter, "", "")[0][""].count("::cuda_host::kPhases")
    bytes_of_a_block = (4096,) if shared.startswith("extern") else ()
    library, wrong, calls = load_inline(name, text, backends="host"), [], 0
    for i, body in enumerate(bodies):
        for _ in range(6):
            block, grid, n, m = rng.choice(BLOCKS), rng.choice(GRIDS), rng.randint(-1, 7), rng.randint(-3, 9)
            total = math.prod(block) * math.prod(grid)
            x = torch.randint(0, 100, (128,), dtype=torch.int32)
            ours, theirs = torch.zeros(2, total + 4, dtype=torch.int32)
            for kernel, y in (("loops", ours), ("fibres", theirs)):
                getattr(library, f"{name}_{kernel}{i}")(y, x, n, m, total, *grid, *block, *bytes_of_a_block)
            calls += 1
            if not torch.equal(ours, theirs):
                wrong.append(f"seed {seed}, grid {grid}, block {block}, n {n}, m {m}: {body}")
    return loops, calls, wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    loops, calls, wrong = compare(options.count, options.seed)
    print("\n".join(wrong))
    print(f"{options.count} kernels, {loops} as loops, {calls} calls, {len(wrong)} differ")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
