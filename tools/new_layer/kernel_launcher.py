"""A launcher: a C function that launches a kernel. This module writes its declaration and its definition."""

from __future__ import annotations

import math
import re
import textwrap
from dataclasses import dataclass, field

from ..cuda.analysis import Kernel
from .structs import SIZES

WIDTH = 110
CHECKED_INT = """
// The kernels count in int: a number that does not fit is an error, never a wrong index.
static int checked_int(int64_t number, const char* name) {
  if (number >= 0 && number <= INT32_MAX) return static_cast<int>(number);
  throw caffe::Error("%s: %lld does not fit the kernel's int", name, static_cast<long long>(number));
}
"""

# For a number whose type is that of a tensor of indices, or that has fewer bits in the host code.
CHECKED_AS = """
template <typename Index>
static Index checked_as(int64_t number, const char* name) {
  if (number == static_cast<Index>(number)) return static_cast<Index>(number);
  throw caffe::Error("%s: %lld does not fit %zu bits", name, static_cast<long long>(number), 8 * sizeof(Index));
}
"""

# For a number of a template's type, which may be one of whole numbers. From 2^53 on, a double stands for several.
CHECKED_NUMBER = """
template <typename Type>
static Type checked_number(double number, const char* name) {
  if (!std::is_integral<Type>::value) return static_cast<Type>(number);
  typedef std::numeric_limits<Type> Limits;
  const double most = Limits::digits < 53 ? static_cast<double>(Limits::max()) : 9007199254740991.;
  const double least = Limits::digits < 53 ? static_cast<double>(Limits::min()) : Limits::is_signed ? -most : 0;
  if (number >= least && number <= most && number == std::floor(number)) return static_cast<Type>(number);
  throw caffe::Error("%s: %f is no number of the tensors' type", name, number);
}
"""


class NoLauncher(Exception):
    """Why there can be no launcher for a kernel."""


@dataclass
class Argument:
    """One parameter of the C function, and the value that the kernel gets for it."""

    type: str  # in the header
    name: str
    value: str = ""  # a C++ expression; "" for a parameter of the launch, which the kernel does not get
    kernel_name: str = ""
    kernel_type: str = ""
    alignment: int = 1  # of a pointer to CUDA's vectors, in bytes
    element: str = ""  # the tensor's dtype, or `one of` several, if the C type does not tell it


@dataclass
class KernelLauncher:
    """One C function, its kernel, and what it passes to that."""

    name: str
    kernel: Kernel
    callee: str  # qualified: caffe::ReLUForward
    arguments: list[Argument]
    dispatch: bool  # over dtype
    # For each instance of the kernel: (condition on the C parameters, its template arguments).
    instances: list[tuple[str, str]]
    grid: str
    block: str
    shared: str
    notes: list[str] = field(default_factory=list)
    prologue: list[str] = field(default_factory=list)  # statements before the launch
    # The number of a tensor's elements, in C parameters, by tensor.
    extents: dict[str, str] = field(default_factory=dict)
    symbols: list[str] = field(default_factory=list)  # the variables that it fills before the launch
    # The tensors of an index type, by its C++ name.
    indices: dict[str, list[str]] = field(default_factory=dict)
    # The types that it dispatches over, by their codes, if they are not float and double.
    dtypes: dict[str, str] = field(default_factory=dict)
    cooperative: bool = False  # its blocks wait for each other
    line: int = 0  # of the user's file, which a failed launch names
    geometry: list[str] = field(default_factory=list)  # the parameters that are its grid and its block

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """(type, name) of each C parameter."""
        dtype = [("int", "dtype")] if self.dispatch else []
        dtype += [("int", f"{tensors[0]}_dtype") for tensors in self.indices.values()]
        return [*((a.type, a.name) for a in self.arguments), *dtype, ("void *", "stream")]

    @property
    def python_parameters(self) -> list[str]:
        """The parameters that Python passes. The runtime adds the others."""
        return [a.name for a in self.arguments]

    def declaration(self) -> str:
        """The C declaration, with the comments from which build_ffi.py reads the tensors' sizes and alignments."""
        parameters = [f"{t}{n}" if t.endswith("*") else f"{t} {n}" for t, n in self.parameters]
        by_size = {size: [n for n, s in self.extents.items() if s == size] for size in self.extents.values()}
        comments = [f"// {', '.join(names)}: [{size}]\n" for size, names in by_size.items()]
        comments += [
            f"// {a.name}: aligned to {a.alignment} bytes\n" for a in self.arguments if a.alignment > 1
        ]
        comments += [f"// {a.name}: {a.element}\n" for a in self.arguments if a.element]
        comments += [f"// {', '.join(tensors)}: int32 or int64\n" for tensors in self.indices.values()]
        comments += [f"// {', '.join(self.geometry)}: of the launch\n"] * bool(self.geometry)
        sizes = {"grid": _sizes(self.grid), "block": _sizes(self.block), "shared_bytes": _bytes(self.shared)}
        comments += [f"// {what}: {own} by the file's launch\n" for what, own in sizes.items() if own]
        return "".join(comments) + filled(f"int {self.name}(", parameters, ");")

    def definition(self) -> str:
        parameters = [f"{t.replace(' *', '*')} {n}" for t, n in self.parameters]
        lines = [f"// {note}" for note in self.notes]
        lines.append(filled(f'extern "C" int {self.name}(', parameters, ") {"))
        around = [
            f"CAFFE_DISPATCH_INDEX({tensors[0]}_dtype, {alias}" for alias, tensors in self.indices.items()
        ]
        over_dtype = self.dispatch and not self.dtypes
        around = ["CAFFE_DISPATCH_FLOAT_DOUBLE(dtype, Dtype"] * over_dtype + around
        indent = "  " * (1 + len(around))
        body = []
        for i, (condition, template_arguments) in enumerate(self.instances):
            callee = f"{self.callee}<{template_arguments}>" if template_arguments else self.callee
            geometry = [self.grid, self.block, self.shared, "CAFFE_STREAM(stream)"]
            values = [a.value for a in self.arguments if a.value]
            call = [
                filled(f"{callee}<<<", geometry, ">>>(", indent),
                filled("    ", values, ");", indent),
            ]
            if self.cooperative:
                opening = f"::cuffi::launch_cooperative({callee}, "
                call = [filled(opening, [*geometry, *values], ");", indent)]
            if condition:
                body.append(f"{indent}{'} else ' if i else ''}if ({condition}) {{")
                body += ["  " + line for part in call for line in part.split("\n")]
            else:
                body += call
        if self.instances[0][0]:
            known = " or ".join(condition for condition, _ in self.instances)
            body += [
                f"{indent}}} else {{",
                f'{indent}  throw caffe::Error("compiled for {known} only");',
                f"{indent}}}",
            ]
        for depth, dispatch in reversed([*enumerate(around, 1)]):
            body = ["  " * depth + dispatch + ", {", *body, "  " * depth + "});"]
        if self.dispatch and self.dtypes:
            cases = []
            for code, kind in self.dtypes.items():
                cases += [f"    case {code}: {{", f"      using Dtype = {kind};"]
                cases += [*("    " + line for line in body), "    } break;"]
            known = " or ".join(code.removeprefix("CAFFE_").lower() for code in self.dtypes)
            body = ["  switch (dtype) {", *cases, f'    CAFFE_DISPATCH_OTHERWISE_(dtype, "{known}");', "  }"]
        status = f"cuffi::launch_status(__FILE__, {self.line})" if self.line else "CAFFE_LAUNCH_STATUS()"
        return "\n".join([*lines, *self.prologue, *body, f"  return {status};", "}"])


def _sizes(geometry: str) -> str:
    """ "16, 16" of `dim3(16, 16)`; "" of what is no number."""
    match = re.fullmatch(r"(?:dim3\()?(\d+(?:, \d+){0,2})\)?", geometry)
    return match[1] if match else ""


def _bytes(shared: str) -> str:
    """ "256" of `64 * sizeof(float)`; "" of 0, and of what is no product of numbers."""
    text = re.sub(r"sizeof\((\w+)\)", lambda match: str(SIZES.get(match[1], match[0])), shared)
    factors = text.split(" * ")
    return str(math.prod(map(int, factors))) if shared != "0" and all(map(str.isdecimal, factors)) else ""


def definitions(launchers: list[KernelLauncher]) -> list[str]:
    """The definitions of the launchers, and of the functions that some of them call."""
    texts = [launcher.definition() for launcher in launchers]
    called = [("checked_int(", CHECKED_INT), ("checked_as<", CHECKED_AS), ("checked_number<", CHECKED_NUMBER)]
    return [own.strip("\n") for name, own in called if any(name in text for text in texts)] + texts


def filled(opening: str, items: list[str], closing: str, indent: str = "") -> str:
    """opening + items + closing, over several lines if necessary."""
    opening = indent + opening
    if not items:
        return opening + closing
    aligned = opening.strip() and len(opening) < 70
    hang = " " * len(opening) if aligned else indent + "    "
    lines, line = [], opening
    for i, item in enumerate(items):
        piece = item + (closing if i + 1 == len(items) else ",")
        if len(line) + len(piece) + 1 > WIDTH and line.strip() and line != opening:
            lines.append(line)
            line = hang
        line += piece if line in (opening, hang) or not line.strip() else " " + piece
    return "\n".join([*lines, line])


def wrapped(text: str) -> list[str]:
    """Comment lines."""
    return textwrap.wrap(text, WIDTH - 3, subsequent_indent="    ", break_long_words=False)
