"""Find CPU functions without complete code in layers that have kernels.

Some forks have a real Forward_gpu and an empty `Forward_cpu() {}`, or a Forward_cpu that is complete only under `#ifdef
CPU_ONLY`. On the host such a layer runs its kernels instead, as if the CPU function were NOT_IMPLEMENTED.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from tools.cuda.conditions import IS_DEFINED, Token
from tools.cuda.outline import Function
from tools.cuda.source import Source
from tools.cuda.tokens import position_from

# The macros with which both compilers read a layer's files. nvcc's own macros are left open.
CUDA_BUILD = {"__cplusplus": 1, "CPU_ONLY": 0, "USE_CUDA": 1}
CPU_BUILD = IS_DEFINED | {"CPU_ONLY": 1, "USE_CUDA": 0}
PASSES = ("Forward_cpu", "Forward_gpu", "Backward_cpu", "Backward_gpu")


class Missing(NamedTuple):
    """A CPU function that must not run."""

    layer: str  # the class
    function: str  # Forward_cpu or Backward_cpu
    why: str  # the reason, with its place


def missing(sources: dict[str, Source]) -> list[Missing]:
    """The CPU functions of a layer that must not run. `sources` are its files by name, read with CUDA_BUILD."""
    functions: dict[tuple[str, str], tuple[str, Function]] = {}
    for name, source in sources.items():
        for definition in source.functions:
            if definition.scope and definition.name in PASSES:
                functions[definition.scope, definition.name] = name, definition
    missed = []
    for (layer, function), (name, definition) in functions.items():
        kernels = functions.get((layer, function.replace("_cpu", "_gpu")))
        if not function.endswith("_cpu") or not kernels:
            continue
        why = computes(sources[kernels[0]], kernels[1], function) and fault(sources[name], definition)
        if why:
            place = f"{name}:{sources[name].lexed.position(definition.at)[0]}"
            missed.append(Missing(layer, function, f"{place}: {why}"))
    return missed


def without_kernels(sources: dict[str, Source]) -> dict[str, tuple[str, list[str]]]:
    """Classes whose GPU functions only STUB_GPU defines, as in forks without CUDA.

    Returns {class: (header, the functions that are stubs: Forward, Backward)}.
    """
    defined = {(f.scope, f.name) for source in sources.values() for f in source.functions}
    stubs: dict[str, tuple[str, list[str]]] = {}
    for name, source in sources.items():
        tokens = source.lexed.tokens
        for layer, bodies in source.classes.items():
            stub = re.compile(rf"\bSTUB_GPU(_FORWARD|_BACKWARD)?\s*\(\s*{layer}\b")
            stubbed = any(stub.search(s.text) for s in sources.values())
            kernels = any(layer in s.text for file, s in sources.items() if file.endswith((".cu", ".cuh")))
            if not stubbed or kernels:
                continue
            heads = [head for head in source.declared if any(a < head[0] < b for a, b in bodies)]
            declared_names = {tokens[source.name_of(head)].text for head in heads}
            undefined = [
                f
                for f in ("Forward", "Backward")
                if f"{f}_gpu" in declared_names and (layer, f"{f}_gpu") not in defined
            ]
            if undefined:
                stubs[layer] = name, undefined
    return stubs


def body(source: Source, function: Function) -> list[Token]:
    """The tokens between the braces."""
    tokens = source.lexed.tokens
    return tokens[position_from(tokens, function.body) + 1 : position_from(tokens, function.end) - 1]


def statements(tokens: list[Token]) -> list[str]:
    """The words of statements that do something, unlike `;`, `return;` and `{}`."""
    return [token.text for token in tokens if token.text not in (";", "{", "}", "return")]


def computes(source: Source, kernels: Function, cpu: str) -> bool:
    """Does a GPU function do more than call the CPU function, or say NOT_IMPLEMENTED?"""
    tokens = body(source, kernels)
    words = statements(tokens)
    is_one_statement = sum(token.text == ";" for token in tokens) == 1
    return bool(words) and not (is_one_statement and {cpu, "NOT_IMPLEMENTED", "NO_GPU"} & set(words))


def fault(source: Source, cpu: Function) -> str:
    """The reason why a CPU function must not run, or "" if it may run."""
    words = statements(body(source, cpu))
    if not words:
        return "there is no statement in it"
    if words[:4] == ["LOG", "(", "FATAL", ")"]:
        return "it only stops (LOG(FATAL))"
    if words[:4] in (["CHECK", "(", "false", ")"], ["CHECK", "(", "0", ")"]):
        return "it only stops (CHECK(false))"
    if any(switch in source.text[cpu.body : cpu.end] for switch in ("CPU_ONLY", "USE_CUDA")):
        in_cpu_build = Source(source.text, source.path, CPU_BUILD)
        same = next((f for f in in_cpu_build.functions if f.at == cpu.at), None)
        if same and Counter(statements(body(in_cpu_build, same))) - Counter(words):
            return "it is complete only in builds without CUDA (CPU_ONLY)"
    return ""
