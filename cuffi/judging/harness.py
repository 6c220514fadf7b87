"""A main() for a file of kernels: it calls the host functions that launch them, or else the kernels, by their types."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .promises import Promise, above, of_json
from .rewriters import BLOCK, THREAD

THREADS = 64  # of a block, if the code does not say
BLOCKS = 4  # that are tried, at most

SHARED = re.compile(r"__shared__\s+[\w:<> ]+?\s\w+((?:\s*\[[^\]]+\])+)")
REALS = re.compile(r"float|double|half|bfloat|void")
CONSTANT = re.compile(r"[A-Z_0-9]+|k[A-Z]\w*")
WHOLE = re.compile(r"\b(int|long|short|unsigned|size_t|u?int\d+_t|\w*index\w*)\b")
# A block that the text asks for: assert(blockDim.x == 256), cub::BlockReduce<float, 256>.
ASKED = re.compile(
    r"(?:assert\s*\(\s*blockDim\.x\s*==\s*|\bBlock(?:Reduce|Scan|Load|Store|RadixSort)\s*<[^,<>]+,\s*)(\w+)\s*[,>)]"
)
BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*([\w ]+)")


def harness(unit, said: Mapping | None = None) -> str:
    """The C++ text. In its process each kernel, or its launcher, runs on several sizes and patterns.

    Args:
        said: promises by the names of functions, beside those of comments (promises.py).

    Raises:
        Refused: a promise cannot be read.
    """
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
        return _call(function, text, launch, next(inside, ""), promise_of(function, text, said))

    helpers = [f for f in source.functions if "__device__" in f.words and not f.is_kernel]
    shared_text = "".join(text[f.body : f.end] for f in helpers)
    shared_text += "".join(text[m.start : m.end] for m in source.macros)
    calls = [call(f) for f in dict.fromkeys(launchers) if f.name != "main"]
    calls += [call(k, _launch(k, text, shared_text)) for k in kernels if k.name not in launched]
    return "\nint main() {\n  int wrong = 0;\n" + "".join(calls) + "  return wrong;\n}\n"


def promise_of(function, text: str, said: Mapping | None = None) -> Promise:
    """What is promised of a function's arguments, by JSON or else by the comment above it."""
    names = [one.name for one in function.parameters]
    if said and function.name in said:
        return of_json(said[function.name], names)
    return above(text, function.head, names)


def is_sized(function, promise: Promise) -> bool:
    """Are the sizes of all its arrays promised?"""
    return all(one.name in promise.size for one in function.parameters if "*" in one.type)


def _call(function, text: str, launch: str, namespace: str, promise: Promise) -> str:
    name = namespace + function.name + _template_arguments(text[function.head : function.at])
    given = ", ".join(one.name or f"argument{i}" for i, one in enumerate(function.parameters))
    body = "\n".join([
        f"    using F = decltype(&{name});", f"    const F judge_function = &{name};",
        "    judge_case.begin(judge_function);", *_arguments(function, promise),
        f"    {launch}judge_function({given});",
        "    return true;",
    ])  # fmt: skip
    likely = _blocks(function, text, promise) if launch else [(str(THREADS), "1")]
    blocks = [f"{{judge::threads({x}), judge::threads({y})}}" for x, y in likely]
    pointers = [one.type for one in function.parameters if "*" in one.type]
    whole = str(any(not REALS.search(one) for one in pointers)).lower()
    promised = (1 + is_sized(function, promise)) if promise else 0
    return (
        f'  wrong |= judge::cases("{function.name}", {{{", ".join(blocks)}}}, {whole}, {promised},'
        f" [](judge::Case& judge_case, dim3 gridDim, dim3 blockDim) {{\n"
        f"    (void)gridDim, (void)blockDim;\n{body}\n  }});\n"
    )


def _arguments(function, promise: Promise) -> list[str]:
    """C++ that invents the arguments, as they are promised: numbers first, because arrays are as large as they say."""
    numbers, arrays, first = [], [], ""
    for number, one in enumerate(function.parameters):
        name, kind = one.name or f"argument{number}", f"judge::parameter<{number}, F>::type"
        made = f"judge_case.argument<{kind}>()"
        if one.name in promise.size:
            made = f"judge_case.sized<{kind}>({promise.size[one.name]})"
        line = f"    [[maybe_unused]] auto {name} = {made};"
        if "*" in one.type:
            arrays.append(line)
            continue
        numbers.append(line)
        is_count = WHOLE.search(one.type) and "bool" not in one.type
        first = first or (name if is_count else "")
    met = []
    if promise.requires:
        covers = [f"judge::covers(gridDim, blockDim, {first});"] if first else []
        lines = [*promise.adjusted(), *covers, *promise.adjusted()]
        met = [*(f"    {line}" for line in lines), f"    if (!({promise.met()})) return false;"]
    return [*numbers, *met, *arrays]


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


def _blocks(function, text: str, promise: Promise) -> list[tuple[str, str]]:
    """How many threads a block may have along x and y: the likeliest first.

    What is found in one alone may be the fault of that block. None is larger than __launch_bounds__ says.
    """
    extents, body = _extents(function, text), text[function.body : function.end]
    bounds = BOUNDS.search(text[function.head : function.at])
    own = promise.block("x") or next((m[1] for m in ASKED.finditer(body)), "")
    if own or promise.block("y"):
        return [(own or "1", promise.block("y") or "1")]
    if f"{THREAD}.y" in body:
        likely = [(extents[-1], extents[0])] if len(extents) > 1 and extents[0] == extents[-1] else []
        steps = re.findall(r"\+=\s*(\w+)", body)
        likely += [(extents[-1], step) for step in steps if len(extents) > 1 and CONSTANT.fullmatch(step)]
        likely += [("8", "8"), ("32", "8"), ("16", "16")]
    else:
        likely = [(bounds[1], "1")] if bounds else []
        likely += [(extents[0], "1")] if len(extents) == 1 and CONSTANT.fullmatch(extents[0]) else []
        likely += [(str(THREADS), "1"), ("128", "1"), ("256", "1")]
    likely = list(dict.fromkeys(likely))[:BLOCKS]
    return [(f"judge::most({x}, ({y}), {bounds[1]})", y) for x, y in likely] if bounds else likely


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
    block = extents(THREAD, "blockDim.x", "blockDim.y")
    grid = extents(BLOCK, "gridDim.x", "gridDim.x")
    return f"::cuda_host::configure(dim3({grid}), dim3({block}), {shared}); "
