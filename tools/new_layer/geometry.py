"""Grid, block and shared memory of a launcher: from the kernel's loop, or from the expressions of its launches."""

from __future__ import annotations

import re

from ..cuda.launches import Launch
from ..cuda.tokens import LOOP
from .kernel_launcher import Argument

WHOLE_WORDS = {"int", "unsigned", "long", "short", "size_t", "int32_t", "int64_t", "uint32_t", "uint64_t"}
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
# Functions of torch that divide and round up.
CEIL_DIV = re.compile(r"\b(?:at::cuda::ATenCeilDiv|at::ceil_div|THCCeilDiv)\b")
# A kernel's words for the second and third dimension of grid and block.
FURTHER = {
    "grid": re.compile(r"\b(blockIdx|gridDim)\s*\.\s*[yz]\b|\bCUDA_2D_KERNEL_LOOP\b"),
    "block": re.compile(r"\b(threadIdx|blockDim)\s*\.\s*[yz]\b|\bCUDA_2D_KERNEL_LOOP\b"),
}


class HostOnly(Exception):
    """An expression that only the host code can compute."""


class Geometry:
    """The geometry of one kernel's launcher. Values that only the caller knows become its parameters."""

    def __init__(self, maker):
        self.maker, self.kernel, self.launches = maker, maker.kernel, maker.launches
        self.constants = maker.parts.constants
        self.prologue: list[str] = []  # statements before the launch

    def of_launch(self) -> tuple[str, str, str]:
        """(grid, block, shared memory) as C++ expressions."""
        grid, block = self._grid_and_block()
        return grid, block, self._shared()

    # --------------------------------------------------------------------------------- choices

    def _grid_and_block(self) -> tuple[str, str]:
        kernel, bounds = self.kernel, self._loop_bounds()
        # A kernel that consists of a grid loop works with any grid.
        any_grid = kernel.has_loop and not kernel.uses_thread_identity and len(bounds) == 1
        if any_grid and (count := self._count(bounds.pop())):
            return f"CAFFE_GET_BLOCKS({count})", "CAFFE_CUDA_NUM_THREADS"
        grid = self._translated("grid") or self._asked("grid")
        return grid, self._translated("block") or self._asked("block")

    def _asked(self, what: str) -> str:
        """The grid or the block as a parameter."""
        why = "The host code computes it" if self.launches else "The file never launches it"
        self.maker.notes.append(f"{why}, so the caller passes the {what}.")
        if self.launches and not FURTHER[what].search(self._device_code()):
            return self.maker.own("int", what).name
        names = [self.maker.own("int", f"{what}_{axis}").name for axis in "xyz"]
        return f"dim3({', '.join(names)})"

    def _device_code(self) -> str:
        """The device code without the other kernels."""
        parts = self.maker.parts
        text = parts.device
        for kernel, *_ in parts.kernels:
            if kernel is not self.kernel:
                text = text.replace(parts.source.text[slice(*kernel.body)], "")
        return text

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
        try:
            found = {self._in_c(getattr(launch, what) or "0", launch) for launch in self.launches}
        except HostOnly:
            return None
        if len(found) != 1:
            return None
        expression = found.pop()
        blocks = re.fullmatch(r"CAFFE_GET_BLOCKS\((\w+)\)", expression)
        for argument in self.maker.arguments if blocks else ():
            if argument.name == blocks[1]:
                self._as_count(argument)
        return expression

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
        """A launch's expression, by the launcher's variables. HostOnly if it names anything else."""
        maker = self.maker
        of_kernel = [a for a in maker.arguments if a.value]
        passed = {
            text: argument
            for text, argument in zip(launch.arguments, of_kernel, strict=True)
            if not argument.type.endswith("*") and argument.kernel_type in WHOLE
        }
        if (argument := passed.get(text)) is not None:
            return argument.name
        types = {
            text: maker.types[parameter]
            for text, (_, parameter, _) in zip(launch.template_arguments, maker.template, strict=False)
            if parameter in maker.types
        }
        # $0, $1, ...: arguments of the launch that are expressions, such as `input.numel()`
        given = sorted((a for a in passed if not re.fullmatch(r"\w+", a)), key=len, reverse=True)
        for i, expression in enumerate(given):
            text = text.replace(expression, f"${i}")
        text = CEIL_DIV.sub("THCCeilDiv", re.sub(r"\bcaffe::(?=CAFFE_GET_BLOCKS)", "", text))
        if OF_HOST.search(text):
            raise HostOnly(text)
        local = self._locals(launch)
        counts = re.match(r"CAFFE_GET_BLOCKS\b", text)

        def translated(match: re.Match) -> str:
            word = match[0]
            if word.startswith("$"):
                argument = passed[given[int(word[1:])]]
                long = argument.kernel_type == "int" and not counts
                return f"int64_t({argument.name})" if long else argument.name
            if word in types or (word == "Dtype" and maker.dispatch):
                return types.get(word, word)
            if word in EVERYWHERE:
                return word
            if (argument := passed.get(word)) is not None:
                return argument.name
            if word in self.constants and word not in local:
                return self.constants[word]
            raise HostOnly(word)

        return re.sub(r"\$\d+|\b[A-Za-z_]\w*(?!\s*')", translated, text)

    def _locals(self, launch: Launch) -> set[str]:
        """Possible variables of the launching function, which hide the file's constants."""
        source = self.maker.parts.source
        function = source.function_around(launch.start)
        text = source.text[function.at : launch.start] if function else ""
        declared = r"[\w>&*]\s+[&*]*(\w+)\s*[=({;,)\[]|,\s*[&*]*(\w+)\s*[=(]"
        return {word for found in re.findall(declared, text) for word in found}
