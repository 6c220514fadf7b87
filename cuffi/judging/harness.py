"""A main() for a file of kernels: it calls the host functions that launch them, or else the kernels, by their types."""

from __future__ import annotations

import re

from .rewriters import BLOCK, THREAD

THREADS = 64  # of a block, if the code does not say
BLOCKS = 4  # that are tried, at most

SHARED = re.compile(r"__shared__\s+[\w:<> ]+?\s\w+((?:\s*\[[^\]]+\])+)")
REALS = re.compile(r"float|double|half|bfloat|void")
CONSTANT = re.compile(r"[A-Z_0-9]+|k[A-Z]\w*")
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
    tokens, functions = source.lexed.tokens, [part for part in source.parts if part.kind == "function"]

    def call(function, launch: str = "") -> str:
        inside = (p.scope for p in functions if tokens[p.first].start <= function.at < tokens[p.last].end)
        return _call(function, text, launch, next(inside, ""))

    helpers = [f for f in source.functions if "__device__" in f.words and not f.is_kernel]
    shared_text = "".join(text[f.body : f.end] for f in helpers)
    shared_text += "".join(text[m.start : m.end] for m in source.macros)
    calls = [call(f) for f in dict.fromkeys(launchers) if f.name != "main"]
    calls += [call(k, _launch(k, text, shared_text)) for k in kernels if k.name not in launched]
    return "\nint main() {\n  int wrong = 0;\n" + "".join(calls) + "  return wrong;\n}\n"


def _call(function, text: str, launch: str, namespace: str) -> str:
    name = namespace + function.name + _template_arguments(text[function.head : function.at])
    lines = [f"    using F = decltype(&{name});", f"    judge_case.begin(&{name});"]
    given = []
    for number, _ in enumerate(function.parameters):
        given.append(f"argument{number}")
        lines.append(
            f"    auto argument{number} = judge_case.argument<judge::parameter<{number}, F>::type>();"
        )
    lines.append(f"    {launch}{name}({', '.join(given)});")
    likely = _blocks(function, text) if launch else [(str(THREADS), "1")]
    blocks = [f"{{judge::threads({x}), judge::threads({y})}}" for x, y in likely]
    body = "\n".join(lines)
    pointers = [one.type for one in function.parameters if "*" in one.type]
    whole = str(any(not REALS.search(one) for one in pointers)).lower()
    return (
        f'  wrong |= judge::cases("{function.name}", {{{", ".join(blocks)}}},'
        f" {whole}, [](judge::Case& judge_case, dim3 grid, dim3 block) {{\n"
        f"    (void)grid, (void)block;\n{body}\n  }});\n"
    )


def _template_arguments(head: str) -> str:
    found = re.search(r"template\s*<([^>]*)>", head)
    if not found:
        return ""
    given = ["float" if re.match(r"\s*(typename|class)", part) else "32" for part in found[1].split(",")]
    return f"<{', '.join(given)}>"


def _extents(function, text: str) -> list[str]:
    """The extents of the kernel's first shared array, without padding: a block's usual size."""
    found = SHARED.search(text[function.body : function.end])
    extents = re.findall(r"\[([^\]]+)\]", found[1]) if found else []
    return [re.sub(r"\s*\+\s*\d+\s*$", "", one).strip() for one in extents]


def _blocks(function, text: str) -> list[tuple[str, str]]:
    """How many threads a block may have along x and y: the likeliest first.

    What is found in one alone may be the fault of that block.
    """
    extents, body = _extents(function, text), text[function.body : function.end]
    bounds = BOUNDS.search(text[function.head : function.at])
    if f"{THREAD}.y" in body:
        likely = [(extents[-1], extents[0])] if len(extents) > 1 and extents[0] == extents[-1] else []
        steps = re.findall(r"\+=\s*(\w+)", body)
        likely += [(extents[-1], step) for step in steps if len(extents) > 1 and CONSTANT.fullmatch(step)]
        likely += [("8", "8"), ("32", "8"), ("16", "16")]
    else:
        likely = [(bounds[1], "1")] if bounds else []
        likely += [(extents[0], "1")] if len(extents) == 1 and CONSTANT.fullmatch(extents[0]) else []
        likely += [(str(THREADS), "1"), ("128", "1"), ("256", "1")]
    return list(dict.fromkeys(likely))[:BLOCKS]


def _launch(function, text: str, helpers: str) -> str:
    """The launch, along the axes that the code asks for: more threads would all do the same."""
    body = text[function.body : function.end]
    every = re.search(r"KERNEL_LOOP|thread_rank|this_grid|this_thread|num_threads", body + helpers)

    def extents(word: str, *asked: str) -> str:
        used = ["xyz".index(a) for a in "xyz" if f"{word}.{a}" in body + helpers or (every and a == "x")]
        return ", ".join(
            asked[axis] if axis in used and axis < 2 else "1" for axis in range(max(used, default=0) + 1)
        )

    shared = 16384 if re.search(r"extern\s[^;]*__shared__", text) else 0
    block, grid = extents(THREAD, "block.x", "block.y"), extents(BLOCK, "grid.x", "grid.x")
    return f"::cuda_host::configure(dim3({grid}), dim3({block}), {shared}); "
