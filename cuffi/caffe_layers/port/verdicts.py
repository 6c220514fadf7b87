"""The results of a port of all types: a table for people, a file of JSON for programs, and a line of counts."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from tools.console import console
from tools.files import read, write

from .tree import Tree

# The file in BUILD: a line of JSON for each type.
JSON = "port.jsonl"
# The exit status: of a refused type, and of one that does not compile.
REFUSED, FAILED = 1, 2
_STATUS = {"refused": REFUSED, "does not compile": FAILED}


class Row(NamedTuple):
    """The result of one type.

    Attributes:
        verdict: compiles, ported (and not compiled), to do by hand, refused, does not compile.
        seconds: of reading its files and of compiling them.
        log: the file with the compilers' output; "" if nothing was compiled.
    """

    type: str
    folder: str
    verdict: str
    reason: str
    seconds: float = 0
    log: str = ""


def status(verdicts: list[str]) -> int:
    """0 if all were ported; else that of the worst."""
    return max((_STATUS.get(verdict, 0) for verdict in verdicts), default=0)


def counts(verdicts: list[str]) -> str:
    """The last line: "3 types: 2 compiles, 1 refused"."""
    found = ", ".join(f"{count} {verdict}" for verdict, count in sorted(Counter(verdicts).items()))
    return f"{len(verdicts)} type{'s' * (len(verdicts) != 1)}: {found or 'none'}"


def write_json(rows: list[Row], build: str) -> Path:
    """Write the rows, and return the file."""
    path = Path(build, JSON)
    write(path, "".join(json.dumps(row._asdict()) + "\n" for row in rows))
    return path


def show(tree: Tree, rows: list[Row]) -> None:
    table = Table(title=str(tree.root))
    for column in ("type", "folder", "result", "reason, or what to do"):
        table.add_column(column, overflow="fold")  # wrap long names in a narrow window
    for row in rows:
        table.add_row(*row[:4])
    console(width=None if sys.stdout.isatty() else 160).print(table)


def compiled_in(build: str, folder: str) -> float:
    """The seconds of the compilers that made a layer's files: each opens its log when it starts."""
    logs = [log for log in Path(build, folder).rglob("*.log") if log.with_suffix("").exists()]
    took = (log.with_suffix("").stat().st_mtime - log.stat().st_mtime for log in logs)
    return sum(seconds for seconds in took if seconds > 0)


def kept_log(build: str, folder: str) -> str:
    """Write the compilers' output of a layer into one file, and return its path; "" if there is no output."""
    logs = sorted(Path(build, folder).rglob("*.log"))
    text = "".join(f"== {log.name}\n{read(log)}\n" for log in logs if log.stat().st_size)
    if not text:
        return ""
    path = Path(build, "port", f"{folder}.log")
    write(path, text)
    return str(path)
