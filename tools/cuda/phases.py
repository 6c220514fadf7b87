"""Kernels whose threads wait for each other only at __syncthreads(), where all come: the block's phases become loops.

    s[t] = x[i];                                 each_thread(... { int t = ...; s[t] = x[i]; });
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {           for (int d = 128; d > 0; d /= 2) {
      if (t < d) s[t] += s[t + d];                 each_thread(... { int t = ...; if (t < d) s[t] += s[t + d]; });
      __syncthreads();
    }                                            }

The threads run in the launcher's order from one barrier to the next, as fibres do, but no thread needs a stack. What
stands around a barrier must be the same for all threads: arithmetic on parameters, blockIdx, blockDim, gridDim and
variables of which this is known (uniform). It runs once for the block. A thread's own variable that another phase uses
is computed again, if it is arithmetic on whole numbers that do not change, else it has an array with a place for each
thread. If anything is unclear, the threads run on fibres.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .body import IDENTITY, Body, walk
from .guard import WORDS_OF_NUMBERS, is_along_x
from .outline import Function
from .source import Source
from .tokens import LOOP, position_from

BARRIER = "__syncthreads"
INTEGERS = WORDS_OF_NUMBERS | {"bool", "char", "short", "constexpr"}
INTEGERS |= {"int8_t", "uint8_t", "int16_t", "uint16_t"}
NUMBERS = INTEGERS | {"float", "double"}
MOST_KEPT = 128  # bytes of a thread, on a stack of 640 KiB
UNCLEAR = {"goto", "decltype", "typeof", "__typeof__", "caffe_t", "caffe_x"}
UNCLEAR_NODES = {"lambda_expression", "structured_binding_declarator", "function_declarator"}
LOOPS = {"for_statement", "while_statement", "do_statement", "for_range_loop"}
JUMPS = {"return_statement", "break_statement", "continue_statement"}
OPERATIONS = (
    "binary_expression unary_expression parenthesized_expression conditional_expression condition_clause"
)
# Functions that change no variable which is passed by its name.
BY_VALUE = re.compile(
    r"(__\w+|atomic\w+|(min|max|abs|fma|fabs|sqrt|rsqrt|cbrt|exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|tanh|erf"
    r"|floor|ceil|round|rint|trunc|fmin|fmax|fmod|isnan|isinf|isfinite|ldexp|copysign|printf|assert)[fl]?)\Z"
)
LISTS = {"argument_list", "initializer_list"}
NO_BARRIER = " [[maybe_unused]] const auto __syncthreads = [](int, int) {};"


class _Variable:
    """A variable of the kernel's body, or a parameter."""

    def __init__(self, name: str, type_text: str, stars: int | None, start: int, end: int):
        self.name, self.type, self.stars = name, type_text, stars  # stars: None of an array, a reference ...
        self.start, self.end = start, end  # where it is known
        self.value = None  # the node by which it is initialised
        self.statement = None  # the declaration
        self.region: int | None = None  # where a thread's own variable is declared
        self.changes: list = []  # nodes that change it; None: somebody else may
        self.is_uniform = self.is_kept = self.is_constant = self.is_array = False

    @property
    def declaration(self):
        """The statement of a thread's own variable, which has one."""
        assert self.statement is not None
        return self.statement

    def is_of(self, words: set[str]) -> bool:
        """Is it a number of such a type, or a pointer?"""
        return self.stars is not None and (self.stars > 0 or set(self.type.split()) <= words)


class _Unclear(Exception):
    pass


class _Phases:
    def __init__(self, source: Source, function: Function, macros: dict[str, list], by_value: set[str]):
        self.source, self.function, self.by_value = source, function, by_value
        lexed, tokens = source.lexed, source.lexed.tokens
        self.tree = body = Body(source, function)
        self.of = body.of
        head = tokens[position_from(tokens, function.head) : position_from(tokens, function.body)]
        words = body.words
        self._check(not words & UNCLEAR and not any(LOOP.match(word) for word in words))
        self._check(all(_is_number(macros[word]) for word in words & set(macros)))
        inside = [d for d in (*lexed.directives, *lexed.conditions) if function.body < d.start < function.end]
        self._check(all(d.word == "pragma" and d.tokens and d.tokens[0].text == "unroll" for d in inside))
        self.tokens, self.pragmas = tokens, [d.start for d in inside]
        pairs = [(a.text, b.text) for a, b in pairwise(head)]
        self.types = {name for word, name in pairs if word in ("typename", "class")}
        self.constants = _constants(source, words) | {name for word, name in pairs if word in INTEGERS}
        self.constants |= {w for w in words & set(macros) if not any("." in t.text for t in macros[w])} | {
            "warpSize"
        }
        self._check(not body.tree.has_error)
        self.body = body.root
        self.scopes: list[_Variable] = []
        self.shared: set[str] = set()
        end = self.body.end_byte
        for parameter in function.parameters:
            kind = parameter.type.replace("__restrict__", "").replace("const", "")
            stars = kind.count("*") if "&" not in kind and "[" not in kind and "(" not in kind else None
            self.scopes.append(_Variable(parameter.name, kind.replace("*", ""), stars, 0, end))
        self.hoisted: set[int] = set()  # nodes around barriers
        self._find(self.body, end)
        self._changes(self.body)

    @staticmethod
    def _check(clear: bool):
        if not clear:
            raise _Unclear

    def _variable(self, node) -> _Variable | None:
        """The variable that an identifier names."""
        name, at = self.of(node), node.start_byte
        found = [v for v in self.scopes if v.name == name and v.start <= at < v.end]
        return max(found, key=lambda v: v.start, default=None)

    def _variables(self, node) -> list[_Variable]:
        named = (self._variable(one) for one in walk(node) if one.type == "identifier")
        return [variable for variable in named if variable is not None]

    def _root(self, node):
        """The identifier of `v`, `(v)`, `v.x` and `v.x[0]`; None of memory."""
        while node.type in ("parenthesized_expression", "field_expression", "subscript_expression"):
            inner = node.child_by_field_name("argument") or node.named_children[0]
            if node.type == "field_expression" and node.child_by_field_name("operator").type != ".":
                return None
            if node.type == "subscript_expression" and inner.type == "identifier":
                variable = self._variable(inner)
                return inner if variable and variable.stars is None and variable.statement else None
            node = inner
        return node if node.type == "identifier" else None

    def _find(self, node, end: int):
        """Find the variables, and what stands around barriers."""
        self._check(node.type not in UNCLEAR_NODES)
        if node.type in ("compound_statement", *LOOPS, "if_statement", "switch_statement"):
            end = node.end_byte
        if node.type in ("declaration", "for_range_loop"):
            self._declare(node, end)
        if node.type == "identifier" and self.of(node) == BARRIER:
            while node.id != self.body.id:
                self.hoisted.add(node.id)
                self._mark_arms(node)
                node = node.parent
            return
        for child in node.named_children:
            self._find(child, end)

    def _mark_arms(self, node):
        for child in node.named_children if node.type in ("if_statement", "else_clause") else ():
            if child.type in ("compound_statement", "else_clause") or node.type == "else_clause":
                self.hoisted.add(child.id)
                self._mark_arms(child)

    def _declare(self, node, end: int):
        declarators = node.children_by_field_name("declarator")
        words = [self.of(c) for c in node.children if c.start_byte < declarators[0].start_byte]
        self._check("static" not in words)
        for declarator in declarators:
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            inner, stars, known = declarator, 0, True
            while inner.type != "identifier":
                known = known and inner.type in ("init_declarator", "pointer_declarator")
                stars += inner.type == "pointer_declarator"
                below = inner.child_by_field_name("declarator") or next(iter(inner.named_children), None)
                if below is None:
                    raise _Unclear
                known = known and not any(c.type == "type_qualifier" for c in inner.named_children)
                if inner.type == "reference_declarator" and value is not None:
                    changed = self._root(value)
                    if changed is not None and (variable := self._variable(changed)):
                        variable.changes.append(None)
                inner = below
            known = known and node.type == "declaration" and "auto" not in words
            known = known and (value is None or value.type not in LISTS)
            type_text = " ".join(words)
            one = _Variable(self.of(inner), type_text, stars if known else None, inner.start_byte, end)
            one.value, one.statement = value, node
            if "constexpr" in words:
                one.is_constant, one.statement = True, None
            if "__shared__" in words:
                self.shared |= {one.name} if inner.parent.type == "array_declarator" else set()
                one.stars, one.statement = None, None
            one.is_array = inner.parent.type == "array_declarator" and one.statement is not None
            self.scopes.append(one)

    def _changes(self, node):
        """Note which nodes change a variable."""
        for one in walk(node):
            places = []
            if one.type == "assignment_expression":
                places = [(one.child_by_field_name("left"), one)]
            elif one.type == "update_expression":
                places = [(one.child_by_field_name("argument"), one)]
            elif one.type == "pointer_expression" and one.child_by_field_name("operator").type == "&":
                places = [(one.child_by_field_name("argument"), None)]
                # Its own memory may be gone in the next phase.
                self._check(self._root(places[0][0]) is None or one.parent.type == "argument_list")
            elif one.type == "identifier" and (variable := self._variable(one)) and variable.is_array:
                self._check(one.parent.type in ("subscript_expression", "argument_list", "array_declarator"))
            elif one.type == "call_expression":
                callee = one.child_by_field_name("function")
                if callee.type == "field_expression":
                    places = [(callee.child_by_field_name("argument"), None)]
                name = re.split(r"[^\w:]", self.of(callee), maxsplit=1)[0].split("::")[-1]
                if callee.type != "primitive_type" and not BY_VALUE.match(name) and name not in self.by_value:
                    arguments = one.child_by_field_name("arguments")
                    places += [(argument, None) for argument in arguments.named_children]
            for place, change in places:
                root = self._root(place)
                variable = self._variable(root) if root is not None else None
                if variable is not None:
                    variable.changes.append(change if root.id == place.id else None)

    def _is_same(self, node, again: bool = False, at=None) -> bool:
        """Has this expression the same value in all threads? again: in this thread, whenever it is asked while `at`, a
        declaration, is known."""
        kind = node.type
        if kind == "number_literal":
            return not again or bool(re.fullmatch(r"[\da-fA-FxXuUlL]+", self.of(node)))
        if kind in ("true", "false", "sizeof_expression"):
            return True
        if kind == "identifier":
            variable = self._variable(node)
            if variable is None:
                return self.of(node) in self.constants
            if self.of(node) in self.shared and variable.statement is None:
                return True  # its address
            if variable.is_constant:
                return not again or variable.is_of(INTEGERS)
            if again:
                return variable.is_of(INTEGERS) and self._stays(variable, at)
            return variable.is_uniform or (variable.start == 0 and not variable.changes)
        if kind == "field_expression":
            owner = node.child_by_field_name("argument")
            if owner.type != "identifier" or node.child_by_field_name("operator").type != ".":
                return False
            if self.of(owner) in IDENTITY:
                return again or self.of(owner) != "threadIdx"
            variable = self._variable(owner)
            return not again and variable is not None and variable.start == 0 and not variable.changes
        parts = node.named_children
        if kind == "cast_expression":
            to, *parts = parts
            return self._is_plain(self.of(to)) and self._is_same(parts[0], again, at)
        if kind == "call_expression":
            name, _, to = self.of(parts[0]).partition("<")
            to_plain = name.endswith("_cast") and self._is_plain(to.rstrip(">"))
            known = to_plain or name in {"min", "max", *INTEGERS}
            return known and all(self._is_same(part, again, at) for part in parts[1].named_children)
        return kind in OPERATIONS.split() and all(self._is_same(part, again, at) for part in parts)

    @staticmethod
    def _is_plain(type_text: str) -> bool:
        """A whole number, or a pointer."""
        return type_text.endswith("*") or set(type_text.split()) <= INTEGERS

    def _stays(self, variable: _Variable, at) -> bool:
        """Has the variable one value in this thread while `at` is known?"""
        if variable.start and not variable.is_uniform:
            return self._is_again(variable)
        for change in variable.changes:
            while change is not None and change.type not in ("for_statement", "expression_statement"):
                change = change.parent
            if change is None or change.type != "for_statement" or change.id not in self.hoisted:
                return False
            if not change.start_byte <= at.start_byte < change.end_byte:
                return False
        return True

    def _is_again(self, variable: _Variable) -> bool:
        """Is it arithmetic on whole numbers that do not change, so that each phase can compute it?"""
        if variable.value is None or variable.statement is None:
            return False
        if variable.changes or not variable.is_of(INTEGERS):
            return False
        earlier = all(v.start < variable.start for v in self._variables(variable.value))
        return earlier and self._is_same(variable.value, True, variable.statement)

    def _stands_alone(self, node) -> bool:
        """Is the node a statement beside a barrier, or does it stand in a loop's header around one?"""
        statement = node
        if node.type != "declaration":
            while statement.parent.type in ("comma_expression", "parenthesized_expression"):
                statement = statement.parent
            if statement.parent.type == "expression_statement":
                statement = statement.parent
        parent = statement.parent
        if parent.type == "for_statement" and statement.type != "compound_statement":
            return parent.id in self.hoisted
        compound = parent.type == "compound_statement" and parent.id in self.hoisted
        return compound or parent.id == self.body.id

    def _find_uniform(self):
        """All that may be uniform, less those of which something speaks against it."""
        for variable in self.scopes:
            known = variable.is_of(INTEGERS) and None not in variable.changes
            if variable.start == 0:
                known = known and bool(variable.changes)
            else:
                known = known and variable.statement is not None and self._stands_alone(variable.statement)
            variable.is_uniform = known and all(self._stands_alone(change) for change in variable.changes)
        before = None
        while before != (before := [v for v in self.scopes if v.is_uniform]):
            for variable in before:
                beside = [v for v in self.scopes if v.statement and v.statement == variable.statement]
                values = [v.value for v in beside if v.value is not None] + list(self._operands(variable))
                same = all(v.is_uniform for v in beside) and all(map(self._is_same, values))
                variable.is_uniform = same

    def _operands(self, variable: _Variable) -> Iterator:
        """What must be the same for all threads: what is assigned, and what stands beside that behind a comma."""
        for change in variable.changes:
            if change.type == "assignment_expression":
                yield change.child_by_field_name("right")
            while change.parent.type in ("comma_expression", "parenthesized_expression"):
                change = change.parent
                yield from (part for part in change.named_children if not self._is_step(part))

    def _is_step(self, node) -> bool:
        """Does the node change a uniform variable, and nothing else?"""
        while node.type == "parenthesized_expression":
            node = node.named_children[0]
        if node.type == "comma_expression":
            return all(self._is_step(part) for part in node.named_children)
        field = {"assignment_expression": "left", "update_expression": "argument"}.get(node.type)
        place = node.child_by_field_name(field) if field else None
        variable = self._variable(place) if place is not None and place.type == "identifier" else None
        return variable is not None and variable.is_uniform

    def _of_the_block(self, node) -> bool:
        """Does this statement run once for the block?"""
        kind = node.type
        if kind in ("type_definition", "alias_declaration", "static_assert_declaration", "using_declaration"):
            return True
        if kind == "declaration":
            beside = [v for v in self.scopes if v.statement and v.statement == node]
            return not beside or all(v.is_uniform for v in beside)
        if kind == "expression_statement":
            inside = node.named_children
            return not inside or self._is_step(inside[0])
        if kind == "if_statement" and node.child_by_field_name("alternative") is None:
            way = node.child_by_field_name("consequence")
            if way.type == "compound_statement" and len(way.named_children) == 1:
                way = way.named_children[0]
            condition = node.child_by_field_name("condition")
            return way.type in JUMPS and way.named_child_count == 0 and self._is_same(condition)
        return kind in JUMPS

    def _regions(self, compound, follows: bool) -> Iterator[tuple[list, bool]]:
        """The regions of a compound statement and of those in it: statements without a barrier between them, and
        whether the kernel ends there. follows: something comes after the compound."""
        self._check(compound is not None and compound.type == "compound_statement")
        statements = []
        children = compound.named_children
        for i, child in enumerate(children):
            after = follows or not all(self._is_barrier(c) for c in children[i + 1 :])
            if child.id not in self.hoisted and not self._of_the_block(child):
                statements.append(child)
                continue
            if statements:
                yield statements, False
                statements = []
            if child.id in self.hoisted and not self._is_barrier(child):
                yield from self._around(child, after)
        if statements:
            yield statements, not follows

    def _is_barrier(self, node) -> bool:
        is_call = node.type == "expression_statement" and node.named_children[:1]
        return bool(is_call) and self.of(node).replace(" ", "") == f"{BARRIER}();"

    def _around(self, node, after: bool) -> Iterator[tuple[list, bool]]:
        """The regions of a statement in which there is a barrier."""
        part = node.child_by_field_name
        if node.type == "compound_statement":
            yield from self._regions(node, after)
            return
        self._check(node.type in ("for_statement", "while_statement", "do_statement", "if_statement"))
        condition = part("condition")
        self._check(condition is None or self._is_same(condition))
        if node.type == "if_statement":
            yield from self._regions(part("consequence"), after)
            other = part("alternative")
            if other is not None:
                yield from self._around(other.named_children[0], after)
            return
        first, step = part("initializer"), part("update")
        if first is not None:
            self._check(self._of_the_block(first) if first.type == "declaration" else self._is_step(first))
        self._check(step is None or self._is_step(step))
        yield from self._regions(part("body"), True)

    def _jumps(self, node, is_last: bool, in_loop: bool = False, in_switch: bool = False):
        """No jump out of a region but a return from the last one."""
        kind = node.type
        self._check(kind != "return_statement" or is_last)
        self._check(kind != "break_statement" or in_loop or in_switch)
        self._check(kind != "continue_statement" or in_loop)
        for child in node.named_children:
            self._jumps(child, is_last, in_loop or kind in LOOPS, in_switch or kind == "switch_statement")

    def edits(self) -> list[tuple[int, int, str]]:
        self._check(bool(self.hoisted))
        self._find_uniform()
        self._check(all(not v.changes or v.is_uniform for v in self.scopes if v.start == 0))
        beside = [v for v in self.scopes if v.statement is None or self._stands_alone(v.statement)]
        for one in beside:  # names that hide others
            self._check(not any(v.name == one.name and v.start < one.start < v.end for v in beside))
        regions = list(self._regions(self.body, False))
        places = {}  # the region of each statement
        for number, (statements, is_last) in enumerate(regions):
            for statement in statements:
                self._jumps(statement, is_last)
                places[statement.id] = number
        own = [v for v in self.scopes if v.statement is not None and v.statement.id in places]
        for variable in own:
            variable.region = places[variable.declaration.id]
        used = [[v for s in statements for v in self._variables(s) if v in own] for statements, _ in regions]
        carried = [v for v in own if any(v in u and v.region != i for i, u in enumerate(used))]
        kept = self._in_arrays(own, carried)
        edits = []
        for i, (statements, _) in enumerate(regions):
            opening = self._carried_into(i, used[i], kept)
            start, end = statements[0].start_byte + self.tree.shift, statements[-1].end_byte + self.tree.shift
            before = self.tokens[position_from(self.tokens, start) - 1].end
            if any(before <= pragma < start for pragma in self.pragmas):  # it stays beside its loop
                start = before
            edits.append((start, start, " CAFFE_HOST_EACH " + opening))
            here = [v.name for v in carried if v.region == i]  # and maybe not used here
            edits.append((end, end, "".join(f" (void){name};" for name in here) + " });"))
            for node in (n for s in statements for n in walk(s) if self._is_along_x(n)):
                first, last = node.start_byte + self.tree.shift, node.end_byte + self.tree.shift
                edits.append((first, last, "caffe_x" + "\n" * self.source.text.count("\n", first, last)))
        for statement in {v.declaration.id: v.declaration for v in kept}.values():
            edits += self._kept_declaration(statement, kept)
        arrays = "".join(f" {self._type(v)} caffe_kept_{i}[1024];" for i, v in enumerate(kept))
        at = self.function.body + 1
        return [(at, at, NO_BARRIER + arrays), *edits]

    def _in_arrays(self, own: list[_Variable], carried: list[_Variable]) -> list[_Variable]:
        """The variables that need an array: all of one declaration, if one of them cannot be computed again."""
        again = [v for v in carried if self._is_again(v)]
        for variable in own:
            beside = [v for v in carried if v.statement == variable.statement]
            variable.is_kept = any(v not in again for v in beside)
        kept = [v for v in own if v.is_kept]
        self._check(all(v.is_of(NUMBERS | self.types) for v in kept))
        self._check(sum(8 if v.is_of(NUMBERS) else 32 for v in kept) <= MOST_KEPT)
        # A pointer may be one to a variable of its phase.
        alone = all(v.is_of(NUMBERS | self.types) and None not in v.changes for v in own)
        self._check(alone or not any(v.stars for v in kept))
        return kept

    def _carried_into(self, region: int, used: list[_Variable], kept: list[_Variable]) -> str:
        """The declarations of what a region uses of earlier ones, and of what that is computed from."""
        wanted, waiting = [], list(used)
        while waiting:
            variable = waiting.pop()
            if variable not in wanted and variable.region not in (region, None):
                wanted.append(variable)
                waiting += [] if variable.is_kept else self._variables(variable.value)
        wanted.sort(key=lambda v: v.start)
        return "".join(self._reference(v, kept) if v.is_kept else self._again(v) for v in wanted)

    def _type(self, variable: _Variable) -> str:
        words = [w for w in variable.type.split() if w != "const" or variable.stars]
        return " ".join(w for w in words if w != "constexpr") + "*" * (variable.stars or 0)

    def _reference(self, variable: _Variable, kept: list[_Variable]) -> str:
        array = f"caffe_kept_{kept.index(variable)}[caffe_t]"
        return f"[[maybe_unused]] {self._type(variable)}& {variable.name} = {array}; "

    def _again(self, variable: _Variable) -> str:
        value = variable.value
        assert value is not None  # it is computed again
        text, start = self.of(value), value.start_byte
        for node in reversed([n for n in walk(value) if self._is_along_x(n)]):
            text = text[: node.start_byte - start] + "caffe_x" + text[node.end_byte - start :]
        return f"[[maybe_unused]] {self._type(variable)} {variable.name} = {' '.join(text.split())}; "

    def _is_along_x(self, node) -> bool:
        """Is it blockIdx.x * blockDim.x + threadIdx.x, or + a variable for the last one?"""
        return is_along_x(self.tree, node, self._value)

    def _value(self, node):
        """What a variable stands for that each phase can compute again."""
        variable = self._variable(node) if node.type == "identifier" else None
        again = variable and variable.is_of({"const", "int", "unsigned"}) and self._is_again(variable)
        return variable.value if again else node

    def _kept_declaration(self, statement, kept: list[_Variable]) -> Iterator[tuple[int, int, str]]:
        """`float a = 0, b;` becomes `float& a = ...; float& b = ...; a = 0, (void)b;`."""
        variables = [v for v in self.scopes if v.statement == statement]
        start = statement.start_byte + self.tree.shift
        references = "".join(self._reference(v, kept) for v in variables)
        declarators = statement.children_by_field_name("declarator")
        for variable, declarator in zip(variables, declarators, strict=True):
            end = variable.start + self.tree.shift  # of the type, or of the stars before the name
            first = start if variable is variables[0] else declarator.start_byte + self.tree.shift
            blanks = re.sub(r"\S", " ", self.source.text[first:end])
            nothing = "(void)" if variable.value is None else ""
            yield first, end, (references if variable is variables[0] else "") + blanks + nothing


def _is_number(macro: list) -> bool:
    """Is a macro's text arithmetic on numbers?"""
    return bool(macro) and all(re.fullmatch(r"\.?\d[\w.]*|[-+*/()]|<<", token.text) for token in macro)


def _constants(source: Source, words: set[str]) -> set[str]:
    """The words that name a constant of the file, outside of functions."""
    found, tokens = set(), source.lexed.tokens
    for i, token in enumerate(tokens[:-1]):
        if token.kind != "name" or token.text not in words or tokens[i + 1].text != "=":
            continue
        first = i
        while first and tokens[first - 1].text not in (";", "{", "}", ")", "("):
            first -= 1
        before = {t.text for t in tokens[first:i]}
        constant = before & {"const", "constexpr"} and before <= INTEGERS | {"static", "inline"}
        if constant and source.function_around(token.start) is None:
            found.add(token.text)
    return found


def phases_of(
    source: Source, function: Function, macros: dict[str, list], by_value: set[str]
) -> list[tuple[int, int, str]] | None:
    """The edits that make a kernel's phases loops; None: its threads must run on fibres.

    Args:
        macros: the files' macros, with the tokens of their texts.
        by_value: the files' functions that take no reference.
    """
    try:
        return _Phases(source, function, macros, by_value).edits()
    except _Unclear:
        return None
