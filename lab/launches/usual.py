"""A launch as people write it: a size, divided by a block and rounded up."""

from __future__ import annotations

import random
from collections.abc import Callable

from .case import NAMES, Case

SIZES = ["int", "int", "int", "int", "size_t", "int64_t", "unsigned"]


class Usual(Case):
    """One or two sizes, a block, and what stands between them and the launch."""

    def __init__(self, number: int, rng: random.Random):
        self.number, self.rng = number, rng
        self.before, self.after, self.statements = [], [], []
        self.last: list[str] = []  # statements after the launch
        self.template = rng.choice(["", "", "", "int", "int", "T"])
        self.way = self._chosen_way()
        self.parameters = [(rng.choice(SIZES), name) for name in rng.sample(NAMES, rng.randint(1, 3))]
        self.variables = [name for _, name in self.parameters]
        self.varying = [*self.variables, "s", "total"]
        self._helpers()
        block = self._block()
        if rng.random() < 0.15:
            self._changed()
        count = self._count()
        self.grid, self.block = self._geometry(count, block)
        if rng.random() < 0.15:
            self._changed()
        if rng.random() < 0.1:
            self.last.append(f"{self.variables[0]} = 0;")
        self.shared_text = rng.choice(["", "", "", "0", f"{block} * sizeof(float)", f"{block} * 4", count])
        self.arguments = self._arguments(count, block)
        kinds = [rng.choice(SIZES) for _ in self.arguments]
        alike = rng.random() < 0.6  # the kernel's names are the host's
        own = [text if alike and text in NAMES else "" for text in self.arguments]
        others = [name for name in rng.sample(NAMES, len(NAMES)) if name not in own]
        names = [name if name and name not in own[:k] else others.pop() for k, name in enumerate(own)]
        self.kernel_parameters = list(zip(kinds, names, strict=True))

    def _chosen_way(self) -> str:
        ways = ["plain"] * 5 + [
            "if",
            "return",
            "halves",
            "shrinks",
            "lambda",
            "given",
            "macro",
            "helper",
            "member",
        ]
        if self.template == "int":
            ways = ["plain", "switch", "switch", "deduced", "deduced"]
        return self.rng.choice(ways)

    def _helpers(self):
        i = self.number
        self.divide = self.rng.choice(
            ["text", "text", "text", "function", "template", "macro", "minus", "rest", "ceil"]
        )
        self.before += {
            "function": [f"static inline int cdiv_{i}(int a, int b) {{ return (a + b - 1) / b; }}"],
            "template": [f"template <typename A> constexpr A cdiv_{i}(A a, int b) {{ return (a + b - 1) / b; }}"],
            "macro": [f"#define UP_{i}(a, b) (((a) + (b) - 1) / (b))"],
        }.get(self.divide, [])  # fmt: skip

    def _block(self) -> str:
        """The block's size, or its side."""
        rng, i, value = self.rng, self.number, self.rng.choice([16, 32, 64, 256])
        if self.way == "deduced":
            return "V"
        kind = rng.choice(
            ["literal", "macro", "macro", "constant", "local", "local", "changed", "given", "shadowed"]
        )
        if kind == "macro":
            self.before.append(f"#define BLOCK_{i} {value}")
            return f"BLOCK_{i}"
        if kind in ("constant", "shadowed"):
            self.before.append(f"constexpr int BLOCK_{i} = {value};")
            if kind == "shadowed":
                self.statements.append(f"const int BLOCK_{i} = {value // 2};")
            return f"BLOCK_{i}"
        if kind in ("local", "changed"):
            self.statements.append(
                f"{rng.choice(['const int', 'int', 'auto', 'unsigned'])} threads = {value};"
            )
            if kind == "changed" and "const" not in self.statements[-1]:
                self.statements.append(f"if ({self.variables[0]} < 9) threads = 8;")
                self.varying.append("threads")
            return "threads"
        if kind == "given":
            self.parameters.append(("int", "threads"))
            self.varying.append("threads")
            return "threads"
        return str(value)

    def _count(self) -> str:
        rng, names = self.rng, self.variables
        if len(names) > 1 and rng.random() < 0.4:
            product = " * ".join(names[: rng.randint(2, len(names))])
            if rng.random() < 0.6:
                self.statements.append(
                    f"{rng.choice(['const int', 'int', 'auto', 'size_t'])} total = {product};"
                )
                return "total"
            return f"({product})"
        return rng.choice(names)

    def _divided(self, count: str, block: str) -> str:
        i = self.number
        return {
            "text": f"({count} + {block} - 1) / {block}",
            "function": f"cdiv_{i}({count}, {block})",
            "template": f"cdiv_{i}({count}, {block})",
            "macro": f"UP_{i}({count}, {block})",
            "minus": f"({count} - 1) / {block} + 1",
            "rest": f"{count} / {block} + ({count} % {block} != 0)",
            "ceil": f"(int)ceil((float){count} / {block})",
        }[self.divide]

    def _geometry(self, count: str, block: str) -> tuple[str, str]:
        rng, divided = self.rng, self._divided(count, block)
        if self.way == "halves":
            return rng.choice(["1", divided]), rng.choice(["s", "s", block])
        if len(self.variables) > 1 and rng.random() < 0.3:
            other = self._divided(self.variables[1], block)
            pair = [(f"{divided}, {other}", f"{block}, {block}"), (f"{count}, {self.variables[1]}", block)]
            grid, block = rng.choice(pair)
            if rng.random() < 0.5:
                self.statements += [
                    f"dim3 grid({grid});",
                    rng.choice([f"dim3 block({block});", f"auto block = dim3({block});"]),
                ]
                if rng.random() < 0.2:
                    self.statements.append("grid.y = 2;")
                return "grid", "block"
            return f"dim3({grid})", f"dim3({block})"
        if rng.random() < 0.5:
            kind = rng.choice(["const int", "int", "int", "auto", "size_t"])
            self.statements.append(f"{kind} blocks = {divided};")
            if kind == "int" and rng.random() < 0.4:
                cap = [
                    "if (blocks > 3) blocks = 3;",
                    "blocks = std::min(blocks, 3);",
                    "blocks = blocks > 3 ? 3 : blocks;",
                ]
                self.statements.append(rng.choice(cap))
            return "blocks", block
        return rng.choice([divided, divided, f"std::min<int>({divided}, 4)", count]), block

    def _changed(self):
        """A host variable gets another value."""
        rng, (kind, name) = self.rng, self.parameters[0]
        changes = [
            f"{name} += 2;",
            f"if ({name} % 2) ++{name};",
            f"{name} = {name} * 2;",
            f"{{ {kind}& again = {name}; again = 5; }}",
        ]
        if len(self.parameters) > 1 and self.parameters[1][0] == kind:
            changes.append(f"std::swap({name}, {self.parameters[1][1]});")
        self.statements.append(rng.choice(changes))

    def _arguments(self, count: str, block: str) -> list[str]:
        rng = self.rng
        texts = list(self.variables)
        if count == "total" and rng.random() < 0.6:
            texts = ["total"]
        if rng.random() < 0.3:
            texts.append(rng.choice([block, "1", "2", "16", "256", count]))
        if rng.random() < 0.15:
            texts[0] = rng.choice([f"{texts[0]} + 1", f"{texts[0]} - 1", f"{texts[0]} * 2", "7"])
        if self.way == "halves":
            texts.append("s")
        if rng.random() < 0.1:
            rng.shuffle(texts)
        return texts[:5]

    # ------------------------------------------------------------------------------------ texts

    def host(self, launch: Callable[[str], str]) -> str:
        i = self.number
        parameters = ", ".join(f"{kind} {name}" for kind, name in self.parameters)
        names = ", ".join(name for _, name in self.parameters)
        before, after, first = " ".join(self.statements), " ".join(self.last), self.variables[0]
        one = launch({"": "", "int": self.rng_value(), "T": "T"}[self.template])
        head = "template <typename T> " if self.template == "T" else ""
        pointer = "T*" if self.template == "T" else "float*"
        text = ""
        if self.way == "switch":
            cases = " ".join(f"case {v}: {launch(v)} break;" for v in ("32", "64", "128"))
            one = f"switch (32 << ({first} % 3)) {{ {cases} }}"
        elif self.way == "macro":
            text, one = f"#define RUN_{i} {one.rstrip(';')}\n", f"RUN_{i};"
        elif self.way == "given":  # the lambda's parameter hides the host's
            one = f"auto go = [&](int {first}) {{ {one} }}; go(3); go({first});"
        else:
            one = {
                "if": f"if ({first} > 3) {{ {one} }}",
                "return": f"if ({first} > 30) return; {one}",
                "halves": f"for (unsigned s = {first} / 2; s > 0; s >>= 1) {{ {one} }}",
                "shrinks": f"while ({first} > 1) {{ {one} {first} = {first} / 2; }}",
                "lambda": f"auto go = [&] {{ {one} }}; go();",
            }.get(self.way, one)
        body = f"{{ {before} {one} {after} }}\n"
        host = f"{head}void host_{i}({pointer} o, {parameters})"
        if self.way == "deduced":
            text += f"template <int V> void go_{i}(float* o, {parameters}) {body}"
            return (
                f"{text}{host} {{ if ({first} % 2) go_{i}<32>(o, {names}); else go_{i}<64>(o, {names}); }}\n"
            )
        if self.way == "helper":
            given = ", ".join([f"{first} + 1", *(name for _, name in self.parameters[1:])])
            return f"{text}{head}static void go_{i}({pointer} o, {parameters}) {body}{host} {{ go_{i}(o, {given}); }}\n"
        if self.way == "member":
            pairs, at = (
                self.parameters[:1],
                ", ".join([f"{kind} {name}" for kind, name in self.parameters[1:]]),
            )
            fields = " ".join(f"{kind} {name};" for kind, name in pairs)
            method = f"void go({pointer} o{', ' * bool(at)}{at}) {body.rstrip()}"
            text += f"{head}struct Runner_{i} {{ {fields} {method} }};\n"
            made = f"Runner_{i}{'<T>' * (self.template == 'T')} r{{{first}}};"
            passed = ", ".join(["o", *(name for _, name in self.parameters[1:])])
            return f"{text}{host} {{ {made} r.go({passed}); }}\n"
        return f"{text}{host} {body}"

    def rng_value(self) -> str:
        return "V" if self.way == "deduced" else "32"
