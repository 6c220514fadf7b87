"""Find CPU functions without code, or with a part of it, in layers that have kernels.

Beside a real Forward_gpu, `Forward_cpu() {}` computes nothing, and a Forward_cpu that is complete only under `#ifdef
CPU_ONLY` computes a part. On the host such a layer runs its kernels instead, as with NOT_IMPLEMENTED.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from ..cuda.lexer import IS_DEFINED, Token
from ..cuda.source import Function, Source
from ..cuda.tokens import head_name, position_from

# What a layer's files are compiled with, for the host and by nvcc: what nvcc alone defines is unknown.
CUDA_BUILD = {"__cplusplus": 1, "CPU_ONLY": 0, "USE_CUDA": 1}
CPU_BUILD = IS_DEFINED | {"CPU_ONLY": 1, "USE_CUDA": 0}


class Missing(NamedTuple):
    """A CPU function that must not run."""

    layer: str  # the class
    function: str  # Forward_cpu or Backward_cpu
    why: str  # with its place


def missing(sources: dict[str, Source]) -> list[Missing]:
    """Of a layer's files, by name, as they are compiled (CUDA_BUILD)."""
    found: dict[tuple[str, str], tuple[str, Function]] = {}
    for name, source in sources.items():
        for one in source.functions:
            if one.scope and one.name in ("Forward_cpu", "Forward_gpu", "Backward_cpu", "Backward_gpu"):
                found[one.scope, one.name] = name, one
    missed = []
    for (layer, function), (name, one) in found.items():
        kernels = found.get((layer, function.replace("_cpu", "_gpu")))
        if not function.endswith("_cpu") or not kernels:
            continue
        why = computes(sources[kernels[0]], kernels[1], function) and fault(sources[name], one)
        if why:
            place = f"{name}:{sources[name].lexed.position(one.at)[0]}"
            missed.append(Missing(layer, function, f"{place}: {why}"))
    return missed


def without_kernels(sources: dict[str, Source]) -> dict[str, tuple[str, list[str]]]:
    """Classes whose GPU functions only STUB_GPU defines, as in forks for processors: by class, the header and the
    functions, Forward and Backward."""
    defined = {(f.scope, f.name) for source in sources.values() for f in source.functions}
    found: dict[str, tuple[str, list[str]]] = {}
    for name, source in sources.items():
        tokens, partner = source.lexed.tokens, source.lexed.partner
        for layer, bodies in source.classes.items():
            stub = re.compile(rf"\bSTUB_GPU(_FORWARD|_BACKWARD)?\s*\(\s*{layer}\b")
            stubbed = any(stub.search(s.text) for s in sources.values())
            kernels = any(layer in s.text for file, s in sources.items() if file.endswith((".cu", ".cuh")))
            if not stubbed or kernels:
                continue
            heads = [head for head in source.declared if any(a < head[0] < b for a, b in bodies)]
            said = {tokens[head_name(tokens, partner, *head)].text for head in heads}
            lacking = [
                f
                for f in ("Forward", "Backward")
                if f"{f}_gpu" in said and (layer, f"{f}_gpu") not in defined
            ]
            if lacking:
                found[layer] = name, lacking
    return found


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
    alone = sum(token.text == ";" for token in tokens) == 1
    return bool(words) and not (alone and {cpu, "NOT_IMPLEMENTED", "NO_GPU"} & set(words))


def fault(source: Source, cpu: Function) -> str:
    """Why a CPU function must not run; "" if it may."""
    words = statements(body(source, cpu))
    if not words:
        return "there is no statement in it"
    if words[:4] == ["LOG", "(", "FATAL", ")"]:
        return "all it does is to stop (LOG(FATAL))"
    if any(switch in source.text[cpu.body : cpu.end] for switch in ("CPU_ONLY", "USE_CUDA")):
        alone = Source(source.text, source.path, CPU_BUILD)
        same = next((f for f in alone.functions if f.at == cpu.at), None)
        if same and Counter(statements(body(alone, same))) - Counter(words):
            return "it is whole only in builds without CUDA (CPU_ONLY)"
    return ""
