"""Find a file's functions, classes and namespaces, by its brackets, which macros cannot confuse."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import NamedTuple

from .lexer import Lexed, Token
from .tokens import mask, tidy

# Words with parentheses in a function's head that are not its parameters.
ATTRIBUTES = {
    "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__", "__align__", "__declspec", "__global__",
    "__host__", "__device__", "alignas", "decltype", "explicit", "noexcept", "requires", "sizeof",
}  # fmt: skip
BRACED_SCOPES = {"class", "struct", "union"}
SCOPE_WORDS = BRACED_SCOPES | {"namespace", "enum"}


class Parameter(NamedTuple):
    type: str
    name: str


class Function(NamedTuple):
    """A function definition outside other functions. Offsets are into the text."""

    name: str  # without scope and template arguments
    words: frozenset[str]  # every word of its head: __global__, static, the return type, ...
    parameters: tuple[Parameter, ...]
    head: int  # offset of its first token
    at: int  # offset of its name
    body: int  # offset of its `{`
    end: int  # offset after its `}`
    member: bool  # defined inside a class
    scope: str  # the class that it is a member of, or ""

    @property
    def is_kernel(self) -> bool:
        return "__global__" in self.words

    @property
    def is_device_only(self) -> bool:
        return self.is_kernel or ("__device__" in self.words and "__host__" not in self.words)


class Part(NamedTuple):
    """A part of the file that is in no function and no class."""

    # function (its definition), declaration; open, close (the braces of a namespace or of extern "C"); rest (of a
    # namespace or of the file: neither)
    kind: str
    first: int  # index of its first token
    last: int  # of its last
    scope: str  # the namespace that it is in: "caffe::"

    # ------------------------------------------------------------------------------- functions


class Outline:
    """The functions, classes and namespaces of a file."""

    def __init__(self, lexed: Lexed):
        self.lexed = lexed
        self.functions: list[Function] = []
        self._bodies: list[int] = []
        self.classes: dict[str, list[tuple[int, int]]] = {}  # name -> token ranges of its bodies
        # Token ranges of heads: functions' declarations and definitions.
        self.declared: list[tuple[int, int]] = []
        self.parts: list[Part] = []
        self._scope(0, len(lexed.tokens), inside="", scope="")

    def name_of(self, declared: tuple[int, int]) -> int:
        """The index of the name in one of the heads in `declared`."""
        at = head_name(self.lexed.tokens, self.lexed.partner, *declared)
        assert at is not None  # only heads with a name are in it
        return at

    def function_around(self, offset: int) -> Function | None:
        if len(self._bodies) != len(self.functions):
            self._bodies = [f.body for f in self.functions]  # in order, and none is in another one
        at = bisect_right(self._bodies, offset) - 1
        return self.functions[at] if at >= 0 and offset < self.functions[at].end else None

    @cached_property
    def _nested(self) -> tuple[list[int], list[tuple[int, int]]]:
        """The `{` of each class, in order; and for each its `}`, and the place in this list of the class around it."""
        ranges = sorted(each for found in self.classes.values() for each in found)
        around: list[int] = []
        above: list[tuple[int, int]] = []
        for i, (opening, close) in enumerate(ranges):
            while around and ranges[around[-1]][1] < opening:
                around.pop()
            above.append((close, around[-1] if around else -1))
            around.append(i)
        return [opening for opening, _ in ranges], above

    def classes_around(self, index: int) -> list[int]:
        """The `{` of the classes that a token is in."""
        openings, above = self._nested
        at, found = bisect_left(openings, index) - 1, []
        while at >= 0:
            close, outer = above[at]
            if index < close:
                found.append(openings[at])
            at = outer
        return found

    @cached_property
    def classes_after(self) -> dict[str, list[int]]:
        """The `{` of classes, by the word before it."""
        found: dict[str, list[int]] = {"": []}
        for opening in (opening for each in self.classes.values() for opening, _ in each):
            found.setdefault(self.lexed.tokens[opening - 1].text, []).append(opening)
        return found

    def _scope(self, index: int, end: int, inside: str, scope: str):
        """Record what a namespace, or the class `inside`, contains, and all scopes in it."""
        tokens, partner = self.lexed.tokens, self.lexed.partner
        head = index
        while index < end:
            text = tokens[index].text if tokens[index].kind == "punct" else ""
            if text in (";", "}"):
                if text == ";" and head_name(tokens, partner, head, index) is not None:
                    self.declared.append((head, index))
                if text == ";" and head < index and not inside:
                    self.parts.append(Part("declaration", head, index, scope))
                index = head = index + 1
            elif text == "{":
                close = partner.get(index)
                if close is None:  # the brackets do not match, so the rest of the file is unknown
                    break
                if self._braces(head, index, close, inside, scope):
                    head = close + 1
                index = close + 1
            elif text in ("(", "["):
                index = partner.get(index, index) + 1
            elif text == ":" and tokens[index - 1].text in ("public", "private", "protected"):
                index = head = index + 1
            else:
                index += 1
        if head < end and not inside:
            self.parts.append(Part("rest", head, end - 1, scope))

    def _braces(self, head: int, index: int, close: int, inside: str, scope: str) -> bool:
        """Record the function or scope that `head {` begins. False if the braces are only part of a declaration."""
        tokens, partner = self.lexed.tokens, self.lexed.partner
        words = {token.text for token in tokens[head:index]}
        name = head_name(tokens, partner, head, index)
        if name is not None:
            if _is_initialiser(tokens, partner, name, index):
                return False
            self.declared.append((head, index))
            parameters = self._parameters(*parameters_after(tokens, partner, name, index))
            self.functions.append(
                Function(
                    tokens[name].text,
                    frozenset(words),
                    tuple(parameters),
                    tokens[head].start,
                    tokens[name].start,
                    tokens[index].start,
                    tokens[close].end,
                    bool(inside),
                    inside or scope_name(tokens, name),
                )
            )
            if not inside:
                self.parts.append(Part("function", head, close, scope))
            return True
        name = class_name(tokens, partner, head, index)
        if "namespace" in words or (tokens[index - 1].kind == "string" and "extern" in words):
            self.parts.append(Part("open", head, index, scope))
            self._scope(index + 1, close, inside, scope + _namespaces(tokens[head:index]))
            self.parts.append(Part("close", close, close, scope))
            return True
        if name is not None:
            self.classes.setdefault(name, []).append((index, close))
            self._scope(index + 1, close, name or "?", scope)
        return False

    def _parameters(self, index: int, end: int):
        for first, last in split_commas(self.lexed.tokens, self.lexed.partner, index, end):
            tokens = self.lexed.tokens[first:last]
            stop = next((i for i, t in enumerate(tokens) if t.text == "="), len(tokens))
            names = [i for i, t in enumerate(tokens[:stop]) if t.kind == "name"]
            if not names or (tokens[0].text == "void" and stop == 1):
                continue
            at = names[-1]
            for i, token in enumerate(tokens[: stop - 1]):  # type (*name)(...), type (&name)[n]
                if token.text == "(" and tokens[i + 1].text in "*&" and i + 2 in names:
                    at = i + 2
                    break
            type_tokens = [token for token in tokens[:stop] if token is not tokens[at]]
            type_text = mask(type_tokens, type_tokens[0].start, type_tokens[-1].end) if type_tokens else ""
            yield Parameter(tidy(type_text), tokens[at].text)


def _is_initialiser(tokens, partner, name: int, opening: int) -> bool:
    """Are these the braces of a member in `Cell(int x) : a{x}, b(x) {...}`, and not of the constructor?"""
    at = parameters_after(tokens, partner, name, opening)[1]
    while at < opening and tokens[at].text != ":":
        at += 1
    return at < opening and tokens[opening - 1].text not in (")", "}", ":")


def _namespaces(head: list[Token]) -> str:
    """The prefix of the names in a scope with this head: "a::b::" for `namespace a::b`, "" for `extern "C"`."""
    words = [token.text for token in head]
    names = words[words.index("namespace") + 1 :] if "namespace" in words else []
    return "".join(f"{name}::" for name in names if name.isidentifier())


def skip_angles(tokens: list[Token], partner: dict[int, int], index: int, end: int) -> int:
    """The index after the `>` that closes the `<` at `index`, or `index + 1` if that `<` is an operator."""
    depth, i = 0, index
    while i < end:
        text = tokens[i].text if tokens[i].kind == "punct" else ""
        if text in ("(", "["):
            i = partner.get(i, i)
        elif text == "<":
            depth += 1
        elif text in (">", ">>"):
            depth -= len(text)
            if depth <= 0:
                return i + 1
        elif text in (";", "{", ")"):
            break
        i += 1
    return index + 1


def split_commas(tokens, partner, index: int, end: int):
    """Yields the token ranges between the commas of a list. Commas in brackets and template arguments do not count."""
    first = index
    while index < end:
        text = tokens[index].text
        if text == ",":
            yield first, index
            first = index + 1
        if tokens[index].kind == "punct" and text in "([{":
            index = partner.get(index, index) + 1
        elif text == "<":
            index = skip_angles(tokens, partner, index, end)
        else:
            index += 1
    if first < end:
        yield first, end


def head_name(tokens, partner, head: int, end: int) -> int | None:
    """The index of the name in a function's head `... name(...) ...`, or None if it is not a function's head.

    The last name(...) counts, because a macro's call without a semicolon may come before the function.
    """
    name_index, index = None, head
    angles = (-1, -1)  # the last name<...>: the index after its brackets, and the index of its name
    while index < end:
        text = tokens[index].text
        if text == "<" and index > head and tokens[index - 1].kind == "name":
            after = skip_angles(tokens, partner, index, end)
            angles, index = (after, index - 1), after
        elif text == "operator":
            name_index, index = index, index + (3 if tokens[index + 1].text == "(" else 1)
        elif text == "(":
            name = angles[1] if angles[0] == index else index - 1
            if name >= head and tokens[name].kind == "name" and tokens[name].text not in ATTRIBUTES:
                name_index = name
            index = partner.get(index, index) + 1
        elif text == ":" and name_index is not None:  # a constructor's initialisers
            return name_index
        elif text == "=" and name_index is not None and tokens[index - 1].text != "operator":
            is_pure = index + 2 == end and tokens[index + 1].text == "0"
            return name_index if is_pure else None
        else:
            if text in SCOPE_WORDS:  # name(...) before it is a macro's call
                name_index = None
            index = (partner.get(index, index) if text in ("[", "{") else index) + 1
    return name_index


def scope_name(tokens: list[Token], name: int) -> str:
    """The class in `Class<Dtype>::name` or `Class::~name`, or "" if there is none."""
    at = name - 1
    if at > 0 and tokens[at].text == "~":
        at -= 1
    if at < 1 or tokens[at].text != "::":
        return ""
    at -= 1
    if tokens[at].text == ">":
        at = next((k for k in range(at, 0, -1) if tokens[k].text == "<"), 1) - 1
    return tokens[at].text if tokens[at].kind == "name" else ""


def parameters_after(tokens, partner, name: int, end: int) -> tuple[int, int]:
    """The token range of the parameters of the function whose name has the index `name`."""
    index = name + 1
    if tokens[index].text == "<":
        index = skip_angles(tokens, partner, index, end)
    if tokens[name].text == "operator":  # operator+(...), operator()(...)
        index += 1
        while index < end and tokens[index].text != "(":
            index += 1
    return index + 1, partner.get(index, index)


def class_name(tokens, partner, head: int, end: int) -> str | None:
    """The name in a head `template <...> struct Name : Base`. "" if it has no name, None if it is not a class."""
    index = head
    while index < end:
        if tokens[index].text == "<":
            index = skip_angles(tokens, partner, index, end)
        elif tokens[index].text in ("(", "["):
            index = partner.get(index, index) + 1
        elif tokens[index].text in BRACED_SCOPES:
            names = [t.text for t in tokens[index + 1 : end] if t.kind == "name" and t.text not in ATTRIBUTES]
            return names[0] if names else ""
        else:
            index += 1
    return None
