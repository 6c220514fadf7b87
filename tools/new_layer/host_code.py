"""The host code around a launch: its variables, and the values of a launch's expressions in a launcher.

    code = HostCode(source, launch)
    code.variable("n")         its declaration: the type, the value, whether it changes

A launcher has the kernel's arguments and the file's constants, but no variable of the host code. `Translation` writes
an expression of the launch with what a launcher has. It raises `HostOnly` if that is not certainly the same value.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from ..cuda.launches import Launch, parse
from ..cuda.outline import Function
from ..cuda.source import Source
from ..cuda.tokens import macro_body, mask, position_from, tidy
from ..cuda.variables import Variable, meant

WHOLE_WORDS = {"int", "unsigned", "long", "short", "size_t", "int32_t", "int64_t", "uint32_t", "uint64_t"}
# Names in a launch's expression that mean the same in a launcher.
EVERYWHERE = {
    "CAFFE_GET_BLOCKS", "CAFFE_CUDA_NUM_THREADS", "dim3", "sizeof", "static_cast", "std", "min", "max", "ceil",
    "ceilf", "floor", "THCCeilDiv",
    *WHOLE_WORDS, "float", "double", "char", "bool", "signed", "const",
}  # fmt: skip
# Callees whose arguments are converted: a number's own type does not matter there.
CONVERTS = {"CAFFE_GET_BLOCKS", "dim3"}
# The type of what a method of a tensor or of a blob returns.
METHODS = {
    **dict.fromkeys(("numel", "size", "stride", "dim", "nbytes"), "int64_t"),
    **dict.fromkeys(("count", "num", "channels", "height", "width", "shape", "num_axes"), "int"),
}
# Functions of torch that divide and round up.
CEIL_DIV = re.compile(r"\b(?:at::cuda::ATenCeilDiv|at::ceil_div|THCCeilDiv)\b")
# Nodes of an expression whose value is that of their parts.
OF_PARTS = {
    "parenthesized_expression", "binary_expression", "conditional_expression", "unary_expression", "cast_expression",
    "argument_list", "sizeof_expression", "type_descriptor", "template_argument_list", "template_function",
    "compound_literal_expression", "initializer_list", "sized_type_specifier", "type_qualifier",
}  # fmt: skip
# A declaration of a variable, as far as a text shows.
DECLARED = re.compile(r"[\w>&*]\s+[&*]*(\w+)\s*[=({;,)\[]|,\s*[&*]*(\w+)\s*[=(]")
ASSIGNS = {"=", "++", "--", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", ">>="}
LEAVES = {"number_literal", "true", "false", "char_literal"}
NAMES = {"identifier", "type_identifier", "primitive_type", "namespace_identifier"}


class HostOnly(Exception):
    """An expression that only the host code can compute."""


class HostVariable(NamedTuple):
    """A variable of the function that launches."""

    type: str  # without const and &; "" if it is unknown
    value: str  # the expression that it starts with; "" if it has none
    changes: bool  # it may get another value
    is_parameter: bool


class HostCode:
    """The function around a launch. In a macro's body there is none, and in some functions the parser sees errors."""

    def __init__(self, source: Source, launch: Launch, text: str = "", here: bool = False):
        """
        Args:
            text: the source's with its headers', where the launch may be.
            here: it is in the source, and none of its launches.
        """
        self.source, self.launch, self._text = source, launch, text or source.text
        self.here = here or any(launch is own for own in source.launches)  # not in a header
        in_macro = any(m.start <= launch.start < m.end for m in source.macros)
        self.function = source.function_around(launch.start) if self.here and not in_macro else None

    @cached_property
    def clear(self) -> bool:
        """Does the parser know each declaration and each assignment around the launch?"""
        return self.function is not None and not self._root.has_error

    @property
    def _around(self) -> Function:
        """The function around the launch. There is one, where it is asked for."""
        assert self.function is not None
        return self.function

    @cached_property
    def _root(self):
        function = self._around
        tokens = self.source.lexed.tokens
        first, last = position_from(tokens, function.head), position_from(tokens, function.end)
        return parse(mask(tokens[first:last], function.head, function.end))

    def mentions(self, name: str) -> bool:
        """May the function have a variable of this name, as far as its text shows?"""
        if self.clear:
            return False
        if self.function is None:  # any function may use the macro: more than the constant's own declaration?
            return sum(name in found for found in self._declared) > (name not in self._macro_names)
        text = self.source.text[self.function.head : self.function.end]
        return any(name in found for found in DECLARED.findall(text))

    @cached_property
    def _declared(self) -> list[tuple[str, str]]:
        return DECLARED.findall(self._text)

    @cached_property
    def _macro_names(self) -> set[str]:
        return set(re.findall(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)", self._text))

    def variable(self, name: str) -> HostVariable | None:
        """The variable that `name` means at the launch; None if the function declares none."""
        if not self.clear:
            return None
        at = self.launch.start - self._around.head
        seen = [variable for variable in self._variables if variable.name == name]
        found = meant(seen, name, at)
        if found is None:
            return None
        declarator, holder = found.declarator, found.declaration
        kind = _type(holder)
        value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        text = _text(value) if value is not None else ""
        if value is not None and value.type in ("argument_list", "initializer_list"):
            text = kind + text if kind == "dim3" else text[1:-1]
        if declarator.type == "function_declarator":  # dim3 grid(a, b); is read as a function's declaration
            text = kind + _text(declarator.child_by_field_name("parameters"))
        fixed = re.search(r"\bconst(expr)?\b", _text(holder).split(name)[0])
        changes = not fixed and (len(seen) > 1 or self._changes(name))
        if kind == "auto":
            kind = _type_of(text)
        shape = declarator
        while shape.type == "init_declarator":
            shape = shape.child_by_field_name("declarator")
        plain = shape.type in ("identifier", "reference_declarator") or kind == "dim3"
        parameter = holder.type == "parameter_declaration"
        return HostVariable(
            kind if plain else "", text if plain and not parameter else "", changes, parameter
        )

    @cached_property
    def _variables(self) -> list[Variable]:
        found = []

        def visit(node, scope):
            if node.type in (
                "parameter_declaration",
                "optional_parameter_declaration",
                "declaration",
                "for_range_loop",
            ):
                for declarator in node.children_by_field_name("declarator"):
                    one = Variable(_name_of(declarator), [], declarator.start_byte, scope.end_byte)
                    one.declarator, one.statement = declarator, node
                    found.append(one)
            inner = node.type in (
                "compound_statement", "for_statement", "for_range_loop", "lambda_expression", "function_definition",
                "if_statement", "while_statement", "switch_statement",
            )  # fmt: skip
            if node.type == "function_declarator" and node.parent.type == "declaration":
                return  # dim3 grid(a, n*BLOCK); declares no BLOCK
            for child in node.named_children:
                visit(child, node if inner else scope)

        visit(self._root, self._root)
        return found

    @cached_property
    def twice(self) -> set[str]:
        """Names that the function declares more than once."""
        names = [variable.name for variable in self._variables] if self.clear else []
        return {name for name in names if names.count(name) > 1}

    def _changes(self, name: str) -> bool:
        """May the function change the variable, or hand it to code that may?"""
        macros = self._macros
        return any(
            _text(node) == name and (_is_changed(node, self._safe_callees) or _in_macro_call(node, macros))
            for node in _each(self._root, "identifier")
        ) or any(name in words for words in macros.values())

    @cached_property
    def _macros(self) -> dict[str, set[str]]:
        """The words in the bodies of the macros that the function uses, also by others."""
        every: dict[str, set[str]] = {}
        for macro in self.source.macros:
            every.setdefault(macro.tokens[0].text, set()).update(t.text for t in macro_body(macro))
        text = self.source.text[self._around.head : self._around.end]
        used, new = {}, set(re.findall(r"\w+", text)) & every.keys()
        while new:
            used |= {name: every[name] for name in new}
            new = set().union(*used.values()) & every.keys() - used.keys()
        return used

    @cached_property
    def _safe_callees(self) -> set[str]:
        """Functions that take no number by reference, and macros that only compute."""
        safe = {*EVERYWHERE, "TORCH_CHECK", "AT_ASSERT", "printf"} | {
            f.name
            for f in self.source.functions
            if not any("&" in p.type and "const" not in p.type for p in f.parameters)
        }
        for macro in self.source.macros:
            texts = [t.text for t in macro_body(macro)]
            calls = {a for a, b in itertools.pairwise(texts) if b == "(" and a.isidentifier()}
            own = {t.text for t in macro.tokens[1 : len(macro.tokens) - len(texts)]}
            if not ASSIGNS & set(texts) and calls - own <= safe and "&" not in texts[:1]:
                safe.add(macro.tokens[0].text)
        return safe


def _each(node, kind: str):
    if node.type == kind:
        yield node
    for child in node.named_children:
        yield from _each(child, kind)


def _text(node) -> str:
    return tidy(node.text.decode("latin-1"))


def _name_of(node) -> str:
    while node.type not in ("identifier", "type_identifier"):
        inner = node.child_by_field_name("declarator") or next(iter(node.named_children), None)
        if inner is None:
            return ""
        node = inner
    return _text(node)


def _holder(node):
    while node.type not in (
        "parameter_declaration",
        "optional_parameter_declaration",
        "declaration",
        "for_range_loop",
    ):
        node = node.parent
    return node


def _type(declaration) -> str:
    """The type of a declaration, without const and static."""
    kind = declaration.child_by_field_name("type")
    return " ".join(w for w in _text(kind).split() if w != "const") if kind is not None else ""


def _type_of(text: str) -> str:
    """The type of an expression, where its words tell it; "" otherwise."""
    if method := re.search(r"(?:\.|->)\s*(\w+)\s*\([^()]*\)\Z", text):
        return METHODS.get(method[1], "")
    if cast := re.fullmatch(r"(?:static_cast<\s*([\w ]+?)\s*>|\(\s*([\w ]+?)\s*\)|(\w+))\s*\(.*\)", text):
        kind = cast[1] or cast[2] or cast[3]
        return kind if set(kind.split()) <= WHOLE_WORDS | {"dim3"} else ""
    return "int" if re.fullmatch(r"\d+", text) else ""


def _is_changed(node, safe: set[str]) -> bool:
    """Is this use of a variable one that may change it?"""
    parent = node.parent
    while parent.type in ("field_expression", "parenthesized_expression", "subscript_expression"):
        node, parent = parent, parent.parent
    if parent.type == "assignment_expression":
        return parent.child_by_field_name("left") == node
    if parent.type in ("update_expression", "lambda_capture_specifier", "lambda_capture_initializer"):
        return True
    if parent.type == "pointer_expression":
        return True
    if parent.type == "init_declarator" and parent.child_by_field_name("value") == node:
        kind = parent.child_by_field_name("declarator").type
        return kind == "reference_declarator" and "const" not in _text(_holder(parent)).split("&")[0]
    if parent.type == "binary_expression" and parent.child_by_field_name("operator").type == ">>":
        return parent.child_by_field_name("right") == node
    if parent.type == "argument_list":
        call = parent.parent
        if call.type != "call_expression":
            return False
        function = call.child_by_field_name("function")
        if any(child.type == "kernel_call_syntax" for child in call.named_children):
            return False
        return function.type != "primitive_type" and _text(function).split("<")[0].split("::")[-1] not in safe
    return False


def _in_macro_call(node, macros: dict[str, set[str]]) -> bool:
    """Is it an argument of one of the file's macros that assigns something?"""
    while node.parent is not None:
        node = node.parent
        if node.type == "call_expression":
            words = macros.get(_text(node.child_by_field_name("function")), ())
            if ASSIGNS & set(words):
                return True
    return False


class Translation:
    """Writes a launch's expressions with what its launcher has.

    Args:
        given: the C++ expression of each argument of the launch that is a whole number, by its text without blanks: a
            function of the host variable's type ("" if any will do), or None for a text that is passed twice.
        constants: the names of the file that a launcher may use, and how it writes them.
        types: the launcher's names of the host code's types.
    """

    def __init__(self, code: HostCode, given: dict[str, Callable | None], constants, types: dict[str, str]):
        self.code, self.given, self.constants, self.types = code, given, constants, types
        self.names: set[str] = set()  # constants that the last expressions used
        self.variables: set[str] = set()  # those of them that the function declares
        self._busy: list[str] = []

    def of(self, text: str) -> str:
        """The expression in the launcher. HostOnly if it is not certain."""
        text = CEIL_DIV.sub("THCCeilDiv", re.sub(r"(?<!\w)caffe::(?=CAFFE_GET_BLOCKS)", "", text))
        return self._expression(text, given=True, whole=True)

    def _expression(self, text: str, given: bool, whole: bool) -> str:
        root = parse(f"auto x = {text};")
        values = [n.child_by_field_name("value") for n in _each(root, "init_declarator")]
        if root.has_error or len(values) != 1 or values[0] is None or root.named_child_count != 1:
            raise HostOnly(text)
        return self._node(values[0], given, whole, in_macro=False)

    def _node(self, node, given: bool, whole: bool, in_macro: bool) -> str:
        text = _text(node)
        atom = node.type in ("identifier", "call_expression", "field_expression", "parenthesized_expression")
        may_bind = given and node.type not in NAMES and (atom or not in_macro) and self._varies(node)
        if may_bind and (found := self._bound(text, _type_of(text), whole)) is not None:
            return found
        if node.type in LEAVES:
            return text
        if node.type in NAMES:
            return self._name(text, given, whole)
        if node.type == "qualified_identifier":
            if not re.fullmatch(r"std\s*::\s*(min|max|ceil|floor)(\s*<[\w ]+>)?", text):
                raise HostOnly(text)
            return text
        if node.type == "call_expression":
            return self._call(node, given, in_macro)
        if node.type not in OF_PARTS or re.search(r"(?<![=!<>])=(?!=)|\+\+|--", text):
            raise HostOnly(text)
        whole = whole and node.type == "parenthesized_expression"
        return self._joined(node, [(c, self._node(c, given, whole, in_macro)) for c in node.named_children])

    def _call(self, node, given: bool, in_macro: bool) -> str:
        function = node.child_by_field_name("function")
        name, arguments = _text(function), node.child_by_field_name("arguments")
        macro = next((m for m in self.code.source.macros if m.tokens[0].text == name), None)
        written = self._node(function, given, False, in_macro)
        inside = [
            (c, self._node(c, given, name in CONVERTS, in_macro or macro is not None))
            for c in arguments.named_children
        ]
        return written + self._joined(arguments, inside)

    @staticmethod
    def _joined(node, parts) -> str:
        """A node's text with other texts for some of its children."""
        text, at, pieces = node.text.decode("latin-1"), 0, []
        for child, written in parts:
            pieces += (text[at : child.start_byte - node.start_byte], written)
            at = child.end_byte - node.start_byte
        return tidy("".join([*pieces, text[at:]]))

    def _name(self, word: str, given: bool, whole: bool) -> str:
        if word in self.types:
            return self.types[word]
        variable = self.code.variable(word)
        if variable is None and self.code.mentions(word):
            raise HostOnly(word)
        if variable is None and word in EVERYWHERE:
            return word
        if variable is None and word in self.constants:
            self._check_macro(word, set())
            self.names.add(word)
            return self.constants[word]
        if variable is not None and not variable.changes and variable.value and word not in self._busy:
            try:
                value = self._value(word, variable, given)
                self.names.add(word)
                self.variables.add(word)
                return value
            except HostOnly:
                pass
        if given and self._is_varying_name(word, variable):
            kind = variable.type if variable else ""
            if (found := self._bound(word, kind, whole)) is not None:
                return found
        raise HostOnly(word)

    def _value(self, word: str, variable: HostVariable, given: bool) -> str:
        """What the host code gives to a variable that it does not change."""
        if set(re.findall(r"[A-Za-z_]\w*", variable.value)) & self.code.twice:
            raise HostOnly(word)
        self._busy.append(word)
        try:
            self._check_unchanged(variable.value)
            text = self._expression(variable.value, given, whole=False)
        finally:
            self._busy.pop()
        if variable.type == "dim3":
            return text if text.startswith("dim3") else f"dim3({text})"
        return cast(variable.type, text)

    def _check_unchanged(self, text: str):
        """The variables in another one's value must still have theirs at the launch."""
        for word in re.findall(r"[A-Za-z_]\w*", text):
            variable = self.code.variable(word)
            if variable is not None and variable.changes:
                raise HostOnly(word)

    def _varies(self, node) -> bool:
        """Is there a part that the file does not determine?"""
        try:
            self._node(node, given=False, whole=True, in_macro=False)
        except HostOnly:
            pass
        else:
            return False
        return any(map(self._is_variable, [node, *_descendants(node)]))

    def _is_variable(self, node) -> bool:
        text = _text(node)
        if node.type == "identifier":
            return self._is_varying_name(text, self.code.variable(text))
        if node.type == "call_expression":
            function = node.child_by_field_name("function")
            field = function.child_by_field_name("field") if function.type == "field_expression" else None
            return field is not None and _text(field) in METHODS
        return False

    def _is_varying_name(self, name: str, variable: HostVariable | None) -> bool:
        if variable is None:  # in some sources a class's variables end with `_`
            return name.endswith("_") and name not in self.constants
        return variable.is_parameter or variable.changes or self._varies_by(name, variable)

    def _varies_by(self, name: str, variable: HostVariable) -> bool:
        """Does a variable's value come from something that varies?"""
        if not variable.value or name in self._busy:
            return not variable.value
        self._busy.append(name)
        root = parse(f"auto x = {variable.value};")
        found = any(map(self._is_variable, _descendants(root)))
        self._busy.pop()
        return found

    def _bound(self, text: str, kind: str, whole: bool) -> str | None:
        """The launcher's argument that has this value."""
        if not self.code.clear:
            return None
        if (tight := without_blanks(text)) in self.given:
            return self._as(self.given[tight], kind, whole, text)
        # An argument `n + 1` tells n.
        solved = [m for t in self.given if (m := re.fullmatch(r"(\w+)([+-])(\d+)", t)) and m[1] == text]
        if not solved:
            return None
        passed = self._as(self.given[solved[0][0]] if len(solved) == 1 else None, "int64_t", False, text)
        _, operator, number = solved[0].groups()
        if not set(kind.split()) <= WHOLE_WORDS or not kind:
            raise HostOnly(text)
        return cast(kind, f"{passed} {'-' if operator == '+' else '+'} {number}")

    @staticmethod
    def _as(given: Callable | None, kind: str, whole: bool, text: str) -> str | None:
        if given is None:
            raise HostOnly(text)
        if whole:
            return given("")
        if not kind or not set(kind.split()) <= WHOLE_WORDS:
            return None
        return given(kind)

    # -------------------------------------------------------------------------------------- macros

    def _stable(self, word: str) -> bool:
        """Does a macro have the same meaning at the launch as at the end of the file, where the launcher is?"""
        changed = [
            d.start
            for d in self.code.source.lexed.directives
            if d.word in ("define", "undef") and d.tokens and d.tokens[0].text == word
        ]
        return all(at < self.code.launch.start for at in changed) if self.code.here else len(changed) < 2

    def _check_macro(self, word: str, seen: set[str]):
        """A macro may name constants, and nothing of the host code."""
        if not self._stable(word):
            raise HostOnly(word)
        for macro in self.code.source.macros:
            if macro.tokens[0].text != word or word in seen:
                continue
            body = macro_body(macro)
            own = {t.text for t in macro.tokens[1 : len(macro.tokens) - len(body)]}
            for token in body:
                if token.text in ("#", "##", "=", "++", "--"):
                    raise HostOnly(word)
                if token.kind == "name" and token.text not in own:
                    if token.text not in EVERYWHERE and token.text not in self.constants:
                        raise HostOnly(word)
                    if self.code.variable(token.text) or self.code.mentions(token.text):
                        raise HostOnly(word)
                    self._check_macro(token.text, seen | {word})


def without_blanks(text: str) -> str:
    """The same text for an expression, however it is spaced."""
    return re.sub(r"\s*([^\w\s])\s*", r"\1", text)


def _descendants(node):
    for child in node.named_children:
        yield child
        yield from _descendants(child)


def cast(kind: str, text: str) -> str:
    """The value of an expression in a type."""
    if not kind or kind == "auto":
        return f"({text})"
    # In parentheses, unsigned(int(n)) would be the type of a function.
    as_type = re.match(r"(\w+)\(", text)
    plain = kind.isidentifier() and not (as_type and as_type[1] in {*WHOLE_WORDS, "float", "double"})
    return f"{kind}({text})" if plain else f"static_cast<{kind}>({text})"
