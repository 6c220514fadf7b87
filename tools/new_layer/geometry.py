"""Grid, block and shared memory of a launcher: from the kernel's loop, or from the expressions of its launches."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from ..cuda.analysis import Kernel
from ..cuda.launches import Launch
from ..cuda.names import BLOCK, GRID, THREAD, WIDTH
from ..cuda.tokens import LOOP
from .host_code import WHOLE_WORDS, HostCode, HostOnly, Translation, cast, without_blanks
from .instances import Template
from .kernel_file import KernelFile
from .kernel_launcher import Argument
from .launcher_arguments import Arguments

# Types that a count may have.
WHOLE = {"unsigned int", "long long", *WHOLE_WORDS} - {"short"}
# The types of a launcher's whole numbers, by those of host code.
C_NUMBERS = {
    **dict.fromkeys(("int", "int32_t"), "int"),
    **dict.fromkeys(("unsigned", "unsigned int", "uint32_t"), "uint32_t"),
    **dict.fromkeys(("long", "long long", "int64_t"), "int64_t"),
    **dict.fromkeys(("size_t", "unsigned long", "uint64_t"), "uint64_t"),
}
# A kernel's words for the second and third dimension of grid and block.
FURTHER = {
    "grid": re.compile(rf"\b({BLOCK}|{GRID})\s*\.\s*[yz]\b|\bCUDA_2D_KERNEL_LOOP\b"),
    "block": re.compile(rf"\b({THREAD}|{WIDTH})\s*\.\s*[yz]\b|\bCUDA_2D_KERNEL_LOOP\b"),
}


class Geometry:
    """The geometry of one kernel's launcher. Values that only the caller knows become its parameters."""

    def __init__(self, file: KernelFile, kernel: Kernel, template: Template, arguments: Arguments):
        self.file, self.kernel, self.template, self.arguments = file, kernel, template, arguments
        self.launches, self.constants = template.launches, file.constants
        self.prologue: list[str] = []  # statements before the launch
        self.asked: list[str] = []  # the parameters that are the grid's and the block's

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
        grid = self._translated("grid") or self._passed_by_the_caller("grid")
        return grid, self._translated("block") or self._passed_by_the_caller("block")

    def _passed_by_the_caller(self, what: str) -> str:
        """The grid or the block as a parameter."""
        why = "The host code computes it" if self.launches else "The file never launches it"
        self.arguments.notes.append(f"{why}, so the caller passes the {what}.")
        is_line = self.launches and not FURTHER[what].search(self._other_code())
        asked = [what] if is_line else [f"{what}_{axis}" for axis in "xyz"]
        names = [self.arguments.add_parameter("int", name).name for name in asked]
        self.asked += names
        return names[0] if is_line else f"dim3({', '.join(names)})"

    def _other_code(self) -> str:
        """The code without the other kernels."""
        file = self.file
        text, own = file.text, file.source.text[slice(*self.kernel.body)]
        for kernel, *_ in file.kernels:
            text = text.replace(file.source.text[slice(*kernel.body)], "")
        return text + own

    def _shared(self) -> str:
        if self.launches and not any(launch.shmem for launch in self.launches):
            return "0"
        # The size of a launch for float is half of what double may need.
        found = None if self.template.serves_more else self._translated("shmem")
        if found:
            return found
        if not self.launches and not self.kernel.dynamic_shared:
            return "0"
        return self.arguments.add_parameter("int", "shared_bytes").name

    def _translated(self, what: str) -> str | None:
        """A part of the launches in the launcher's variables, if that is possible and the same for all."""
        try:
            found = {self._in_c(getattr(launch, what) or "0", launch, what) for launch in self.launches}
        except HostOnly:
            return None
        if len(found) != 1:
            return None
        expression = found.pop()
        blocks = re.fullmatch(r"CAFFE_GET_BLOCKS\((\w+)\)", expression)
        if blocks:
            for argument in self.arguments.all:
                if argument.name == blocks[1]:
                    self._as_count(argument)
        return expression

    # ---------------------------------------------------------------------------------- counts

    def _loop_bounds(self) -> set[str]:
        """The ends of the kernel's own loops."""
        source = self.file.source
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
            name = self.arguments.named("count")
            self.prologue.append(f'  const int {name} = checked_int({product}, "{bound}");')
            return name
        return self._as_count(factors[0])

    def factors(self, product: str) -> list[Argument]:
        """The whole numbers of a product `a * b` of the kernel's parameters; none for anything else."""
        known = [self._parameter(word) for word in product.split(" * ")]
        factors = [f for f in known if f is not None and f.kernel_type in WHOLE]
        return factors if len(factors) == len(known) else []

    def _as_count(self, argument: Argument) -> str:
        """A count as int64_t, as in all of the toolkit's C functions. It is checked if the kernel takes an int."""
        if argument.kernel_type == "int" and argument.type != "int64_t":
            argument.type = "int64_t"
            argument.value = f'checked_int({argument.name}, "{argument.name}")'
        return argument.name

    def _parameter(self, kernel_name: str) -> Argument | None:
        return next((a for a in self.arguments.all if a.kernel_name == kernel_name and a.value), None)

    # ----------------------------------------------------------------------------- expressions

    def _in_c(self, text: str, launch: Launch, what: str) -> str:
        """A launch's expression, by the launcher's variables. HostOnly if they do not determine it.

        So is a grid that is computed from a constant which the kernel gets, too: `int n = 1000; k<<<(n + 255) / 256,
        256>>>(x, n)`. For another n it would be too small, and the rest of x would stay as it is, or too large. A block
        of a file's constant stays: kernels are written for it.
        """
        template = self.template
        given: dict[str, Callable | None] = {}
        for passed, argument in zip(
            launch.arguments, [a for a in self.arguments.all if a.value], strict=True
        ):
            if not argument.type.endswith("*") and argument.kernel_type in WHOLE:
                passed = without_blanks(passed)
                given[passed] = None if passed in given else partial(self._number, argument)
        types = {
            text: template.types[parameter]
            for text, (_, parameter, _) in zip(launch.template_arguments, template.parameters, strict=False)
            if parameter in template.types
        }
        types |= self._chosen(launch)
        if template.dispatch:
            types.setdefault("Dtype", "Dtype")
        code = HostCode(self.file.source, launch, self.file.text)
        translation = Translation(code, given, self.constants, types)
        written = translation.of(text)
        passed = set(re.findall(r"[A-Za-z_]\w*", " ".join(launch.arguments)))
        constant = {"grid": translation.names, "block": translation.variables}.get(what, set())
        if constant & passed:
            raise HostOnly(text)
        return written

    def _chosen(self, launch: Launch) -> dict[str, str]:
        """The launcher's values of the template parameters that the host code names in this launch."""
        found, template = {}, self.template
        names = [name for _, name, _ in template.parameters]
        for text, name in zip(launch.template_arguments, names, strict=False):
            values = set(template.choices.get(name, ()))
            if (
                re.fullmatch(r"[A-Za-z_]\w*", text)
                and text not in self.constants
                and text not in ("true", "false")
            ):
                found |= {text: template.chosen[name]} if values else {}
                continue
            # A kernel that is made for other values, too, may need another launch for them.
            place = names.index(name)
            launched = {
                x.template_arguments[place] for x in self.launches if len(x.template_arguments) > place
            }
            known = {self.constants.get(x, x) for x in launched}
            if values - known - {"true", "false"}:
                raise HostOnly(text)
        return found

    def _number(self, argument: Argument, kind: str) -> str:
        """An argument as the host code's type `kind`; "" for any type."""
        kind = self.file.aliases.get(kind, kind)
        if not kind or C_NUMBERS.get(kind) == argument.type:
            return argument.name
        if kind not in WHOLE:
            raise HostOnly(kind)
        if C_NUMBERS.get(argument.kernel_type, "")[-4:] == "64_t" != C_NUMBERS.get(kind, "")[-4:]:
            return f'checked_as<{kind}>({argument.name}, "{argument.name}")'
        return cast(kind, argument.name)
