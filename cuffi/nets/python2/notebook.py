"""Run a notebook's cells as IPython does: Python, its `%commands`, and `!commands` of the shell.

A cell is read by tokens, so a `%` inside of a text is text. A cell that cannot be read is reported, and the others run.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base import CaffeRuntimeError, CaffeValueError
from .convert import parsed, quiet, source
from .literals import as_text, strings

if TYPE_CHECKING:
    from .modules import Tree


class NotebookError(CaffeRuntimeError):
    """Some cells could not be read, and were left out."""


@dataclass
class Cell:
    """A cell: its place among all, and its text."""

    number: int
    text: str


def cells(path: Path) -> tuple[list[Cell], int]:
    """The cells of code, and the notebook's language: 2, 3, or 0 if it does not say."""
    try:
        book = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        wrong = f"{path}, line {error.lineno}: no notebook, which is JSON: {error.msg}. Is the file whole?"
        raise CaffeValueError(wrong) from None
    found = book.get("cells") or [cell for sheet in book.get("worksheets", ()) for cell in sheet["cells"]]
    code = [cell for cell in found if cell.get("cell_type") == "code"]
    texts = [Cell(i + 1, "".join(c.get("source", c.get("input", "")))) for i, c in enumerate(code)]
    data = book.get("metadata", {})
    said = str(data.get("language_info", {}).get("version") or data.get("kernelspec", {}).get("name") or "")
    number = re.search(r"[23]", said)
    return texts, int(number[0]) if number else 0


def run(tree: Tree, path: Path, names: dict) -> None:
    """Run the cells in a namespace. NotebookError at the end if some were left out."""
    texts, language = cells(path)
    shell = _Shell(tree, path, names)
    read, wrong = [], []
    for cell in texts:
        try:
            read.append((cell, *shell.read(cell, language)))
        except SyntaxError as error:
            wrong.append(cell.number)
            print(f"{shell.place(cell)}: left out: {error.msg} (line {error.lineno})", file=sys.stderr)
    told = language or next((found for _, _, found in read if found), 0)
    tree.language = tree.language or told
    for cell, node, found in read:
        shell.run(cell, node, found or tree.language)
    if wrong:
        raise NotebookError(
            f"{path}: cells {', '.join(map(str, wrong))} could not be read, and were left out"
        )


# ------------------------------------------------------------------------------------------ IPython's lines

_ASSIGNED = re.compile(r"\s*[\w.,\s\[\]'\"()*]+=\s*(?P<sign>[!%])(?P<rest>.*)$", re.DOTALL)
_HELP = re.compile(r"\s*(\?{1,2}[\w.*]+|[\w.]+\?{1,2})\s*;?\s*$")
_PROMPT = re.compile(r"^(\s*)(?:>>> ?|\.\.\. ?|In \[\d+\]: ?)", re.MULTILINE)


def _is_own(line: str) -> bool:
    return line.lstrip()[:1] in ("!", "%")


def _starts(text: str) -> set[int]:
    """The lines at which a statement may begin: not inside of a text, of brackets or after a backslash."""
    inside, plain = set(), list(text)
    for found, end in strings(text):
        first, last = text.count("\n", 0, found.end()), text.count("\n", 0, end)
        inside.update(range(first + 1, last + 1))
        plain[found.end() : end] = [c if c == "\n" else "_" for c in text[found.end() : end]]
    starts, depth, continued = set(), 0, False
    for number, line in enumerate("".join(plain).split("\n")):
        if number not in inside and depth == 0 and not continued:
            starts.add(number)
        if number not in starts or not _is_own(line):
            code = line.partition("#")[0]
            depth = max(depth + sum(map(code.count, "([{")) - sum(map(code.count, ")]}")), 0)
        continued = line.rstrip().endswith("\\")
    return starts


def translated(text: str) -> str:
    """A cell's text with IPython's own lines as calls of `__magic__` and `__shell__`. Lines keep their numbers."""
    if text.lstrip()[:3] in (">>>", "In "):
        text = _PROMPT.sub(r"\1", text)
    before = text[: len(text) - len(text.lstrip("\n"))]
    if text.startswith("%%", len(before)):
        line, _, rest = text[len(before) + 2 :].partition("\n")
        return f"{before}__cell__({line!r}, {rest!r})"
    starts, lines, made = _starts(text), text.split("\n"), []
    while len(made) < len(lines):
        line, more = lines[len(made)], 1
        if len(made) not in starts:
            made.append(line)
            continue
        while _is_own(line) and line.rstrip().endswith("\\") and len(made) + more < len(lines):
            line = f"{line.rstrip()[:-1]} {lines[len(made) + more].strip()}"
            more += 1
        made += [_line(line), *[""] * (more - 1)]
    return "\n".join(made)


def _line(line: str) -> str:
    indent, code = line[: len(line) - len(line.lstrip())], line.strip()
    if code.startswith("!"):
        return f"{indent}__shell__({code[1:].lstrip('!')!r})"
    if code.startswith("%"):
        return f"{indent}__magic__({code[1:]!r})"
    if _HELP.match(line) and not code.startswith("#"):
        return f"{indent}pass"
    if (found := _ASSIGNED.match(line)) and _is_target(line[: found.start("sign")]):
        call = "__lines__" if found["sign"] == "!" else "__magic__"
        return f"{line[: found.start('sign')]}{call}({found['rest'].strip()!r})"
    return line


def _is_target(text: str) -> bool:
    try:
        ast.parse(f"{text.strip()} 0")
    except SyntaxError:
        return False
    return True


# ------------------------------------------------------------------------------------------------ commands

# Those that change how IPython shows things, or what it loads: nothing to do.
_NOTHING = frozenset((
    "matplotlib", "load_ext", "reload_ext", "autoreload", "config", "precision", "qtconsole", "gui", "alias",
    "colors", "pdb", "debug", "doctest_mode", "xmode", "autocall", "automagic", "logstart", "logstop", "reset",
    "who", "whos", "history", "hist", "notebook", "pprint", "doc", "pdoc", "pinfo", "psource", "lsmagic", "magic",
))  # fmt: skip
_OF_SHELL = {"ls", "mkdir", "rm", "rmdir", "cp", "mv", "cat", "less", "more", "man", "ll", "pip", "conda"}
_SCRIPTS = {"bash": "bash", "sh": "sh", "perl": "perl", "ruby": "ruby", "system": "sh", "sx": "sh", "!": "sh"}
_SHOWN = {"html", "HTML", "javascript", "js", "latex", "markdown", "svg", "SVG"}


class Lines(list):
    """What `x = !command` gives: its lines."""

    @property
    def n(self) -> str:
        """The lines as one text."""
        return "\n".join(self)

    nlstr = n

    @property
    def s(self) -> str:
        """The lines with blanks between."""
        return " ".join(self)

    @property
    def l(self) -> list:  # noqa: E743 - IPython's name
        """The lines."""
        return list(self)


class _Shell:
    """Runs the cells of one notebook."""

    def __init__(self, tree: Tree, path: Path, names: dict):
        self.tree, self.path, self.names = tree, path, names
        self.language = 0
        names.update(__magic__=self.magic, __cell__=self.cell, __shell__=self.shell, __lines__=self.lines)
        names.setdefault("get_ipython", lambda: self)

    def place(self, cell: Cell) -> str:
        return f"{self.path}, cell {cell.number}"

    def read(self, cell: Cell, language: int) -> tuple[ast.Module, int]:
        """A cell's tree and language."""
        lines = [f"{line}\n" for line in cell.text.split("\n")]
        # Tracebacks must show these lines, not those of the JSON.
        linecache.cache[self.place(cell)] = (len(cell.text), None, lines, self.place(cell))
        with quiet():
            return parsed(translated(cell.text), self.place(cell), language)

    def run(self, cell: Cell, node: ast.Module, language: int) -> None:
        """Run a cell."""
        self.language = language
        with quiet():
            code = source(node, self.place(cell), language, is_part=True)
        self.tree.execute(code, self.names)

    def text(self, text: str) -> None:
        """Run the text of a cell that a command has."""
        cell = Cell(0, text)
        node, language = self.read(cell, self.language)
        self.run(cell, node, language or self.language)

    # ------------------------------------------------------------------------------------------- shell

    def filled(self, command: str) -> str:
        """The command with the values of `{expression}` and `$name`."""

        def value(found: re.Match) -> str:
            try:
                return str(eval(found[1] or found[2], self.names))
            except Exception:  # not a name of Python: it is the shell's own
                return found[0]

        return re.sub(r"(?<![$\\])\{([^{}]+)\}|(?<![\\$])\$([A-Za-z_]\w*)", value, command)

    def shell(self, command: str) -> None:
        """!command"""
        sys.stdout.write("".join(f"{line}\n" for line in self._output(command, with_errors=True)))
        sys.stdout.flush()

    def lines(self, command: str) -> Lines:
        """x = !command"""
        return Lines(self._output(command, with_errors=False))

    getoutput, system = lines, shell

    def _output(self, command: str, with_errors: bool) -> list[str]:
        sys.stdout.flush()
        errors = subprocess.STDOUT if with_errors else None
        done = subprocess.run(
            self.filled(command), shell=True, stdout=subprocess.PIPE, stderr=errors, check=False
        )
        return as_text(done.stdout).splitlines()

    # ----------------------------------------------------------------------------------------- commands

    def magic(self, line: str) -> Any:
        """%command arguments"""
        name, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if name == "pylab":
            self.text("import numpy\nimport matplotlib\nfrom matplotlib import pylab, mlab, pyplot\nnp = numpy\n"
                      "plt = pyplot\nfrom pylab import *\nfrom numpy import *")  # fmt: skip
        elif name in ("time", "timeit", "prun"):
            self.text(re.sub(r"^(-\w+\s*\d*\s+)+", "", rest))
        elif name == "cd":
            os.chdir(os.path.expanduser(self.filled(rest).strip("'\"") or "~"))
        elif name in ("pwd", "env", "set_env"):
            return os.getcwd() if name == "pwd" else self._environment(rest)
        elif name in ("run", "load", "loadpy"):
            self._run_file(rest)
        elif name in ("system", "sx", "sc"):
            return self.lines(rest)
        elif name in _OF_SHELL:
            self.shell(f"{'ls -l' if name == 'll' else name} {rest}")
        elif name not in _NOTHING:
            self._unknown(f"%{name}")
        return None

    def run_line_magic(self, name: str, line: str = "") -> Any:
        """get_ipython().run_line_magic(name, line)"""
        return self.magic(f"{name} {line}")

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        """get_ipython().run_cell_magic(name, line, cell)"""
        self.cell(f"{name} {line}", cell)

    def cell(self, line: str, text: str) -> None:
        """%%command arguments, and a cell of text"""
        name, _, rest = line.strip().partition(" ")
        if name in ("time", "timeit", "prun"):
            self.text(text)
        elif name == "capture":
            with contextlib.redirect_stdout(io.StringIO()):
                self.text(text)
        elif name in ("writefile", "file"):
            words = rest.split()
            mode = "a" if "-a" in words[:-1] or "--append" in words[:-1] else "w"
            with open(os.path.expanduser(words[-1]), mode, encoding="utf-8") as file:
                file.write(text)
        elif name in _SCRIPTS or name == "script":
            self._script(_SCRIPTS.get(name) or rest, text)
        elif name not in _SHOWN:
            self._unknown(f"%%{name}")

    def _script(self, program: str, text: str) -> None:
        sys.stdout.flush()
        done = subprocess.run(
            program.split() or ["sh"], input=text.encode(), stdout=subprocess.PIPE, check=False
        )
        sys.stdout.write(as_text(done.stdout))

    def _environment(self, rest: str) -> Any:
        name, equals, value = rest.partition("=")
        if not equals and " " in rest:
            name, _, value = rest.partition(" ")
            equals = "="
        if equals:
            os.environ[name.strip()] = self.filled(value.strip())
        return os.environ.get(name.strip()) if name else dict(os.environ)

    def _run_file(self, rest: str) -> None:
        words = [word for word in self.filled(rest).split() if not word.startswith("-")]
        path = Path(words[0] if words[0].endswith((".py", ".ipynb")) else f"{words[0]}.py")
        before, sys.argv = sys.argv, [str(path), *words[1:]]
        try:
            self.tree.run(path, self.names)
        finally:
            sys.argv = before

    def _unknown(self, command: str) -> None:
        print(
            f"{self.path}: {command} is a command of IPython that is not here, and was left out",
            file=sys.stderr,
        )
