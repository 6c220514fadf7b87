"""Expressions of Python 2 as calls of functions with its behaviour and that of numpy before 1.12."""

from __future__ import annotations

import ast

from .language import AUGMENTED, OLD_BUILTINS
from .methods import ATTRIBUTES, KEYWORDS, METHODS, UNCALLED

# Functions that look at their caller's frame, or that no bytes go into or come out of.
_PLAIN = frozenset((
    "locals", "globals", "vars", "dir", "eval", "execfile", "exec", "compile", "super", "len", "range", "xrange",
    "isinstance", "issubclass", "hasattr", "type", "id", "callable", "abs", "bool", "print", "hash",
    "staticmethod", "classmethod", "property",
))  # fmt: skip
# Functions and types that go through their arguments.
_EACH = frozenset((
    "list", "tuple", "set", "frozenset", "dict", "enumerate", "iter", "sorted", "map", "zip", "filter", "reduce",
    "max", "min", "sum", "any", "all",
))  # fmt: skip
# Calls of these names become calls of what `__type__` gives.
_TYPES = frozenset(("int", "float", "str"))


class Expressions(ast.NodeTransformer):
    """Replaces expressions by calls of language.py.

    Args:
        divides: `/` of integers rounds down: the file does not import division from __future__.
        prints: print is a statement.
    """

    def __init__(self, divides: bool, prints: bool):
        self.divides, self.prints = divides, prints
        self.caught: set[str] = set()  # names of exceptions

    def call(self, name: str, *arguments: ast.expr) -> ast.Call:
        """A call of one of language.py's functions."""
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
        if not isinstance(node.ctx, ast.Load):
            return node
        if isinstance(node.value, ast.Tuple):
            return node
        if (
            isinstance(node.slice, ast.Constant)
            and isinstance(node.value, ast.Name)
            and node.value.id in self.caught
        ):
            return ast.copy_location(self.call("__item__", node.value, node.slice), node)
        if isinstance(node.slice, ast.Constant | ast.Slice):
            return self.call("__text__", node)
        return ast.copy_location(self.call("__item__", node.value, _indexed(node.slice)), node)

    def visit_Attribute(self, node: ast.Attribute):
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return self.call("__text__", self._attribute(node))

    def _attribute(self, node: ast.Attribute) -> ast.expr:
        """`a.b`, also if only Python 2 had b."""
        if node.attr in UNCALLED:
            return self.call("__method__", node.value, ast.Constant(node.attr))
        if node.attr in ATTRIBUTES:
            return self.call("__attribute__", node.value, ast.Constant(node.attr))
        return node

    def visit_Assign(self, node: ast.Assign):
        """`a[i] = b` becomes `__store__(b, a, i)`, and `a.b = c` becomes `__set__(c, a, "b")`."""
        several = isinstance(node.targets[0], ast.Tuple) and _is_call_of(node.value, "findContours")
        count = len(node.targets[0].elts) if isinstance(node.targets[0], ast.Tuple) else 0
        self.generic_visit(node)
        if several:
            node.value = self.call("__contours__", node.value, ast.Constant(count))
        elif count and not isinstance(node.value, ast.Tuple | ast.List):
            node.value = self.call("__each__", node.value)
        if len(node.targets) != 1:
            return node
        target = node.targets[0]
        if (
            isinstance(target, ast.Name)
            and isinstance(node.value, ast.Name)
            and node.value.id == "__caught__"
        ):
            self.caught.add(target.id)
        if isinstance(target, ast.Subscript):
            stored = self.call("__store__", node.value, target.value, _indexed(target.slice))
        elif isinstance(target, ast.Attribute) and not _is_number(node.value):
            stored = self.call("__set__", node.value, target.value, ast.Constant(target.attr))
        else:
            return node
        return ast.copy_location(ast.Expr(ast.copy_location(stored, node)), node)

    def visit_For(self, node: ast.For):
        """`for a in b` becomes `for a in __each__(b)`; in comprehensions, too."""
        self.generic_visit(node)
        node.iter = self._each(node.iter, node.target)
        return node

    def visit_comprehension(self, node: ast.comprehension):
        self.generic_visit(node)
        node.iter = self._each(node.iter, node.target)
        return node

    def _each(self, node: ast.expr, target: ast.expr | None = None) -> ast.expr:
        if isinstance(node, ast.List | ast.Tuple | ast.Constant | ast.ListComp):
            return node
        unpacks = [ast.Constant(True)] if isinstance(target, ast.Tuple | ast.List) else []
        return self.call("__each__", node, *unpacks)

    def visit_Compare(self, node: ast.Compare):
        self.generic_visit(node)
        for i, operation in enumerate(node.ops):
            if isinstance(operation, ast.In | ast.NotIn) and isinstance(
                node.comparators[i], ast.Name | ast.Call
            ):
                node.comparators[i] = self.call("__within__", node.comparators[i])
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
        """`f(x)` becomes `__text__(__callee__(f)(x))`: bytes that libraries give are text, and they take text."""
        method = node.func
        if isinstance(method, ast.Attribute):
            return self._visit_method(node, method)
        self.generic_visit(node)
        name = method.id if isinstance(method, ast.Name) else ""
        if name == "unicode":
            node.func = self.call("__unicode__", method)
        if name.startswith("__") or name in _PLAIN:
            self._ends_a_print(node, name)
            return node
        if name == "iter" and len(node.args) == 2:
            node.func = ast.copy_location(ast.Name("__until__", ast.Load()), node)
            return node
        if name in _EACH:
            node.args = [one if isinstance(one, ast.Starred) else self._each(one) for one in node.args]
        if name in _TYPES and len(node.args) == 1 and not node.keywords:
            node.func = self.call("__type__", method)
            return node
        return self._called(node)

    def _visit_method(self, node: ast.Call, method: ast.Attribute):
        method.value = self.visit(method.value)
        node.args = [self.visit(one) for one in node.args]
        node.keywords = [self.visit(one) for one in node.keywords]
        for keyword in node.keywords:
            keyword.arg = KEYWORDS.get(method.attr, {}).get(keyword.arg or "", keyword.arg)
        if method.attr in METHODS:
            node.func = self.call("__method__", method.value, ast.Constant(method.attr))
        else:
            node.func = self._attribute(method)
        return self._called(node)

    def _called(self, node: ast.Call) -> ast.Call:
        if any(not _is_number(one) for one in (*node.args, *(k.value for k in node.keywords))):
            node.func = self.call("__callee__", node.func)
        return ast.copy_location(self.call("__text__", node), node)

    def _ends_a_print(self, node: ast.Call, name: str) -> None:
        """`print x,` is fissix's `print(x, end=" ")`."""
        for keyword in node.keywords:
            if name == "print" and self.prints and keyword.arg == "end":
                keyword.arg, keyword.value = "continues", ast.Constant(True)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, str)


def _is_call_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name


def _indexed(index: ast.expr) -> ast.expr:
    """An index as an expression outside of its brackets, where a slice needs a call of slice()."""
    if isinstance(index, ast.Slice):
        parts = [part or ast.Constant(None) for part in (index.lower, index.upper, index.step)]
        return ast.Call(ast.Name("__slice__", ast.Load()), parts, [])
    if isinstance(index, ast.Tuple):
        return ast.Tuple([_indexed(part) for part in index.elts], ast.Load())
    return index
