"""Rewrite a CUDA source so that a host C++ compiler can build it.

    python -m tools.cuda.to_host foo.cu build/foo.cpp --depfile build/foo.d

These are rewritten:

    __global__ void k() { body }   { ::cuda_host::run<mode>("k", [=]() mutable { body }); }: the whole grid
    k<T><<<grid, block>>>(x)       (::cuda_host::configure(grid, block), k<T>(x))
    extern __shared__ T s[];       a pointer; outside functions, an object, and a pointer where it is used
    static __shared__ T x;         __shared__ T x;
    __syncthreads()                __syncthreads(__LINE__, 5): its column, by which the launcher knows it
    asm("add.u32 %0, ..." : ...);  ({ ...; ::cuda_ptx::set(ptx0, ::cuda_ptx::add<...>(...)); ... }); (ptx/)
    kernel's T* x                  x = ::cuda_host::gpu_parameter(x); before its threads run
    (int)x                         (int)(::cuda_host::GpuCast<int>)x (conversions.py)
    int i = x;                     int i = ::cuda_host::gpu_into<int> = x;
    x << n                         x << ::cuda_host::gpu_shift << n
    __device__ float2 f(float2 x)  __device__ __attribute__((always_inline)) float2 f(float2 x), for the race finder
    #define UNROLL #pragma unroll  #define UNROLL _Pragma("unroll")
    while (*flag == 0);            while (::cuda_host::may_wait() && ...);, if flag is volatile
    #include "beside.cuh"          is rewritten as well, into the same place relative to the output

No edit adds or removes a line, so with one #line all diagnostics name the user's own file. Code that cannot run on the
host is refused as `path:line:column: error: why`. An #if that asks for nvcc (__CUDACC__, __CUDA_ARCH__ >= 700) chooses
what it does on a new GPU, if the host can run this (branches.py).
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from .analysis import RANGE_LOOPS, Kernel, Unit
from .branches import NEWEST, NOT_ON_THE_HOST, Choice
from .conditions import ARCH, HOST_BUILD, Directive
from .conversions import aligned_pointers, of_classes, of_function, of_heads, of_macro, of_text
from .expanding import expanded
from .groups import WORDS as GROUPS
from .groups import without_groups
from .guard import counts_along_x, guard_of
from .inlining import inlined
from .lanes import calls_to_lanes, column
from .launches import Launch
from .names import BARRIER, GPU_ONLY, IN_WARPS, INDEX, LANES, TEXTURES, TOLD
from .outline import Function
from .phases import phases_of
from .reasons import Reason, Way
from .reshaping import with_own_parameters, with_returns
from .rewrite import Rewriter, quoted, rewrite_files
from .shared_memory import constant, shared
from .source import Source
from .spinning import spinning_loops
from .steps import in_step
from .strides import strides_of
from .tokens import macro_body, position_from
from .warps import warps_of

NO_HOST_MEANING = {
    "gpu": "{} has a meaning on a GPU alone; put it in #ifdef __CUDA_ARCH__ with an #else for the host",
    "fetch": "{}: texture of layers, levels or a cube, or a surface; read the memory through a pointer",
}

# In the place of `texture`, which CUDA 12 removed.
REFERENCE = "::cuda_host::texture"
ONLY_ON_A_GPU = "this branch has what only a GPU runs, and there is no #else"
KERNEL_IN_MACRO = "__global__ inside a macro; write the kernel outside (a template can replace the macro)"
NOTHING_LEFT = f"on a new GPU (__CUDA_ARCH__ {NEWEST}) this leaves nothing of the kernel"
# What nvcc's words mean in a macro, which device code expands.
IN_MACROS = Choice({"__CUDACC__": 1, "__NVCC__": 1, ARCH: 1}, NEWEST)
NO_HEADER = (
    "the host has no <{}>; put it, and what uses it, in #ifdef __CUDACC__ with an #else for the host, or build for CUDA"
    ' only (backends="cuda", BACKENDS=cuda)'
)


# By which threads meet that loops may run.
MEETINGS = {BARRIER, *IN_WARPS, *GROUPS}
LAUNCHES = {"cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaFuncSetAttribute"}
# The race finder watches these in kernels.
COPIES = {
    "memcpy": "::cuda_host::memcpy_watched",
    "memmove": "::cuda_host::memcpy_watched",
    "memset": "::cuda_host::memset_watched",
}


def _index_for_editors(file: Rewriter, tokens, at: int):
    """`extern const dim3 blockDim;` for an editor: cuda_runtime.h declares it."""
    words = [token.text for token in tokens[at + 1 : at + 5] if token.text != "const"]
    if words[:1] in (["dim3"], ["uint3"]) and words[1:2] and words[1] in INDEX and words[2:3] == [";"]:
        last = next(token for token in tokens[at:] if token.text == ";")
        lines = file.text.count("\n", tokens[at].start, last.start)
        file.edit(tokens[at].start, last.start, "\n" * lines)


class HostRewriter(Rewriter):
    """Rewrites one file for the host compiler."""

    defined = HOST_BUILD

    def __init__(self, unit: Unit, source: Source):
        super().__init__(source)
        self.problems += source.problems
        self.declared = unit.extern_constants
        self.unit = unit
        self._answered: list[tuple[int, int]] = []  # the conditions of guards
        self._late: list[tuple[int, int, str]] = []  # edits that go behind others at their offset
        self.warps: WarpsRewriter | None = None
        self._in_phases: set[int] = set()  # the bodies of kernels whose phases are loops
        self.ways: list[Way] = []
        kernels = {kernel.body: kernel for kernel in unit.kernels(source)}
        self.kernels = unit.kernel_names
        for function in source.functions:
            if function.is_kernel:
                self._kernel(unit, function, kernels[function.body, function.end])
        self.is_over("how its threads run")
        for launch in source.launches:
            self._launch(launch)
        self.is_over("launches")
        spinning_loops(self, unit)
        self.is_over("loops that wait")
        calls_to_lanes(self, unit)
        self.is_over("calls that ask which lanes are there")
        if self.watched:
            inlined(self, unit)
        for function in source.functions:
            self._conversions(unit, function, kernels.get((function.body, function.end)))
        for edit in (*of_classes(source, unit.types), *of_heads(source, unit.types)):
            self.edit(*edit)
        self.is_over("conversions and shifts as on a GPU")
        in_step(self, unit)
        if any("asm" in own.text for own in unit.sources):
            # Most files have none, and a build starts this program for each.
            from .ptx.rewriting import AsmPass

            AsmPass(self, unit)
        self.is_over("inline PTX, and threads in step")
        self._words(source.lexed.tokens, in_macro=False)
        for macro in source.macros:
            self._words(macro_body(macro), in_macro=True)
            for first, last, value in IN_MACROS.words(macro_body(macro)):
                self.edit(first.start, last.end, value)
            for edit in of_macro(macro, unit.types):
                self.edit(*edit)
            self._macro(unit, macro)
        for condition in source.lexed.conditions:
            self._condition(condition)
        self._refuse_headers(unit)
        self.edits += self._late
        self.is_over("single words")

    def _conversions(self, unit: Unit, function: Function, kernel: Kernel | None):
        # A loop of these modes is what g++ vectorises.
        in_loop = kernel is not None and kernel.mode in ("kRange", "kBlocks")
        in_loop = in_loop or function.body in self._in_phases
        answered = [(a, b) for a, b in self._answered if function.body < a < function.end]
        for edit in of_function(self.source, function, unit.types, in_loop):
            if not any(first <= edit[0] and edit[1] <= last for first, last in answered):
                self.edit(*edit)

    def _refuse_headers(self, unit: Unit):
        """Refuse headers that only a GPU's code can have. The project may have its own of such a name."""
        source = self.source
        for directive in source.lexed.directives:
            named = re.search('[<"]([^>"\n]+)', self.text[directive.start : directive.end])
            if directive.word != "include" or not named or not NOT_ON_THE_HOST.match(named[1]):
                continue
            if source.lexed.is_undecided(directive.start):
                continue  # g++ says that it has none, if it comes there
            beside = os.path.isfile(os.path.join(os.path.dirname(source.path), named[1]))
            if not beside and not unit.finds(named[1]):
                self.refuse(directive.start, NO_HEADER.format(named[1]))

    def _kernel(self, unit: Unit, function: Function, kernel: Kernel):
        # With [=] and mutable each thread has its own copy of the parameters. A `return` ends only that thread.
        if pointers := aligned_pointers(self.source, function):
            self.edit(function.body + 1, function.body + 1, pointers)
        reasons: list[Reason] = []
        way = Way(function.name, self.source.path, kernel.line, kernel.mode, ())
        phases = self._phases(unit, function, kernel, reasons)
        on_fibres = kernel.mode == "kThreads" and not self.watched and not self.plain and not phases
        if on_fibres and (mode := self._warps(unit, function, reasons)):
            self.ways.append(way._replace(mode=mode))
            return
        before = len(self.edits)
        mode, identity, closing = self._mode(unit, function, kernel, phases, reasons)
        self.ways.append(way._replace(mode=mode, reasons=tuple(reasons)))
        opening = f' ::cuda_host::run<::cuda_host::{mode}>("{function.name}", [=]({identity}) mutable {{'
        opening += self._nothing_left(function)
        self.edits.insert(
            before, (function.body + 1, function.body + 1, opening)
        )  # what _mode writes stands in it
        self.edit(function.end - 1, function.end - 1, closing)
        if mode == "kRange":
            tokens = self.source.lexed.tokens
            # A loop over the whole grid becomes one over this call's part, which the compiler vectorises.
            for token in tokens[position_from(tokens, function.body) : position_from(tokens, function.end)]:
                if token.text in RANGE_LOOPS:
                    self.edit(token.start, token.end, RANGE_LOOPS[token.text])

    def _phases(self, unit: Unit, function: Function, kernel: Kernel, reasons: list[Reason]) -> list:
        """The edits that make phases of the kernel's own text; none: it has no phases."""
        if kernel.mode != "kThreads" or self.watched or self.plain:
            return []
        if not (kernel.in_phases and kernel.names_itself):
            return []
        found = phases_of(self.source, function, unit.names, not kernel.asks_as_itself)
        if isinstance(found, Reason):
            reasons.append(found)
            return []
        return found

    def _mode(
        self, unit: Unit, function: Function, kernel: Kernel, phases: list, reasons: list[Reason]
    ) -> tuple[str, str, str]:
        """How the threads run, the parameters of the body, and its end. Makes the edits within the body.

        Args:
            reasons: gets those of the passes that leave the kernel as it is.
        """
        mode, end = kernel.mode, "}); "
        if phases:
            self._in_phases.add(function.body)
            self._edits(phases, unit)
            return "kPhases", "CAFFE_HOST_BLOCK", end
        if not kernel.asks_as_itself or mode in ("kRange", "kThreads"):
            return mode, "", end
        if self.watched or self.plain:
            return mode, "CAFFE_HOST_IDENTITY" if mode == "kBlocks" else "", end
        strides = strides_of(self.source, function, unit.names)
        if not isinstance(strides, Reason):
            self._edits(strides[0], unit)
            return f"kStrides, {strides[1]}", "CAFFE_HOST_STRIDES", end
        reasons.append(strides)
        if kernel.in_rows and counts_along_x(self.source, function):
            mode = "kRows"
        guard = guard_of(self.source, function, unit.macros)
        if isinstance(guard, Reason):
            reasons.append(guard)
            return mode, "CAFFE_HOST_IDENTITY", end
        condition = of_text(guard.text, unit.types, in_loop=True)
        asked = f" CAFFE_HOST_ASKED({condition}, {str(guard.leaves).lower()})"
        self.edit(guard.after, guard.after, asked)
        # Who runs is in. Of the same length, so that errors name the user's columns.
        first, last = guard.condition
        self._answered.append(guard.condition)
        blanks = re.sub(r"\S", " ", self.source.text[first + 1 : last])
        self.edit(first, last, ("0" if guard.leaves else "1") + blanks)
        return mode, "CAFFE_HOST_GUARDED", "}}); "

    def _warps(self, unit: Unit, function: Function, reasons: list[Reason]) -> str:
        """Write warps, or phases that only functions, groups and macros show, as loops: the mode; "" of none."""
        if not unit.used_by(self.source, function) & MEETINGS:
            return ""
        if self.warps is None:
            self.warps = WarpsRewriter.of(unit, self.source)
        number = self.source.functions.index(function)
        text = self.warps.texts.get(number)
        if not text:
            reasons += self.warps.reasons.get(number, ())
            return ""
        if self.warps.modes[number] == "kPhases":
            opening = f'{{ ::cuda_host::run<::cuda_host::kPhases>("{function.name}", '
            self.edit(function.body, function.end, f"{opening}[=](CAFFE_HOST_BLOCK) mutable {{{text}}}); }}")
            return "kPhases"
        # The kernel's own text stands beside it.
        line, path = self.source.lexed.position(function.body)[0], quoted(self.source.path)
        opening = f' ::cuda_host::run<::cuda_host::kWarps>("{function.name}", '
        text = f'{opening}[=](CAFFE_HOST_BLOCK) mutable {{{text}}}, [=]() mutable {{\n#line {line} "{path}"\n'
        self.edit(function.body + 1, function.body + 1, text)
        self.edit(function.end - 1, function.end - 1, "}); ")
        return "kWarps"

    def _edits(self, edits: list[tuple[int, int, Any]], unit: Unit):
        """Edits of a pass that copies text. What is rendered later has its conversions."""
        for start, end, text in edits:
            self.edit(start, end, text if callable(text) else of_text(text, unit.types, in_loop=True))

    def _nothing_left(self, function: Function) -> str:
        """What a kernel does whose body no branch for nvcc has left."""
        lexed = self.source.lexed
        first, last = (position_from(lexed.tokens, at) for at in (function.body + 1, function.end - 1))
        inside = [c for c in lexed.conditions if function.body < c.start < function.end]
        asked = [c for c in inside if c.start in lexed.choices]
        if first < last or not asked or any(lexed.choices[c.start].refused for c in asked):
            return ""
        return self._ends(lexed.position(asked[0].start)[0], NOTHING_LEFT)

    def _condition(self, condition: Directive):
        """Write the values of nvcc's words into a condition."""
        choice = self.source.lexed.choices.get(condition.start)
        words = choice.words(condition.tokens) if choice else []
        for first, last, value in words:
            negated = condition.word == "ifndef"
            splices = "\\\n" * self.text.count("\n", first.start, last.end)
            self.edit(first.start, last.end, (str(1 - int(value)) if negated else value) + splices)
        if words and condition.word in ("ifdef", "ifndef"):
            at = self.text.index(condition.word, condition.start)
            self.edit(at, at + len(condition.word), "if")
        if choice and choice.refused and choice.refused[0] == condition.end:
            line = self.source.lexed.position(condition.start)[0]
            start, end = choice.refused
            lines = self.text.count("\n", start, end)
            self.edit(start, end, "\n" + self._ends(line, ONLY_ON_A_GPU) + "\n" * (lines - 1))

    def _ends(self, line: int, why: str) -> str:
        """A statement that ends the kernel with an error."""
        name = quoted(os.path.basename(self.source.path))
        return f' ::cuda_host::refuse("{name}:{line}: {why}");'

    def _launch(self, launch: Launch):
        """Move the configuration in front of the callee. The text between, with its lines, stays."""
        start, (first, last), (begin, end) = launch.start, launch.config, launch.chevrons
        self.edit(start, start, lambda: f"(::cuda_host::configure({self.render(first, last)}), ")
        # Only the characters: `>>` and `>` may be on two lines.
        between = re.sub("[<>]", "", self.text[begin:first] + self.text[last:end])
        self.edit(begin, end, between)
        self.edit(launch.end, launch.end, ")")

    def _words(self, tokens, in_macro: bool):
        """Edits and refusals for single words."""
        for i, token in enumerate(tokens):
            if token.kind != "name":
                continue
            word, after = token.text, tokens[i + 1].text if i + 1 < len(tokens) else ""
            before = tokens[i - 1].text if i else ""
            if word == "__shared__":
                shared(self, tokens, i, in_macro)
            elif word == "__constant__" and not in_macro:
                constant(self, tokens, i, self.declared)
            elif word in TOLD and [t.text for t in tokens[i + 1 : i + 3]] == ["(", ")"]:
                at = column(self, token, in_macro and word in LANES)
                self.edit(tokens[i + 2].start, tokens[i + 2].start, f"__LINE__, {at}")
            elif word in COPIES and after == "(" and self.watched:
                if before not in (".", "->") and (in_macro or self.in_device_code(token.start)):
                    first = tokens[i - 2] if before == "::" and tokens[i - 2].text == "std" else token
                    self.edit(first.start, token.end, COPIES[word])
            elif word in LAUNCHES and after == "(":
                self._without_cast(tokens, i + 2)
            elif word == "void" and after in ("*", "const"):
                self._cast(tokens, i - 1 - (before == "const"))
            elif word == "extern" and not in_macro:
                _index_for_editors(self, tokens, i)
            elif word == "__noinline__" and before != "(":  # not that of an __attribute__
                self.edit(token.start, token.end, "__attribute__((noinline))")
            elif word == ARCH and not in_macro and not self._in_host_code(token.start):
                self.edit(token.start, token.end, str(NEWEST))
            elif word == "texture" and after == "<" and before != "::" and word not in self.unit.own_types:
                self.edit(token.start, token.end, REFERENCE)
            elif TEXTURES.fullmatch(word) and after in ("(", "<") and before not in (".", "->", "::"):
                self.gpu_only(token, NO_HOST_MEANING["fetch"].format(word))
            elif GPU_ONLY.fullmatch(word) and not any(f.name == word for f in self.source.functions):
                self.gpu_only(token, NO_HOST_MEANING["gpu"].format(word))

    def _macro(self, unit: Unit, macro: Directive):
        """Edit what g++ does not take of a macro, and refuse kernels that are made by one."""
        body = macro_body(macro)
        if [token.text for token in body[:2]] == ["#", "pragma"] and len(body) + 1 == len(macro.tokens):
            pragma = " ".join(token.text for token in body[2:])
            lines = "\\\n" * self.text.count("\n", body[0].start, body[-1].end)
            self.edit(body[0].start, body[-1].end, f'_Pragma("{quoted(pragma)}"){lines}')
        for token in (token for token in body if token.text == "__global__" and token.kind == "name"):
            if unit.names_macro(macro.tokens[0].text):
                self.refuse(token.start, KERNEL_IN_MACRO)
            # A use that nobody sees here, as by ##, is an error of the compiler.
            self.edit(token.start, token.end, "__global___inside_a_macro")

    def _in_host_code(self, place: int) -> bool:
        """Is it in a function that no kernel calls? A class or a constant is of both."""
        return self.source.function_around(place) is not None and not self.in_device_code(place)

    def _without_cast(self, tokens, at: int):
        """Remove `(void*)` before a kernel, which must keep its type."""
        for cast in (["(", "void", "*", ")"], ["(", "const", "void", "*", ")"]):
            if [t.text for t in tokens[at : at + len(cast)]] == cast:
                self.edit(tokens[at].start, tokens[at + len(cast) - 1].end, "")

    def _cast(self, tokens, at: int):
        """Keep the parameters of a kernel that becomes a void*, by its address: `(void*)kernel<T>`, not in a launch."""
        opening = tokens[at].text if at > 0 else ""
        if opening not in ("(", "<") or (opening == "<" and tokens[at - 1].text != "reinterpret_cast"):
            return
        end = next((i for i in range(at, min(at + 5, len(tokens))) if tokens[i].text in (")", ">")), at)
        names = [t.text for t in tokens[end + 1 : end + 10]]
        while names[:1] in (["("], ["&"], ["::"]) or names[1:2] == ["::"]:
            names = names[1:]
        launched = tokens[at - 1].text == "(" and tokens[at - 2].text in LAUNCHES
        if names and names[0] in self.kernels and end > at and not launched:
            first = tokens[at - 1] if opening == "<" else tokens[at]
            made = "::cuda_host::as_pointer" + "->*" * (opening == "(")
            self.edit(first.start, tokens[end].end, made)


class WarpsRewriter(HostRewriter):
    """Rewrites the bodies of kernels whose warps or phases are loops, after it has put the functions in which threads
    meet into them, and has replaced groups by barriers and shuffles.
    """

    @classmethod
    def of(cls, unit: Unit, source: Source) -> WarpsRewriter:
        pieces, at, tiles, changed = [], 0, set(), set()
        reasons: dict[int, list[Reason]] = {}
        for i, function in ((i, f) for i, f in enumerate(source.functions) if f.is_kernel):
            own = source.text[function.body : function.end]
            body = unit.plain_macros.replaced(own, source, function.body)
            found = expanded(source, function, unit.meetings, body)
            if isinstance(found, Reason):
                reasons[i] = [found]
            else:
                body = found
            body, has_tiles = without_groups(unit.plain_macros.replaced(body, source, function.body))
            body = with_returns(with_own_parameters(body, function.parameters), (BARRIER, *IN_WARPS))
            if has_tiles:
                tiles.add(i)
            if body != own:
                changed.add(i)
            pieces += [source.text[at : function.body], body]
            at = function.end
        text = "".join(pieces) + source.text[at:]
        return cls(unit, Source(text, source.path, source.defined), reasons, tiles, changed)

    def __init__(
        self, unit: Unit, source: Source, reasons: dict[int, list[Reason]], tiles: set[int], changed: set[int]
    ):
        self.texts: dict[int, str] = {}  # of bodies, by the numbers of their functions
        self.modes: dict[int, str] = {}
        self.reasons = reasons  # of other kernels
        self._tiles, self._changed = (
            tiles,
            changed,
        )  # kernels with tiles, and with another text than their own
        super().__init__(unit, source)
        self.edits.sort(key=lambda edit: edit[:2])
        for i, function in enumerate(source.functions):
            if function.body in self._in_phases and not self.problems:
                self.texts[i] = self.render(function.body + 1, function.end - 1)

    def _kernel(self, unit: Unit, function: Function, kernel: Kernel):
        number = self.source.functions.index(function)
        if kernel.in_phases and number not in self._changed:
            return  # its own text has phases, or none
        found: tuple | Reason | list = []
        shown = not kernel.asks_as_itself
        if kernel.names_itself and kernel.in_phases and number not in self._tiles:
            found, self.modes[number] = phases_of(self.source, function, unit.names, shown), "kPhases"
            found = found if isinstance(found, Reason) else (found, [])
        elif kernel.in_warps and kernel.names_itself:
            found = warps_of(self.source, function, unit.names, self.render, shown)
            self.modes[number] = "kWarps"
        if not found:
            return  # its threads meet elsewhere
        if isinstance(found, Reason):
            self.reasons.setdefault(number, []).append(found)
            return
        self._in_phases.add(function.body)
        self._edits(found[0], unit)
        self._late += found[1]


# Only the main file includes CUDA's words, because a header may be included within extern "C" { }.
PROLOGUE = "#include <cuda_runtime.h>\n"


def main() -> int:
    return rewrite_files(__file__, HostRewriter, sys.argv[1:], PROLOGUE)


if __name__ == "__main__":
    sys.exit(main())
