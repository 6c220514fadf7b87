"""Convert a Python file to code that today's Python runs."""

from __future__ import annotations

import ast
import contextlib
import functools
import re
import tokenize
import warnings
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from ...base import CaffeRuntimeError
from . import old_pb2
from .expressions import Expressions
from .literals import Literals, old_literals
from .scopes import scoped

# fissix's fixers for syntax that today's parser does not read. Other differences are handled elsewhere.
FIXERS = (
    "except",
    "exec",
    "ne",
    "numliterals",
    "print",
    "raise",
    "repr",
    "throw",
    "tuple_params",
    "ws_comma",
)
_OLD_NAMES = {"xrange", "unicode", "basestring", "raw_input", "unichr", "execfile", "long"}
_OLD_METHODS = {"has_key", "iteritems", "iterkeys", "itervalues"}
# Syntax that no Python 2 file has.
_NEW = (
    ast.JoinedStr,
    ast.AnnAssign,
    ast.AsyncFunctionDef,
    ast.Nonlocal,
    ast.NamedExpr,
    ast.MatMult,
    ast.YieldFrom,
)


@dataclass
class Dialect:
    """A file's Python. `language`: 2, 3, or 0 if undecided; then it runs as Python 2."""

    language: int
    absolute: bool  # has `from __future__ import absolute_import`


@dataclass
class Source(Dialect):
    """A file's code."""

    code: CodeType


@functools.cache
def refactoring():
    """fissix's tool. fissix is the lib2to3 that Python had until 3.12."""
    try:
        from fissix.refactor import RefactoringTool
    except ImportError:
        raise CaffeRuntimeError("a Python 2 file needs the package fissix: pip install fissix") from None
    return RefactoringTool([f"fissix.fixes.fix_{name}" for name in FIXERS])


def read(path: Path) -> str:
    """The text of a .py file."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (SyntaxError, UnicodeDecodeError):  # Python 2 accepted this
        return path.read_text("latin-1")


def compiled(path: Path, others: int = 0) -> Source:
    """The code of a file. SyntaxError with the file and line if it is neither Python 3 nor Python 2.

    Args:
        others: the language of the files beside it, which decides if the file itself is undecided.
    """
    text = read(path)
    with quiet():
        tree, language = parsed(text, str(path), others)
        if path.name.endswith("_pb2.py") and (made := old_pb2.code_of(tree, str(path))):
            return Source(3, True, made)
        return source(tree, str(path), language)


def source(tree: ast.Module, path: str, language: int, is_part: bool = False) -> Source:
    """The code of a tree, in that language (0: undecided, which runs as Python 2). `is_part`: of a notebook."""
    futures = _futures(tree)
    if language != 3:
        tree = _old(tree, "division" not in futures, "print_function" not in futures, is_part)
    return Source(language, "absolute_import" in futures, compile(tree, path, "exec", dont_inherit=True))


def _old(tree: Any, divides: bool, prints: bool, is_part: bool) -> Any:
    tree = Expressions(divides, prints).visit(scoped(Literals().visit(tree), is_part))
    return ast.fix_missing_locations(tree)


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Without warnings of a file's syntax, such as "\\d" in a string."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        yield


def converted(text: str, mode: str, divides: bool, name: str = "<string>") -> CodeType:
    """The code of a text that a Python 2 file evaluates. `mode`: eval, exec or single."""
    text = old_literals(text, False)
    try:
        tree: Any = ast.parse(text, name, mode)
        if mode == "exec" and _prints_by_statement(tree):
            tree, _ = parsed(text + "\n", name)
    except SyntaxError:
        tree, _ = parsed(text + "\n", name)
        if mode == "eval":
            first = tree.body[0] if len(tree.body) == 1 else None
            if not isinstance(first, ast.Expr):
                raise
            tree = ast.Expression(first.value)
    return compile(_old(tree, divides, True, True), name, mode, dont_inherit=True)


def parsed(text: str, path: str, others: int = 0) -> tuple[ast.Module, int]:
    """A file's tree and its language: 2 or 3 if only that one reads it, `others` if nothing tells."""
    of_unicode = re.search(r"^from __future__ import .*\bunicode_literals", text, re.MULTILINE) is not None
    old = old_literals(text, of_unicode)
    tree, new = None, None
    for candidate in dict.fromkeys((text, old)):
        try:
            tree = ast.parse(candidate, path)
            if not _prints_by_statement(tree) or "python3" in text.partition("\n")[0]:
                language = 2 if new else _language(tree, text, _futures(tree)) or others
                if language == 3:
                    return tree, 3
                tree = ast.parse(old, path)
                return (_of_statements(tree) if language == 2 else tree), language
            break
        except SyntaxError as error:
            new = new or error
    return _by_fissix(old, path, tree, new)


def _of_statements(tree: ast.Module) -> ast.Module:
    """A tree whose lines `print(a, b)` are statements, which write a tuple."""
    if "print_function" in _futures(tree):
        return tree
    calls = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    for call in calls:
        is_print = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"
        if isinstance(call, ast.Call) and is_print and len(call.args) != 1 and not call.keywords:
            call.args = [ast.copy_location(ast.Tuple(call.args, ast.Load()), call)]
    return tree


def _by_fissix(
    text: str, path: str, tree: ast.Module | None, new: SyntaxError | None
) -> tuple[ast.Module, int]:
    # In Python 2 a tab could stand for up to eight blanks.
    text = "\n".join(_untabbed(line) for line in text.split("\n")) + "\n"
    try:
        return ast.parse(str(refactoring().refactor_string(text, path)), path), 2
    except CaffeRuntimeError:
        raise
    except Exception:  # fissix has errors of several kinds
        if tree is not None:
            return tree, 0
        assert new is not None
        new.msg = f"{new.msg} (nor is it Python 2)"
        raise new from None


def _futures(tree: ast.Module) -> set[str]:
    return {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for alias in node.names
    }


def _prints_by_statement(tree: ast.Module) -> bool:
    """Are there lines that both Pythons read, in two ways: `print [x]`, `print >>f, x`, `print (x), y`, `print -x`?"""
    if "print_function" in _futures(tree):
        return False
    return any(isinstance(node, ast.Expr) and _begins_with_print(node.value) for node in ast.walk(tree))


def _begins_with_print(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return False
    if isinstance(node, ast.IfExp) and isinstance(node.orelse, ast.Constant) and node.orelse.value is None:
        return False  # `print(x) if a else None`, which is Python 3's
    while not isinstance(node, ast.Name):
        inner = getattr(node, _FIRST.get(type(node), ""), None)
        first = inner[0] if isinstance(inner, list) and inner else inner
        if not isinstance(first, ast.expr):
            return False
        node = first
    return node.id == "print"


# The part of an expression that its text begins with.
_FIRST = {ast.Tuple: "elts", ast.BinOp: "left", ast.Compare: "left", ast.BoolOp: "values", ast.IfExp: "body",
          ast.Subscript: "value", ast.Attribute: "value", ast.Call: "func"}  # fmt: skip


def _untabbed(line: str) -> str:
    code = line.lstrip(" \t")
    return line[: len(line) - len(code)].expandtabs(8) + code


def _language(tree: ast.Module, text: str, futures: set[str]) -> int:
    """2 or 3, by words or syntax that only one of them has; 0 if undecided."""
    if text.startswith("#!") and "python3" in text.split("\n", 1)[0]:
        return 3
    old = False
    for node in ast.walk(tree):
        if isinstance(node, _NEW) or _is_new(node, futures):
            return 3
        named = isinstance(node, ast.Name) and node.id in _OLD_NAMES
        old = old or named or (isinstance(node, ast.Attribute) and node.attr in _OLD_METHODS)
    return 2 if old else 0


def _is_new(node: ast.AST, futures: set[str]) -> bool:
    if isinstance(node, ast.FunctionDef):
        arguments = [*node.args.args, *node.args.kwonlyargs]
        return bool(node.returns or node.args.kwonlyargs or any(a.annotation for a in arguments))
    if isinstance(node, ast.Raise):
        return node.cause is not None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    if node.func.id == "print" and "print_function" not in futures:
        return any(keyword.arg for keyword in node.keywords)
    return node.func.id == "super" and not node.args
