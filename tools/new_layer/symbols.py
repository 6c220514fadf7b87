"""Find the variables on the GPU that a file's host code fills: `__constant__ float weights[9];`.

A launcher has only the kernel, so it takes their values as a tensor and uploads them before each launch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

from ..cuda.across import SPACES
from ..cuda.declarations import variables_of
from ..cuda.outline import head_name
from ..cuda.source import Source
from ..cuda.tokens import macro_body

STORAGE = {*SPACES, "static", "extern", "volatile"}
UPLOADS = re.compile(r"cuda(MemcpyToSymbol(Async)?|GetSymbolAddress)\Z")
ARITHMETIC = re.compile(r"[\d\s+*/()-]+\Z")


class Symbol(NamedTuple):
    """A variable of a kernel's file.

    Attributes:
        name, type: as declared, the type without the sizes: "float".
        scope: the namespace it is in: "caffe::".
        sizes: its sizes as numbers; None if one of them is unknown.
        space: __constant__, __device__ or __managed__.
        is_local: can other files not name it?
    """

    name: str
    type: str
    scope: str
    sizes: tuple[int, ...] | None
    space: str
    is_local: bool

    def declared(self) -> str:
        """Its declaration for another file."""
        sizes = "".join(f"[{size}]" for size in self.sizes or ())
        return _within(self.scope, f"extern {self.space} {self.type} {self.name}{sizes};")


def uploaded_in(sources: Iterable[Source]) -> set[str]:
    """The names of the variables that host code of these files uploads to, and others."""
    return {
        token.text
        for source in sources
        for i, token in enumerate(source.lexed.tokens)
        if any(UPLOADS.match(before.text) for before in source.lexed.tokens[max(0, i - 12) : i])
    }


def symbols_to_fill(source: Source, sources: Iterable[Source], uploaded: set[str]) -> dict[str, Symbol]:
    """The file's variables whose values come from host code, by name. Its sizes may be constants of `sources`.

    These are each `__constant__` without an initial value, because no kernel can write it, and each `__device__`
    variable that host code uploads to. Other `__device__` variables start as 0, and kernels write them.
    """
    tokens, found = source.lexed.tokens, {}
    unnamed: list[bool] = []  # of the namespaces and other braces around it
    for kind, first, last, scope in source.parts:
        words = [token.text for token in tokens[first:last]]
        if kind == "open":
            unnamed.append(words == ["namespace"])
        elif kind == "close":
            unnamed.pop()
        if kind != "declaration" or not SPACES & set(words) or {"=", "{"} & set(words):
            continue
        if head_name(tokens, source.lexed.partner, first, last) is not None:  # a function
            continue
        for symbol in _declared([source, *sources], tokens[first:last], scope):
            if "__constant__" in words or symbol.name in uploaded:
                found[symbol.name] = symbol._replace(is_local=any(unnamed) or "static" in words)
    return found


def defined_elsewhere(sources: Iterable[Source], uploaded: set[str]) -> list[str]:
    """The definitions of each extern variable that launchers fill and none of the files defines."""
    several, declared, defined = list(sources), {}, set()
    for source in several:
        tokens = source.lexed.tokens
        for kind, first, last, scope in source.parts:
            words = [token.text for token in tokens[first:last]]
            if kind != "declaration" or not SPACES & set(words):
                continue
            own = {symbol.name: symbol for symbol in _declared([], _before_value(tokens[first:last]), scope)}
            if "extern" not in words:
                defined |= own.keys()
            elif not {"=", "{"} & set(words):
                filled = own if "__constant__" in words else own.keys() & uploaded
                declared |= dict.fromkeys(filled, (tokens[first:last], scope))
    found = {}
    for name, (tokens, scope) in declared.items():
        if name not in defined:
            text = " ".join(token.text for token in tokens if token.text != "extern")
            found[text, scope] = _within(scope, f"{text};")
    return list(found.values())


def _within(scope: str, text: str) -> str:
    inside = "".join(f"namespace {part} {{ " for part in scope.split("::") if part)
    return f"{inside}{text}{' }' * inside.count('{')}"


def _before_value(tokens):
    at = next((i for i, token in enumerate(tokens) if token.text in ("=", "{")), len(tokens))
    return tokens[:at]


def _declared(sources: list[Source], tokens, scope: str):
    """The variables of one declaration."""
    found = variables_of(tokens)
    if found is None:
        return
    base = " ".join(word for word in found.type if word not in STORAGE)
    space = next((token.text for token in tokens if token.text in SPACES), "")
    for name, stars, texts in found.declarators:
        sizes = tuple(n for size in texts if (n := _number(sources, size)) is not None)
        known = sizes if len(sizes) == len(texts) else None
        yield Symbol(name, base + "*" * stars, scope, known, space, False)


def _number(sources: list[Source], text: str, depth: int = 0) -> int | None:
    """The value of a constant expression of numbers, macros and constants of the files; None if it is another."""
    values = {m.tokens[0].text: " ".join(t.text for t in macro_body(m)) for s in sources for m in s.macros}
    text = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", text)
    for name in set(re.findall(r"[A-Za-z_]\w*", text)):
        written = rf"\b(?:const|constexpr)\b[\w\s]*\b{name}\s*=\s*([^;,]+)"
        constant = next(filter(None, (re.search(written, source.text) for source in sources)), None)
        value = values.get(name) or (constant and constant[1])
        number = _number(sources, value, depth + 1) if value and depth < 8 else None
        if number is None:
            return None
        text = re.sub(rf"\b{name}\b", str(number), text)
    if not ARITHMETIC.match(text := text.strip()):
        return None
    try:
        value = eval(
            compile(ast.parse(text.replace("/", "//"), mode="eval"), "size", "eval"), {"__builtins__": {}}
        )
    except (SyntaxError, ArithmeticError, TypeError):
        return None
    return value if isinstance(value, int) else None
