"""A kernel and a host function that launches it, at random: as CUDA, as plain C++, and its launcher."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tools.new_layer.kernel_launcher import KernelLauncher

PRELUDE = """
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  bool operator==(const dim3& o) const { return x == o.x && y == o.y && z == o.z; }
};
namespace caffe {
struct Error : std::runtime_error {
  template <typename... Values> Error(const char* text, Values...) : runtime_error(text) {}
};
}
const int CAFFE_CUDA_NUM_THREADS = 512;
inline int CAFFE_GET_BLOCKS(const int n) { return (n + CAFFE_CUDA_NUM_THREADS - 1) / CAFFE_CUDA_NUM_THREADS; }
inline int pick(int& x) { return x = x % 7 + 3; }
struct Noted { dim3 grid, block; size_t shared; int value; bool ran; } noted;  // value: of the template's parameter
inline void note(dim3 grid, dim3 block, size_t shared, int value = 0) { noted = {grid, block, shared, value, true}; }
static unsigned state = 1;
inline int any(int low, int high) {
  state = state * 1664525u + 1013904223u;
  return low + int((state >> 8) % unsigned(high - low + 1));
}
static int wrong = 0;
void compare(int number, const Noted& want) {
  if (want.grid == noted.grid && want.block == noted.block && want.shared == noted.shared) return;
  ++wrong;
  std::printf("case %d: (%u %u %u) (%u %u %u) %zu", number, noted.grid.x, noted.grid.y, noted.grid.z, noted.block.x,
              noted.block.y, noted.block.z, noted.shared);
  std::printf(", not (%u %u %u) (%u %u %u) %zu\\n", want.grid.x, want.grid.y, want.grid.z, want.block.x, want.block.y,
              want.block.z, want.shared);
}
void failed(int number, const std::exception& error) {
  ++wrong;
  std::printf("case %d: %s\\n", number, error.what());
}
"""
WHOLE = ["int", "int", "int", "unsigned", "int64_t", "size_t", "short"]
NAMES = ["n", "m", "w", "rows", "size", "k"]


class Case:
    """One kernel, one host function, and what lies around them in the file."""

    def __init__(self, number: int, rng: random.Random):
        self.number, self.rng = number, rng
        self.before: list[str] = []
        self.after: list[str] = []
        self.statements: list[str] = []
        self.said: list[str] = []
        self.constants = self._constants()
        self.variables: list[str] = []
        self.parameters = [
            (rng.choice([*WHOLE, "float"]), name) for name in rng.sample(NAMES, rng.randint(1, 3))
        ]
        self.variables += [name for _, name in self.parameters]
        for _ in range(rng.randint(0, 2)):
            self._local()
        self.template = rng.choice(["", "", "", "int", "T"])
        grid, block, shared = self.part(), self.part(), self.shared()
        # Passed: parts of the geometry as they are written there, and others.
        said = [grid, block, *self.said]
        count = rng.randint(1, 3)
        texts = [self.argument(said) for _ in range(count)]
        if rng.random() < 0.6:  # as most kernels: it gets what the host function gets
            texts = [name for _, name in self.parameters] + texts[:1] * (rng.random() < 0.5)
        count = len(texts)
        kinds = [rng.choice(WHOLE) for _ in range(count)]
        self.kernel_parameters = list(zip(kinds, rng.sample(NAMES, count), strict=True))
        self.grid, self.block, self.shared_text, self.arguments = grid, block, shared, texts
        self.way = rng.choice(["plain", "plain", "plain", "if", "loop", "lambda", "macro", "twice"])
        self.varying = self.variables

    # ------------------------------------------------------------------------------ expressions

    def _constants(self) -> list[str]:
        rng, i, names = self.rng, self.number, []
        for k in range(rng.randint(0, 2)):
            name, value = f"C{k}_{i}", rng.choice([1, 2, 8, 32, 64, 256])
            kind = rng.choice(
                ["macro", "macro", "constexpr", "const", "enum", "global", "late", "sum", "pair"]
            )
            text = {
                "macro": f"#define {name} {value}",
                "late": f"#define {name} {value}",
                "sum": f"#define {name} {value} + 1",
                "constexpr": f"constexpr int {name} = {value};",
                "const": f"static const unsigned {name} = {value};",
                "enum": f"enum {{ E{k}_{i} = 3, {name} = {value} }};",
                "global": f"static int {name} = {value};",
                "pair": f"const int D{k}_{i} = 5, {name} = {value};",
            }[kind]
            self.before.append(text)
            if kind == "late":
                self.after += [f"#undef {name}", f"#define {name} {value + 1}"]
            names.append(name)
        if rng.random() < 0.3:
            body = rng.choice(["((a) + (b) - 1) / (b)", "a * 2 + b", "(a) * (b)"])
            self.before.append(f"#define UP_{i}(a, b) {body}")
            self.macro = f"UP_{i}"
        else:
            self.macro = ""
        return names

    def _local(self):
        rng = self.rng
        name = rng.choice(["g", "t", "s", "left"]) + str(len(self.statements))
        kind = rng.choice(["int", "int", "const int", "auto", "unsigned", "float", "size_t", "constexpr int"])
        value = self.expression(2, names=kind != "constexpr int")
        if kind == "constexpr int":
            value = rng.choice([*self._constant_names(), str(rng.choice([4, 16, 128]))])
        if kind == "auto":  # an enum's constant is no number yet
            value = f"({value}) + 0"
        self.statements.append(f"{kind} {name} = {value};")
        if "const" not in kind and rng.random() < 0.4:
            other = rng.choice([*self.variables, name])
            self.statements.append(
                rng.choice(
                    [f"{name} = {name} / 2 + 1;", f"if ({other} > 9) {name} = 5;", f"++{name};"]
                    + [f"pick({name});"] * (kind == "int")
                    + [f"auto& r_{name} = {name}; r_{name} = 3;"]
                    + [f"{{ int {name} = 77; (void){name}; }}"]
                )
            )
        if rng.random() < 0.15:
            kind, changed = self.parameters[0]
            if kind != "float":
                self.statements.append(f"{changed} += 2;")
        self.variables.append(name)

    def _constant_names(self) -> list[str]:
        return [
            name for name, text in zip(self.constants, self.before, strict=False) if "static int" not in text
        ]

    def expression(self, depth: int, names: bool = True) -> str:
        rng = self.rng
        leaves = [str(rng.choice([1, 2, 3, 7, 16, 32, 256])), *self.constants]
        if names and self.variables:
            leaves += self.variables * 2
        leaf = rng.choice(leaves)
        if depth == 0 or rng.random() < 0.3:
            return leaf
        a, b = self.expression(depth - 1, names), self.expression(depth - 1, names)
        space = rng.choice([" ", ""])
        divisor = rng.choice(["2", "32", "7", *self.constants])
        return rng.choice(
            [
                f"{a}{space}+{space}{b}",
                f"{a}{space}*{space}{b}",
                f"({a}{space}+{space}{b})",
                f"({a} + {divisor} - 1){space}/{space}{divisor}",
                f"({a}) / ({divisor})",
                f"{leaf}{space}+{space}1",
                f"std::min<int>({a}, {b})",
                f"({a} > {b} ? {a} : {b})",
                f"(int({a}) % 8)",
                f"static_cast<int>({a})",
            ]
            + [f"{self.macro}({a}, {divisor})"] * 2 * bool(self.macro and "sum" not in self.macro)
        )

    def part(self) -> str:
        """A grid or a block."""
        if self.rng.random() < 0.25:
            parts = [self.expression(1) for _ in range(self.rng.randint(1, 3))]
            self.said = [*self.said, *parts]
            text = f"dim3({', '.join(parts)})"
            if self.rng.random() < 0.5:
                name = f"d{len(self.statements)}"
                self.statements.append(f"dim3 {name}({', '.join(parts)});")
                if self.rng.random() < 0.2:
                    self.statements.append(f"{name}.x = 3;")
                return name
            return text
        return self.expression(2)

    def shared(self) -> str:
        return self.rng.choice(
            ["", "", "0", "4096", f"{self.expression(1)} * sizeof(float)", self.expression(2)]
        )

    def argument(self, said: list[str]) -> str:
        usable = [text for text in said if "dim3" not in text and not text.startswith("d")]
        return self.rng.choice([self.expression(1), self.rng.choice(self.variables), *usable])

    # ------------------------------------------------------------------------------------ texts

    def host(self, launch: Callable[[str], str]) -> str:
        """The host function. `launch` writes the launch with these template arguments."""
        return self._around(launch({"": "", "int": "32", "T": "T"}[self.template]))

    def _around(self, launch: str) -> str:
        i, parameters = self.number, ", ".join(f"{kind} {name}" for kind, name in self.parameters)
        body = {
            "if": f"if ({self.variables[0]} > 3) {{ {launch} }}",
            "loop": f"for (int s = 1; s < 3; ++s) {{ {launch} }}",
            "lambda": f"auto go = [&] {{ {launch} }}; go();",
            "macro": f"RUN_{i};",
            "twice": f"if ({self.variables[0]} > 9) {{ {launch} }} else {{ {launch} }}",
        }.get(self.way, launch)
        text = f"#define RUN_{i} {launch.rstrip(';')}\n" if self.way == "macro" else ""
        head = "template <typename T> " if self.template == "T" else ""
        pointer = "T*" if self.template == "T" else "float*"
        statements = " ".join(self.statements)
        return f"{text}{head}void host_{i}({pointer} o, {parameters}) {{ {statements} {body} }}\n"

    def cuda(self) -> str:
        parameters = ", ".join(f"{kind} {name}" for kind, name in self.kernel_parameters)
        head = {"": "", "int": "template <int B> ", "T": "template <typename T> "}[self.template]
        pointer = "T*" if self.template == "T" else "float*"
        kernel = f"{head}__global__ void run_{self.number}({pointer} o, {parameters})"
        kernel += " { o[threadIdx.y] = blockIdx.y; }\n"
        config = ", ".join(filter(None, (self.grid, self.block, self.shared_text)))

        def launch(given: str) -> str:
            given = f"<{given}>" if given else ""
            return f"run_{self.number}{given}<<<{config}>>>(o, {', '.join(self.arguments)});"

        return "\n".join([*self.before, kernel + self.host(launch) + "\n".join(self.after)]) + "\n"

    def plain(self) -> str:
        """The same file as C++: a launch notes its geometry and its arguments."""
        i = self.number
        kinds = ", ".join(kind for kind, _ in self.kernel_parameters)
        config = f"dim3({self.grid}), dim3({self.block}), size_t({self.shared_text or 0})"

        def launch(given: str) -> str:
            value = given if self.template == "int" else "0"
            return f"note({config}, {value}), passed_{i} = decltype(passed_{i}){{{self._converted()}}};"

        passed = f"static std::tuple<{kinds}> passed_{i};\n"
        return "\n".join([*self.before, passed + self.host(launch) + "\n".join(self.after)]) + "\n"

    def _converted(self) -> str:
        pairs = zip(self.kernel_parameters, self.arguments, strict=True)
        return ", ".join(f"static_cast<{kind}>({text})" for (kind, _), text in pairs)

    def launcher(self, launcher: KernelLauncher) -> str:
        """The launcher as C++."""
        own = [a for a in launcher.arguments]
        parameters = ", ".join(f"{a.type} {a.name}" for a in own)
        head = "template <typename Dtype> " if launcher.dispatch else ""
        values = "".join(f"(void)({a.value}); " for a in own if a.value)
        return (
            f"{head}void launch_{self.number}({parameters}) {{ {' '.join(launcher.prologue)} "
            f"note(dim3({launcher.grid}), dim3({launcher.block}), {launcher.shared}); {values}}}\n"
        )

    def _passed(self, place: int) -> str:
        names = set(re.findall(r"\w+", self.arguments[place])) & set(self.varying)
        return f"std::get<{place}>(passed_{self.number})" + ("" if names else " + 5")

    def trial(self, launcher: KernelLauncher) -> str:
        """A function that compares the two for some arguments."""
        i, kinds = self.number, ["float", "double"] if launcher.dispatch else [""]
        text = f"void trial_{i}() {{ for (int t = 0; t < 12; ++t) {{\n"
        for kind in kinds:
            names = ", ".join(f"p{k}" for k in range(len(self.parameters)))
            values = ", ".join(f"p{k} = any(1, 40)" for k in range(len(self.parameters)))
            pointer = f"static_cast<{kind or 'float'}*>(nullptr)"
            order = {name: k for k, (_, name) in enumerate(self.kernel_parameters)}
            asked = {
                "shared_bytes": "want.shared",
                "grid": "want.grid.x",
                "block": "want.block.x",
                "B": "want.value",
            }
            for what in ("grid", "block"):
                asked |= {f"{what}_{axis}": f"want.{what}.{axis}" for axis in "xyz"}
            passed = [
                "nullptr" if a.type.endswith("*")
                else self._passed(order[a.kernel_name]) if a.value
                else asked[a.name.rstrip("_")]
                for a in launcher.arguments
            ]  # fmt: skip
            text += (
                f"{{ int {values}; noted.ran = false; host_{i}({pointer}, {names}); const Noted want = noted;\n"
                f"  if (want.ran) try {{ launch_{i}{f'<{kind}>' * bool(kind)}({', '.join(passed)});\n"
                f"  compare({i}, want); }}\n"
                f"  catch (const std::exception& error) {{ failed({i}, error); }} }}\n"
            )
        return text + "} }\n"
