"""Write declarations and launchers for load_inline's string.

    python -m tools.new_layer.inline folder/foo.cu

reads foo.cu, and the file `instances` beside it if there is one, and writes foo.h beside it. If the file exports
functions, foo.h declares them. If it has only kernels, a launcher for each is added at the end of foo.cu. The file
left_out beside it has a line for each kernel that gets none. A declaration has the line number of its definition, so
that errors in both name the same line. Of the comment above a definition it has the lines that build_ffi.py reads:
`// bias may be NULL`, `// top: [count]`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from pathlib import Path

from ..cuda.analysis import Unit
from ..cuda.names import BLOCK, THREAD
from ..cuda.outline import Function
from ..cuda.source import Source
from ..cuda.tokens import mask
from ..files import read, write
from .from_kernels import make_launchers
from .kernel_file import kernels_of
from .kernel_launcher import KernelLauncher, definitions

# Words that a definition may have, and a C declaration may not.
NOT_IN_C = re.compile(r"\b(__restrict__|__restrict|__host__|noexcept)\b|__attribute__\s*\(\(.*?\)\)")


# Where the launchers begin that are added to a file.
MADE = "// Made by load_inline: a launcher for each kernel."
# In a comment: what build_ffi.py reads.
SAYS = re.compile(r"\bNULL\b|:\s*\[|\baligned to\b")
# Headers and macros of torch extensions, which are refused.
OF_TORCH = re.compile(r"(torch|ATen|c10|pybind11|THC?)/|(PYBIND11_MODULE|TORCH_LIBRARY)\Z")


# Words of C++ that somebody might give a kernel as its name.
WORDS = {
    "and", "auto", "class", "const", "default", "delete", "double", "export", "extern", "float", "friend", "inline",
    "int", "mutable", "new", "not", "operator", "or", "private", "public", "register", "short", "signed", "static",
    "struct", "switch", "template", "this", "try", "union", "virtual", "xor",
}  # fmt: skip


class NothingExported(Exception):
    """The file has nothing that Python can call. The text is the message.

    Attributes:
        line: the line of the source; 0 for none.
    """

    def __init__(self, why: str, line: int = 0):
        super().__init__(why)
        self.line = line


def _forgotten(source: Source) -> Function | None:
    """A function that reads a thread's index, and says nowhere that it runs on a GPU."""
    for function in source.functions:
        on_gpu = function.member or function.words & {"__device__", "__global__"}
        words = (t.text for t in source.lexed.tokens if function.body <= t.start < function.end)
        if not on_gpu and not {THREAD, BLOCK}.isdisjoint(words):
            return function
    return None


def exported(source: Source) -> list[tuple[int, str]]:
    """(line, declaration) of each function that is defined as `extern "C"`."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    at = {token.start: index for index, token in enumerate(tokens)}
    blocks = [
        (tokens[i].start, tokens[partner[i + 2]].end)
        for i, token in enumerate(tokens[:-2])
        if token.text == "extern" and _is_c(tokens[i + 1]) and tokens[i + 2].text == "{" and i + 2 in partner
    ]
    found = []
    for function in source.functions:
        head = at[function.head]
        single = tokens[head].text == "extern" and _is_c(tokens[head + 1])
        within = any(start < function.head < end for start, end in blocks)
        # A compiler drops inline functions that nobody calls.
        unseen = function.is_device_only or function.words & {"static", "inline"}
        if (single or within) and not unseen:
            found += [*said_above(source, function), _declaration(source, function, head + 2 * single)]
    return found


# A launch, or a call.
CALLS = re.compile(r"<<<|\b(?!(?:if|for|while|switch|return|sizeof)\b)[A-Za-z_]\w*\s*\(")
# What a C function of a layer may return, and the words of its parameters' types.
NAME = re.compile(r"\w+(?=\()")
STATUS = re.compile(r"(const )?(int|int64_t) \w+\(")
OF_C = re.compile(
    r"(const|void|_?bool|char|short|int|long|float|double|unsigned|signed|struct|size_t|ssize_t|u?intptr_t|ptrdiff_t"
    r"|u?int(8|16|32|64)_t|[Cc]affe\w*)\Z",
    re.I,
)


def _name_in(declaration: str) -> str:
    """The name of the function that it declares."""
    found = NAME.search(declaration)
    return found[0] if found else ""


def why_not_exported(declaration: str, numbers: Collection[str] = ()) -> str:
    """Why Python cannot call a function that is `extern "C"`, in words; "" if it can.

    Args:
        numbers: the functions that call nothing. `int iDivUp(int a, int b)` returns a number, and no status.
    """
    if not STATUS.match(declaration):
        return "does not return int, a status"
    parameters = declaration[declaration.index("(") + 1 : declaration.rindex(")")]
    if _name_in(declaration) in numbers and not re.search(r"[*\[]", parameters):
        return "takes no tensor and launches nothing"
    for parameter in parameters.split(","):
        *words, _ = re.findall(r"\w+", parameter) or [""]
        if found := next((word for word in words if not OF_C.match(word)), ""):
            return f"takes a {found}, which C does not know"
    return ""


def said_above(source: Source, function: Function) -> list[tuple[int, str]]:
    """(line, text) of the lines of the comment above a function that describe its pointers."""
    above = source.text[: function.head].split("\n")
    found, number = [], len(above) - 1
    while number and above[number - 1].lstrip().startswith("//"):
        if SAYS.search(above[number - 1]):
            found.insert(0, (number, above[number - 1].strip()))
        number -= 1
    return found


def _is_c(token) -> bool:
    return token.kind == "string" and token.text == '"C"'


def _declaration(source: Source, function: Function, first: int) -> tuple[int, str]:
    """A function's C declaration, on one line."""
    tokens = [t for t in source.lexed.tokens[first:] if t.start < function.body]
    text = NOT_IN_C.sub(" ", mask(tokens, tokens[0].start, function.body))
    return source.text.count("\n", 0, function.at) + 1, " ".join(text.split()) + ";"


def header_of(declarations: list[tuple[int, str]]) -> str:
    """A header with each declaration on the line of its definition."""
    lines: list[str] = []
    for line, text in sorted(declarations):
        lines += [""] * (line - len(lines))
        lines[line - 1] = f"{lines[line - 1]} {text}".strip()
    return "\n".join(lines) + "\n"


def completed(
    name: str,
    text: str,
    path: str,
    instances=None,
    macros=(),
    others=(),
    made: list[KernelLauncher] | None = None,
    launched_only: bool = False,
) -> tuple[str, str, list[str]]:
    """(the header, the source with added launchers, lines about what Python cannot call).

    Args:
        instances: by kernel, lists of the template arguments that the caller gives.
        macros: names of macros that the caller defines.
        others: files that are linked with it.
        made: gets the launchers.
        launched_only: a template is compiled for the types of its launches alone.
    """
    source = Source(text, path)
    words = (*source.includes(angles=True), *(token.text for token in source.lexed.tokens))
    if found := next(filter(OF_TORCH.match, words), None):
        raise NothingExported(
            f"{found}: there are no torch headers here. Remove it, and the functions with torch::Tensor: "
            "each kernel gets a launcher"
        )
    declarations = exported(source)
    functions = [text for _, text in declarations if not text.startswith("//")]
    unfit = _unfit(source, functions)
    has_kernels = any(function.is_kernel for function in source.functions)
    # With a function that is unfit, a file with kernels is a list of these: its functions are not made for Python.
    if declarations and not (has_kernels and unfit):
        return header_of(declarations), text, []
    file = kernels_of(text, path, instances, macros, others)
    file.launched_only = launched_only
    source = file.source
    if unknown := sorted((instances or {}).keys() - {f.name for f in source.functions if f.is_kernel}):
        raise NothingExported(f"instances: it has no kernel {', '.join(unknown)}")
    for function in source.functions:
        if function.is_kernel and function.name in WORDS:
            why = f"{function.name} is a word of C++: give the kernel another name"
            raise NothingExported(why, source.lexed.position(function.at)[0])
    launchers, left_out = make_launchers(name, file)
    if not (launchers or left_out) and source.lexed.imbalances:
        at = source.lexed.imbalances[0].start
        raise NothingExported(f"this `{source.text[at]}` has no partner", source.lexed.position(at)[0])
    without = [f"a kernel without a launcher: {kernel} {reason}" for kernel, reason in left_out]
    without += _not_called(functions, unfit) + _of_host(source)
    if not launchers:
        raise _without_launchers(source, left_out, has_kernels)
    if made is not None:
        made += launchers
    constants = "\n".join(file.constants_elsewhere)
    if constants:  # if it compiles the file alone, nvcc takes an extern __constant__ for the definition
        constants = f"#if defined(CAFFE_HOST_BACKEND) || defined(__CUDACC_RDC__)\n{constants}\n#endif"
    filled = {name for launcher in launchers for name in launcher.symbols}
    constants += "\n".join(["", *(text for name, text in file.of_others.items() if name in filled)])
    added = "\n\n".join(["", MADE, *filter(None, [constants.strip()]), *definitions(launchers)]) + "\n"
    heads = {function.name: function for function in source.functions if function.is_kernel}
    said = {name: "".join(f"{line}\n" for _, line in said_above(source, f)) for name, f in heads.items()}
    header = "".join(f"{said[launcher.kernel.name]}{launcher.declaration()}\n" for launcher in launchers)
    return header, text.rstrip("\n") + "\n" + added, without


def _without_launchers(source: Source, left_out: list, has_kernels: bool) -> NothingExported:
    """Why a file has nothing that Python could call."""
    given = "load_inline(..., macros={...}) has what its makefile defines"
    if not has_kernels and (one := _forgotten(source)):
        why = f"{one.name} reads a thread's index, and is no kernel: write __global__ before it"
        return NothingExported(why, source.lexed.position(one.at)[0])
    hidden = f"; its #if leave out every kernel: {given}" if has_kernels else ""
    why = "; ".join(f"{kernel} {reason}" for kernel, reason in left_out)
    return NothingExported(
        f"no launcher could be made for its kernels: {why}" if why else
        'it has neither a function that is `extern "C"` nor a kernel (`__global__`)' + hidden
    )  # fmt: skip


def _unfit(source: Source, functions: list[str]) -> dict[str, str]:
    """Why Python cannot call some of these functions, by their declarations."""
    numbers = {
        f.name for f in source.functions if f.parameters and not re.search(CALLS, source.text[f.body : f.end])
    }
    unfit = {head: why for head in functions if (why := why_not_exported(head, numbers))}
    # A tensor says where a call runs. If no function takes one, the kernels are what Python can call.
    if any(map(_takes_tensor, functions)):
        return unfit
    return dict.fromkeys(functions, "takes no tensor, which would say where it runs") | unfit


def _takes_tensor(declaration: str) -> bool:
    """Has a C function a pointer beside `void* stream`?"""
    parameters = declaration[declaration.index("(") + 1 : declaration.rindex(")")].split(",")
    return any(
        ("*" in text or "[" in text) and text.split()[-1].lstrip("*") != "stream" for text in parameters
    )


def _not_called(functions: list[str], unfit: dict[str, str]) -> list[str]:
    """A line for each function of a file whose kernels get launchers: one that is unfit leaves out all."""
    said = [f"{_name_in(head)} is not called from Python: it {why}" for head, why in unfit.items()]
    first = next(map(_name_in, unfit), "")
    others = [_name_in(head) for head in functions if head not in unfit]
    return said + [f"{name} is not called from Python: {first}, beside it, cannot be" for name in others]


# Names of std that no GPU has, whatever nvcc's options are, by what a kernel has in their place.
_IN_A_KERNEL = {
    "cub::BlockRadixSort in a block, or thrust::sort before the launch": "nth_element partial_sort sort stable_sort",
    "an array of constant size, or memory that the caller gives": (
        "deque list map set string unordered_map unordered_set vector"
    ),
    "printf": "cerr cout ofstream to_string",
    "an atomic that compares and swaps": "mutex",
    "the launch's own threads": "thread",
}
OF_HOST = {name: instead for instead, names in _IN_A_KERNEL.items() for name in names.split()}


def _of_host(source: Source) -> list[str]:
    """A line for each kernel that uses such a name: it runs on the processor, and nvcc refuses it."""
    said, tokens = [], source.lexed.tokens
    for function in source.functions:
        if function.is_kernel:
            texts = [t.text for t in tokens if function.body <= t.start < function.end]
            used = [
                c for a, b, c in zip(texts, texts[1:], texts[2:], strict=False) if (a, b) == ("std", "::")
            ]
            if names := [name for name in dict.fromkeys(used) if name in OF_HOST]:
                line = source.lexed.position(function.at)[0]
                said.append(
                    f"line {line}: {function.name} runs here, and no GPU has std::{', std::'.join(names)}: nvcc "
                    f"refuses it. Use {'; '.join(dict.fromkeys(OF_HOST[name] for name in names))}"
                )
    return said


# A file of this name beside it: the source does not compile for a type that it does not launch.
LAUNCHED_ONLY = "launched_only"


def given_instances(file: Path) -> dict[str, list[list[str]]]:
    """What the caller of load_inline gave: a line `kernel: float, 16` for each instance."""
    found: dict[str, list[list[str]]] = {}
    listed = file.with_name("instances")
    for line in read(str(listed)).splitlines() if listed.exists() else ():
        kernel, _, arguments = line.partition(": ")
        found.setdefault(kernel, []).append([argument.strip() for argument in arguments.split(",")])
    return found


def given_macros(file: Path) -> list[str]:
    """The names of the macros in the prologue beside the file."""
    prologue = file.with_name("prologue.h")
    return re.findall(r"(?m)^#define (\w+)", read(str(prologue))) if prologue.exists() else []


def complete(path: str) -> list[KernelLauncher]:
    """Write the declarations, and the launchers, which are returned. The file exports functions if there are none."""
    file, made = Path(path), []
    others = [Unit(read(str(other)), str(other)) for other in file.parent.glob("*.cu") if other != file]
    given = given_instances(file), given_macros(file), others
    launched_only = file.with_name(LAUNCHED_ONLY).exists()
    header, text, without = completed(file.stem, read(path), path, *given, made, launched_only)
    write(str(file.with_suffix(".h")), header)
    write(str(file.with_name("left_out")), "".join(f"{line}\n" for line in without))
    write(path, text, if_changed=True)
    return made


def error_at(path: str, why: NothingExported) -> str:
    """The error as a compiler would say it."""
    return f"{path}:{why.line}: error: {why}" if why.line else f"{path}: error: {why}"


def main(path: str) -> int:
    try:
        complete(path)
    except NothingExported as why:
        print(error_at(path, why), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
