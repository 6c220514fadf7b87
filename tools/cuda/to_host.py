"""Rewrite a CUDA source so that a host C++ compiler can build it.

    python -m tools.cuda.to_host foo.cu build/foo.cpp --depfile build/foo.d

These are rewritten:

    __global__ void k() { body }   { ::cuda_host::run(mode, "k", [=]() mutable { body }); }: the whole grid
    k<T><<<grid, block>>>(x)       (::cuda_host::configure(grid, block), k<T>(x))
    extern __shared__ T s[];       a pointer; outside functions, an object, and a pointer where it is used
    static __shared__ T x;         __shared__ T x;
    __syncthreads()                __syncthreads(__LINE__, 5): its column, by which the launcher knows it
    #include "beside.cuh"          is rewritten as well, into the same place relative to the output

No edit adds or removes a line, so with one #line all diagnostics name the user's own file. Code that cannot run on the
host is refused as `path:line:column: error: why`. Code only for nvcc (#ifdef __CUDA_ARCH__) is ignored. In a comparison
such as `#if __CUDA_ARCH__ >= 300` the value is that of an old GPU with shuffles (lexer.HOST_ARCH). If an #ifdef for
nvcc chooses between an atomic and a plain operation, the host uses the atomic, because its threads also run in
parallel.
"""

from __future__ import annotations

import os
import re
import sys
from typing import NamedTuple

from .analysis import RANGE_LOOPS, Unit
from .launches import Launch
from .lexer import Token, compared_arch
from .outline import Function, split_commas
from .rewrite import Rewriter, rewrite_files
from .source import Source
from .tokens import macro_body, match_brackets, position_from

TEXTURE_FETCH = re.compile(r"(tex[123]D\w*|texCubemap\w*|surf[123]D\w*|surfCubemap\w*)\Z")
NO_HOST_MEANING = {
    "asm": "inline PTX; write it in C++, or put it in #ifdef __CUDA_ARCH__ with an #else for the host",
    "texture": "texture reference (CUDA 12 removed them too); read the memory through a pointer",
    "fetch": "texture or surface access; read the memory through a pointer",
    "groups": "cooperative groups; use __syncthreads() and the like",
}

# CUDA's headers that need a GPU. Caffe layers have some of them in cuffi/caffe_layers/include/legacy.
NOT_ON_THE_HOST = re.compile(
    r"(cub|thrust|cutlass|cute|cuda|nv)/\S+|(cooperative_groups(/\S+)?|mma|cuda_pipeline\w*|cuda_fp8|cuda_fp4|cublas\w*"
    r"|cudnn\w*|cusparse\w*|cusolver\w*|cufft\w*|nccl|nvrtc|nvToolsExt|texture_\w+|surface_\w+)(\.h)?$"
)
NO_HEADER = (
    "the host has no <{}>; put it, and what uses it, in #ifdef __CUDACC__ with an #else for the host, or build for CUDA"
    ' only (backends="cuda", BACKENDS=cuda)'
)


class HostRewriter(Rewriter):
    """Rewrites one file for the host compiler."""

    def __init__(self, unit: Unit, source: Source):
        super().__init__(source)
        self.problems += source.problems
        if unit.layer:
            self._rename_own_atomics()
        modes = {kernel.body: kernel.mode for kernel in unit.kernels(source)}
        for function in source.functions:
            if function.is_kernel:
                self._kernel(function, modes[function.body, function.end])
        for launch in source.launches:
            self._launch(launch)
        self._words(source.lexed.tokens, in_macro=False)
        for macro in source.macros:
            self._words(macro_body(macro), in_macro=True)
        for condition in source.lexed.conditions if source.lexed.arch else []:
            for token in compared_arch(condition):
                self._edit(token.start, token.end, str(source.lexed.arch))
        for condition in source.lexed.conditions:
            if (value := source.lexed.atomics.get(condition.start)) is not None:
                lines = "\n" * self.text.count("\n", condition.start, condition.end)
                self._edit(condition.start, condition.end, f"#if {value}" + lines)
        for directive in source.lexed.directives if not unit.layer else []:
            named = re.search('[<"]([^>"\n]+)', self.text[directive.start : directive.end])
            if directive.word != "include" or not named or not NOT_ON_THE_HOST.match(named[1]):
                continue
            if not os.path.isfile(os.path.join(os.path.dirname(source.path), named[1])):
                self._refuse(directive.start, NO_HEADER.format(named[1]))

    def _kernel(self, function: Function, mode: str):
        # With [=] and mutable each thread has its own copy of the parameters. A `return` ends only that thread.
        opening = f' ::cuda_host::run(::cuda_host::{mode}, "{function.name}", [=]() mutable {{'
        self._edit(function.body + 1, function.body + 1, opening)
        self._edit(function.end - 1, function.end - 1, "}); ")
        if mode == "kRange":
            tokens = self.source.lexed.tokens
            # A loop over the whole grid becomes one over this call's part, which the compiler vectorises.
            for token in tokens[position_from(tokens, function.body) : position_from(tokens, function.end)]:
                if token.text in RANGE_LOOPS:
                    self._edit(token.start, token.end, RANGE_LOOPS[token.text])

    def _launch(self, launch: Launch):
        """Move the configuration in front of the callee. The text between, with its lines, stays."""
        start, (first, last), (begin, end) = launch.start, launch.config, launch.chevrons
        self._edit(start, start, lambda: f"(::cuda_host::configure({self._render(first, last)}), ")
        # Only the characters: `>>` and `>` may be on two lines.
        between = re.sub("[<>]", "", self.text[begin:first] + self.text[last:end])
        self._edit(begin, end, between)
        self._edit(launch.end, launch.end, ")")

    def _words(self, tokens, in_macro: bool):
        """Edits and refusals for single words."""
        for i, token in enumerate(tokens):
            if token.kind != "name":
                continue
            word, after = token.text, tokens[i + 1].text if i + 1 < len(tokens) else ""
            before = tokens[i - 1].text if i else ""
            if word == "__shared__":
                self._shared(tokens, i, in_macro)
            elif word == "__syncthreads" and [t.text for t in tokens[i + 1 : i + 3]] == ["(", ")"]:
                # Two barriers on one line are two places.
                column = self.source.lexed.position(token.start)[1]
                self._edit(tokens[i + 2].start, tokens[i + 2].start, f"__LINE__, {column}")
            elif word in ("asm", "__asm__", "__asm") and after in ("(", "volatile", "__volatile__"):
                self._refuse(token.start, NO_HOST_MEANING["asm"])
            elif word == "texture" and after == "<" and before != "::":
                self._refuse(token.start, NO_HOST_MEANING["texture"])
            elif TEXTURE_FETCH.match(word) and after in ("(", "<") and before not in (".", "->", "::"):
                self._refuse(token.start, NO_HOST_MEANING["fetch"])
            elif word == "cooperative_groups":
                self._refuse(token.start, NO_HOST_MEANING["groups"])

    # ------------------------------------------------------------------------ shared variables

    def _shared(self, tokens, index: int, in_macro: bool):
        """Rewrite the declaration around a `__shared__`: the tokens from its first word to its `;`."""
        first = index
        while first and tokens[first - 1].text not in (";", "{", "}", ")", ":", ">"):
            first -= 1
        last = index
        depth = 0
        while last < len(tokens) and not (tokens[last].text == ";" and depth == 0):
            depth += (tokens[last].text in ("(", "[", "{")) - (tokens[last].text in (")", "]", "}"))
            if (tokens[last].text == "=" and depth == 0) or tokens[last].text == "{":
                self._refuse(
                    tokens[index].start,
                    "a __shared__ variable with an initial value; CUDA has none, assign it in one thread",
                )
                return
            last += 1
        declaration = tokens[first:last]
        words = [token.text for token in declaration]
        if "extern" in words:
            self._dynamic_shared(declaration, in_macro)
        else:
            for token in declaration:
                if token.text == "static":  # include/host defines __shared__ as static, too
                    self._edit(token.start, token.end, "")

    def _dynamic_shared(self, declaration, in_macro: bool):
        """extern __shared__ <alignment> T a[], b[];"""
        skipped, kept, depth = [], [], 0
        aligning = False
        # `__align__(16)` and the like are removed, too, because the host aligns for every type.
        for token in declaration:
            if aligning:
                depth += (token.text == "(") - (token.text == ")")
                aligning = depth > 0
                skipped.append(token)
            elif token.text in ("__align__", "alignas", "__attribute__"):
                aligning = True
                skipped.append(token)
            elif token.text in ("extern", "__shared__", "static"):
                skipped.append(token)
            else:
                kept.append(token)
        arrays = [_Array.of(kept[a:b]) for a, b in split_commas(kept, match_brackets(kept), 0, len(kept))]
        types = arrays[0].types if arrays and arrays[0] else []
        place = declaration[0].start
        in_function = in_macro or self.source.function_around(place) is not None
        unlike = not in_function and len({array.sizes for array in arrays if array}) > 1
        if not types or not all(arrays) or any(array.types for array in arrays[1:]) or unlike:
            self._refuse(place, "extern __shared__ in an unusual form; write `extern __shared__ T name[];`")
            return
        for token in skipped:
            self._edit(token.start, token.end, "")
        type_text = " ".join(token.text for token in types)
        for array in arrays:
            name, bracket, end = array.name, array.opening.start, array.closing.end
            between, value = self.text[bracket + 1 : end - 1], array.value(type_text)
            if in_function and array.sizes:
                self._edit(name.start, name.start, "(*")
                self._edit(bracket, end, f"{between})")
                self._edit(array.end, array.end, f" = {value}")
            elif in_function:
                self._edit(name.start, name.start, "*")
                self._edit(bracket, end, f"{between} = {value}")
            else:
                self._local_shared(name, f"auto* {name.text} = {value};")
                self._edit(bracket, array.end, between + "\n" * self.text.count("\n", end, array.end))
        if not in_function:
            self._edit(types[0].start, types[0].start, "static ::cuda_host::DynamicShared<")
            self._edit(types[-1].end, types[-1].end, f"{arrays[0].sizes}>")

    def _local_shared(self, name, declaration: str):
        """Declare a pointer in each function of this file that uses dynamic shared memory from outside of it.

        An object cannot replace an array everywhere: reinterpret_cast cannot cast it, and a template cannot deduce T*
        from it. The object outside stays for macros and other files.
        """
        tokens = self.source.lexed.tokens
        for function in self.source.functions:
            if function.body < name.start or name.text in (p.name for p in function.parameters):
                continue
            first, last = position_from(tokens, function.body), position_from(tokens, function.end)
            uses = [i for i in range(first, last) if tokens[i].text == name.text]
            before = [tokens[i - 1] for i in uses if tokens[i - 1].text not in (".", "->", "::")]
            # A word before it is the type of a local variable of this name, which hides the one outside.
            if before and not any(token.kind == "name" and token.text != "return" for token in before):
                self._edit(function.body + 1, function.body + 1, f" {declaration}")


class _Array(NamedTuple):
    """An array of unknown size: T name[][32]."""

    types: list[Token]  # before the name
    name: Token
    opening: Token  # the bracket after the name, and its partner
    closing: Token
    sizes: str  # of each element: "[32]"
    end: int  # offset after it

    @classmethod
    def of(cls, tokens: list[Token]) -> _Array | None:
        """None if the tokens are another declaration."""
        at = next((i for i, token in enumerate(tokens) if token.text == "["), 0)
        shape = [token.text for token in tokens[at : at + 2]]
        partner, after = match_brackets(tokens), at + 2
        while after < len(tokens) and tokens[after].text == "[" and after in partner:
            after = partner[after] + 1
        if not at or shape != ["[", "]"] or tokens[at - 1].kind != "name" or after != len(tokens):
            return None
        sizes = "".join(token.text for token in tokens[at + 2 :])
        return cls(tokens[: at - 1], tokens[at - 1], tokens[at], tokens[at + 1], sizes, tokens[-1].end)

    def value(self, type_text: str) -> str:
        return f"::cuda_host::dynamic_shared<{type_text}{self.sizes}>()"


if __name__ == "__main__":
    # Only the main file includes CUDA's words, because a header may be included within extern "C" { }.
    sys.exit(rewrite_files(__file__, HostRewriter, sys.argv[1:], prologue="#include <cuda_runtime.h>\n"))
