"""The syntax trees of Python files, each read once in a process: several tests walk over all files of the checkout."""

import ast
import functools
import gc
from collections.abc import Iterator
from pathlib import Path

from .typed import not_none

NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
WITH_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


@functools.cache
def tree_of(file: Path) -> ast.Module:
    return _parsed(file)


@functools.cache
def named_in(file: Path) -> list[ast.stmt]:
    """The functions, classes and imports of a file, wherever they stand: with their docstrings, and nothing else."""
    found = list(named(_parsed(file)))
    for node in found:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.body = node.body[: 1 if ast.get_docstring(node, clean=False) else 0]
    return found


def named(tree: ast.AST) -> Iterator[ast.stmt]:
    """The same of a tree. Expressions, which are most of a tree, have none."""
    for field in WITH_BODIES:
        for inner in getattr(tree, field, ()):
            if isinstance(inner, NAMED):
                yield inner
            yield from named(inner)


def _parsed(file: Path) -> ast.Module:
    """Without Python's collector, which looks through all trees again and again: in a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    finally:
        if was_enabled:
            gc.enable()


def lines_of(function: ast.FunctionDef) -> int:
    """The lines of a function without its docstring."""
    body, count = function.body, not_none(function.end_lineno) - function.lineno + 1
    text = body[0] if ast.get_docstring(function) else None
    return count - (not_none(text.end_lineno) - text.lineno + 1 if text else 0)
