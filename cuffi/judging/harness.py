"""A main() for a file of kernels: it calls the host functions that launch them, or else the kernels, by their types."""

from __future__ import annotations

import re

THREADS = 64  # of a block, if the code does not say

SHARED = re.compile(r"__shared__\s+[\w:<> ]+?\s\w+((?:\s*\[[^\]]+\])+)")
BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*([\w ]+)")


def harness(unit) -> str:
    """The C++ text. In its process each kernel, or its launcher, runs on several sizes and patterns."""
    source = unit.main
    text = source.text
    kernels = [f for f in source.functions if f.is_kernel and not f.scope]
    launchers, launched = [], set()
    for launch in source.launches:
        around = source.function_around(launch.start)
        if around and not around.is_kernel and not around.scope and "static" not in around.words:
            launchers.append(around)
            launched |= {k.name for k in kernels if k.name in text[launch.start : launch.end]}
    calls = [_call(f, text, "") for f in dict.fromkeys(launchers) if f.name != "main"]
    calls += [_call(k, text, _launch(k, text)) for k in kernels if k.name not in launched]
    return "\nint main() {\n  int wrong = 0;\n" + "".join(calls) + "  return wrong;\n}\n"


def _call(function, text: str, launch: str) -> str:
    name = function.name + _template_arguments(text[function.head : function.at])
    lines = [f"    using F = decltype(&{name});"]
    given = []
    for number, _ in enumerate(function.parameters):
        given.append(f"argument{number}")
        lines.append(
            f"    auto argument{number} = judge_case.argument<judge::parameter<{number}, F>::type>();"
        )
    lines.append(f"    {launch}{name}({', '.join(given)});")
    threads = f"judge::threads({_threads(function, text)})" if launch else str(THREADS)
    body = "\n".join(lines)
    return (
        f'  wrong |= judge::cases("{function.name}", {threads}, [](judge::Case& judge_case, dim3 grid) {{\n'
        f"    (void)grid;\n{body}\n  }});\n"
    )


def _template_arguments(head: str) -> str:
    found = re.search(r"template\s*<([^>]*)>", head)
    if not found:
        return ""
    given = ["float" if re.match(r"\s*(typename|class)", part) else "32" for part in found[1].split(",")]
    return f"<{', '.join(given)}>"


def _extents(function, text: str) -> list[str]:
    """The extents of the kernel's first shared array: a block's usual size."""
    found = SHARED.search(text[function.body : function.end])
    return re.findall(r"\[([^\]]+)\]", found[1]) if found else []


def _threads(function, text: str) -> str:
    """How many elements a block has along x."""
    extents = _extents(function, text)
    if "threadIdx.y" in text[function.body : function.end]:
        return extents[-1] if len(extents) > 1 and extents[0] == extents[-1] else "8"
    if bounds := BOUNDS.search(text[function.head : function.at]):
        return bounds[1]
    return extents[0] if len(extents) == 1 and re.fullmatch(r"[A-Z_0-9]+", extents[0]) else str(THREADS)


def _launch(function, text: str) -> str:
    side = f"judge::threads({_threads(function, text)})"
    flat = "threadIdx.y" not in text[function.body : function.end]
    block = f"dim3({side})" if flat else f"dim3({side}, {side})"
    grid = "grid" if flat else "dim3(grid.x, grid.x)"
    shared = 16384 if re.search(r"extern\s[^;]*__shared__", text) else 0
    return f"::cuda_host::configure({grid}, {block}, {shared}); "
