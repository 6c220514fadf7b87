"""Find the type parameters of a kernel's template that are integer types: `template <typename T, typename I>`.

A launcher compiles such a kernel for int32 and int64, and chooses by the tensor's dtype.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..cuda.analysis import Kernel
from ..cuda.launches import Launch
from ..cuda.lexer import Token
from ..cuda.source import Source

# Names that type parameters and pointers of indices and labels have.
TYPE_NAMES = re.compile(
    r"_?T?_?(ind(ex|ices|ptr)?|idx|ids?|int|labels?|targets?|offsets?)(_?t|_?types?|_?T)?\d?\Z", re.I
)
POINTERS = re.compile(r"(\w+_)?(ind(ex|ices|ptr)|ind|idxs?|labels?|targets?|offsets?)(_\w+)?\d?\Z", re.I)
WHOLE = {"int", "int32_t", "int64_t", "long", "long long", "size_t", "unsigned", "unsigned int", "ptrdiff_t"}
# Operators that C++ allows only for integers.
OF_WHOLE = {"%", "|", "^", "<<", ">>", "~", "%=", "|=", "&=", "^=", "<<=", ">>="}

COMPARISONS = {"<", ">", "<=", ">=", "==", "!=", "!", "&&", "||"}
# A tensor's data, as an argument of a launch.
DATA = re.compile(r"\bdata(?:_ptr)?\s*<\s*(\w+)\s*>\s*\(\s*\)\Z")
POINTER = re.compile(r"(?:static|reinterpret)_cast\s*<\s*(?:const\s+)?(\w+)(?:\s+const)?\s*\*\s*>")


def given_types(launch: Launch, kernel: Kernel, names: list[str]) -> dict[str, str]:
    """A launch's argument for each template parameter, given or deduced from its tensors' types."""
    given = {}
    for parameter, text in zip(kernel.parameters, launch.arguments, strict=True):
        words = re.findall(r"\w+", parameter.type)
        if data := DATA.search(text) or POINTER.match(text):
            given |= dict.fromkeys(set(names) & set(words), data[1])
    return given | dict(zip(names, launch.template_arguments, strict=False))


def index_types(source: Source, kernel: Kernel, names: list[str], given: dict[str, list[str]]) -> set[str]:
    """The type parameters among `names` that are integer types.

    Args:
        given: the arguments of the file's launches, by type parameter.
    """
    found = set()
    for name in names:
        values = given.get(name, [])
        if values:
            # `<Dtype, Dtype>`: one type for both.
            shared = any(set(values) & set(given.get(other, [])) for other in names if other != name)
            if not shared and all(v in WHOLE or TYPE_NAMES.match(v) for v in values):
                found.add(name)
            if shared or any(v in ("float", "double") for v in values):
                continue
        called_so = len(names) > 1 and _are_called_so(kernel, name)
        if TYPE_NAMES.match(name) or called_so or ValueUses(source, kernel, name).index():
            found.add(name)
    return found


def _are_called_so(kernel: Kernel, name: str) -> bool:
    """Do only tensors of indices and labels have the type?"""
    of_type = [p for p in kernel.parameters if re.search(rf"\b{name}\b", p.type)]
    pointers = [p for p in of_type if "*" in p.type or "[" in p.type]
    return bool(pointers) and all(POINTERS.match(p.name) for p in pointers)


class ValueUses:
    """How a kernel uses the values of one type."""

    def __init__(self, source: Source, kernel: Kernel, name: str):
        low, high = kernel.body
        self.tokens = [t for t in source.lexed.tokens if low < t.start < high]
        texts = [t.text for t in self.tokens]
        of_type = [p for p in kernel.parameters if re.search(rf"\b{name}\b", p.type)]
        self.values = {p.name for p in of_type}
        self.pointers = {p.name for p in kernel.parameters if "*" in p.type or "[" in p.type} - self.values
        for i, text in enumerate(texts[:-2]):
            if text != name or texts[i + 1] == ">":
                continue
            names = [t for t in texts[i + 1 : i + 5] if t not in ("*", "&", "const", "__restrict__")]
            if names and re.match(r"[A-Za-z_]\w*\Z", names[0]):
                self.values.add(names[0])
        for declared, word, _, value in zip(texts, texts[1:], texts[2:], texts[3:], strict=False):
            if declared == "auto" and value in self.values:
                self.values.add(word)

    def index(self) -> bool:
        """Is a value used where C++ allows only an integer?"""
        return any(
            self._is_value(i)
            and (self._in_subscript(i) or self._beside_operator(i) or self._moves_pointer(i))
            for i in range(len(self.tokens))
        )

    def _is_value(self, at: int) -> bool:
        before = self.tokens[at - 1].text if at else ""
        return self.tokens[at].text in self.values and before not in (".", "->", "::")

    def _opening(self, at: int) -> Iterable[int]:
        """The brackets around a token, the innermost first."""
        depth = 0
        for i in range(at - 1, -1, -1):
            text = self.tokens[i].text
            if text in (";", "{", "}"):
                return
            if text in (")", "]"):
                depth += 1
            elif text in ("(", "["):
                if depth == 0:
                    yield i
                depth = max(depth - 1, 0)

    def _in_subscript(self, at: int) -> bool:
        """Directly: a cast or a call between would take other numbers, too."""
        for i in self._opening(at):
            if self.tokens[i].text == "[":  # a comparison of any numbers gives an integer
                inside = {t.text for t in self.tokens[i : self._end(i - 1)]}
                return not (self._is_cast(at) or inside & COMPARISONS)
            if _calls(self.tokens, i):
                return False
        return False

    def _is_cast(self, at: int) -> bool:
        return at > 2 and self.tokens[at - 1].text == ")" and self.tokens[at - 2].text in WHOLE

    def _beside_operator(self, at: int) -> bool:
        end = self._end(at)
        after = self.tokens[end].text if end < len(self.tokens) else ""
        before = self.tokens[at - 1].text if at else ""
        return not self._is_cast(at) and (before in OF_WHOLE - {"<<", ">>"} or after in OF_WHOLE)

    def _end(self, at: int) -> int:
        """The token after the value and its subscript."""
        at += 1
        if at < len(self.tokens) and self.tokens[at].text == "[":
            depth = 0
            while at < len(self.tokens):
                depth += {"[": 1, "]": -1}.get(self.tokens[at].text, 0)
                at += 1
                if depth == 0:
                    break
        return at

    def _moves_pointer(self, at: int) -> bool:
        """`x + j[i] * n`, where x is a pointer."""
        i = at - 1
        while i > 0 and (self.tokens[i].text in ("*", "+") or self.tokens[i].kind in ("name", "number")):
            if self.tokens[i].text in self.pointers and self.tokens[i + 1].text == "+":
                return True
            i -= 1
        return False


def _calls(tokens: list[Token], bracket: int) -> bool:
    """Is it the bracket of a call, or of a cast such as `static_cast<int>(...)`?"""
    return bracket > 0 and (tokens[bracket - 1].kind == "name" or tokens[bracket - 1].text == ">")
