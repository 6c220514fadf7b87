"""Rewrite a CUDA source so that a host C++ compiler can build it.

    python -m tools.cuda.to_host foo.cu build/foo.cpp --depfile build/foo.d

These are rewritten:

    __global__ void k() { body }   { ::cuda_host::run<mode>("k", [=]() mutable { body }); }: the whole grid
    k<T><<<grid, block>>>(x)       (::cuda_host::configure(grid, block), k<T>(x))
    extern __shared__ T s[];       a pointer; outside functions, an object, and a pointer where it is used
    static __shared__ T x;         __shared__ T x;
    __syncthreads()                __syncthreads(__LINE__, 5): its column, by which the launcher knows it
    (int)x, int i = x;             ::cuda_host::to<int>(x), int i = ::cuda_host::to<int>(x); (casts.py)
    __device__ float2 f(float2 x)  __device__ __attribute__((always_inline)) float2 f(float2 x), for the race finder
    while (*flag == 0);            while (::cuda_host::may_spin() && (*flag == 0));, if flag is volatile
    #include "beside.cuh"          is rewritten as well, into the same place relative to the output

No edit adds or removes a line, so with one #line all diagnostics name the user's own file. Code that cannot run on the
host is refused as `path:line:column: error: why`. An #if that asks for nvcc (__CUDACC__, __CUDA_ARCH__ >= 700) chooses
what it does on a new GPU, if the host can run this (branches.py).
"""

from __future__ import annotations

import os
import re
import sys
from typing import NamedTuple

from .alone import volatile_names
from .analysis import RANGE_LOOPS, Kernel, Unit
from .branches import ASM, FOR_DEVICES, GPU_ONLY, NEWEST, NOT_ON_THE_HOST, TEXTURE_FETCH, Choice
from .casts import Within, casts
from .conditions import ARCH, HOST_BUILD, Directive, Token
from .guard import counts_along_x, guard_of
from .launches import Launch
from .outline import Function, skip_angles, split_commas
from .phases import phases_of
from .rewrite import Rewriter, quoted, rewrite_files
from .source import Source
from .tokens import macro_body, match_brackets, position_from

# The functions that need to know where they stand.
PLACES = {"__syncthreads", "__activemask", "coalesced_threads"}
# Those of them that say which lanes are there.
LANES = {"__activemask", "coalesced_threads"}
EXTERN_CONSTANT = re.compile(r"\bextern\s[^;{}()]*\b__constant__\b([^;{}]*);")
RECORDS = {"struct", "union", "class"}
NO_HOST_MEANING = {
    "asm": "inline PTX; write it in C++, or put it in #ifdef __CUDA_ARCH__ with an #else for the host",
    "texture": "texture reference (CUDA 12 removed them too); read the memory through a pointer",
    "gpu": "{} has a meaning on a GPU alone; put it in #ifdef __CUDA_ARCH__ with an #else for the host",
    "fetch": "texture or surface access; read the memory through a pointer",
}

ONLY_ON_A_GPU = "this branch has what only a GPU runs, and there is no #else"
NOTHING_LEFT = f"on a new GPU (__CUDA_ARCH__ {NEWEST}) this leaves nothing of the kernel"
# What nvcc's words mean in a macro, which device code expands.
IN_MACROS = Choice({"__CUDACC__": 1, "__NVCC__": 1, ARCH: 1}, NEWEST)
NO_HEADER = (
    "the host has no <{}>; put it, and what uses it, in #ifdef __CUDACC__ with an #else for the host, or build for CUDA"
    ' only (backends="cuda", BACKENDS=cuda)'
)


WORDS_OF_FUNCTIONS = {
    *("__device__", "__host__", "__forceinline__", "__inline__", "inline", "static", "constexpr", "extern"),
    "const",
}
# A type of which no value is a structure.
SCALAR = re.compile(
    r"(.*[*&].*|(\s*\b(void|bool|char|short|int|long|unsigned|signed|float|double|size_t|u?int\d+_t|const|volatile)\b)*)\s*",
    re.DOTALL,
)


LAUNCHES = {"cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaFuncSetAttribute"}
# The race finder watches these in kernels.
COPIES = {
    "memcpy": "::cuda_host::memcpy_watched",
    "memmove": "::cuda_host::memcpy_watched",
    "memset": "::cuda_host::memset_watched",
}
INLINED = " __attribute__((always_inline))"
NOT_WATCHED = "accesses of the structures that {} takes or returns are not watched, because {}"


def _comes_back(name: str, calls: dict[str, set[str]]) -> bool:
    """Does a function of this name call itself, maybe by others?"""
    seen, waiting = set(), list(calls.get(name, ()))
    while waiting:
        one = waiting.pop()
        if one == name:
            return True
        if one not in seen:
            seen.add(one)
            waiting += calls.get(one, ())
    return False


class HostRewriter(Rewriter):
    """Rewrites one file for the host compiler."""

    defined = HOST_BUILD

    def __init__(self, unit: Unit, source: Source):
        super().__init__(source)
        self.problems += source.problems
        declared = (EXTERN_CONSTANT.findall(own.text) for own in unit.sources)
        self._declared = {word for texts in declared for text in texts for word in re.findall(r"\w+", text)}
        self._answered: list[tuple[int, int]] = []  # the conditions of guards
        self._in_phases: set[int] = set()  # the bodies of kernels whose phases are loops
        kernels = {kernel.body: kernel for kernel in unit.kernels(source)}
        for function in source.functions:
            if function.is_kernel:
                self._kernel(unit, function, kernels[function.body, function.end])
        for launch in source.launches:
            self._launch(launch)
        self._spinning_loops(unit)
        self._calls_to_lanes(unit)
        if self.watched:
            self._inlined(unit)
        for function in source.functions:
            if function.words & FOR_DEVICES:
                tokens = source.lexed.tokens
                within = (position_from(tokens, at) for at in (function.body + 1, function.end - 1))
                # A loop of these modes is what g++ vectorises.
                kernel = kernels.get((function.body, function.end))
                in_loop = kernel is not None and kernel.mode in ("kRange", "kBlocks")
                in_loop = in_loop or function.body in self._in_phases
                to = "::cuda_host::to_vectorised" if in_loop else "::cuda_host::to"
                for edit in casts(tokens, source.lexed.partner, *within, Within(tokens, function), to):
                    if not any(first <= edit[0] and edit[1] <= last for first, last in self._answered):
                        self._edit(*edit)
        self._words(source.lexed.tokens, in_macro=False)
        for macro in source.macros:
            self._words(macro_body(macro), in_macro=True)
            for first, last, value in IN_MACROS.words(macro_body(macro)):
                self._edit(first.start, last.end, value)
            body = macro_body(macro)
            for start, end, text in casts(body, match_brackets(body), 0, len(body)):
                self._edit(start, end, text)
        for condition in source.lexed.conditions:
            self._condition(condition)
        self._refuse_headers()

    def _refuse_headers(self):
        """Refuse headers that only a GPU's code can have."""
        source = self.source
        for directive in source.lexed.directives:
            named = re.search('[<"]([^>"\n]+)', self.text[directive.start : directive.end])
            if directive.word != "include" or not named or not NOT_ON_THE_HOST.match(named[1]):
                continue
            if source.lexed.is_undecided(directive.start):
                continue  # g++ says that it has none, if it comes there
            if not os.path.isfile(os.path.join(os.path.dirname(source.path), named[1])):
                self._refuse(directive.start, NO_HEADER.format(named[1]))

    def _column(self, token: Token, in_macro: bool) -> str:
        """What tells two places on one line: the column, or a number for each use of a macro."""
        return "4096 + __COUNTER__" if in_macro else str(self.source.lexed.position(token.start)[1])

    def _calls_to_lanes(self, unit: Unit):
        """Tell the calls of a function that asks for the lanes at its place: two arms of an `if` may call it."""
        functions = {f.name for source in unit.sources for f in source.functions if not f.is_kernel}
        asking = {name for name in functions if unit.reachable({name}) & LANES}
        bodies = [(self.source.lexed.tokens, self.source.lexed.partner)] if asking else []
        bodies += [(body, match_brackets(body)) for body in map(macro_body, self.source.macros) if asking]
        for tokens, partner in bodies:
            for i, token in enumerate(tokens[:-1]):
                if token.text not in asking or token.start in self.source.defined_at:
                    continue
                after = i + 1
                if tokens[after].text == "<":
                    after = skip_angles(tokens, partner, after, len(tokens))
                if after >= len(tokens) or tokens[after].text != "(" or after not in partner:
                    continue
                if bodies[0][0] is tokens and not self._in_device_code(token.start):
                    continue
                first = i
                while (
                    first > 1
                    and tokens[first - 1].text in (".", "->", "::")
                    and tokens[first - 2].kind == "name"
                ):
                    first -= 2
                first -= first > 0 and tokens[first - 1].text == "::"
                if first and tokens[first - 1].text in (".", "->"):
                    self._refuse(
                        token.start, f"{token.text} asks for the lanes at its place; call it by a variable"
                    )
                    continue
                column = self._column(token, in_macro=tokens is not bodies[0][0])
                self._edit(
                    tokens[first].start, tokens[first].start, f"(::cuda_host::From(__LINE__, {column}), "
                )
                end = tokens[partner[after]].end
                self._edit(end, end, ")")

    def _inlined(self, unit: Unit):
        """Have functions inlined that take or return structures, and note of which not all calls can be.

        g++ calls the race finder for each access but two: that of a structure which is an argument, and that of where
        a returned one goes.
        """
        names = {function.name for source in unit.sources for function in source.functions}
        calls: dict[str, set[str]] = {}
        pointed = set()
        for source in unit.sources:
            tokens = source.lexed.tokens
            for function in source.functions:
                first, last = (position_from(tokens, at) for at in (function.body, function.end))
                used = [i for i in range(first, last) if tokens[i].text in names]
                calls.setdefault(function.name, set()).update(tokens[i].text for i in used)
                pointed |= {tokens[i].text for i in used if tokens[i + 1].text not in ("(", "<", "::")}
        tokens = self.source.lexed.tokens
        for function in self.source.functions:
            if function.is_kernel or "__device__" not in function.words:
                continue
            head = tokens[slice(*(position_from(tokens, at) for at in (function.head, function.at)))]
            types = [" ".join(t.text for t in head if t.text not in WORDS_OF_FUNCTIONS)]
            types += [parameter.type for parameter in function.parameters]
            if all(SCALAR.fullmatch(one) for one in types):
                continue
            word = next((t for t in head if t.text == "__device__"), None)
            itself = _comes_back(function.name, calls)
            if itself or not word or function.name in pointed or "virtual" in types[0].split():
                how = "it calls itself" if itself else "a pointer calls it"
                line = self.source.lexed.position(function.at)[0]
                self.notes.append(f"{self.source.path}:{line}: {NOT_WATCHED.format(function.name, how)}")
            if word and not itself:
                self._edit(word.end, word.end, INLINED)
        for i, token in enumerate(tokens):
            if token.text in ("(", "{") and tokens[i - 1].text == "]" and self._in_device_code(token.start):
                self._lambda(tokens, i)

    def _lambda(self, tokens, at: int):
        """Have a lambda inlined whose parameters or body begin here, unless it passes itself on."""
        partner = self.source.lexed.partner
        before = tokens[partner[at - 1] - 1]
        if (before.kind == "name" and before.text != "return") or before.text in (")", "]"):
            return  # an index
        ends = partner[at] if tokens[at].text == "(" else at
        where = next((i for i in range(ends, len(tokens)) if tokens[i].text in ("->", "{", ";")), ends)
        body = next((i for i in range(where, len(tokens)) if tokens[i].text in ("{", ";")), where)
        names = {t.text for t in tokens[at:ends] if t.kind == "name"}
        inside = range(body, partner.get(body, body))
        if inside and not any(
            tokens[i].text in names and tokens[i + 1].text == "(" and tokens[i + 2].text == tokens[i].text
            for i in inside
        ):
            self._edit(tokens[where].start, tokens[where].start, INLINED + " ")

    def _kernel(self, unit: Unit, function: Function, kernel: Kernel):
        # With [=] and mutable each thread has its own copy of the parameters. A `return` ends only that thread.
        mode, identity, closing = kernel.mode, "", "}); "
        phases = None
        if mode == "kThreads" and kernel.in_phases and kernel.asks_as_itself and not self.watched:
            phases = phases_of(self.source, function, unit.macros, unit.by_value)
        if phases:
            mode, identity = "kPhases", "CAFFE_HOST_BLOCK"
            self._in_phases.add(function.body)
        if mode == "kBlocks" and kernel.asks_as_itself:
            identity = "CAFFE_HOST_IDENTITY"
            if not self.watched and kernel.in_rows and counts_along_x(self.source, function):
                mode = "kRows"
            guard = None if self.watched else guard_of(self.source, function, unit.macros)
            if guard:
                identity, closing = "CAFFE_HOST_GUARDED", "}}); "
                asked = f" CAFFE_HOST_ASKED({guard.text}, {str(guard.leaves).lower()})"
                self._edit(guard.after, guard.after, asked)
                # Who runs is in. Of the same length, so that errors name the user's columns.
                first, last = guard.condition
                self._answered.append(guard.condition)
                blanks = re.sub(r"\S", " ", self.source.text[first + 1 : last])
                self._edit(first, last, ("0" if guard.leaves else "1") + blanks)
        opening = f' ::cuda_host::run<::cuda_host::{mode}>("{function.name}", [=]({identity}) mutable {{'
        opening += self._nothing_left(function)
        self._edit(function.body + 1, function.body + 1, opening)
        for edit in phases or ():
            self._edit(*edit)
        self._edit(function.end - 1, function.end - 1, closing)
        if mode == "kRange":
            tokens = self.source.lexed.tokens
            # A loop over the whole grid becomes one over this call's part, which the compiler vectorises.
            for token in tokens[position_from(tokens, function.body) : position_from(tokens, function.end)]:
                if token.text in RANGE_LOOPS:
                    self._edit(token.start, token.end, RANGE_LOOPS[token.text])

    def _nothing_left(self, function: Function) -> str:
        """What a kernel does whose body no branch for nvcc has left."""
        lexed = self.source.lexed
        first, last = (position_from(lexed.tokens, at) for at in (function.body + 1, function.end - 1))
        inside = [c for c in lexed.conditions if function.body < c.start < function.end]
        asked = [c for c in inside if c.start in lexed.choices]
        if first < last or not asked or any(lexed.choices[c.start].refused for c in asked):
            return ""
        return self._ends(lexed.position(asked[0].start)[0], NOTHING_LEFT)

    def _in_device_code(self, offset: int) -> bool:
        function = self.source.function_around(offset)
        return function is not None and bool(function.words & FOR_DEVICES)

    def _condition(self, condition: Directive):
        """Write the values of nvcc's words into a condition."""
        choice = self.source.lexed.choices.get(condition.start)
        words = choice.words(condition.tokens) if choice else []
        for first, last, value in words:
            negated = condition.word == "ifndef"
            splices = "\\\n" * self.text.count("\n", first.start, last.end)
            self._edit(first.start, last.end, (str(1 - int(value)) if negated else value) + splices)
        if words and condition.word in ("ifdef", "ifndef"):
            at = self.text.index(condition.word, condition.start)
            self._edit(at, at + len(condition.word), "if")
        if choice and choice.refused and choice.refused[0] == condition.end:
            line = self.source.lexed.position(condition.start)[0]
            start, end = choice.refused
            lines = self.text.count("\n", start, end)
            self._edit(start, end, "\n" + self._ends(line, ONLY_ON_A_GPU) + "\n" * (lines - 1))

    def _ends(self, line: int, why: str) -> str:
        """A statement that ends the kernel with an error."""
        name = quoted(os.path.basename(self.source.path))
        return f' ::cuda_host::refuse("{name}:{line}: {why}");'

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
            elif word == "__constant__" and not in_macro:
                self._constant(tokens, i)
            elif word in PLACES and [t.text for t in tokens[i + 1 : i + 3]] == ["(", ")"]:
                column = self._column(token, in_macro and word in LANES)
                self._edit(tokens[i + 2].start, tokens[i + 2].start, f"__LINE__, {column}")
            elif word in COPIES and after == "(" and self.watched:
                if before not in (".", "->") and (in_macro or self._in_device_code(token.start)):
                    first = tokens[i - 2] if before == "::" and tokens[i - 2].text == "std" else token
                    self._edit(first.start, token.end, COPIES[word])
            elif word in LAUNCHES and after == "(":
                self._without_cast(tokens, i + 2)
            elif word == "__noinline__" and before != "(":  # not that of an __attribute__
                self._edit(token.start, token.end, "__attribute__((noinline))")
            elif word == ARCH and not in_macro and self._in_device_code(token.start):
                self._edit(token.start, token.end, str(NEWEST))
            elif word in ASM and after in ("(", "volatile", "__volatile__"):
                # Elsewhere it is the processor's own.
                if in_macro or self._in_device_code(token.start):
                    self._gpu_only(token, NO_HOST_MEANING["asm"])
            elif word == "texture" and after == "<" and before != "::":
                self._gpu_only(token, NO_HOST_MEANING["texture"])
            elif TEXTURE_FETCH.match(word) and after in ("(", "<") and before not in (".", "->", "::"):
                self._gpu_only(token, NO_HOST_MEANING["fetch"])
            elif GPU_ONLY.fullmatch(word) and not any(f.name == word for f in self.source.functions):
                self._gpu_only(token, NO_HOST_MEANING["gpu"].format(word))

    def _without_cast(self, tokens, at: int):
        """Remove `(void*)` before a kernel, which must keep its type."""
        for cast in (["(", "void", "*", ")"], ["(", "const", "void", "*", ")"]):
            if [t.text for t in tokens[at : at + len(cast)]] == cast:
                self._edit(tokens[at].start, tokens[at + len(cast) - 1].end, "")

    def _gpu_only(self, token: Token, why: str):
        """Refuse what only a GPU runs. If an #if decides whose macros nobody knows, the compiler says so."""
        if self.source.lexed.is_undecided(token.start):
            self._edit(
                token.start, token.start, f'_Pragma("GCC error \\"{why.replace(chr(34), chr(39))}\\"") '
            )
        else:
            self._refuse(token.start, why)

    # ------------------------------------------------------------------------ loops that wait

    def _spinning_loops(self, unit: Unit):
        """Let other threads run in loops that read volatile memory, or that do nothing else."""
        tokens, partner = self.source.lexed.tokens, self.source.lexed.partner
        names = {name for source in unit.sources for name in volatile_names(source)}
        for i, token in enumerate(tokens[:-1]):
            if token.text not in ("while", "for") or tokens[i + 1].text != "(" or i + 1 not in partner:
                continue
            close = partner[i + 1]
            is_do = i and tokens[i - 1].text == "}" and tokens[partner.get(i - 1, 0) - 1].text == "do"
            first = partner[i - 1] if is_do else i
            last = self._end_of_statement(close + 1)
            empty = not is_do and tokens[close + 1 : close + 2] and tokens[close + 1].text == ";"
            if not empty and not any(t.text in names for t in tokens[first:last]):
                continue
            if self._in_device_code(token.start):
                self._may_spin(token.text, i + 1, close)

    def _end_of_statement(self, index: int) -> int:
        """The index after the statement that begins there; of `if` and the like, after its first part."""
        tokens, partner = self.source.lexed.tokens, self.source.lexed.partner
        while index < len(tokens) and tokens[index].text != ";":
            if tokens[index].text == "{":
                return partner.get(index, index) + 1
            index = partner.get(index, index) + 1 if tokens[index].text in ("(", "[") else index + 1
        return index + 1

    def _may_spin(self, word: str, opening: int, close: int):
        """Ask in the condition of a loop."""
        tokens, partner = self.source.lexed.tokens, self.source.lexed.partner
        start, end = tokens[opening].end, tokens[close].start
        if word == "for":
            parts, i = [], opening + 1
            while i < close:
                if tokens[i].text == ";":
                    parts.append(tokens[i])
                i = partner.get(i, i) + 1 if tokens[i].text in ("(", "[", "{") else i + 1
            if len(parts) != 2:
                return
            start, end = parts[0].end, parts[1].start
        if self.text[start:end].strip():
            self._edit(start, start, "::cuda_host::may_spin() && (")
            self._edit(end, end, ")")
        else:
            self._edit(start, start, " ::cuda_host::may_spin()")

    def _in_scope(self, index: int) -> bool:
        """Is this token in a function or a class?"""
        classes = (part for parts in self.source.classes.values() for part in parts)
        start = self.source.lexed.tokens[index].start
        return self.source.function_around(start) is not None or any(a <= index <= b for a, b in classes)

    def _constant(self, tokens, index: int):
        """Each file has its own `__constant__` variables but those that are declared `extern`. Name them to the race
        finder.
        """
        partner = self.source.lexed.partner
        last = names = index
        while names and tokens[names - 1].text not in (";", "}", "{"):
            names -= 1
        while last < len(tokens) and tokens[last].text != ";":
            last = partner.get(last, last) + 1 if tokens[last].text in ("(", "[", "{") else last + 1
        words = {token.text for token in tokens[names:last]}
        if last >= len(tokens) or words & {"extern", "template", "#"} or self._in_scope(index):
            return
        found = [
            t.text
            for t, after in zip(tokens[index:last], tokens[index + 1 : last + 1], strict=True)
            if t.kind == "name" and after.text in (";", ",", "=", "[", "{")
        ]
        inside = {t.text for i in range(index, last) if i in partner for t in tokens[i : partner[i]]}
        given = "".join(f" CAFFE_HOST_CONSTANT({name})" for name in found if name not in inside)
        self._edit(tokens[last].end, tokens[last].end, given)
        if not words & {"static", "inline"} and not self._declared.intersection(found):
            self._edit(tokens[index].start, tokens[index].start, "static ")

    # ------------------------------------------------------------------------ shared variables

    def _shared(self, tokens, index: int, in_macro: bool):
        """Rewrite the declaration around a `__shared__`: the tokens from its first word to its `;`."""
        first = index
        while first and tokens[first - 1].text not in (";", "{", "}", ")", ":", ">"):
            first -= 1
        last = index
        depth = body = 0  # body: the end of a type's definition
        while last < len(tokens) and not (tokens[last].text == ";" and depth == 0):
            depth += (tokens[last].text in ("(", "[", "{")) - (tokens[last].text in (")", "]", "}"))
            if tokens[last].text == "{" and {t.text for t in tokens[last - 2 : last]} & RECORDS:
                last = body = match_brackets(tokens)[last] + 1
                depth -= 1
                continue
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
            for token in [*tokens[first:index], *tokens[max(body, index) : last]]:
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
        parts = list(split_commas(kept, match_brackets(kept), 0, len(kept)))
        arrays = [array for a, b in parts if (array := _Array.of(kept[a:b]))]
        types = arrays[0].types if arrays else []
        place = declaration[0].start
        in_function = in_macro or self.source.function_around(place) is not None
        unlike = not in_function and len({array.sizes for array in arrays}) > 1
        if not types or len(arrays) < len(parts) or any(array.types for array in arrays[1:]) or unlike:
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


# Only the main file includes CUDA's words, because a header may be included within extern "C" { }.
PROLOGUE = "#include <cuda_runtime.h>\n"


if __name__ == "__main__":
    sys.exit(rewrite_files(__file__, HostRewriter, sys.argv[1:], PROLOGUE))
