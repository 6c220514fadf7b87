"""Prepare load_inline's string for NVRTC, which compiles kernels alone, without a C++ compiler.

    launchers = complete("folder/foo.cu")
    prepared = prepare("folder/foo.cu", launchers)

The first adds launchers, as inline.py does. The second rewrites loops, as for_nvcc.py does, and leaves host code out.
Each launcher becomes a kernel that computes its launch (include/caffe_device_launch.h), in place of the launch itself.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from ..cuda.for_nvcc import NvccRewriter
from ..cuda.rewrite import rewrite
from ..cuda.source import Source
from ..make.declarations import parse_declarations
from .c_types import DTYPES
from .inline import MADE, NothingExported, complete, error_at
from .kernel_launcher import CHECKED_AS, CHECKED_INT, CHECKED_NUMBER, KernelLauncher

# The codes of include/caffe_ffi.h.
CODES = (
    "float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "int16", "uint16", "uint32",
    "uint64", "bool",
)  # fmt: skip
INDEX_TYPES = {"int32": "int32_t", "int64": "int64_t"}
# The checks of kernel_launcher.py where nothing can be thrown.
CHECKS = {
    CHECKED_INT: """
static __device__ inline int checked_int(int64_t number, const char* name) {
  if (number >= 0 && number <= INT32_MAX) return static_cast<int>(number);
  ::cuffi::cannot_launch(CAFFE_NO_INT, name, number);
  return 0;
}
""",
    CHECKED_AS: """
template <typename Index>
static __device__ inline Index checked_as(int64_t number, const char* name) {
  if (number == static_cast<int64_t>(static_cast<Index>(number))) return static_cast<Index>(number);
  ::cuffi::launch_of().bits = 8 * sizeof(Index);
  ::cuffi::cannot_launch(CAFFE_NO_INDEX, name, number);
  return 0;
}
""",
    CHECKED_NUMBER: """
template <typename Type>
static __device__ inline Type checked_number(double number, const char* name) {
  if constexpr (!std::is_integral<Type>::value) {
    return static_cast<Type>(number);
  } else {
    typedef std::numeric_limits<Type> Limits;
    const double most = Limits::digits < 53 ? static_cast<double>(Limits::max()) : 9007199254740991.;
    const double least = Limits::digits < 53 ? static_cast<double>(Limits::min()) : Limits::is_signed ? -most : 0;
    if (number >= least && number <= most && number == ::floor(number)) return static_cast<Type>(number);
    ::cuffi::launch_of().number = number;
    ::cuffi::cannot_launch(CAFFE_NO_NUMBER, name);
    return 0;
  }
}
""",
}
UPLOADS = {
    "cudaMemcpyToSymbolAsync(": "::cuffi::upload(",
    "cudaMemcpyHostToDevice": "::cuffi::kFromHost",
    "cudaMemcpyDeviceToDevice": "::cuffi::kFromDevice",
    "CAFFE_STREAM(stream)": "0",
}
COOPERATIVE = "::cuffi::launch_cooperative("


class NotForNvrtc(Exception):
    """The file needs nvcc. The text says why."""


@dataclass
class Prepared:
    """What NVRTC compiles.

    Attributes:
        text: the program, without the prologue.
        headers: rewritten headers beside it, by their paths.
        expressions: C++ names of the kernels by their numbers, with each kernel's line.
        symbols: C++ names of the variables that launchers fill.
        functions: the declared functions, as build_ffi.py describes them.
    """

    text: str
    headers: dict[str, str]
    expressions: list[tuple[int, int, str]]
    symbols: list[str]
    functions: dict[str, dict]


def prepare(path: str, launchers: list[KernelLauncher]) -> Prepared:
    """Write a completed file for NVRTC.

    Raises:
        NotForNvrtc: it exports functions of its own.
    """
    if not launchers:
        raise NotForNvrtc('it exports functions of its own (`extern "C"`), which are host code')
    texts, problems, _ = rewrite(path, NvccRewriter, "for_nvcc.py", "", "", None)
    if problems:
        raise NotForNvrtc("\n".join(map(str, problems)))
    own, _, made = texts.pop("").partition(MADE)
    text = without_host_code(own, path, made) + launches(MADE + made, launchers)
    names = {symbol: None for one in launchers for symbol in one.symbols}
    numbered = [e for k, one in enumerate(launchers, 1) for e in expressions(one, k)]
    qualified = [scoped(name, text) for name in names]
    header = Path(path).with_suffix(".h")
    return Prepared(text, texts, sorted(numbered), qualified, parse_declarations(header))


def without_host_code(text: str, path: str, launchers: str) -> str:
    """The text without functions that run on the host alone, but those that launchers call. Lines keep their place."""
    source = Source(text, path)
    kept, waiting = set(), {re.sub(r"//[^\n]*", "", launchers)}
    while waiting:
        words = set(re.findall(r"\w+", waiting.pop()))
        new = [f for f in source.functions if f.name in words - kept]
        kept |= {f.name for f in new}
        waiting |= {text[f.head : f.end] for f in new}
    for function in reversed(source.functions):
        words = function.words
        if function.is_device_only or function.member or words & {"__device__", "__global__", "constexpr"}:
            continue
        if function.name in kept and "__host__" not in words:  # for NVRTC it is device code
            continue
        text = (
            text[: function.head]
            + "\n" * text.count("\n", function.head, function.end)
            + text[function.end :]
        )
    return text


def scoped(name: str, text: str) -> str:
    """A variable's name as its upload names it."""
    found = re.search(rf"::cuffi::upload\((\S*?\b{name}),", text)
    return found[1] if found else f"::{name}"


def expressions(launcher: KernelLauncher, number: int) -> list[tuple[int, int, str]]:
    """(the number that the launcher says, the line, the C++ name) of each kernel that it may launch."""
    kinds = launcher.dtypes or {f"CAFFE_{DTYPES[kind].upper()}": kind for kind in ("float", "double")}
    types = [{CODES.index(code.removeprefix("CAFFE_").lower()): kind for code, kind in kinds.items()}]
    types = types if launcher.dispatch else []
    types += [{CODES.index(code): kind for code, kind in INDEX_TYPES.items()} for _ in launcher.indices]
    names = [*["Dtype"] * launcher.dispatch, *launcher.indices]
    found = []
    for place, (_, arguments) in enumerate(launcher.instances):
        for chosen in itertools.product(*types):
            given, said_number = arguments, number * 16 + place
            for name, kind, of in zip(names, chosen, types, strict=True):
                given = re.sub(rf"\b{name}\b", of[kind], given)
                said_number = said_number * 16 + kind
            callee = f"{launcher.callee}<{given}>" if given else launcher.callee
            found.append((said_number, launcher.line, callee))
    return found


def launches(text: str, launchers: list[KernelLauncher]) -> str:
    """The launchers as kernels that compute their launches."""
    for own, replaced in CHECKS.items():
        text = text.replace(own.strip("\n"), replaced.strip("\n"))
    for word, replaced in UPLOADS.items():
        text = text.replace(word, replaced)
    text = text.replace("throw caffe::Error(", "return ::cuffi::cannot_launch(CAFFE_NO_INSTANCE, ")
    text = re.sub(r"\n  return (?:cuffi::launch_status\(__FILE__, \d+\)|CAFFE_LAUNCH_STATUS\(\));", "", text)
    for number, launcher in enumerate(launchers, 1):
        head = f'extern "C" int {launcher.name}('
        start = text.index(head)
        end = text.find('\nextern "C" int ', start + 1)
        end = len(text) if end < 0 else end
        body = text[start:end].replace(head, f'extern "C" __global__ void {launcher.name}(', 1)
        text = text[:start] + _computed(body, launcher, number) + text[end:]
    return text


def _computed(text: str, launcher: KernelLauncher, number: int) -> str:
    """The launches in a launcher's text, one for each instance."""
    codes = [*["dtype"] * launcher.dispatch, *(f"{of[0]}_dtype" for of in launcher.indices.values())]
    for place, (_, arguments) in enumerate(launcher.instances):
        told = str(number * 16 + place)
        for code in codes:
            told = f"({told} * 16 + {code})"
        callee = f"{launcher.callee}<{arguments}>" if arguments else launcher.callee
        opening = f"{COOPERATIVE}{callee}, " if launcher.cooperative else f"{callee}<<<"
        while (start := text.find(opening)) >= 0:  # in each case of the dtypes
            grid, rest = _first(text[start + len(opening) :])
            block, rest = _first(rest)
            shared, rest = _first(rest)
            _, rest = _first(rest if launcher.cooperative else rest.replace(">>>(", ",", 1))  # the stream
            launch = (
                f"::cuffi::Packed<decltype(&{callee})>::launch({told}, {str(launcher.cooperative).lower()}, "
            )
            launch += f"{grid}, {block}, {shared}"
            text = text[:start] + launch + ("," if rest.lstrip()[:1] != ")" else "") + rest
    return text


def _first(text: str) -> tuple[str, str]:
    """A text's first argument, and the text behind its comma; behind the last argument its closing bracket stays."""
    depth = 0
    for at, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            if not depth:
                return text[:at].strip(), text[at:]
            depth -= 1
        elif letter == "," and not depth:
            return text[:at].strip(), text[at + 1 :]
    return text.strip(), ""


__all__ = ["NotForNvrtc", "NothingExported", "Prepared", "complete", "error_at", "prepare"]
