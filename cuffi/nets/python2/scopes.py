"""Python 2's rules of names and scopes: comprehensions leave their variables, generators end by StopIteration.

It changes the syntax tree. `scoped(tree)` is the whole.
"""

from __future__ import annotations

import ast
from collections import Counter

# Functions that may read any name of the scope that calls them.
_READ_NAMES = {"locals", "vars", "dir", "globals"}  # without arguments
_RUN_TEXT = {"eval", "execfile", "exec"}
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)


def scoped(tree: ast.AST, is_part: bool = False) -> ast.AST:
    """The tree, with the scopes of Python 2.

    Args:
        is_part: other code uses this code's names: a notebook's cell, a text that is run.
    """
    return _Comprehensions(tree, is_part).visit(_Statements().visit(tree))


class _Statements(ast.NodeTransformer):
    """Generators, the names of handlers, and classes."""

    def visit_FunctionDef(self, node: ast.FunctionDef):
        """A generator also ends where StopIteration leaves it."""
        self.generic_visit(node)
        if _yields(node) and not any("contextmanager" in ast.dump(one) for one in node.decorator_list):
            first = 1 if ast.get_docstring(node) is not None else 0
            stop = ast.ExceptHandler(ast.Name("StopIteration", ast.Load()), None, [ast.Return(None)])
            body = node.body[first:] or [ast.Pass()]
            node.body[first:] = [ast.copy_location(ast.Try(body, [stop], [], []), body[0])]
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp):
        self.generic_visit(node)
        if not any(_is_next(one) for one in ast.walk(node)):
            return node
        return ast.copy_location(ast.Call(ast.Name("__ended__", ast.Load()), [node], []), node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler):
        """The name of an exception stays after its handler."""
        self.generic_visit(node)
        if node.name is not None:
            kept = ast.Assign([ast.Name(node.name, ast.Store())], ast.Name("__caught__", ast.Load()))
            node.name, node.body = "__caught__", [ast.copy_location(kept, node), *node.body]
        return node

    def visit_ClassDef(self, node: ast.ClassDef):
        """`__metaclass__` makes the class, and `__old_class__` gives it today's names of methods."""
        self.generic_visit(node)
        for child in node.body:
            if isinstance(child, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == "__metaclass__" for target in child.targets
            ):
                node.keywords.append(ast.keyword("metaclass", ast.copy_location(child.value, node)))
        node.decorator_list.append(ast.copy_location(ast.Name("__old_class__", ast.Load()), node))
        return node


def _is_next(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
    return name == "next"


def _nodes_of(node: ast.AST):
    """The nodes of a scope, without those of functions and classes in it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            yield from _nodes_of(child)


def _yields(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in _nodes_of(node))


class _Comprehensions(ast.NodeTransformer):
    """`[f(x) for x in xs]` also sets x in its function: it becomes
    `[f(x) for __c1__ in xs if ((x := __c1__), True)[-1]]`.

    Only where the name is used elsewhere, or by a function inside. In a class's body, where `:=` may not stand, a loop
    before the statement makes the list.
    """

    def __init__(self, tree: ast.AST, is_part: bool):
        self.count, self.in_own, self.in_class = 0, False, False
        self.uses = _uses(tree)
        self.reads_all = is_part or any(map(_reads_names, ast.walk(tree)))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.Lambda):
        node.args = self.visit(node.args)
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [self.visit(one) for one in node.decorator_list]
        before = self.in_own, self.in_class, self.uses
        self.in_own = self.in_class = False
        self.uses = _uses(node)
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.body = [self.visit(one) for one in node.body]
        self.in_own, self.in_class, self.uses = before
        return node

    visit_Lambda = visit_FunctionDef

    def visit_GeneratorExp(self, node: ast.GeneratorExp | ast.SetComp | ast.DictComp):
        first = node.generators[0]
        first.iter = self.visit(first.iter)
        before, self.in_own = self.in_own, True
        iterable, first.iter = first.iter, ast.Constant(None)
        self.generic_visit(node)
        first.iter, self.in_own = iterable, before
        outside: list[ast.expr] = []
        self._outside(first, outside)
        return _after(outside, node)

    visit_SetComp = visit_DictComp = visit_GeneratorExp

    def visit_ClassDef(self, node: ast.ClassDef):
        before = self.in_own, self.in_class
        self.in_own, self.in_class = False, True
        node.body = [made for child in node.body for made in self._statements(child)]
        self.in_own, self.in_class = before
        return node

    def _statements(self, node: ast.stmt) -> list[ast.stmt]:
        """The statements of a class's body that one of its statements becomes."""
        if not isinstance(node, ast.Assign | ast.Expr | ast.AugAssign):
            return [self.visit(node)]
        lists = _Hoisted(self)
        node = lists.visit(node)
        return [*lists.before, self.visit(node)]

    def named(self) -> str:
        """A new name."""
        self.count += 1
        return f"__c{self.count}__"

    def visit_ListComp(self, node: ast.ListComp):
        self.generic_visit(node)
        if self.in_own or self.in_class or not self._leaves(node):
            return node
        outside: list[ast.expr] = []
        for i, loop in enumerate(node.generators):
            self._outside(loop, node.generators[i - 1].ifs if i else outside)
            sets = self._renamed(loop)
            loop.ifs[:0] = [_always(sets)] if sets else []
        return _after(outside, node)

    def _leaves(self, node: ast.ListComp) -> bool:
        """Does anything use the names that the comprehension leaves, or hold them?"""
        if self.reads_all or isinstance(node.elt, ast.GeneratorExp):
            return True
        if any(isinstance(each, ast.Lambda | ast.NamedExpr) for each in ast.walk(node)):
            return True
        return any(self.uses[name.id] for loop in node.generators for name in _stored(loop.target))

    def _outside(self, loop: ast.comprehension, place: list[ast.expr]) -> None:
        """An iterable with `:=` goes before its loop, because `:=` may not stand in it."""
        if any(isinstance(each, ast.NamedExpr) for each in ast.walk(loop.iter)):
            name = self.named()
            place.append(_always([ast.NamedExpr(ast.Name(name, ast.Store()), loop.iter)]))
            loop.iter = ast.Name(name, ast.Load())

    def _renamed(self, loop: ast.comprehension) -> list[ast.expr]:
        """Gives the loop's variables names of their own. Returns what sets the file's names."""
        sets: list[ast.expr] = []
        for target in _stored(loop.target):
            own, name = self.named(), target.id
            target.id = own
            sets.append(ast.NamedExpr(ast.Name(name, ast.Store()), ast.Name(own, ast.Load())))
        return sets


class _Hoisted(ast.NodeTransformer):
    """Makes the lists of a class's statement by loops before it."""

    def __init__(self, names: _Comprehensions):
        self.names, self.before = names, []

    def _left(self, node: ast.AST):
        return node  # not always run, or a scope of its own

    visit_Lambda = visit_IfExp = visit_BoolOp = visit_GeneratorExp = visit_SetComp = visit_DictComp = _left

    def visit_ListComp(self, node: ast.ListComp):
        name = self.names.named()
        before, elt = self._inside(node.elt)
        append = ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load()), [elt], [])
        body: list[ast.stmt] = [*before, ast.Expr(append)]
        for loop in reversed(node.generators):
            for test in reversed(loop.ifs):
                before, test = self._inside(test)
                body = [*before, ast.If(test, body, [])]
            before, iterable = self._inside(loop.iter)
            body = [*before, ast.For(loop.target, iterable, body, [])]
        made = [ast.Assign([ast.Name(name, ast.Store())], ast.List([], ast.Load())), *body]
        self.before += [ast.fix_missing_locations(ast.copy_location(one, node)) for one in made]
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def _inside(self, node: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
        """What makes the lists in a part of a list, and the part."""
        lists = _Hoisted(self.names)
        node = lists.visit(node)
        return lists.before, node


def _always(values: list[ast.expr]) -> ast.expr:
    """An expression that computes the values and is true."""
    return ast.Subscript(ast.Tuple([*values, ast.Constant(True)], ast.Load()), ast.Constant(-1), ast.Load())


def _after(outside: list[ast.expr], node: ast.expr) -> ast.expr:
    """The node, after what must be computed before it."""
    if not outside:
        return node
    made = ast.Subscript(ast.Tuple([*outside, node], ast.Load()), ast.Constant(-1), ast.Load())
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _stored(target: ast.expr) -> list[ast.Name]:
    return [n for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _reads_names(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id in _RUN_TEXT or (node.func.id in _READ_NAMES and not node.args)


def _uses(node: ast.AST, hidden: frozenset[str] = frozenset()) -> Counter:
    """How often each name is used, but for a list's own variables inside of it."""
    uses = Counter(name for name in getattr(node, "names", ()) if isinstance(name, str))  # global
    if isinstance(node, ast.Name) and node.id not in hidden:
        uses[node.id] += 1
    if isinstance(node, ast.ListComp):
        hidden = hidden | {name.id for loop in node.generators for name in _stored(loop.target)}
    for child in ast.iter_child_nodes(node):
        uses.update(_uses(child, hidden))
    return uses
