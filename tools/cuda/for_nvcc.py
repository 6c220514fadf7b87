"""Rewrite a CUDA source for nvcc, so that its element-wise kernels run at copy speed.

    python -m tools.cuda.for_nvcc foo.cu build/foo.cu --depfile build/foo.cu.d

    CUDA_KERNEL_LOOP(i, n) body    CAFFE_VECTOR_REST(i, n) body CUDA_VECTOR_LOOP(i, n, ...) body, by vector_loop.py
    <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>                       in the launches of such kernels
                                   <<<cuffi::vector_blocks(n, kernel), cuffi::kVectorThreads>>>

Everything else stays as it is, on its own line. build/foo.cu.loops gets the decision for each kernel, with the reason.
A file `plain_loops` beside the source may name kernels, one per line, or `*` for all. Their loops stay as they are.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import NamedTuple

from .analysis import Kernel, Unit
from .launches import Launch
from .rewrite import Rewriter, quoted, rewrite_files
from .source import Source
from .vector_loop import VectorLoop, decide

# The suffix of the file with the decisions.
NOTES = ".loops"

# PTX from before CUDA 9, for the whole warp. GPUs from sm_70 on do not have it.
OLD_PTX = re.compile(r"\b(shfl|vote)(\.(?:up|down|bfly|idx|ballot|all|any|uni)\.(?:b32|pred)\s[^;\"\n]+);")
# The votes from before CUDA 9. A #define of such a name stays as it is.
OLD_VOTE = re.compile(r"(#[ \t]*define[ \t]+)?\b__(ballot|any|all)(\s*\()")


# nvcc's macros are defined, because host code that they enable also has launches. The GPU's architecture is unknown: a
# kernel runs what one branch or another has.
FOR_NVCC = {"__cplusplus": 1, "__CUDACC__": 1, "__NVCC__": 1, "__CUDACC_RTC__": 0}


class Decisions(NamedTuple):
    """The decisions on the kernels of a file and its local headers."""

    by_kernel: dict[Kernel, VectorLoop | str]  # the vector loop, or the reason why the loop stays as it is
    vectorized: set[str]  # names of kernels; all kernels of such a name have a vector loop
    unique: set[str]  # names that only one kernel has


@functools.lru_cache(maxsize=1)
def decided(unit: Unit) -> Decisions:
    plain = plain_loops(unit.main.path)
    by_kernel = {
        kernel: "plain_loops says so" if {kernel.name, "*"} & plain else decide(unit, source, kernel)
        for source in unit.sources
        for kernel in unit.kernels(source)
    }
    names = [kernel.name for kernel in by_kernel]
    plain_names = {k.name for k, decision in by_kernel.items() if not isinstance(decision, VectorLoop)}
    return Decisions(by_kernel, set(names) - plain_names, {name for name in names if names.count(name) == 1})


class NvccRewriter(Rewriter):
    """Rewrites one file for nvcc."""

    defined = FOR_NVCC

    def __init__(self, unit: Unit, source: Source):
        super().__init__(source)
        for old in OLD_PTX.finditer(self.text):
            self.edit(old.start(), old.end(), f"{old[1]}.sync{old[2]}, 0xffffffff;")
        for old in OLD_VOTE.finditer(self.text):
            if not old[1]:
                self.edit(old.start(), old.end(), f"__{old[2]}_sync{old[3]}0xffffffffu, ")
        decisions = decided(unit)
        for kernel, decision in decisions.by_kernel.items():
            if kernel.path == source.path:
                if isinstance(decision, VectorLoop):
                    self._vector_loop(decision)
                self.notes.append(describe(source, kernel, decision))
        for launch in source.launches:
            if launch.kernel in decisions.vectorized:
                self._launch(launch, known=launch.kernel in decisions.unique)

    def _vector_loop(self, loop: VectorLoop):
        """Write the loop for the elements outside of whole windows, and then the vector loop with the same body."""
        windows = ", ".join(name for name, _ in loop.windows)
        parts = [f"CUDA_VECTOR_LOOP({loop.index}, {loop.count}, {windows})"]
        parts += [f"CAFFE_VECTOR_{kind}({loop.index}, {name})" for name, kind in loop.windows]
        parts += [f"CAFFE_VECTOR_LANES({loop.index}, {loop.count})"]
        start, end = loop.body
        again = f"{self._line_of(start)}{self.text[start:end]} }}{self._line_of(end)}"
        first = f"const int64_t {loop.index}_vectorized = ::cuffi::vectorized({loop.count}, {windows})"
        self.edit(*loop.head, f"{{ {first}; CAFFE_VECTOR_REST({loop.index}, {loop.count})")
        self.edit(end, end, f" {' '.join(parts)}{again}")

    def _line_of(self, offset: int) -> str:
        """A #line directive, so that messages about this copy of the text name the user's line."""
        return f'\n#line {self.source.lexed.position(offset)[0]} "{quoted(self.source.path)}"\n'

    def _launch(self, launch: Launch, known: bool):
        """Give the launch fewer and smaller blocks, if grid and block are the macros'. Others are right, and stay."""
        low, high = launch.config
        grid = re.match(r"(\s*)(?:::)?(?:caffe::)?CAFFE_GET_BLOCKS(?=\s*\()", self.text[low:high])
        if not grid:
            return
        opening = self.text.index("(", low + grid.end())
        closing = matching(self.text, opening)
        block = re.match(
            r"(\s*,\s*)(?:::)?(?:caffe::)?CAFFE_CUDA_NUM_THREADS\s*(?=,|\Z)", self.text[closing + 1 : high]
        )
        if not block:
            return  # or CAFFE_GET_BLOCKS is only a part of the expression
        tokens = [t.text for t in self.source.lexed.tokens if launch.start <= t.start < launch.chevrons[0]]
        callee = re.sub(r"(?<=\W) | (?=\W)", "", " ".join(tokens))  # without comments
        kernel = f", {callee}" if known and ("<" in callee or not is_template(self, launch)) else ""
        self.edit(low + grid.end(1), opening, "::cuffi::vector_blocks")
        self.edit(closing, closing, kernel)
        threads = closing + 1
        self.edit(threads + block.end(1), threads + block.end(), "::cuffi::kVectorThreads")


def is_template(rewriter: NvccRewriter, launch: Launch) -> bool:
    for function in rewriter.source.functions:
        if function.is_kernel and function.name == launch.kernel:
            return "template" in function.words
    return True  # defined elsewhere: it may be a template


def matching(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
    raise AssertionError("the parser has matched these parentheses already")


def plain_loops(source_path: str) -> set[str]:
    """The names of the kernels whose loops must stay as they are."""
    path = os.path.join(os.path.dirname(source_path), "plain_loops")
    if not os.path.exists(path):
        return set()
    with open(path) as file:
        return {line.split("#")[0].strip() for line in file} - {""}


def describe(source: Source, kernel, decision) -> str:
    place = f"{os.path.basename(source.path)}:{kernel.line}: {kernel.name}"
    if isinstance(decision, VectorLoop):
        return (
            f"{place}: vector loop ({', '.join(f'{name} {kind.lower()}' for name, kind in decision.windows)})"
        )
    return f"{place}: plain loop ({decision})"


def main() -> int:
    return rewrite_files(__file__, NvccRewriter, sys.argv[1:], prologue="", notes=NOTES)


if __name__ == "__main__":
    sys.exit(main())
