"""Calls of functions in which threads meet, such as warpReduceSum(v), replaced by these functions' own text.

    m = warpReduceSum(v) / n;      float caffe_in1; { float caffe_in1_v = (v); ...; caffe_in1 = (caffe_in1_v); }
                                   m = caffe_in1 / n;

Then warps.py sees one text. All of it stands on the line of the call. Names of the function get a prefix, and the names
of its template's types and numbers become what they are in this call. A call in an unusual place, or a function of an
unusual form, stays as it is: then the kernel's threads run on fibres.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .body import Body, declarators, walk
from .groups import WORDS as GROUPS
from .groups import names_of_groups
from .launches import parse
from .outline import Function, skip_angles, split_commas
from .reasons import Reason
from .source import Source
from .tokens import position_from
from .unit_names import type_words

HEAD = "void f()"
MOST = 16  # calls in one kernel
WORDS = {
    "__device__",
    "__host__",
    "__forceinline__",
    "__inline__",
    "inline",
    "static",
    "constexpr",
    "__noinline__",
}
STATEMENTS = {"expression_statement", "declaration"}
# What may stand between a call and its statement: all of it is done once.
WITHIN = {
    "binary_expression",
    "unary_expression",
    "parenthesized_expression",
    "argument_list",
    "call_expression",
}
WITHIN |= {"cast_expression", "init_declarator", "assignment_expression", "subscript_argument_list"}
WITHIN |= {"subscript_expression", "template_function"}


class _Unknown(Exception):
    """Why a call stays as it is."""


class Meeting(NamedTuple):
    """A function in which threads meet."""

    source: Source
    function: Function

    @property
    def name(self) -> str:
        return self.function.name

    def head(self) -> list:
        tokens = self.source.lexed.tokens
        return tokens[position_from(tokens, self.function.head) : position_from(tokens, self.function.at)]

    def template(self) -> list[tuple[str, str, str]]:
        """(type or number, name, default) of each template parameter."""
        tokens = self.head()
        if not tokens or tokens[0].text != "template":
            return []
        end = skip_angles(tokens, {}, 1, len(tokens))
        found = []
        for first, last in split_commas(tokens, {}, 2, end - 1):
            part = [token.text for token in tokens[first:last]]
            stop = part.index("=") if "=" in part else len(part)
            if stop < 2 or not part[stop - 1].isidentifier() or "." in "".join(part):
                raise _Unknown(f"{self.name}, whose template has another form")
            kind = "type" if part[0] in ("typename", "class") else "number"
            found.append((kind, part[stop - 1], " ".join(part[stop + 1 :])))
        return found

    def defaults(self) -> list[str]:
        """The default value of each parameter; "" of one without."""
        tokens, partner = self.source.lexed.tokens, self.source.lexed.partner
        opening = position_from(tokens, self.function.at) + 1
        if tokens[opening].text != "(":
            raise _Unknown(f"{self.name}, of which a template is specialised")
        found = []
        for first, last in split_commas(tokens, partner, opening + 1, partner[opening]):
            texts = [token.text for token in tokens[first:last]]
            found.append(" ".join(texts[texts.index("=") + 1 :]) if "=" in texts else "")
        return found

    def count_of_defaults(self) -> int:
        return sum(map(bool, self.defaults()))

    def returns(self) -> str:
        tokens = self.head()
        first = skip_angles(tokens, {}, 1, len(tokens)) if tokens and tokens[0].text == "template" else 0
        return " ".join(token.text for token in tokens[first:] if token.text not in WORDS)


class Expanding:
    """A kernel's body, with the calls replaced."""

    def __init__(self, source: Source, function: Function, meetings: dict[str, list[Meeting]], text: str):
        self.text = text
        self.source, self.function, self.meetings = source, function, meetings
        self.number = 0
        self.groups: set[str] = set()  # the names of the body's groups
        self.line = source.lexed.position(function.body)[0]  # of the call that is looked at

    def body(self) -> str:
        """The new text of the body, between its braces; it has as many lines."""
        text = self.text
        for _ in range(MOST):
            call = self._next(text)
            if call is None:
                break
            first = self.source.lexed.position(self.function.body)[0]
            self.line = first + text.count("\n", 0, call.start_byte - len(HEAD))
            text = self._replaced(text, call)
        return text

    def _next(self, text: str):
        """The first call of such a function that has no other one within it."""
        tree = parse(HEAD + re.sub(r"[^\x00-\x7f]", "_", text))
        if tree.has_error:
            raise _Unknown("a statement that the parser does not know")
        self.tree = tree
        found = [node for node in walk(tree) if node.type == "call_expression" and self._name(node, text)]
        return min(found, key=lambda node: (node.end_byte, -node.start_byte), default=None)

    def _name(self, call, text: str) -> str:
        callee = call.named_children[0]
        inner = callee.child_by_field_name("name") if callee.type == "template_function" else callee
        name = self._of(inner, text)
        return name if inner.type == "identifier" and name in self.meetings else ""

    @staticmethod
    def _of(node, text: str) -> str:
        return text[node.start_byte - len(HEAD) : node.end_byte - len(HEAD)]

    def _replaced(self, text: str, call) -> str:
        statement, name = call, self._name(call, text)
        while statement.type not in STATEMENTS:
            if statement.type not in WITHIN:
                kind = statement.type.replace("_", " ")
                raise _Unknown(f"a call of {name}, in which threads meet, in a {kind}")
            if statement.type == "binary_expression" and statement.child_by_field_name("operator").type in (
                "&&",
                "||",
            ):
                raise _Unknown(f"a call of {name}, in which threads meet, behind a condition")
            statement = statement.parent
        arguments = [self._of(n, text) for n in call.child_by_field_name("arguments").named_children]
        meeting = self._meeting(self.meetings[name], arguments, text)
        if len(arguments) < len(meeting.function.parameters):
            arguments += meeting.defaults()[len(arguments) :]
        self.number += 1
        self.groups = names_of_groups(text)
        result = f"caffe_in{self.number}"
        inlined, is_void = self._inlined(
            meeting, arguments, self._given(call, meeting, arguments, text), result
        )
        start, end = statement.start_byte - len(HEAD), statement.end_byte - len(HEAD)
        first, last = call.start_byte - len(HEAD), call.end_byte - len(HEAD)
        lines = "\n" * text.count("\n", first, last)
        if is_void:
            if text[start:end].strip() != text[first:last] + ";":
                raise _Unknown(f"a call of {meeting.name} that is no statement of its own")
            return text[:start] + inlined + lines + text[end:]
        changed = text[start:first] + result + lines + text[last:end]
        if statement.parent.type != "compound_statement":
            if statement.type == "declaration":
                raise _Unknown(f"a call of {meeting.name} in a declaration without a block")
            return text[:start] + "{ " + inlined + changed + " }" + text[end:]
        return text[:start] + inlined + changed + text[end:]

    def _meeting(self, every: list[Meeting], arguments: list[str], text: str) -> Meeting:
        """The function that a call means, of those with its name."""
        count = len(arguments)
        found = [m for m in every if len(m.function.parameters) - m.count_of_defaults() <= count]
        found = [m for m in found if count <= len(m.function.parameters)]
        if len(found) > 1:
            if any(m.template() for m in found):
                raise _Unknown(f"a call of {every[0].name}, of which there are several")
            types = [self._type_of(argument, text) for argument in arguments]
            found = [m for m in found if types == [self._plain(p.type) for p in m.function.parameters]]
        if len(found) != 1:
            raise _Unknown(f"a call of {every[0].name}, of which there are several")
        return found[0]

    @staticmethod
    def _plain(kind: str) -> str:
        return " ".join(word for word in kind.partition("=")[0].replace("&", " ").split() if word != "const")

    def _given(self, call, meeting: Meeting, arguments: list[str], text: str) -> dict[str, str]:
        """What the names of the template stand for in a call."""
        names, given = meeting.template(), []
        callee = call.named_children[0]
        if callee.type == "template_function":
            given = [self._of(n, text) for n in callee.child_by_field_name("arguments").named_children]
        found = dict(zip((name for _, name, _ in names), given, strict=False))
        for kind, name, default in names:
            if name in found:
                continue
            if kind == "type" and self._is_of_groups(name, meeting, arguments):
                found[name] = ""
                continue
            deduced = self._deduced(name, meeting, arguments, text) if kind == "type" else ""
            if not (deduced or default):
                raise _Unknown(f"a call of {meeting.name} that does not say what {name} is")
            found[name] = deduced or default
        if "" in found.values() and self._words(meeting) & {n for n, kind in found.items() if not kind}:
            raise _Unknown(f"{meeting.name} names the type of a group")
        return found

    @staticmethod
    def _words(meeting: Meeting) -> set[str]:
        return {token.text for token in Body(meeting.source, meeting.function).tokens}

    def _is_of_groups(self, name: str, meeting: Meeting, arguments: list[str]) -> bool:
        """Is a template's type that of a group in this call?"""
        pairs = zip(meeting.function.parameters, arguments, strict=False)
        return any(name in type_words(p.type) and argument.strip() in self.groups for p, argument in pairs)

    def _deduced(self, name: str, meeting: Meeting, arguments: list[str], text: str) -> str:
        for parameter, argument in zip(meeting.function.parameters, arguments, strict=False):
            words = [w for w in type_words(parameter.type) if w not in ("const", "__restrict__", "&")]
            if name not in words:
                continue
            if words[0] != name or set(words[1:]) - {"*"}:
                raise _Unknown(f"a call of {meeting.name}, whose {name} is deduced from {parameter.type}")
            kind = self._type_of(argument, text)
            stars = words.count("*")
            return kind[: len(kind) - stars].strip() if stars and kind.endswith("*" * stars) else kind
        return ""

    def _type_of(self, argument: str, text: str) -> str:
        """The type of a variable of the body, of an element, or of arithmetic on floats."""
        argument = argument.strip()
        if element := re.fullmatch(r"(\w+)\s*\[[^][]*\]", argument):
            kind = self._type_of(element[1], text)
            if not kind.endswith("*"):
                raise _Unknown(f"the type of {argument}, which a template asks for")
            return kind[:-1].strip()
        if not argument.isidentifier():
            words = re.findall(r"[A-Za-z_]\w*(?!\w|\s*\()", re.sub(r"\b\d[\w.]*", "1", argument))
            # No double, no call, no cast, and no element.
            other = r"\d\.\d*(?![\d.fF])|\d[eE]|\w\s*\(|\(\s*\w+\s*\)|[?&|<>!=%,{\[]|\w\.[A-Za-z_]{2}"
            if (
                re.search(other, argument)
                or not words
                or {self._type_of(word, text) for word in words} != {"float"}
            ):
                raise _Unknown(f"the type of {argument}, which a template asks for")
            return "float"
        found = {
            " ".join(p.type.replace("const", "").replace("__restrict__", "").split())
            for p in self.function.parameters
            if p.name == argument
        }
        for declaration in (node for node in walk(self.tree) if node.type == "declaration"):
            for declarator, name, _ in declarators(declaration):
                if name is None or self._of(name, text) != argument:
                    continue
                before = text[declaration.start_byte - len(HEAD) : declarator.start_byte - len(HEAD)]
                inner = (
                    declarator.child_by_field_name("declarator")
                    if declarator.type == "init_declarator"
                    else declarator
                )
                if declaration.children_by_field_name("declarator")[0] != declarator:
                    first = declaration.children_by_field_name("declarator")[0]
                    before = text[declaration.start_byte - len(HEAD) : first.start_byte - len(HEAD)]
                suffix = {"identifier": "", "array_declarator": "*", "pointer_declarator": "*"}.get(
                    inner.type
                )
                if suffix is None:
                    raise _Unknown(f"the type of {argument}, which a template asks for")
                found.add(" ".join(w for w in before.split() if w not in ("const", "__shared__")) + suffix)
        if len(found) != 1 or "auto" in next(iter(found)).split():
            raise _Unknown(f"the type of {argument}, which a template asks for")
        return found.pop()

    def _inlined(
        self, meeting: Meeting, arguments: list[str], given: dict[str, str], result: str
    ) -> tuple[str, bool]:
        """The function's text for these arguments, and whether it returns nothing."""
        function, source = meeting.function, meeting.source
        directives = (*source.lexed.directives, *source.lexed.conditions)
        if any(function.body < d.start < function.end and d.word != "pragma" for d in directives):
            raise _Unknown(f"{meeting.name} has a preprocessor line")
        if len(arguments) != len(function.parameters) or not all(arguments):
            raise _Unknown(f"a call of {meeting.name} with other arguments than it has parameters")
        body = Body(source, function)
        returned = [node for node in walk(body.root) if node.type == "return_statement"]
        kind = self._with(meeting.returns(), given)
        is_void = kind == "void"
        last = body.root.named_children[-1] if body.root.named_children else None
        wanted = [] if is_void else [last]
        if body.tree.has_error or returned != wanted or "auto" in kind.split():
            raise _Unknown(f"{meeting.name} does not end with its only return")
        names = {
            body.of(name)
            for d in walk(body.root)
            if d.type == "declaration"
            for _, name, _ in declarators(d)
            if name
        }
        renamed = {name: f"{result}_{name}" for name in names}
        texts = [] if is_void else [f"{kind} {result}; "]
        texts.append("{ ")
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            if argument.strip() in self.groups:
                renamed[parameter.name] = argument.strip()
                continue
            if GROUPS & set(type_words(parameter.type)):
                renamed[parameter.name] = f"{result}_{parameter.name}"
                texts.append(f"auto {result}_{parameter.name} = {' '.join(argument.split())}; ")
                continue
            if "&" in parameter.type and "const" not in parameter.type.split():
                if not argument.strip().isidentifier():
                    raise _Unknown(f"a call of {meeting.name} that changes what is no variable")
                renamed[parameter.name] = argument.strip()
                continue
            renamed[parameter.name] = f"{result}_{parameter.name}"
            shown = self._with(parameter.type.partition("=")[0].replace("&", ""), given)
            texts.append(f"{shown} {result}_{parameter.name} = ({' '.join(argument.split())}); ")
        texts.append(self._text(body, renamed, given, result, last if not is_void else None))
        return "".join(texts) + " } ", is_void

    @staticmethod
    def _with(kind: str, given: dict[str, str]) -> str:
        """A type with what the template's names stand for."""
        return " ".join(given.get(word, word) for word in type_words(kind))

    def _text(self, body: Body, renamed: dict[str, str], given: dict[str, str], result: str, last) -> str:
        pieces = []
        opened = body.place(last)[0] if last is not None else -1
        for i, token in enumerate(body.tokens[1:-1], 1):
            before, after = body.tokens[i - 1].text, body.tokens[i + 1].text
            text = token.text
            if token.start == opened:
                text = f"{result} ="
            elif token.kind == "name" and before not in (".", "->", "::"):
                text = renamed.get(text, given.get(text, text))
                if token.text in given and after == "(" and " " in text:
                    text = f"({text})"
            pieces.append(text)
        return " ".join(pieces)


def expanded(
    source: Source, function: Function, meetings: dict[str, list[Meeting]], text: str | None = None
) -> str | Reason:
    """A kernel's body with the calls of these functions replaced; or why one of them cannot be.

    Args:
        text: the body, if not the source's.
    """
    own = source.text[function.body : function.end]
    expanding = Expanding(source, function, meetings, own if text is None else text)
    try:
        return expanding.body()
    except _Unknown as unknown:
        return Reason(source.path, expanding.line, str(unknown))
