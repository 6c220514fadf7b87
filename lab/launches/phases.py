"""Compare random kernels with barriers, whose phases run as loops, with a simulator, and with the same on fibres.

    python -m lab.launches.phases [--count 12] [--seed 1] [--seeds 1]

A kernel is a row of phases, with loops, conditions and variables of all kinds between the barriers. Its threads write
their own places of shared memory before a barrier, and read others' behind it, so its numbers do not depend on an
order. KINDS has the statements: also those by which a change was once lost behind a barrier. The second kernel has a
goto that nobody reaches, which keeps it on fibres. Prints the kernels that differ, and how many ran as loops.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable

from .simulated import Comparison, Kernel, Outcome

HEAD = """#define TILE 8
#define MEET_NOT(v) ((v) + 1)
#define BUMP(v) v += 3
constexpr int FOUR = 4;
typedef int& Slot;
struct Pair {
  int a; float b; int c[2];
  __device__ void up(int k) { a += k; c[k & 1] += 1; }
  __device__ int sum() const { return a + c[0] + c[1]; }
};
struct Adder { int& r; __device__ void go(int k) { r = (r + k) % 977; } };
struct Giver { int next; };
struct Limits { static const int step = 4; };
__device__ Giver operator>>(Giver g, int& v) { v = g.next; return g; }
__device__ Pair operator+(Pair p, int k) { p.a += k; return p; }
__device__ int twice(int v) { return 2 * v; }
__device__ void raise_by(int& v, int by) { v = (v + by) % 1009; }
__device__ void set(int* p, int by) { *p = (*p + by) % 1013; }
__device__ void grow(Slot v) { v += 5; }
__device__ void remember(int** place, int& v) { *place = &v; }
__device__ void put(int* to, int v) { *to = v; }
template <typename T> __device__ T larger(T a, T b) { return a > b ? a : b; }
template <typename T> __device__ void shrink(T v) { v -= 2; }
template <typename T> __device__ void __order(T& a, T& b) { if (a > b) { T c = a; a = b; b = c; } }
template <typename T> __device__ void atomic_swap(T& a, T& b) { T c = a; a = b; b = c; }
template <typename T> __device__ T load_cast(const int* p) { return (T)*p; }
"""
SAME = [
    "{u}",
    "{k}",
    "blockIdx.x",
    "blockDim.x",
    "gridDim.x",
    "{u} + {k}",
    "({u} + {w}) % 5",
    "{u} > {k} ? {w} : {k}",
]
SAME += ["(int)blockDim.x / 2", "TILE", "FOUR", "{u} & 3", "{u} << 1", "min((int)({u}), {k})"]
OWN = [
    "{v}",
    "{v} + {k}",
    "{v} * {k} - {w}",
    "t",
    "t % 7",
    "{v} ^ {u}",
    "x[(unsigned)({v} + 5) % 64]",
    "twice({v})",
]
OWN += [
    "larger<int>({v}, {w})",
    "{v} > {w} ? {v} : {k}",
    "(int)(0.5f * ({v} % 512))",
    "{u}",
    "i + {v}",
    "MEET_NOT({v})",
]
OWN += [
    "blockIdx.x * blockDim.x + threadIdx.x",
    "(int)(threadIdx.x + blockIdx.x * blockDim.x) + {v}",
    "load_cast<int>(x + t)",
]
EARLY = "y[place] = -3; return;"  # what some threads do before others come to a barrier
STARTS = (
    "int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;",
    "int t = threadIdx.x; const int i = threadIdx.x + blockDim.x * blockIdx.x;",
    "const auto t = threadIdx.x; int i = blockIdx.x * blockDim.x + threadIdx.x;",
)
NUMBER = (
    "const int id = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;"
    " const int count = blockDim.x * blockDim.y * blockDim.z, block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x"
    " + blockIdx.x; const int place = block * count + id; const int total = 8192;\n"
    " int acc = 1; s[id] = 0; __syncthreads();"
)
SHARED = (("__shared__ int s[1024];", 0), ("extern __shared__ int s[];", 4096))
# Statements that declare {a}. What is behind the bar is known from then on: own, changing, array, pair, pointer.
DECLARE = [
    "int {a} = {e};|own changing",
    "const int {a} = {e};|own",
    "unsigned {a} = (unsigned)({e}) % 1009u;|own",
    "long long {a} = (long long)({e}) * 3;|own",
    "short {a} = {e};|own",
    "bool {a} = {e} % 3 == 1;|own",
    "auto {a} = {e};|own",
    "const auto {a} = {e} * 0.25f; acc += (int){a};|",
    "double {a} = {e} * 0.5; acc += (int){a};|",
    "int {a}, {a}b; {a} = {a}b = {e};|own changing",
    "int {a}[4] = {{{e}, {e}, {e}}};|array",
    "int {a}[4]; for (int k = 0; k < 4; k++) {a}[k] = ({e}) + k;|array",
    "Pair {a} = {{{e}, 1.f, {{2, 3}}}};|pair",
    "Pair {a}; {a}.a = {e}; {a}.b = 2.f; {a}.c[0] = 1; {a}.c[1] = {e};|pair",
    "float4 {a} = make_float4(1.f, 2.f, 3.f, 4.f); acc += (int){a}.z;|",
    "const int* {a} = x + ({e} & 15);|pointer",
    "const int* {a} = x + t % 9;|pointer",
    "int* {a} = &{m}; *{a} = {e};|pointer",
    "int& {a} = {m}; {a} = {e};|own changing",
    "int& {a} = {e} % 2 ? {m} : acc; {a} = {e};|own changing",
    "int* {a} = &({e} % 2 ? {m} : acc); *{a} = 2;|pointer",
    "int& {a} = (int&){m}; {a} = 7;|own changing",
    "Slot {a} = {m}; {a} += 1;|own changing",
    "int& {a} = s[id];|",
    "float4 {a} = make_float4(1.f, 2.f, 3.f, 4.f); for (int k = 0; k < {k}; ++k) {{ int z = k; float4 g = make_float4("
    "{e} % 9, k, 2, 1); {a}.x += g.x * k; {a}.y -= g.y; {a}.w += x[z]; }}"
    " acc += (int)({a}.x + {a}.y + {a}.w);|",
    "float4 {a} = make_float4({e} % 9, 2, 3, 1); for (int k = 0; k < {u} % 7; k++) {{"
    " if (k == {k}) {a}.x = k; {a}.y += ({e}) % 9; }} acc += (int)({a}.x + {a}.y);|",
    "constexpr int {a} = 3;|own",
    "enum {{ {a} = 4 }};|own",
]
CHANGE = [
    "{m} = {e};",
    "{m} {o}= {e};",
    "++{m};",
    "{m}--;",
    "if ({e} % 2) {m} += {e}; else {{ acc -= 3; }}",
    "for (int k = 0; k < {k}; ++k) {{ if (k == 2) continue; if (k > {e} % 5) break; acc += ({e}) * k; }}",
    "raise_by({m}, {e});",
    "set(&{m}, {e});",
    "grow({m});",
    "shrink<int&>({m});",
    "__order({m}, acc);",
    "atomic_swap({m}, acc);",
    "raise_by({e} % 2 ? {m} : acc, 4);",
    "({e} % 2 ? {m} : acc) += {e};",
    "(int&){m} = {e};",
    "{{ Adder g{{{m}}}; g.go({e}); }}",
    "Adder g{number}{{{m}}}; g{number}.go({e});",
    "{{ Giver g = Giver{{{e}}} >> {m}; acc += g.next & 3; }}",
    "BUMP({m});",
    "{m} = {e}, acc = acc * 3 + {e};",
    "switch ({e} & 3) {{ case 0: acc += 1; case 1: {m} = {e}; break; default: acc -= 2; }}",
    "if (int k = {e}; k % 3 == 0) acc += k; else acc -= k & 7;",
    "{{ const int k = {e}; int {m} = k; acc += {m}; }}",
    "{{ int k = 3; do {{ acc += {e}; if (acc % 5 == 0) continue; acc++; }} while (--k > 0); }}",
    "for (int k : {{1, {k}, 3}}) acc += k;",
    "\n#pragma unroll\nfor (int k = 0; k < 4; ++k) acc += k * ({e});\n",
    "acc = acc * 3 + {e};",
    "atomicAdd(&y[total + {k}], {e} % 5);",
    "for (int q = blockIdx.x * blockDim.x + threadIdx.x; q < {k} * 99; q += blockDim.x * gridDim.x)"
    " acc += q % 5 + x[q];",
    "for (int q = threadIdx.x; q < {u} % 50 + 99; q += blockDim.x) acc += x[(unsigned)q % 64] + ({e}) % 7;",
    "for (unsigned q = t; q < {k} * 30u; q += 8) {{ {m} = {m} * 3 + q; if (q % 3 == {k} % 3) acc -= q; }}",
    "for (size_t q = threadIdx.x + {k}; q <= (unsigned)({u}) % 50; q += 32) {{ int g = q; for (int z = 0; z < 3; ++z)"
    " {{ if (z == 1) continue; g += z * ({e}); }} acc += g % 1009; }}",
    "for (int q = id; q < 8 * {k}; q += 5) {{ int g = {e}; raise_by(g, q); {m} ^= g; }}",
    "for (long long q = i; q < {k} * 200; q += blockDim.x * gridDim.x) {m} += q % 5 + s[id];",
    "for (int q = threadIdx.x % 32; q < {u} % 99; q += 32) acc = acc * 3 + q + ({e}) % 9;",
]


class Writer:
    """Writes one kernel's body. It knows the names that are there: of a thread, and of all threads (uniform)."""

    number_text = NUMBER
    values, sames = OWN, SAME

    def __init__(self, rng: random.Random):
        self.rng, self.number, self.writes = rng, 0, True
        self.leaves = rng.random() < 0.3  # some threads return early
        self.names: dict[str, list[str]] = {
            "own": ["t", "i", "acc"],
            "changing": ["acc"],
            "array": [],
            "pair": [],
            "pointer": [],
            "uniform": ["n", "m"],
            "steps": [],
        }
        # Few kinds in one kernel: each that keeps it on fibres hides the others.
        self.declare = rng.sample(DECLARE, 6)
        self.change = rng.sample(CHANGE, 7)

    def body(self, shared: str) -> str:
        first = f"if (n == {self.rng.randint(0, 6)}) return; " if self.rng.random() < 0.2 else ""
        inner = self.block(0)
        last = self.rng.choice(
            ("", f"if (acc % {self.rng.randint(2, 4)} == 0) {{ y[place] = -7; return; }} ")
        )
        result = "".join(f" + (int){name}" for name in self.names["own"][3:])
        result += "".join(f" + {name}[1]" for name in self.names["array"])
        result += "".join(f" + {name}.sum()" for name in self.names["pair"])
        result += "".join(f" + *{name}" for name in self.names["pointer"])
        end = f"y[place] = acc{result};"
        if self.rng.random() < 0.2:
            end = f"return put(y + place, acc{result});"
        start = f"{shared} {self.rng.choice(STARTS)} {self.number_text}\n{first}"
        return f"{start}{inner} {self.barrier()} {last}{end}"

    def name(self, letter: str) -> str:
        self.number += 1
        return f"{letter}{self.number}"

    def pick(self, kind: str) -> str:
        return self.rng.choice(self.names[kind])

    def same(self) -> str:
        return self.rng.choice(self.sames).format(
            u=self.pick("uniform"), w=self.pick("uniform"), k=self.rng.randint(0, 5)
        )

    def value(self) -> str:
        texts = list(self.values)
        texts += [f"{self.pick('array')}[{{v}} & 3]"] if self.names["array"] else []
        texts += [f"{self.pick('pair')}.sum()"] if self.names["pair"] else []
        texts += [f"*{self.pick('pointer')}"] if self.names["pointer"] else []
        text = self.rng.choice(texts).format(
            v=self.pick("own"), w=self.pick("own"), u=self.pick("uniform"), k=self.rng.randint(1, 9)
        )
        return f"(({text}) % 1009)" if "==" not in text else f"({text})"

    def fill(self, template: str, name: str) -> str:
        """A template with a value of its own in each place."""
        rng, made = self.rng, template.replace("{m}", self.pick("changing"))
        while "{e}" in made:
            made = made.replace("{e}", self.value(), 1)
        made = made.replace("{u}", self.pick("uniform"))
        made = (
            made.replace("{k}", str(rng.randint(1, 3))).replace("{o}", rng.choice("+-^")).replace("{a}", name)
        )
        return made.replace("{number}", str(self.number)).replace("{{", "{").replace("}}", "}")

    def statement(self, depth: int) -> str:
        rng = self.rng
        kind = rng.random()
        if self.leaves and rng.random() < 0.06:
            return self.fill(f"if ({{e}} % 13 == 5) {{{{ {EARLY} }}}}", "")
        if kind < 0.35:
            name = self.name("v")
            template, _, known = rng.choice(self.declare).partition("|")
            text = self.fill(template, name)
            for word in known.split():
                self.names[word].append(name)
            return text
        if kind < 0.45:
            name, made = self.name("u"), self.same()
            text = f"{rng.choice(('int', 'const int', 'unsigned', 'size_t'))} {name} = {made};"
            self.names["uniform"].append(name)
            self.names["steps"] += [name] if "const" not in text and not depth else []
            return text
        if kind < 0.5 and self.names["steps"]:
            return f"{self.pick('steps')} {rng.choice(('=', '+=', '-='))} {self.same()};"
        if kind < 0.6 and self.names["array"]:
            return f"{self.pick('array')}[{self.value()} & 3] += {self.value()};"
        if kind < 0.65 and self.names["pair"]:
            pair = self.pick("pair")
            return rng.choice(
                (f"{pair}.up({self.value()} & 7);", f"{pair} = {pair} + 3;", f"{pair}.c[1] += 2;")
            )
        self.number += 1
        return self.fill(rng.choice(self.change), "")

    def phase(self, depth: int) -> str:
        parts = []
        for _ in range(self.rng.randint(1, 3)):
            if self.rng.random() < 0.75:
                parts.append(self.statement(depth))
            elif self.writes:
                parts.append(f"s[id] = {self.value()};")
            else:
                parts.append(f"acc += s[(id + {self.rng.randint(0, 40)}) % count];")
        return "\n".join(parts)

    def barrier(self) -> str:
        self.writes = not self.writes
        return "__syncthreads();"

    def inside(self, depth: int, *names: str) -> str:
        """A block that leaves shared memory as it found it."""
        writes = self.writes
        self.names["uniform"] += names
        text = self.block(depth + 1)
        for name in names:
            self.names["uniform"].remove(name)
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
        saved = {kind: list(names) for kind, names in self.names.items()}
        parts = []
        for _ in range(self.rng.randint(1, 3)):
            parts += [self.phase(depth), self.barrier()]
            if depth < 2 and self.rng.random() < 0.55:
                parts.append(self.around(depth))
        if depth:
            self.names = saved
        return "\n".join(parts)


def kernels_of(count: int, rng: random.Random) -> list[Kernel]:
    kernels = []
    for i in range(count):
        shared, size = rng.choice(SHARED)
        kernels.append(Kernel(f"k{i}", Writer(rng).body(shared), size))
    return kernels


def compare(count: int, seed: int, outcome: Outcome, fibres: bool = True):
    rng = random.Random(seed)
    kernels = kernels_of(count, rng)
    Comparison(f"phases{seed}", HEAD, kernels, fibres).run(rng, 3, outcome)


def command(compare: Callable[[int, int, Outcome], None], about: str) -> int:
    """The command line of a comparison of random kernels."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--count", type=int, default=12, help="kernels of a source")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="sources, of as many seeds")
    options = parser.parse_args()
    outcome = Outcome()
    for seed in range(options.seed, options.seed + options.seeds):
        compare(options.count, seed, outcome)
    print(outcome)
    return bool(outcome.wrong or outcome.races)


if __name__ == "__main__":
    sys.exit(command(compare, "phases of random kernels"))
