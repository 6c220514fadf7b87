"""Convert a Python file to code that today's Python runs."""

from __future__ import annotations

import ast
import functools
import json
import linecache
import tokenize
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from ...base import CaffeRuntimeError
from . import old_pb2
from .language import AUGMENTED, METHODS, OLD_BUILTINS

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
    """The text of a .py file, or of a notebook's cells."""
    if path.suffix == ".ipynb":
        return _cells(path)
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (SyntaxError, UnicodeDecodeError):  # Python 2 accepted this
        return path.read_text("latin-1")


def _cells(path: Path) -> str:
    """The code cells, one after the other. IPython's own commands (`%matplotlib inline`, `!ls`) become comments."""
    book = json.loads(path.read_text("utf-8"))
    cells = book.get("cells") or [cell for sheet in book.get("worksheets", ()) for cell in sheet["cells"]]
    texts = ["".join(c.get("source", c.get("input", ""))) for c in cells if c.get("cell_type") == "code"]
    lines = [line for text in texts for line in text.split("\n")]
    lines = [line if line.lstrip()[:1] not in ("%", "!") else _commented(line) for line in lines]
    # Tracebacks must show these lines, not those of the JSON.
    linecache.cache[str(path)] = (len(lines), None, [f"{line}\n" for line in lines], str(path))
    return "\n".join(lines)


def _commented(line: str) -> str:
    return line[: len(line) - len(line.lstrip())] + "pass  # " + line.lstrip()


def compiled(path: Path, others: int = 0) -> Source:
    """The code of a file. SyntaxError with the file and line if it is neither Python 3 nor Python 2.

    Args:
        others: the language of the files beside it, which decides if the file itself is undecided.
    """
    text = read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # "\d" in a string
        tree, language = _parsed(text, str(path))
        if path.name.endswith("_pb2.py") and (made := old_pb2.code_of(tree, str(path))):
            return Source(3, True, made)
        futures = {
            alias.name for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
            for alias in node.names
        }  # fmt: skip
        language = language or _language(tree, text, futures) or others
        if language != 3:
            tree = ast.fix_missing_locations(_Old("division" not in futures).visit(tree))
        code = compile(tree, str(path), "exec", dont_inherit=True)
    return Source(language, "absolute_import" in futures, code)


def converted(text: str, mode: str, divides: bool) -> CodeType:
    """The code of a text that a Python 2 file evaluates. `mode`: eval or exec."""
    try:
        tree = ast.parse(text, "<string>", mode)
    except SyntaxError:
        tree, _ = _parsed(text + "\n", "<string>")
        if mode == "eval":
            first = tree.body[0] if len(tree.body) == 1 else None
            if not isinstance(first, ast.Expr):
                raise
            tree = ast.Expression(first.value)
    return compile(ast.fix_missing_locations(_Old(divides).visit(tree)), "<string>", mode, dont_inherit=True)


def _parsed(text: str, path: str) -> tuple[ast.Module, int]:
    tree = None
    try:
        tree = ast.parse(text, path)
        if not _prints_by_statement(tree) or "python3" in text.partition("\n")[0]:
            return tree, 0
    except SyntaxError as error:
        new = error
    # In Python 2 a tab could stand for up to eight blanks.
    text = "\n".join(_untabbed(line) for line in text.split("\n")) + "\n"
    try:
        return ast.parse(str(refactoring().refactor_string(text, path)), path), 2
    except CaffeRuntimeError:
        raise
    except Exception as old:  # fissix has errors of several kinds
        if tree is not None:
            return tree, 0
        new.msg = f"{new.msg} (nor is it Python 2: {old})"
        raise new from None


def _prints_by_statement(tree: ast.Module) -> bool:
    """Are there lines that both Pythons read, in two ways: `print [x]`, `print >>f, x`, `print (x), y`, `print -x`?"""
    if any(isinstance(n, ast.ImportFrom) and n.module == "__future__" and
           any(alias.name == "print_function" for alias in n.names) for n in tree.body):  # fmt: skip
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


class _Old(ast.NodeTransformer):
    """Replaces expressions by calls of language.py, with the behaviour of Python 2 and numpy before 1.12."""

    def __init__(self, divides: bool):
        self.divides = divides

    def call(self, name: str, *arguments: ast.expr) -> ast.Call:
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), list(arguments), []), arguments[0])

    def visit_BinOp(self, node: ast.BinOp):
        self.generic_visit(node)
        if isinstance(node.op, ast.Div) and self.divides:
            return self.call("__divided__", node.left, node.right)
        name = f"__{type(node.op).__name__}__"
        return self.call(name, node.left, node.right) if name in OLD_BUILTINS else node

    def visit_Subscript(self, node: ast.Subscript):
        """`a[i]` becomes `__item__(a, i)`, unless i is a constant or a slice, which numpy reads as it did."""
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Constant | ast.Slice):
            return ast.copy_location(self.call("__item__", node.value, _indexed(node.slice)), node)
        return node

    def visit_Assign(self, node: ast.Assign):
        """`a[i] = b` becomes `__store__(b, a, i)`."""
        self.generic_visit(node)
        if len(node.targets) != 1 or not isinstance(target := node.targets[0], ast.Subscript):
            return node
        stored = self.call("__store__", node.value, target.value, _indexed(target.slice))
        return ast.copy_location(ast.Expr(ast.copy_location(stored, node)), node)

    def visit_Compare(self, node: ast.Compare):
        self.generic_visit(node)
        name = f"__{type(node.ops[0]).__name__}__"
        if len(node.ops) == 1 and name in OLD_BUILTINS:
            return self.call(name, node.left, node.comparators[0])
        return node

    def visit_If(self, node):
        """`if a` becomes `if __true__(a)`; `while` and `x if a else y`, too."""
        self.generic_visit(node)
        node.test = self.call("__true__", node.test)
        return node

    visit_While = visit_IfExp = visit_If

    def visit_UnaryOp(self, node: ast.UnaryOp):
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            node.operand = self.call("__true__", node.operand)
        return node

    def visit_AugAssign(self, node: ast.AugAssign):
        """`a[i] += b` becomes `__augment__(a, i, __iadd__, b)`, and `a.b /= c` becomes `a.b = __divide__(a.b, c)`."""
        self.generic_visit(node)
        target, divides = node.target, isinstance(node.op, ast.Div) and self.divides
        name = "__divide__" if divides else f"__i{AUGMENTED.get(type(node.op).__name__)}__"
        if isinstance(target, ast.Subscript):
            change = ast.Name(name, ast.Load())
            called = self.call("__augment__", target.value, _indexed(target.slice), change, node.value)
            return ast.copy_location(ast.Expr(ast.copy_location(called, node)), node)
        before = []
        if isinstance(target, ast.Attribute) and not isinstance(target.value, ast.Name):
            held = ast.Assign([ast.Name("__held__", ast.Store())], target.value)
            before, target.value = [ast.copy_location(held, node)], ast.Name("__held__", ast.Load())
        if isinstance(target, ast.Name):
            value = ast.Name(target.id, ast.Load())
        else:
            value = ast.Attribute(target.value, target.attr, ast.Load())
        ast.copy_location(value, node)
        done = ast.Assign([target], self.call(name, value, node.value))
        return [*before, ast.copy_location(done, node)]

    def visit_Slice(self, node: ast.Slice):
        self.generic_visit(node)
        for name in ("lower", "upper", "step"):
            part = getattr(node, name)
            if part is not None and type(getattr(part, "value", None)) is not int:
                setattr(node, name, self.call("__index__", part))
        return node

    def visit_Call(self, node: ast.Call):
        self.generic_visit(node)
        method = node.func
        is_type = isinstance(method, ast.Name) and method.id in ("int", "float", "str")
        if is_type and len(node.args) == 1 and not node.keywords:
            node.func = self.call("__type__", method)
        elif isinstance(method, ast.Attribute) and method.attr in METHODS:
            node.func = self.call("__method__", method.value, ast.Constant(method.attr))
        return node

    def visit_ClassDef(self, node: ast.ClassDef):
        """Adds today's names for `next`, `__nonzero__` and `__div__`."""
        self.generic_visit(node)
        defined = {child.name for child in node.body if isinstance(child, ast.FunctionDef)}
        for old, new in (("next", "__next__"), ("__nonzero__", "__bool__"), ("__div__", "__truediv__")):
            if old in defined and new not in defined:
                node.body.append(ast.Assign([ast.Name(new, ast.Store())], ast.Name(old, ast.Load())))
        return node


def _indexed(index: ast.expr) -> ast.expr:
    """An index as an expression outside of its brackets, where a slice needs a call of slice()."""
    if isinstance(index, ast.Slice):
        parts = [part or ast.Constant(None) for part in (index.lower, index.upper, index.step)]
        return ast.Call(ast.Name("__slice__", ast.Load()), parts, [])
    if isinstance(index, ast.Tuple):
        return ast.Tuple([_indexed(part) for part in index.elts], ast.Load())
    return index
