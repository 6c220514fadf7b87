"""Grid, block and shared memory of a launcher, from the launches in the file."""

from __future__ import annotations

import dataclasses
import re

from ..cuda.launches import Launch
from ..cuda.tokens import LOOP
from .host_code import WHOLE_WORDS, Number, Numbers
from .kernel_launcher import Argument

# Types that a count may have.
WHOLE = {"unsigned int", "long long", *WHOLE_WORDS} - {"short"}
# Names in a launch's expression that mean the same in a launcher.
EVERYWHERE = {
    "CAFFE_GET_BLOCKS", "CAFFE_CUDA_NUM_THREADS", "dim3", "sizeof", "static_cast", "std", "min", "max", "ceil",
    "THCCeilDiv",
    *WHOLE_WORDS, "float", "double",
}  # fmt: skip
# Members, namespaces other than std, and elements are host code's own.
OF_HOST = re.compile(r"\.\s*[A-Za-z_]|->|(?<!\bstd)\s*::|\[|\{|&(?!&)")
# What gives a whole number, of a tensor.
OF_SHAPE = re.compile(r"\.\s*(size|stride|numel|dim)\s*\([^()]*\)\Z")
# Functions of torch that divide and round up.
CEIL_DIV = re.compile(r"\b(?:at::cuda::ATenCeilDiv|at::ceil_div|THCCeilDiv)\b")


class HostOnly(Exception):
    """An expression that only the host code can compute."""


class Geometry:
    """The geometry of one kernel's launcher. What only the caller knows becomes a parameter of `maker`'s launcher."""

    def __init__(self, maker):
        self.maker, self.kernel, self.launches = maker, maker.kernel, maker.launches
        self.constants = maker.parts.constants
        self.prologue: list[str] = []  # statements before the launch
        self._given: dict[str, str] = {}  # by name in the host code: variables of the launcher

    def of_launch(self) -> tuple[str, str, str]:
        """(grid, block, shared memory) as C++ expressions."""
        grid, block = self._grid_and_block()
        return grid, block, self._shared()

    def switched_by(self, index: int) -> str | None:
        """The number by which the host code's `switch` chooses this template argument, if there is such a switch."""
        source, switches = self.maker.parts.source, set()
        for launch in self.launches:
            text = self._around(launch)
            names = re.findall(r"\bswitch\s*\(\s*(\w+)\s*\)", text)
            cases = re.findall(r"\bcase\s+(\w+)\s*:|\bdefault\s*:", text)
            chosen = cases and cases[-1] in ("", launch.template_arguments[index])
            switches.add(
                (source.function_around(launch.start), names[0] if len(names) == 1 and chosen else "")
            )
        if len(switches) != 1 or not (name := switches.pop()[1]):
            return None
        before = self._state()
        try:
            return self._in_c(name, self.launches[0])
        except HostOnly:
            self._restore(before)
            return None

    # --------------------------------------------------------------------------------- choices

    def _grid_and_block(self) -> tuple[str, str]:
        kernel, bounds = self.kernel, self._loop_bounds()
        # A kernel that consists of a grid loop works with any grid.
        any_grid = kernel.has_loop and not kernel.uses_thread_identity and len(bounds) == 1
        if any_grid and (count := self._count(bounds.pop())):
            return f"CAFFE_GET_BLOCKS({count})", "CAFFE_CUDA_NUM_THREADS"
        return self._translated("grid") or self._asked("grid"), self._translated("block") or self._asked(
            "block"
        )

    def _asked(self, what: str) -> str:
        """The grid or the block as a parameter."""
        launch = self.launches[0] if self.launches else None
        text = getattr(launch, what, "")
        three = launch is None or "dim3" in text
        three = three or re.search(rf"\bdim3\s[^;]*\b{re.escape(text)}\b", self._around(launch))
        why = "The file never launches it" if launch is None else "The host code worked it out"
        self.maker.notes.append(f"{why}, so the caller passes the {what}.")
        if not three:
            return self.maker.own("int", what).name
        names = [self.maker.own("int", f"{what}_{axis}").name for axis in "xyz"]
        return f"dim3({', '.join(names)})"

    def _shared(self) -> str:
        if self.launches and not any(launch.shmem for launch in self.launches):
            return "0"
        if found := self._translated("shmem"):
            return found
        low, high = self.kernel.body
        text = self.maker.parts.source.text[low:high]
        if not self.launches and not re.search(r"extern\s+__shared__", text):
            return "0"
        return self.maker.own("int", "shared_bytes").name

    def _translated(self, what: str) -> str | None:
        """A part of the launches in the launcher's variables, if that is possible and the same for all."""
        before, results = self._state(), []
        for launch in self.launches:
            self._restore(before)
            try:
                expression = self._in_c(getattr(launch, what) or "0", launch)
            except HostOnly:
                results = []
                break
            added = [(a.type, a.name) for a in self.maker.arguments]
            results.append((expression, added, self.prologue))
        if results and all(result == results[0] for result in results):
            return results[0][0]
        self._restore(before)
        return None

    def _state(self):
        """All that a translation changes."""
        maker = self.maker
        arguments = [dataclasses.replace(a) for a in maker.arguments]
        return arguments, set(maker.used_names), list(self.prologue), dict(self._given)

    def _restore(self, state):
        maker, (arguments, used, prologue, given) = self.maker, state
        maker.arguments, maker.used_names = [dataclasses.replace(a) for a in arguments], set(used)
        self.prologue, self._given = list(prologue), dict(given)

    def _around(self, launch: Launch) -> str:
        source = self.maker.parts.source
        function = source.function_around(launch.start)
        return source.text[function.body : launch.start] if function else ""

    # ---------------------------------------------------------------------------------- counts

    def _loop_bounds(self) -> set[str]:
        """The ends of the kernel's own loops."""
        source = self.maker.parts.source
        tokens, partner = source.lexed.tokens, source.lexed.partner
        low, high = self.kernel.body
        bounds = set()
        for i, token in enumerate(tokens):
            if not (low < token.start < high and LOOP.match(token.text)):
                continue
            inside = tokens[i + 2 : partner.get(i + 1, i + 1)]
            comma = next((j for j, t in enumerate(inside) if t.text == ","), len(inside))
            plain = token.text == "CUDA_KERNEL_LOOP"  # the ends of other loop macros are unknown
            bounds.add(" ".join(t.text for t in inside[comma + 1 :]) if plain else "")
        return bounds

    def _count(self, bound: str) -> str | None:
        """A count for CAFFE_GET_BLOCKS: a parameter or a product of parameters."""
        factors = self.factors(bound)
        if not factors:
            return None
        if len(factors) > 1:
            product = " * ".join([f"int64_t({factors[0].name})", *(f.name for f in factors[1:])])
            name = self.maker.named("count")
            self.prologue.append(f'  const int {name} = checked_int({product}, "{bound}");')
            return name
        return self._as_count(factors[0])

    def factors(self, product: str) -> list[Argument]:
        """The whole numbers of a product `a * b` of the kernel's parameters; none for anything else."""
        factors = [self._parameter(word) for word in product.split(" * ")]
        return factors if all(f is not None and f.kernel_type in WHOLE for f in factors) else []

    def _as_count(self, argument: Argument) -> str:
        """A count as int64_t, as in all of the toolkit's C functions. It is checked if the kernel takes an int."""
        if argument.kernel_type == "int" and argument.type != "int64_t":
            argument.type = "int64_t"
            argument.value = f'checked_int({argument.name}, "{argument.name}")'
        return argument.name

    def _parameter(self, kernel_name: str) -> Argument | None:
        return next((a for a in self.maker.arguments if a.kernel_name == kernel_name and a.value), None)

    # ----------------------------------------------------------------------------- expressions

    def _in_c(self, text: str, launch: Launch) -> str:
        """A launch's expression, by the launcher's variables."""
        of_kernel = [a for a in self.maker.arguments if a.value]
        passed = {
            text: argument
            for text, argument in zip(launch.arguments, of_kernel, strict=True)
            if not argument.type.endswith("*") and argument.kernel_type in WHOLE
        }
        blocks = re.fullmatch(r"(?:caffe::)?CAFFE_GET_BLOCKS\s*\((.*)\)", text, re.DOTALL)
        if blocks and (argument := passed.get(blocks[1].strip())) is not None:
            return f"CAFFE_GET_BLOCKS({self._as_count(argument)})"
        maker = self.maker
        types = {
            text: maker.types[parameter]
            for text, (_, parameter, _) in zip(launch.template_arguments, maker.template, strict=False)
            if parameter in maker.types
        }
        return self._expression(text, passed, types, Numbers(maker.parts.source, launch), within=())

    def _expression(self, text: str, passed, types, numbers: Numbers, within: tuple[str, ...]) -> str:
        """`within` are the host code's variables whose value this is."""
        if not within and (argument := passed.get(text)) is not None:
            return argument.name
        given = [
            (a, passed[a]) for a in sorted(passed, key=len, reverse=True) if not re.fullmatch(r"[\w.]+", a)
        ]
        # $0, $1, ...: arguments of the launch that are expressions, such as `input.numel()`
        for i, (expression, _) in enumerate(given):
            text = text.replace(expression, f"${i}")
        text = CEIL_DIV.sub("THCCeilDiv", text)
        if OF_HOST.search(text):
            raise HostOnly(text)

        def translated(match: re.Match) -> str:
            word = match[0]
            if word.startswith("$"):
                return _as_declared(given[int(word[1:])][1], Number("auto", ""))
            if not within and (word in types or (word == "Dtype" and self.maker.dispatch)):
                return types.get(word, word)
            if word in numbers.changed and within:
                raise HostOnly(word)
            if word in EVERYWHERE:
                return word
            if (argument := passed.get(word)) is not None:
                return _as_declared(argument, numbers.found.get(word))
            if word in self.constants and word not in numbers.found:
                return self.constants[word]
            return self._variable(word, passed, types, numbers, within)

        return re.sub(r"\$\d+|\b[A-Za-z_]\w*(?!\s*')", translated, text)

    def _variable(self, word: str, passed, types, numbers: Numbers, within: tuple[str, ...]) -> str:
        """The name, in the launcher, of the host code's variable."""
        if word in self._given:
            return self._given[word]
        number = numbers.found.get(word)
        if number is None or word in within:
            raise HostOnly(word)
        before = self._state()
        try:
            if not number.value:
                raise HostOnly(word)
            value = self._expression(number.value, passed, types, numbers, (*within, word))
            name = self.maker.named(word)
            self.prologue.append(f"  const {number.type} {name} = {value};")
        except HostOnly:
            of_shape = number.type == "auto" and OF_SHAPE.search(number.value)
            if not (of_shape or set(number.type.split()) <= WHOLE_WORDS):
                raise
            self._restore(before)
            name = self.maker.own("int64_t" if number.type != "int" else "int", word).name
        self._given[word] = name
        return name


def _as_declared(argument: Argument, number: Number | None) -> str:
    """The argument, in the type of the host code's variable: std::min and THCCeilDiv want one type."""
    long = number is not None and number.type != "int" and argument.kernel_type == "int"
    return f"int64_t({argument.name})" if long else argument.name
