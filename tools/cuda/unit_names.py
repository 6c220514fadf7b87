"""What a unit's names are: which types are plain, which functions change nothing that they get, which are constants.

If it is not certain, the answer is no: a name may stand for more than one thing, and a typedef for a reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from .guard import WORDS_OF_NUMBERS
from .names import ATOMIC
from .outline import Function
from .source import Source
from .tokens import position_from
from .variables import QUALIFIERS

INTEGERS = WORDS_OF_NUMBERS | {"bool", "char", "short", "constexpr"}
INTEGERS |= {"int8_t", "uint8_t", "int16_t", "uint16_t", "uint", "uchar", "ushort"}
NUMBERS = INTEGERS | {"float", "double"}
HALVES = {"half", "__half", "nv_bfloat16", "__nv_bfloat16"}
VECTORS = {
    *(f"{name}{n}" for name in ("char", "uchar", "short", "ushort", "int", "uint") for n in (1, 2, 3, 4)),
    *(f"{name}{n}" for name in ("long", "ulong", "longlong", "ulonglong", "float", "double") for n in (1, 2, 3, 4)),
    *("half2", "__half2", "nv_bfloat162", "__nv_bfloat162", "dim3"),
}  # fmt: skip
# CUDA's and C's functions that change no variable which is passed by its name.
BY_VALUE = re.compile(
    r"(__\w+|atomic\w+|make_\w+|(min|max|abs|fma|fabs|sqrt|rsqrt|cbrt|exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan"
    r"|tanh|erf|floor|ceil|round|rint|trunc|fmin|fmax|fmod|isnan|isinf|isfinite|ldexp|copysign|printf|assert)[fl]?)\Z"
)
TELLS = {"printf", "assert", "asm", "__asm__", "__asm", "volatile", "__trap", "__brkpt", "clock", "clock64"}
CASTS = {"static_cast", "reinterpret_cast", "const_cast"}
OPERATORS = re.compile(r"[-+*/%^&|~!=<>,\[(]+|new|delete")
STATEMENTS = {
    "return",
    "break",
    "continue",
    "goto",
    "do",
    "while",
    "for",
    "if",
    "else",
    "switch",
    "case",
    "asm",
}


def type_words(text: str) -> list[str]:
    """The words of a type, with `*`, `&` and the like as words of their own."""
    return re.findall(r"\w+|\S", text)


class UnitNames:
    """The names of a source file and of the headers that are read with it."""

    def __init__(self, sources: list[Source], macros: dict[str, list], words: dict[str, set[str]]):
        self.macros, self._words = macros, words  # those of each function, class and macro
        functions = [function for source in sources for function in source.functions]
        self.functions = {function.name for function in functions}
        self.classes = {name for source in sources for name in source.classes}
        self.with_destructor: set[str] = set()  # classes of the unit
        self._has_reference_alias = False
        self.operators: set[str] = set()  # that a unit's function may change an operand by
        self._templates = {id(f): _template_types(source, f) for source in sources for f in source.functions}
        for source in sources:
            self._read(source)
        changing = [f for f in functions if not self._is_by_value(f)]
        self._by_value = self.functions - {function.name for function in changing}
        self._constants = _constants(sources)

    def _read(self, source: Source):
        texts = [token.text for token in source.lexed.tokens]
        for i, text in enumerate(texts):
            if text == "~" and i + 2 < len(texts) and texts[i + 1] in self.classes and texts[i + 2] == "(":
                self.with_destructor.add(texts[i + 1])
            elif text in ("typedef", "using"):
                end = next((j for j in range(i, len(texts)) if texts[j] == ";"), i)
                words = set(texts[i:end])
                self._has_reference_alias |= bool(words & {"&", "&&", "decltype"}) or any(
                    "reference" in word for word in words
                )
            elif text == "operator" and i + 1 < len(texts) and OPERATORS.match(texts[i + 1]):
                function = next((f for f in source.functions if f.at == source.lexed.tokens[i].start), None)
                if function is None or not self._is_by_value(function):
                    self.operators.add(texts[i + 1])

    def _is_by_value(self, function: Function) -> bool:
        """Takes it no reference? That to a const may be kept, so that it is one, too."""
        own = self._templates[id(function)]
        return all(self.is_plain(parameter.type, own) for parameter in function.parameters)

    def is_plain(self, type_text: str, templates: Iterable[str] = ()) -> bool:
        """Is it certainly a number, a pointer, or a structure without a destructor, and no reference?"""
        words = [word for word in type_words(type_text) if word not in QUALIFIERS]
        if not words or set(words) & {"&", "<", ":", "auto", "(", "[", "."}:
            return False
        if words[-1] == "*":
            return True
        return all(self._is_plain_word(word, set(templates), len(words) == 1) for word in words)

    def _is_plain_word(self, word: str, templates: set[str], is_alone: bool) -> bool:
        if word in NUMBERS | HALVES | VECTORS:
            return word not in self.classes and word not in self.macros
        if word in self.macros:
            return {token.text for token in self.macros[word]} <= NUMBERS
        if not is_alone or not word.isidentifier():
            return False
        if word in self.classes:
            return not self.with_destructor
        return word in templates or not (self._has_reference_alias or self.with_destructor)

    def changes_nothing(self, name: str, template_arguments: str) -> bool:
        """Takes a function of this name its arguments by value?"""
        if "&" in template_arguments or (template_arguments and self._has_reference_alias):
            return False
        if name in self.functions or name in self.classes:
            return name in self._by_value and name not in self.classes
        return name not in self.macros and bool(BY_VALUE.match(name))

    def tells(self, name: str) -> bool:
        """May it say, or what it names, in which order threads come?"""
        seen, waiting = {name}, [name]
        while waiting:
            word = waiting.pop()
            if word in TELLS or (ATOMIC.fullmatch(word) and word not in self.functions):
                return True
            new = self._words.get(word, set()) - seen
            seen |= new
            waiting += new
        return False

    def is_constant(self, name: str) -> bool:
        """Is it a whole number that never changes, and nothing else?"""
        if name in self.macros:
            tokens = self.macros[name]
            return is_number(tokens) and not any("." in token.text for token in tokens)
        return name in self._constants

    def number(self, name: str) -> str:
        """The number that a constant is; "" if it is no plain one."""
        tokens = [token.text for token in self.macros.get(name, ())]
        text = "".join(tokens).strip("()") if tokens else self._constants.get(name, "")
        return text if re.fullmatch(r"\d+[uU]?", text) else ""

    def is_builtin(self, name: str) -> bool:
        """Is it CUDA's own, and has no other meaning here?"""
        return name not in self.functions | self.classes and name not in self.macros

    def is_expression(self, macro: str) -> bool:
        """Is a macro's text an expression, as far as its tokens say?"""
        texts = {token.text for token in self.macros[macro]}
        return not texts & ({"{", "}", ";", "#", "##", "static", "__shared__"} | STATEMENTS)


def is_number(macro: list) -> bool:
    """Is a macro's text arithmetic on numbers?"""
    return bool(macro) and all(re.fullmatch(r"\.?\d[\w.]*|[-+*/()~]|<<", token.text) for token in macro)


def _template_types(source: Source, function: Function) -> set[str]:
    """The names of a template's types, which a call deduces, so that they are no references."""
    tokens = source.lexed.tokens
    head = tokens[position_from(tokens, function.head) : position_from(tokens, function.at)]
    texts = [token.text for token in head]
    return {b for a, b in pairwise(texts) if a in ("typename", "class")}


def _constants(sources: list[Source]) -> dict[str, str]:
    """The constants outside of functions and classes whose name is declared nowhere else, and their numbers."""
    found, declared = dict[str, str](), dict[str, int]()
    for source in sources:
        tokens = source.lexed.tokens
        classes = [part for parts in source.classes.values() for part in parts]
        bodies = [(position_from(tokens, f.head), position_from(tokens, f.end)) for f in source.functions]
        inside = [False] * (len(tokens) + 1)
        for first, last in bodies:
            inside[first:last] = [True] * (last - first)
        for i, token in enumerate(tokens[:-1]):
            if token.kind != "name" or inside[i]:
                continue
            before = tokens[i - 1] if i else token
            if i and (before.kind == "name" or before.text in ("*", "&", ",", ">")):
                declared[token.text] = declared.get(token.text, 0) + 1
            if tokens[i + 1].text != "=" or any(a <= i <= b for a, b in classes):
                continue
            first = i
            while first and tokens[first - 1].text not in (";", "{", "}", ")", "("):
                first -= 1
            words = {t.text for t in tokens[first:i]}
            if words & {"const", "constexpr"} and words <= INTEGERS | {"static", "inline", "__device__"}:
                ends = i + 3 < len(tokens) and tokens[i + 3].text in (";", ",")
                found[token.text] = tokens[i + 2].text if ends else ""
    return {name: value for name, value in found.items() if declared[name] == 1}


def words_of_macros(macros: dict[str, list], names: set[str]) -> set[str]:
    """The words in the texts of these macros, and of those in them."""
    seen, waiting = set(), list(names)
    while waiting:
        for token in macros.get(waiting.pop(), ()):
            if token.text not in seen:
                seen.add(token.text)
                waiting.append(token.text)
    return seen
