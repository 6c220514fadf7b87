"""The syntax trees of Python files, each read once in a process: several tests walk over all files of the checkout."""

import ast
import functools
from pathlib import Path


@functools.cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))
