"""Shared code of the rewriters: edits of a text, and the output files."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys

from ..files import depfile, read, write
from .analysis import Unit
from .branches import FOR_DEVICES
from .conditions import IS_DEFINED, Token
from .source import RewriteProblem, Source
from .undecided import answers_of, joined

BANNER = "// Made by tools/{} from {}; do not edit.\n"


class Rewriter:
    """The edits of one file. An edit is (start, end, replacement); edits never overlap, but may nest."""

    # The macros that the compiler defines.
    defined = IS_DEFINED
    watched = False  # for the race finder
    plain = False  # no kernel becomes loops

    def __init__(self, source: Source):
        self.source, self.text = source, source.text
        self.edits: list[tuple[int, int, object]] = []
        self.notes: list[str] = []  # the decisions, as lines of text
        self.problems: list[RewriteProblem] = []  # why the file cannot be rewritten
        self.passes: list[tuple[str, int]] = []  # each that is over, and how many edits there are
        # From where to where there are static shared variables, and their names.
        self.static_shared: list[tuple[int, int, list[str]]] = []

    def rewritten(self) -> str:
        self.edits.sort(key=lambda edit: edit[:2])
        return self.render(0, len(self.text))

    def in_device_code(self, offset: int) -> bool:
        function = self.source.function_around(offset)
        return function is not None and bool(function.words & FOR_DEVICES)

    def refuse(self, offset: int, why: str):
        self.problems.append(self.source.problem(offset, why))

    def gpu_only(self, token: Token, why: str):
        """Refuse what only a GPU runs. If an #if decides whose macros nobody knows, the compiler says so."""
        if self.source.lexed.is_undecided(token.start):
            self.edit(
                token.start, token.start, f'_Pragma("GCC error \\"{why.replace(chr(34), chr(39))}\\"") '
            )
        else:
            self.refuse(token.start, why)

    def is_over(self, name: str):
        """Note the end of a pass."""
        self.passes.append((name, len(self.edits)))

    def edit(self, start: int, end: int, replacement: object):
        self.edits.append((start, end, replacement))

    def render(self, start: int, end: int) -> str:
        """A part of the text with its edits. If the replacement is a function, the text is what it returns."""
        pieces, at = [], start
        for low, high, replacement in self.edits:
            if low < at or high > end:
                continue
            pieces += (self.text[at:low], replacement() if callable(replacement) else replacement)
            at = high
        return "".join(pieces) + self.text[at:end]


def rewrite(
    source_path: str, rewriter_class, tool: str, prologue: str, root=None, find=None
) -> tuple[dict[str, str], list, list[str]]:
    """The texts to write, the problems and the notes. The source's text has the key "", headers their relative path.

    `root` and `find`: see Unit.
    """
    unit = Unit(read(source_path), source_path, rewriter_class.defined, find, root=root)
    return rewrite_unit(unit, rewriter_class, tool, prologue)


def rewrite_unit(
    unit: Unit, rewriter_class, tool: str, prologue: str
) -> tuple[dict[str, str], list, list[str]]:
    """The same of files that are read."""
    parts = []
    for known in answers_of(unit):
        texts, problems, notes = _rewritten(unit.where(known), rewriter_class, tool, prologue)
        if problems:
            return texts, problems, notes
        parts.append((known, texts, notes))
    if not parts:
        return _rewritten(unit, rewriter_class, tool, prologue)
    texts = {name: joined((known, texts[name]) for known, texts, _ in parts) for name in parts[0][1]}
    return texts, [], [line for *_, notes in parts for line in notes]


def _rewritten(
    unit: Unit, rewriter_class, tool: str, prologue: str
) -> tuple[dict[str, str], list, list[str]]:
    texts, problems, notes = {}, [], []
    for relative, source in {"": unit.main, **unit.headers}.items():
        unit.clock.check(len(unit.headers))
        rewriter = rewriter_class(unit, source)
        words = "" if relative else prologue
        base = os.fsencode(os.path.basename(source.path)).decode("latin-1")
        problems, notes = problems + rewriter.problems, notes + rewriter.notes
        if not rewriter.problems:
            texts[relative] = (
                BANNER.format(tool, base)
                + words
                + f'#line 1 "{quoted(source.path)}"\n'
                + rewriter.rewritten()
            )
    return texts, sorted(set(problems)), notes


def quoted(path: str) -> str:
    """A path as a #line directive has it, in the encoding of the texts (latin-1)."""
    return os.fsencode(path.replace("\\", "\\\\").replace('"', '\\"')).decode("latin-1")


def remove_orphans(folder: str, source_folder: str):
    """Remove the outputs of headers that no longer exist. A compiler would still find them."""
    for parent, _, names in os.walk(folder):
        for name in names:
            output = os.path.join(parent, name)
            if os.path.exists(os.path.join(source_folder, os.path.relpath(output, folder))):
                continue
            if name.endswith(".partial"):  # another process is writing it
                continue
            # Another make may have renamed or removed the file.
            with contextlib.suppress(FileNotFoundError):
                with open(output, "rb") as file:
                    banner = file.readline()
                if banner.startswith(b"// Made by tools/") and os.fsencode(f" from {name};") in banner:
                    os.remove(output)


def _options(tool: str, arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=tool)
    parser.add_argument("source")
    parser.add_argument("output")
    parser.add_argument("--depfile", help="the depfile: rules for make")
    parser.add_argument(
        "--root", metavar="FOLDER", help="local headers may lie anywhere in FOLDER, as in the output"
    )
    parser.add_argument("--watched", action="store_true", help="for the race finder")
    parser.add_argument("--plain", action="store_true", help="no kernel becomes loops")
    return parser.parse_args(arguments)


def rewrite_files(
    tool: str, rewriter_class, arguments: list[str], prologue="", notes="", find_in=None
) -> int:
    """The command line of a rewriter. Returns the exit status.

    Args:
        prologue: the first lines of the output.
        notes: the suffix of a file beside the output for notes.
        find_in: makes a Unit's `find` of the folder --root.
    """
    tool = os.path.basename(tool)
    options = _options(tool, arguments)
    gc.disable()  # millions of tokens live to the end
    try:
        return _rewrite_files(tool, rewriter_class, options, prologue, notes, find_in)
    finally:
        gc.enable()


def _rewrite_files(tool: str, rewriter_class, options, prologue: str, notes: str, find_in) -> int:
    rewriter_class.watched, rewriter_class.plain = options.watched, options.plain
    source, output, root = options.source, options.output, options.root
    here = os.path.dirname(source) or "."
    folder = os.path.dirname(output) or "."
    if root:
        up = os.path.relpath(root, here)
        here, folder = root, os.path.normpath(os.path.join(folder, up))
    try:
        texts, problems, lines = rewrite(
            source, rewriter_class, tool, prologue, root, find_in and find_in(root)
        )
        if os.path.realpath(folder) == os.path.realpath(here) and len(texts) > 1:
            raise OSError("the output's folder must not be the source's: local headers would be overwritten")
        if not problems:
            remove_orphans(folder, here)
            headers = [name for name in texts if name]
            # Several sources may include a header, so an unchanged header keeps its time stamp.
            for name in headers:
                write(os.path.join(folder, name), texts[name], if_changed=True)
            if options.depfile:
                inputs = [source] + [os.path.normpath(os.path.join(here, name)) for name in headers]
                write(options.depfile, depfile(output, inputs))
            if notes:
                write(output + notes, "".join(line + "\n" for line in lines))
            write(output, texts[""])
            return 0
        for problem in problems:
            print(problem, file=sys.stderr)
    except OSError as error:
        print(f"{source}:1:1: error: {error}", file=sys.stderr)
    if os.path.exists(output):
        os.remove(output)
    return 1
