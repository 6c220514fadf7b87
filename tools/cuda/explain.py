"""How each kernel of a file runs on the processor, and why it is no loop, by line.

    python -m tools.cuda.explain sums.cu            a line for each kernel, and its reasons
    python -m tools.cuda.explain sums.cu --text     also the lines that each pass changes

It is `cuffi explain`, too. Exit status: 1 if the host cannot have the file, and stderr says why; 2 if there is none.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from ..files import read
from .alone import ATOMIC_VALUE, WAITING_LOOP, waits
from .analysis import Kernel, Unit
from .guard import NO_IF
from .names import BARRIER, IN_WARPS, THREAD, semantics
from .outline import Function
from .reasons import Reason, Way
from .rewrite import Rewriter
from .source import Source
from .strides import NO_LOOP
from .to_host import HostRewriter

WAYS = {
    "kRange": "one loop over the indices, in parts",
    "kStrides": "one loop over the grid's range, in parts",
    "kRows": "a loop over the threads of a row of blocks",
    "kBlocks": "a loop over a block's threads",
    "kPhases": "phases: a loop over a block's threads between two barriers",
    "kWarps": "warps: a loop over 32 lanes between two places where they meet",
    "kThreads": "fibres: each thread has a stack of its own, on which it waits",
}
# What is no reason to wonder: each thread does one thing.
USUAL = {NO_LOOP, NO_IF}
NO_PARAMETER = f"{THREAD} is set for each, because a function asks for it"
# What stands in a set of words for what is no word.
NO_WORDS = {WAITING_LOOP: "a loop without a body, which may wait for another thread",
            ATOMIC_VALUE: "the value of an atomic is used, and there is a loop"}  # fmt: skip


class Explained:
    """A file, as it is rewritten for the processor."""

    def __init__(self, path: str):
        self.unit = Unit(read(path), path, HostRewriter.defined)
        self.files = [HostRewriter(self.unit, source) for source in self.unit.sources]

    @property
    def problems(self) -> list:
        return sorted({problem for file in self.files for problem in file.problems})

    def kernels(self) -> Iterator[tuple[HostRewriter, Function, Kernel, Way]]:
        for file in self.files:
            functions = [function for function in file.source.functions if function.is_kernel]
            found = self.unit.kernels(file.source)
            yield from ((file, *each) for each in zip(functions, found, file.ways, strict=True))

    def reasons(self, file: HostRewriter, function: Function, kernel: Kernel, way: Way) -> list[Reason]:
        """Why the kernel is no loop, or no better one."""
        found = [reason for reason in way.reasons if way.mode == "kThreads" or reason.why not in USUAL]
        if way.mode == "kThreads":
            found += self.unit.unread
            others = [word for word in kernel.meets_by if word not in {BARRIER, *IN_WARPS}]
            if "volatile" in others:
                others = [word for word in others if word == "volatile" or word not in self.unit.volatile]
            words = others or (() if found else kernel.meets_by)
            found += [self._place(file.source, function, word) for word in words]
        if kernel.mode != "kRange" and not kernel.asks_as_itself:
            found += [self._place(file.source, function, word) for word in kernel.asks_by]
        if kernel.has_loop and kernel.mode != "kRange":
            found += kernel.no_range
        return sorted(set(found), key=lambda reason: (reason.path != file.source.path, reason))

    def _place(self, source: Source, function: Function, word: str) -> Reason:
        """Where the kernel has a word, or how it comes to it."""
        other = "volatile memory" if word in self.unit.volatile else "a function of another file"
        what = NO_WORDS.get(word) or f"{word}, {semantics(word) or other}"
        tokens = source.lexed.tokens
        names = [t for t in tokens if function.head <= t.start < function.end and t.kind == "name"]
        here = next((token.start for token in names if token.text == word), None)
        if word in NO_WORDS:
            here = waits_in(source, function.head, function.end, self.unit).get(word)
        if here is not None:
            return Reason(source.path, source.lexed.position(here)[0], what)
        way = self.unit.way_to({token.text for token in names}, word)
        if not way:
            return Reason(
                source.path, source.lexed.position(function.at)[0], f"code that no name leads to has {what}"
            )
        first = next(token.start for token in names if token.text == way[0])
        through = ", which names ".join(way[:-1])
        return Reason(source.path, source.lexed.position(first)[0], f"names {through}, which has {what}")


def waits_in(source: Source, start: int, end: int, unit: Unit) -> dict[str, int]:
    """The offsets of what stands for a loop that waits, and for an atomic's value."""
    tokens = source.lexed.tokens
    inside = [i for i, token in enumerate(tokens) if start <= token.start < end]
    found = waits(tokens, source.lexed.partner, inside[0], inside[-1] + 1, unit.functions)
    return {word: tokens[i].start for word, i in found.items()}


def texts(file: Rewriter, start: int, end: int) -> Iterator[tuple[str, str]]:
    """(pass, text) of each pass that changes a part of the file."""
    every, before = file.edits, file.text[start:end]
    for name, count in file.passes:
        file.edits = sorted(every[:count], key=lambda edit: edit[:2])
        text = file.render(start, end)
        if text != before:
            yield name, text
        before = text
    file.edits = every


def shown(explained: Explained, with_text: bool) -> Iterator[str]:
    for file, function, kernel, way in explained.kernels():
        mode = way.mode.partition(",")[0]
        words = WAYS[mode]
        if mode == "kBlocks" and not kernel.asks_as_itself:
            words += f"; {NO_PARAMETER}"
        yield f"{way.path}:{way.line}: {way.kernel}: {words}"
        yield from (f"    {reason}" for reason in explained.reasons(file, function, kernel, way))
        if with_text:
            yield from _passes(file, function)


def _passes(file: HostRewriter, function: Function) -> Iterator[str]:
    before = file.text[function.head : function.end]
    first = file.source.lexed.position(function.head)[0]
    yield from _changed("the file's own text", "", before, first)
    number = file.source.functions.index(function)
    if file.warps is not None and number in file.warps.texts:
        file, function = file.warps, file.warps.source.functions[number]
        text = file.text[function.head : function.end]
        yield from _changed("functions in which threads meet", before, text, first)
        before = text
    for name, text in texts(file, function.head, function.end):
        yield from _changed(name, before, text, first)
        before = text


def _changed(name: str, before: str, text: str, first: int) -> Iterator[str]:
    """The lines that a pass changes, with their numbers: no pass adds one, or takes one away."""
    old, new = before.split("\n"), text.split("\n")
    if text != before:
        yield f"  -- {name}"
    for i, line in enumerate(new):
        if len(old) != len(new) or old[i] != line:
            yield f"  {first + i:5}  {line}".rstrip()


def main(arguments: list[str] | None = None, prog: str = "python -m tools.cuda.explain") -> int:
    parser = argparse.ArgumentParser(
        prog=prog, description="How each kernel of a CUDA file runs on the processor."
    )
    parser.add_argument("file", help="the .cu file")
    parser.add_argument(
        "--text",
        action="store_true",
        help="print the lines of each kernel that each pass of the rewriter changes",
    )
    options = parser.parse_args(arguments)
    try:
        explained = Explained(options.file)
    except OSError as error:
        print(
            f"{prog}: {options.file}: {error.strerror or error}: give the path of a .cu file", file=sys.stderr
        )
        return 2
    for line in shown(explained, options.text):
        print(line)
    if not any(function.is_kernel for source in explained.unit.sources for function in source.functions):
        print(f"{options.file}: there is no kernel")
    for problem in explained.problems:
        print(problem, file=sys.stderr)
    return 1 if explained.problems else 0


if __name__ == "__main__":
    sys.exit(main())
