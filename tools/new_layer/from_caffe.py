"""Write the four files of a native layer from a Caffe layer's .cu."""

from __future__ import annotations

import keyword
import os
import re
from pathlib import Path

from ..cuda.branches import NEWEST
from ..cuda.conditions import compared_arch
from ..cuda.lexer import Lexed
from ..files import read
from .caffe_file import TORCH_FUNCTIONS, Parts, split
from .from_kernels import make_launchers
from .kernel_launcher import WIDTH, KernelLauncher, definitions
from .naming import snake_case, unique, without_layer

# Names that no function of the new module may have.
MODULE_NAMES = {"layer", "operator", "torch", "not_filled_in", *keyword.kwlist}


class NoKernels(Exception):
    """The file has no kernel that can be launched."""


def layer_files(name: str, class_name: str, path: Path, fill) -> tuple[dict[str, str], list[str]]:
    """(the files by name, notes for the user). `fill` fills in a template."""
    parts = split(read(str(path)), str(path))
    if not parts.kernels and not parts.left_out:
        raise NoKernels("it has no kernels")
    launchers, left_out = make_launchers(name, parts)
    if not launchers:
        reasons = "; ".join(f"{kernel} {why}" for kernel, why in left_out)
        raise NoKernels(f"none of its kernels can be called from C: {reasons}")
    dtypes = dtypes_of(launchers)
    values = dict(
        name=name,
        Name=class_name,
        file=os.fsencode(path.name).decode("latin-1"),
        dtypes=", ".join(f"torch.{dtype}" for dtype in dtypes) + "," * (len(dtypes) == 1),
        of_dtypes=" or ".join(dtypes),
    )
    calling = callers(parts, path)
    functions = python_functions(name, launchers)
    used = {launcher.name for group in functions.values() for launcher in group}
    files = {
        f"{name}.h": fill("caffe/layer.h.in", **values, declarations=declarations(launchers)),
        f"{name}.cu": cuda_text(parts, launchers, [*map(missing, left_out)], calling, values, fill),
        "__init__.py": fill(
            "caffe/init.py.in",
            **values,
            further=further([x for x in launchers if x.name not in used]),
            functions="".join(python_function(f, group, values, fill) for f, group in functions.items()),
        ),
        "cases.py": fill(
            "caffe/cases.py.in",
            **values,
            imports=imported([*functions, "layer"]),
            cases="".join(fill("caffe/case.py.in", function=f) for f in functions).rstrip("\n"),
        ),
    }
    notes = [f"Launchers made: {len(launchers)}, for the kernels of {path.name}."]
    notes += [*filled_in(launchers), *map(missing, left_out), *calling, *false_on_the_host(parts)]
    return {file: text.rstrip("\n") + "\n" for file, text in files.items()}, notes


def dtypes_of(launchers: list[KernelLauncher]) -> list[str]:
    """The floating types that the kernels compute in."""
    pointers = {x.type.split()[-2] for launcher in launchers for x in launcher.arguments if "*" in x.type}
    written = [dtype for c, dtype in (("float", "float32"), ("double", "float64")) if c in pointers]
    return ["float32", "float64"] if any(x.dispatch for x in launchers) or not written else written


# ------------------------------------------------------------------------------------------ C and CUDA


def declarations(launchers: list[KernelLauncher]) -> str:
    return "".join(f"\n// {x.kernel.name}\n{x.declaration()}\n" for x in launchers)


def missing(left_out: tuple[str, str]) -> str:
    return f"No launcher for {left_out[0]}: it {left_out[1]}."


def filled_in(launchers: list[KernelLauncher]) -> list[str]:
    """A note on the variables of the GPU that the host code fills."""
    names = sorted({name for launcher in launchers for name in launcher.symbols})
    parameters = ", ".join(f"{name}_values" for name in names)
    return [f"The host code fills {', '.join(names)}: pass the values, as {parameters}."] if names else []


def callers(parts: Parts, path: Path) -> list[str]:
    """A note on the files beside an extension's .cu, or a folder up, that call the functions around its launches."""
    around = [parts.source.function_around(launch.start) for launch in parts.source.launches]
    names = {f.name for f in around if f is not None and not (f.member or f.scope)}
    if not names:
        return []
    called = re.compile(rf"\b({'|'.join(names)})\b")
    places = sorted(
        x for folder in (path.parent, path.parent.parent) for x in folder.glob("*.c*") if x.is_file()
    )
    found = [x for x in places if x.suffix in (".c", ".cc", ".cpp") and called.search(read(str(x)))]
    files = ", ".join(os.path.relpath(x, path.parent) for x in found)
    return [f"These files call its host code, and check the sizes: {files}."] if files else []


def false_on_the_host(parts: Parts) -> list[str]:
    """A note on conditions that choose other code for the processor than for a new GPU, perhaps code for old GPUs."""
    lexed = Lexed(parts.device)
    older = [c for c in lexed.conditions if c.start in lexed.choices and lexed.choices[c.start].arch < NEWEST]
    false = [c for c in older if compared_arch(c) and lexed.value(c) == 0]
    conditions = dict.fromkeys(" ".join([c.word, *(t.text for t in c.tokens)]) for c in false)
    return [f"On the processor this is false: #{condition}. Look at its #else." for condition in conditions]


def cuda_text(parts: Parts, launchers, left_out, calling, values, fill) -> str:
    includes = '#include "caffe_cuda_macro.h"'
    kept = {*parts.kept_includes, *of_torch(parts, launchers)}
    if kept:
        includes += "\n\n" + "\n".join(f"#include {name}" for name in sorted(kept))
    if parts.dropped_includes:
        includes += "\n\n// It also included, for its host code:\n"
        includes += "\n".join(f"//   {name}" for name in parts.dropped_includes)
    text = fill(
        "caffe/layer.cu.in",
        **values,
        heading=parts.heading,
        includes=includes,
        device=parts.device,
        launchers="\n" + "\n\n".join([*definitions(launchers), *(f"// {note}" for note in left_out)]),
        host="\n".join(commented(line) for line in "\n\n".join([*calling, parts.host]).split("\n")),
    )
    return text.lstrip("\n")


def of_torch(parts: Parts, launchers) -> list[str]:
    """The headers of the functions of torch that the code uses."""
    text = "\n".join([parts.device, *definitions(launchers)])
    return [header for name, header in TORCH_FUNCTIONS.items() if re.search(rf"\b{name}\b", text)]


def commented(line: str) -> str:
    """A line as a comment. A backslash at its end must not continue the comment."""
    return f"// {line.rstrip()}{' //' if line.rstrip().endswith(chr(92)) else ''}".rstrip()


# --------------------------------------------------------------------------------------------- Python


def stem(layer: str, launcher: KernelLauncher, direction: str) -> str | None:
    """A kernel's name without forward (or backward) and the layer's name; None if it does not have that word."""
    words = without_layer(layer, snake_case(launcher.kernel.name)).split("_")
    joined = "_".join(words)
    if direction not in joined:
        return None
    rest = "_".join(w for w in joined.replace(direction, "_").split("_") if w not in ("", "kernel", "gpu"))
    return rest if not re.match(r"\d", rest) else "_" + rest


def python_functions(layer: str, launchers: list[KernelLauncher]) -> dict[str, list[KernelLauncher]]:
    """The Python functions to write: one for each forward kernel; one for all kernels if none is called forward."""
    functions: dict[str, list[KernelLauncher]] = {}
    forward = [(stem(layer, x, "forward"), x) for x in launchers]
    forward = [(rest, x) for rest, x in forward if rest is not None]
    backward = [(stem(layer, x, "backward"), x) for x in launchers]
    if not forward:
        return {layer: launchers}
    for rest, launcher in forward:
        # One word is too short a name: forward_train of layer relu becomes relu_train.
        name = rest if rest.count("_") else f"{layer}_{rest}" if rest else layer
        name = unique(name, set(functions) | MODULE_NAMES)
        functions[name] = [launcher, *(x for other, x in backward if other == rest)]
    return functions


def listed(launchers: list[KernelLauncher], indent: str) -> str:
    """Example calls of the launchers, one per line; long ones take several lines."""
    lines = []
    for launcher in launchers:
        line = f"{indent}layer.{launcher.name}("
        for i, name in enumerate(launcher.python_parameters):
            piece = name + (")" if i + 1 == len(launcher.python_parameters) else ",")
            if len(line) + len(piece) + 1 > WIDTH:
                lines.append(line.rstrip())
                line = indent + "    "
            line += piece + " "
        lines.append(line.rstrip())
    return "\n".join(lines)


def further(launchers: list[KernelLauncher]) -> str:
    """A list of the launchers that no function's docstring has."""
    return f"\nFurther launchers:\n{listed(launchers, '    ')}\n" if launchers else ""


def imported(names: list[str]) -> str:
    """The names of an import line, formatted as ruff does."""
    line = ", ".join(sorted(names))
    if len(line) + len("from . import ") <= WIDTH:
        return line
    return "(\n" + "".join(f"    {name},\n" for name in sorted(names)) + ")"


def python_function(function: str, launchers: list[KernelLauncher], values, fill) -> str:
    return fill(
        "caffe/function.py.in",
        **values,
        function=function,
        kernel=launchers[0].kernel.name,
        launchers=listed(launchers, "        "),
        example=launchers[0].name,
    )
