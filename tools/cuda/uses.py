"""How a function's body uses its variables. A use that is no known read may change one, or keep its address."""

from __future__ import annotations

import re

from .body import Body, walk
from .outline import Function
from .reasons import Unclear
from .unit_names import CASTS, INTEGERS, NUMBERS, UnitNames, words_of_macros
from .variables import QUALIFIERS, Variable, declared, meant

LOOPS = {"for_statement", "while_statement", "do_statement", "for_range_loop"}
SCOPES = {"compound_statement", *LOOPS, "if_statement", "switch_statement"}
UNCLEAR_NODES = {
    "lambda_expression",
    "structured_binding_declarator",
    "function_declarator",
    "throw_statement",
}
UNCLEAR_NODES |= {
    "new_expression",
    "delete_expression",
    "labeled_statement",
    "goto_statement",
    "try_statement",
}
UNCLEAR_NODES |= {"struct_specifier", "class_specifier", "union_specifier", "co_await_expression"}
READS = {
    "condition_clause",
    "unary_expression",
    "return_statement",
    "expression_statement",
    "sizeof_expression",
}
READS |= {"subscript_argument_list", "for_statement", "case_statement", "array_declarator", "do_statement"}
READS |= {"while_statement", "if_statement", "switch_statement", "template_argument_list"}
PLACES = {
    "identifier",
    "subscript_expression",
    "field_expression",
    "pointer_expression",
    "parenthesized_expression",
}
PLACES |= {"conditional_expression", "cast_expression", "call_expression", "comma_expression"}
ACCESSOR = re.compile(r"\w*Accessor\w*")


class Uses:
    """The variables of a body, and their uses."""

    def __init__(self, body: Body, function: Function, names: UnitNames, templates: set[str]):
        self.body, self.of, self.names, self.templates = body, body.of, names, templates
        self.constants: set[str] = set()  # of the body, besides variables
        self.scopes: list[Variable] = []
        end = body.root.end_byte
        for parameter in function.parameters:
            words = re.findall(r"\w+|\S", parameter.type)
            one = Variable(parameter.name, [w for w in words if w.isidentifier()], 0, end)
            one.stars = words.count("*") if not set(words) & {"&", "[", "("} else None
            self.scopes.append(one)
        self._declare_all(body.root, end)
        self._named_by_macros()
        for node in walk(body.root):
            self._check(node)
            if (
                node.type == "identifier"
                and (variable := self.variable(node))
                and variable.start != node.start_byte
            ):
                for change in self._use(node, variable):
                    variable.changes.append(change)

    def unclear(self, why: str, node) -> Unclear:
        return Unclear(why, self.body.place(node)[0])

    def variable(self, node) -> Variable | None:
        """The variable that an identifier names."""
        return meant(self.scopes, self.of(node), node.start_byte)

    def begun_by(self, value) -> Variable | None:
        """The variable whose first value a node is."""
        return next((v for v in self.scopes if v.value == value), None)

    def variables(self, node) -> list[Variable]:
        """The variables that a part of the body names, maybe in a macro's text."""
        identifiers = [one for one in walk(node) if one.type == "identifier"]
        hidden = words_of_macros(self.names.macros, {self.of(one) for one in identifiers})
        by_macros = [v for v in self.scopes if v.name in hidden and v.start <= node.start_byte < v.end]
        named = (self.variable(one) for one in identifiers)
        return [variable for variable in named if variable is not None] + by_macros

    def _check(self, node):
        """What is not read here at all. The parser takes `T (&r)[4] = x` for an assignment to T(&r)[4]."""
        if node.type in UNCLEAR_NODES:
            raise self.unclear(f"a {node.type.replace('_', ' ')}", node)
        if node.type == "assignment_expression":
            left = node.child_by_field_name("left")
            place = left
            while place.type in ("subscript_expression", "parenthesized_expression", "field_expression"):
                place = place.child_by_field_name("argument") or place.named_children[0]
            is_macro = (
                place.type == "call_expression" and self.of(place.named_children[0]) in self.names.macros
            )
            is_memory = is_macro or self._is_cast(place)
            if left.type not in PLACES or (place.type == "call_expression" and not is_memory):
                raise self.unclear("an assignment to what is no variable or memory", node)
        inside = node.named_children if node.type == "expression_statement" else []
        if inside and inside[0].type == "binary_expression":
            raise self.unclear("a declaration or an expression without effect", node)

    def _is_cast(self, call) -> bool:
        """Is it reinterpret_cast<T*>(...) or the like?"""
        callee = call.named_children[0] if call.type == "call_expression" else call
        if callee.type != "template_function" or self.of(callee.child_by_field_name("name")) not in CASTS:
            return False
        return self.of(callee.child_by_field_name("arguments")).rstrip("> ").endswith("*")

    def _named_by_macros(self):
        used = self.body.words & set(self.names.macros)
        for name in used:
            if not self.names.is_expression(name):
                raise Unclear(f"the macro {name}", next(t.start for t in self.body.tokens if t.text == name))
        hidden = words_of_macros(self.names.macros, used)
        for variable in self.scopes:
            if variable.name in hidden:
                variable.changes.append(None)

    def _declare_all(self, node, end: int):
        if node.type in SCOPES:
            end = node.end_byte
        if node.type in ("declaration", "for_range_loop"):
            self._declare(node, end)
        if node.type == "enumerator":
            self.constants.add(self.of(node.child_by_field_name("name")))
        for child in node.named_children:
            self._declare_all(child, end)

    def _declare(self, node, end: int):
        declarators = node.children_by_field_name("declarator")
        before = declarators[0].start_byte if declarators else node.end_byte
        words = [word for c in node.children if c.start_byte < before for word in self.of(c).split()]
        if "static" in words and "__shared__" not in words:
            raise self.unclear("a static variable", node)
        for declarator in declarators:
            self.scopes.append(declared(self.body, node, declarator, words, end))

    def _use(self, node, variable: Variable) -> list:
        """What may change a variable where it, or a part of it, is used: [] of a known read, else a node, or None."""
        if variable.statement is None and variable.start:
            return []  # shared memory, a constant
        whole, simple, part, parent = True, True, node, node.parent
        pointer = bool(variable.stars)
        while True:
            kind, parent_of = parent.type, parent.child_by_field_name
            if kind == "parenthesized_expression":
                pass
            elif kind in ("comma_expression", "conditional_expression") and not self._is_asked(parent, part):
                simple = False
            elif kind == "field_expression":
                if parent_of("operator").type == "->":
                    return [] if pointer else [None]
                if (
                    parent.parent.type == "call_expression"
                    and parent.parent.child_by_field_name("function") == parent
                ):
                    return [None]
                whole = False
            elif kind == "subscript_expression" and parent_of("argument") == part:
                if pointer:
                    return []
                if not variable.is_array:
                    return [] if variable.start == 0 and any(map(ACCESSOR.match, variable.words)) else [None]
                whole = False
            else:
                break
            part, parent = parent, parent.parent
        if variable.is_array and whole and kind not in ("sizeof_expression", "array_declarator"):
            return [None]
        return self._used_by(parent, part, simple, pointer)

    @staticmethod
    def _is_asked(parent, part) -> bool:
        """Is it a condition, or what stands before a comma, so that the whole is no place of the variable?"""
        field = "left" if parent.type == "comma_expression" else "condition"
        return parent.child_by_field_name(field) == part

    def _used_by(self, parent, part, simple: bool, pointer: bool) -> list:
        kind, field = parent.type, parent.child_by_field_name
        if kind in READS or kind in ("conditional_expression", "comma_expression"):
            return [] if self._is_clear(parent) else [None]
        if kind == "binary_expression":
            return [] if field("operator").type not in self.names.operators else [None]
        if kind == "assignment_expression":
            if field("left") == part:
                return [parent if simple else None]
            return [] if not self.names.operators & {"=", field("operator").type} else [None]
        if kind == "update_expression":
            return [parent if simple else None]
        if kind == "pointer_expression":
            return [] if field("operator").type == "*" and pointer else [None]
        if kind == "cast_expression":
            return [] if self.names.is_plain(self.of(field("type")), self.templates) else [None]
        if kind == "init_declarator":
            return [] if self._begins_plainly(parent) else [None]
        while parent.type == "initializer_list" and parent.parent.type == "initializer_list":
            parent = parent.parent
        if kind == "initializer_list" and parent.parent.type == "init_declarator":
            return [] if self._begins_plainly(parent.parent) else [None]
        if kind == "argument_list" and parent.parent.type == "call_expression":
            return [] if self._is_read_by_call(parent.parent) else [None]
        if kind == "argument_list" and parent.parent.type == "init_declarator":
            return [] if self._begins_plainly(parent.parent) else [None]
        return [None]

    def _is_clear(self, parent) -> bool:
        """Has a unit's operator no part in it?"""
        if parent.type == "subscript_argument_list":
            return "[" not in self.names.operators
        if parent.type == "unary_expression":
            return parent.child_by_field_name("operator").type not in self.names.operators
        return parent.type != "comma_expression" or "," not in self.names.operators

    def _begins_plainly(self, declarator) -> bool:
        """Is what is declared here a number, a pointer or an array of them, and no reference?"""
        variable = next(v for v in self.scopes if v.value == declarator.child_by_field_name("value"))
        inner = variable.declarator
        while inner is not None and inner.type != "identifier":
            if inner.type == "reference_declarator":
                return False
            if inner.type == "pointer_declarator":
                return True
            inner = inner.child_by_field_name("declarator") or next(iter(inner.named_children), None)
        words = " ".join(word for word in variable.words if word not in QUALIFIERS)
        return words == "auto" or self.is_number(words)

    def is_number(self, type_text: str) -> bool:
        """Is it a number or a vector type, so that no constructor of a unit's class gets what it is made from?"""
        names = self.names
        return names.is_plain(type_text, self.templates) and not set(type_text.split()) & names.classes

    def _is_read_by_call(self, call) -> bool:
        callee = call.child_by_field_name("function")
        if callee.type == "primitive_type" or self.of(callee) in NUMBERS:
            return self.of(callee) not in self.names.macros
        if callee.type == "template_function":
            name, given = (self.of(callee.child_by_field_name(field)) for field in ("name", "arguments"))
            if name in CASTS:
                return self.names.is_plain(given.strip()[1:-1], self.templates)
            return self.names.changes_nothing(name, given)
        if callee.type == "qualified_identifier":
            return self.names.changes_nothing(self.of(callee).split("::")[-1].strip(), "")
        return callee.type == "identifier" and self.names.changes_nothing(self.of(callee), "")

    def is_plain_at_its_end(self, variable: Variable) -> bool:
        """Does nothing happen where the variable's life ends?"""
        words = [word for word in variable.words if word not in QUALIFIERS]
        reference = variable.declarator is not None and variable.declarator.type == "reference_declarator"
        if reference or "auto" in words:
            return not self.names.with_destructor
        return bool(variable.stars) or self.names.is_plain(" ".join(words), self.templates)

    def is_integer_type(self, type_text: str) -> bool:
        """A whole number, or a pointer."""
        return type_text.endswith("*") or set(type_text.split()) <= INTEGERS
