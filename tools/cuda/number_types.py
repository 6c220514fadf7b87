"""What the names of a file mean to a conversion: types that may be integers, functions and what they take."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from .branches import DEVICE_MACRO, FOR_DEVICES
from .conditions import Directive, Token
from .constructors import Constructors
from .names import INDEX, WARP_SIZE
from .outline import ATTRIBUTES, Function, parameters_after, skip_angles, split_commas
from .source import Source
from .tokens import macro_body, macro_parameters, position_from

SIZES = {"int", "char", "short", "long", "signed", "unsigned"}
FIXED = {
    f"{sign}int{kind}{bits}_t"
    for sign in ("", "u")
    for kind in ("", "_fast", "_least")
    for bits in (8, 16, 32, 64)
}
NAMED = FIXED | {"size_t", "ssize_t", "ptrdiff_t", "intptr_t", "uintptr_t", "intmax_t", "uintmax_t"}
NAMED |= {"uint", "uchar", "ushort", "ulong", "wchar_t", "char8_t", "char16_t", "char32_t", "clock_t"}
INTEGERS = SIZES | NAMED
_OF_VECTORS = {
    "char": "signed char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short", "int": "int",
    "uint": "unsigned int", "long": "long", "ulong": "unsigned long", "longlong": "long long",
    "ulonglong": "unsigned long long",
}  # fmt: skip
# The type of the fields of CUDA's vectors of integers.
VECTORS = {f"{name}{n}": of for name, of in _OF_VECTORS.items() for n in (1, 2, 3, 4)} | {
    "dim3": "unsigned int"
}
REALS = {
    "float",
    "double",
    "half",
    "__half",
    "__half2",
    "half2",
    "__nv_bfloat16",
    "__nv_bfloat162",
    "nv_bfloat16",
}
REALS |= {"void", "bool", *(f"{real}{n}" for real in ("float", "double") for n in (1, 2, 3, 4))}
QUALIFIERS = {
    "const",
    "volatile",
    "static",
    "constexpr",
    "register",
    "inline",
    "typename",
    "thread_local",
    "extern",
}
QUALIFIERS |= {"__shared__", "__restrict__", "__restrict", "mutable", "struct", "enum", "class"}
# C's functions beside which the host has no own: (what they take), of which some are integers.
OF_C = {
    name + end: (("int", "double") if name in ("jn", "yn") else ("double", "int"))
    for name in ("ldexp", "scalbn", "jn", "yn")
    for end in ("", "f")
} | {name: ("double", "long") for name in ("scalbln", "scalblnf")}
# Words that are neither a type nor a variable.
KEYWORDS = {
    "return", "else", "do", "case", "if", "for", "while", "switch", "goto", "sizeof", "new", "delete", "throw", "using",
    "typedef", "operator", "template", "namespace", "default", "break", "continue", "static_assert", "asm", "alignof",
    "decltype", "co_return", "public", "private", "protected",
}  # fmt: skip
BEFORE_STATEMENTS = {";", "{", "}", ")", ":", "else", "do"}
# What a compiler's own text may begin an expression with.
WHOLE = re.compile(r"(0[xX][\da-fA-F']+|0[bB][01']+|\d[\d']*)[uUlLzZ]*\Z")
_ARITHMETIC = {
    "+", "-", "*", "/", "%", "&", "|", "^", "~", "<<", ">>", "(", ")", "<", ">", "<=", ">=", "==", "!=", "&&", "||",
    "!", "?", ":", ".",
}  # fmt: skip


class Signature(NamedTuple):
    """A function of the files: the types that it takes, and the names of its template's parameters."""

    takes: tuple[str, ...]
    templates: tuple[str, ...]
    scope: tuple[int, ...]  # the class that it is in
    of_class: frozenset[str]  # the names of the class's template
    is_pack: bool
    least: int = 0  # how many arguments a call must give
    parameters: tuple[str, ...] = ()  # of the class's template, in order
    is_constructor: bool = False
    words: frozenset[str] = frozenset()  # before its name


def text_of(tokens: list[Token]) -> str:
    return " ".join(token.text for token in tokens)


class Types:
    """Of a file with its headers."""

    def __init__(self, sources: list[Source]):
        self.integers: dict[str, str] = {}  # a typedef of an integer, and what it stands for
        self.meanings: dict[str, set[str]] = {}  # all that `using` and `typedef` say
        self.constructors = Constructors([], {}, {}, None)
        self.maybe: set[str] = (
            set()
        )  # names of types that may be integers, as a template's `typename T::index`
        self.signatures: dict[str, list[Signature]] = {}
        self.fields: dict[str, list[str]] = {}  # of plain structs
        self.indices: set[str] = set()  # what operator[] of the files' classes takes
        self.classes = {name for source in sources for name in source.classes}
        self.no_numbers = REALS | self.classes | VECTORS.keys()
        self.in_conditions = _in_conditions(sources)
        self.given: dict[str, list[list[str]]] = {}  # what the files give to a macro
        self.macros = [macro for source in sources for macro in source.macros]
        self.in_expressions: set[str] = set()  # macros that stand elsewhere than as statements of functions
        self._uses(sources)
        self.device_words = _device_words(sources)
        for source in sources:
            self._typedefs(source.lexed.tokens)
        self._settle()
        for source in sources:
            self._signatures(source)
            self._fields(source)
        for name, takes in OF_C.items():
            self.signatures.setdefault(name, [Signature(takes, (), (), frozenset(), False)])
        self.constructors = Constructors(sources, self.meanings, self.signatures, self._may_take)
        for name in self.meanings:
            of = [self.fields.get(c.name) for c in self.constructors.meant(name)]
            if len(of) == 1 and of[0] is not None:
                self.fields[name] = of[0]
        self.maybe |= self.constructors.names
        self.no_numbers -= self.constructors.names

    def _may_take(self, signature: Signature, text: str) -> bool:
        one = text.removeprefix("const ").removesuffix("&").strip()
        return one.split()[-1:] != [] and (one in signature.of_class or self.may_be_whole(one))

    def is_for_devices(self, function: Function) -> bool:
        words = function.words
        return bool(words & self.device_words) or any(map(DEVICE_MACRO.match, words)) or "constexpr" in words

    def whole(self, text: str) -> str | None:
        """The integer type for which a type's text stands."""
        words = [
            w for w in re.findall(r"\w+|[^\w\s]", text) if w not in QUALIFIERS and w not in ("std", "::", ":")
        ]
        if words and set(words) <= SIZES:
            return " ".join(words)
        if len(words) != 1:
            return None
        return words[0] if words[0] in NAMED else self.integers.get(words[0])

    def may_be_whole(self, text: str) -> bool:
        """May a type be an integer? Not a pointer, a reference, a real number, or a class of the files."""
        if text == "decltype ( auto )":
            return False
        if text.startswith("decltype (") and text.count("(") == text.count(")") and text.endswith(")"):
            return True
        if re.search(r"[*&(\[]", text) or re.search(r"\bauto\b", text):
            return False
        words = [w for w in re.findall(r"\w+", text) if w not in QUALIFIERS and w != "std"]
        if not words or words[-1] in KEYWORDS:
            return False
        if "<" in text and "::" not in text.rpartition(">")[2]:  # std::make_unsigned_t<T>
            return words[0].endswith("_t") or self.constructors.is_made(text)
        return words[-1] not in self.no_numbers

    @functools.cached_property
    def has_whole_indices(self) -> bool:
        """Do objects take integers as an index, and no real numbers?"""
        words = {word for text in self.indices for word in re.findall(r"\w+", text)}
        return bool(self.indices) and not words & REALS

    def _uses(self, sources: list[Source]):
        macros = {
            macro.tokens[0].text for source in sources for macro in source.macros if macro_parameters(macro)
        }
        for source in sources:
            tokens, partner = source.lexed.tokens, source.lexed.partner
            for i, token in enumerate(tokens[:-1]):
                if token.text in macros and tokens[i + 1].text == "(" and i + 1 in partner:
                    parts = split_commas(tokens, partner, i + 2, partner[i + 1])
                    self.given.setdefault(token.text, []).append([text_of(tokens[a:b]) for a, b in parts])
                    if i and (
                        tokens[i - 1].text not in BEFORE_STATEMENTS or not source.function_around(token.start)
                    ):
                        self.in_expressions.add(token.text)
            for macro in source.macros:
                self.in_expressions |= {t.text for t in macro_body(macro)} & macros

    def types_of_macro(self, macro: Directive) -> set[str]:
        """The parameters of a macro to which the files give types."""
        given = self.given.get(macro.tokens[0].text, [])
        known = self.maybe | REALS - {"void"}
        return {
            name
            for k, name in enumerate(macro_parameters(macro))
            if any(k < len(one) and (self.whole(one[k]) or one[k] in known) for one in given)
        }

    def is_statement(self, macro: Directive) -> bool:
        """Do the files use a macro, and as a statement of functions alone?"""
        name = macro.tokens[0].text
        return name in self.given and name not in self.in_expressions

    @functools.cached_property
    def returning(self) -> set[str]:
        """The macros that stand for `return x` of their one parameter."""
        found = set()
        for macro in self.macros:
            words = [t.text for t in macro_body(macro) if t.text not in ("(", ")", ";")]
            if words[:1] == ["return"] and words[1:] == macro_parameters(macro):
                found.add(macro.tokens[0].text)
        return found

    def are_types(self, macro: Directive, name: str) -> bool:
        """Is each text that the files give to a macro's parameter the name of a number's type?"""
        place = macro_parameters(macro).index(name) if name in macro_parameters(macro) else -1
        given = self.given.get(macro.tokens[0].text, [])
        known = REALS - {"void"}
        return place >= 0 and all(
            place < len(one) and (self.whole(one[place]) is not None or one[place] in known) for one in given
        )

    def _typedefs(self, tokens: list[Token]):
        for i, token in enumerate(tokens):
            if token.text not in ("typedef", "using"):
                continue
            end = next((k for k in range(i, len(tokens)) if tokens[k].text in (";", "{")), len(tokens))
            if token.text == "typedef" and end - 1 > i:
                name, meaning = tokens[end - 1], tokens[i + 1 : end - 1]
            elif i + 2 < end and tokens[i + 2].text == "=":
                name, meaning = tokens[i + 1], tokens[i + 3 : end]
            else:
                continue
            if end < len(tokens) and tokens[end].text == ";" and name.kind == "name":
                text = text_of(meaning)
                self.meanings.setdefault(name.text, set()).add(text)
                known = self.integers.setdefault(name.text, text)
                if known != text:
                    self.maybe.add(name.text)

    def _settle(self):
        """Follow typedefs of typedefs."""
        meanings, self.integers = self.integers, {}
        for _ in range(4):
            for name, text in meanings.items():
                whole = None if name in self.maybe else self.whole(text)
                if whole:
                    self.integers[name] = whole
        may_be = {n for n, text in meanings.items() if self.may_be_whole(text)}
        self.no_numbers = self.no_numbers | (meanings.keys() - may_be - self.maybe)
        self.maybe |= may_be - self.integers.keys()

    def _signatures(self, source: Source):
        tokens = source.lexed.tokens
        names_of = {opening: name for name, ranges in source.classes.items() for opening, _ in ranges}
        for first, last in source.declared:
            name = source.name_of((first, last))
            begin, end = parameters_after(tokens, source.lexed.partner, name, last)
            parameters = tuple(source._parameters(begin, end))
            takes = tuple(p.type if p.type else p.name for p in parameters)
            head = tokens[first:name]
            inside = source.classes_around(first)
            of_class = {name for a in inside for name in typenames(tokens[_head(tokens, a) : a])}
            is_pack = "..." in {t.text for t in tokens[begin:end]}
            scope = (id(source), *inside) if inside else ()
            least = sum(
                "=" not in {t.text for t in tokens[a:b]}
                for a, b in split_commas(tokens, source.lexed.partner, begin, end)
            )
            template = tokens[_head(tokens, inside[0]) : inside[0]] if inside else []
            signature = Signature(
                takes,
                _template_names(head),
                scope,
                frozenset(of_class),
                is_pack,
                min(least, len(takes)),
                parameters=_template_names(template),
                is_constructor=bool(inside) and tokens[name].text == names_of[inside[0]],
                words=frozenset(token.text for token in head),
            )
            self.signatures.setdefault(tokens[name].text, []).append(signature)
            if [t.text for t in tokens[name : name + 3]] == ["operator", "[", "]"] and takes:
                self.indices.add(takes[0])

    def _fields(self, source: Source):
        tokens, partner = source.lexed.tokens, source.lexed.partner
        for name, ranges in source.classes.items():
            for opening, close in ranges:
                fields = _plain_fields(tokens, partner, opening, close)
                if fields is not None and tokens[opening - 1].text == name:
                    self.fields[name] = fields


def _plain_fields(tokens: list[Token], partner: dict[int, int], opening: int, close: int) -> list[str] | None:
    """The fields of a struct without functions, in order."""
    fields, i = [], opening + 1
    while i < close:
        text, after = tokens[i].text, tokens[i + 1].text
        if text in (
            "(",
            "{",
            "=",
            ":",
            "using",
            "typedef",
            "static",
            "template",
            "friend",
            "union",
            "struct",
        ):
            return None
        if tokens[i].kind == "name" and after in (";", ",", "["):
            fields.append(tokens[i].text)
        i = partner.get(i, i) + 1 if text == "[" else i + 1
    return fields


def _template_names(head: list[Token]) -> tuple[str, ...]:
    """T, N of `template <typename T, int N>`."""
    if not head or head[0].text != "template":
        return ()
    names, depth = [], 0
    for token, after in pairwise(head[1:]):
        depth += (token.text == "<") - token.text.count(">")
        if depth <= 0:
            break
        if token.kind == "name" and after.text in (",", ">", "=") and depth == 1:
            names.append(token.text)
    return tuple(names)


def _device_words(sources: list[Source]) -> set[str]:
    """__device__, __global__, and macros that have them."""
    words = set(FOR_DEVICES)
    for macro in [m for _ in range(2) for source in sources for m in source.macros]:
        if any(token.text in words for token in macro_body(macro)):
            words.add(macro.tokens[0].text)
    return words


def _in_conditions(sources: list[Source]) -> set[str]:
    """The macros that the preprocessor computes with."""
    bodies: dict[str, set[str]] = {}
    for macro in (macro for source in sources for macro in source.macros):
        bodies.setdefault(macro.tokens[0].text, set()).update(t.text for t in macro_body(macro))
    found = {token.text for source in sources for one in source.lexed.conditions for token in one.tokens}
    waiting = list(found & bodies.keys())
    while waiting:
        for name in (bodies[waiting.pop()] & bodies.keys()) - found:
            found.add(name)
            waiting.append(name)
    return found


class Names:
    """What the names in one function mean; of a macro's text, without a function, only types are known."""

    def __init__(self, types: Types, source: Source | None = None, function: Function | None = None):
        self.types, self.templates = types, set[str]()
        self.reals, self.wholes, self.others = set[str](), set[str](), set[str]()
        self.objects = set[str]()  # of the files' classes
        if source is None or function is None:
            return
        tokens, partner = source.lexed.tokens, source.lexed.partner
        head, body, end = (position_from(tokens, at) for at in (function.head, function.body, function.end))
        self.templates |= set(typenames(tokens[head:body]))
        if function.member or function.scope:
            for opening in source.classes_around(head) + source.classes_after.get(function.scope, []):
                self.templates |= typenames_of_class(tokens, opening)
        for parameter in function.parameters:
            self._declare(parameter.name, parameter.type)
        for name, text in declared(tokens, partner, body, end):
            self._declare(name, text)
        self.wholes -= self.reals | self.others
        self.reals -= self.others

    def _declare(self, name: str, text: str):
        words = {w for w in re.findall(r"\w+", text) if w not in QUALIFIERS}
        if any(map(self.is_variable, words)):  # `a * b` is a product
            return
        if words & REALS and not words - REALS:
            self.reals.add(name)
        elif self.types.whole(text):
            self.wholes.add(name)
        else:
            self.others.add(name)
            if words & self.types.classes:
                self.objects.add(name)

    def is_type(self, text: str) -> bool:
        """Is it surely a type, and may be an integer?"""
        name = re.findall(r"\w+", text)[-1:] or [""]
        if name[0] in self.reals | self.wholes | self.others and not self.types.whole(text):
            return False
        known = self.types.whole(text) or name[0] in self.types.maybe or name[0] in self.templates
        return bool(known) and self.types.may_be_whole(text)

    def is_variable(self, name: str) -> bool:
        # `4 * sizeof(x)` looks like a declaration.
        return (name in self.reals or name in self.wholes or name in self.others) and name not in KEYWORDS

    def are_whole(self, tokens: list[Token]) -> bool:
        """Is an expression arithmetic on integers alone?"""
        for i, token in enumerate(tokens):
            before = tokens[i - 1].text if i else ""
            if token.kind == "name":
                if before == "." and i > 1 and tokens[i - 2].text in INDEX:
                    continue
                if token.text not in self.wholes | SIZES | {*INDEX, WARP_SIZE, "true", "false"}:
                    return False
            elif token.kind == "number":
                if not WHOLE.match(token.text):
                    return False
            elif token.kind != "char" and token.text not in _ARITHMETIC:
                return False
        return True


def typenames(tokens: list[Token]) -> Iterator[str]:
    for before, name in pairwise(tokens):
        if before.text in ("typename", "class") and name.kind == "name":
            yield name.text


def typenames_of_class(tokens: list[Token], opening: int) -> set[str]:
    return set(typenames(tokens[_head(tokens, opening) : opening]))


def _head(tokens: list[Token], opening: int) -> int:
    """Where the head of a class begins whose brace is there."""
    at = opening
    while at and tokens[at - 1].text not in (";", "{", "}"):
        at -= 1
    return at


def type_at(tokens: list[Token], partner: dict[int, int], at: int, end: int) -> tuple[str, int] | None:
    """(the text of the type of a declaration that begins there, the index after it), or None if none does."""
    words, named, kept = [], False, at
    while at < end:
        token = tokens[at]
        if token.text == "[" and at + 1 < end and tokens[at + 1].text == "[":
            at = partner.get(at, at) + 1
            continue
        if token.kind != "name" or (token.text in KEYWORDS and token.text != "decltype"):
            break
        if token.text in ATTRIBUTES and at + 1 < end and tokens[at + 1].text == "(":
            close = partner.get(at + 1, end) + 1
            if token.text == "decltype":
                words, named = [text_of(tokens[at:close])], True
            at = close
            continue
        if token.text in QUALIFIERS or (token.text in SIZES and (not named or words[-1] in SIZES)):
            named = named or token.text in SIZES
            words += [token.text] if token.text in SIZES or token.text == "typename" else []
            at += 1
            continue
        if named:
            break
        kept = at
        at = _past_name(tokens, partner, at, end)
        words, named = [*words, text_of(tokens[kept:at])], True
    ends = named and at < end and (tokens[at].kind == "name" or tokens[at].text in ("*", "&", "&&", "("))
    return (" ".join(words), at) if ends else None


def _past_name(tokens: list[Token], partner: dict[int, int], at: int, end: int) -> int:
    """The index after `a::b<c>::d`."""
    at += 1
    while at < end:
        if tokens[at].text == "::" and at + 1 < end and tokens[at + 1].kind == "name":
            at += 2
        elif tokens[at].text == "<" and (after := skip_angles(tokens, partner, at, end)) > at + 1:
            follows = (
                after >= end or tokens[after].kind == "name" or tokens[after].text in ("::", "*", "&", "&&")
            )
            if not follows:
                return at
            at = after
        else:
            break
    return at


def declared(
    tokens: list[Token], partner: dict[int, int], first: int, last: int
) -> Iterator[tuple[str, str]]:
    """(name, type) of what is declared between two tokens. Of a pointer the type has a star."""
    for i in range(first, last):
        if i > first and tokens[i - 1].text not in (";", "{", "}", "(", ")", ":", ","):
            continue
        found = type_at(tokens, partner, i, last)
        if found is None or (i > first and tokens[i - 1].text == ")" and tokens[found[1]].kind != "name"):
            continue
        text, at = found
        yield from declarators(tokens, partner, at, last, text)


def declarators(tokens: list[Token], partner: dict[int, int], at: int, last: int, text: str):
    stars = ""
    while at < last:
        token = tokens[at]
        if token.text in ("*", "&", "&&", "const", "__restrict__", "__restrict"):
            stars += token.text[0] if token.text in ("*", "&", "&&") else ""
            at += 1
            continue
        if token.kind != "name" or tokens[at + 1].text not in ("=", ";", ",", "[", ")", "(", "{", ":"):
            return
        yield token.text, text + stars + ("*" if tokens[at + 1].text == "[" else "")
        stars, at = "", at + 1
        while at < last and tokens[at].text not in (",", ";", ")", ":"):
            at = partner.get(at, at) + 1 if tokens[at].text in ("(", "[", "{") else at + 1
        if at >= last or tokens[at].text != ",":
            return
        at += 1
