"""Parse a prototxt into a tree with the line of every field. protobuf checks the values later."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..base import CaffeValueError, some
from ..base.files import text_bytes
from ..base.shown import shown

# The deepest nesting of messages. Real files have 4.
DEEPEST = 64

_TOKEN = re.compile(
    r"""(?P<skip>[\s\ufeff]+|\#[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<mark>[{}<>\[\]:,;])|(?P<word>[^\s{}<>\[\]:,;"'\#]+)""",
    re.VERBOSE,
)
_STRING = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""")
# Escape sequences, and the text between them.
_PARTS = re.compile(
    r"\\(?:x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|[^\\]+|\\", re.DOTALL
)
_INTEGER = re.compile(r"-?(\d+|0[xX][0-9a-fA-F]+)")
_OCTAL = re.compile(r"-?0\d+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_VALUE = re.compile(r"-?[\w.][\w.+-]*")
_PLACEHOLDER = re.compile(r"\$(?:([A-Za-z_]\w*)\$?|\{([A-Za-z_]\w*)\})")
# Fields whose values are printed in messages and tables.
_NAMES = frozenset(("name", "type", "bottom", "top", "module", "layer", "stage", "not_stage", "input"))
_WEIGHTS = (".caffemodel", ".binaryproto", ".h5")
_CLOSES = {"{": "}", "<": ">"}


@dataclass
class Field:
    """`name: value`, as written, or `name { ... }`."""

    name: str
    value: str | Node
    line: int


@dataclass
class Node:
    """The fields of one message, in the order of the text."""

    line: int = 0
    fields: list[Field] = field(default_factory=list)
    path: object = field(default="prototxt", compare=False, repr=False)  # of the file, for errors

    def nodes(self, name: str) -> list[Node]:
        """The messages of that name. CaffeValueError if one of them is a value."""
        found = []
        for f in self.fields:
            if f.name == name:
                if not isinstance(f.value, Node):
                    raise self.wrong(f.line, f"{name}: expected a message in braces, got {f.value[:40]}")
                found.append(f.value)
        return found

    def node(self, name: str) -> Node | None:
        return next(iter(self.nodes(name)), None)

    def values(self, name: str) -> list[str]:
        """The values of the fields of that name, strings decoded. CaffeValueError if one of them is a message."""
        return [self._value(f) for f in self.fields if f.name == name]

    def _value(self, entry: Field) -> str:
        if isinstance(entry.value, Node):
            raise self.wrong(entry.line, f"{entry.name}: expected a value, got a message in braces")
        try:
            value = unquoted(entry.value)
        except ValueError as error:
            raise self.wrong(entry.line, f"{entry.name}: {entry.value[:40]}: {error}") from None
        if entry.name in _NAMES and shown(value) != value:
            said = f"{entry.name}: expected a name that can be printed, without control characters"
            raise self.wrong(entry.line, f"{said}, got {value!r:.60}")
        return value

    def wrong(self, line: int, what: str) -> CaffeValueError:
        return CaffeValueError(f"{self.path}, line {line}: {what}")

    def value(self, name: str, default: str = "") -> str:
        return next(iter(self.values(name)), default)

    def has(self, name: str) -> bool:
        return any(f.name == name for f in self.fields)

    def add(self, name: str, value: str | Node) -> None:
        self.fields.append(Field(name, value, value.line if isinstance(value, Node) else self.line))

    def without(self, *names: str) -> Node:
        return Node(self.line, [f for f in self.fields if f.name not in names], self.path)


def read_text(path, replace: dict | None = None) -> str:
    """The text of a prototxt file, with values for its `$NAME$`."""
    data = text_bytes(path)
    if b"\0" in data[:65536]:
        weights = ". Weights are the second argument" if str(path).endswith(_WEIGHTS) else ""
        raise CaffeValueError(f"{path}: not a prototxt: it is a binary file{weights}")
    return filled_in(data.decode("utf-8", errors="replace"), replace or {}, path)


def filled_in(text: str, replace: dict, path) -> str:
    """A template's text, with values for its `$NAME$`, `$NAME` or `${NAME}`.

    A `${NAME}` in a string, mostly a path, may stay as it is.
    """
    if "$" not in text:
        return text
    missing, lines = {}, []
    for number, line in enumerate(text.split("\n"), 1):
        code, mark, comment = line.partition("#")
        for match in _PLACEHOLDER.finditer(code):
            name, in_string = match[1] or match[2], code.count('"', 0, match.start()) % 2
            if name not in replace and not (match[2] and in_string):
                missing.setdefault(name, number)
        filled = _PLACEHOLDER.sub(lambda match: str(replace.get(match[1] or match[2], match[0])), code)
        lines.append(filled + mark + comment)
    if missing:
        listed = ", ".join(some(f"{name} (line {line})" for name, line in missing.items()))
        raise CaffeValueError(f"{path}: a template: give replace={{name: value}} for {listed}")
    return "\n".join(lines)


def parse(text: str, path="prototxt") -> Node:
    """The tree of a text. CaffeValueError with the line if it is not prototxt."""
    root = Node(1, path=path)
    _Parser(text, path).message(root)
    return root


def render(node: Node) -> str:
    """The text of a tree, with each field on its own line number, so that errors name the user's line."""
    pieces: list[str] = []
    _render(node, pieces, 1)
    return "".join(pieces)


def unquoted(value: str) -> str:
    """The content of a string, or of adjacent strings, with its escapes decoded as protobuf does. ValueError if it
    is not UTF-8.
    """
    if value[:1] not in ("'", '"'):
        return value
    content = [match[0][1:-1] for match in _STRING.finditer(value)]
    if "\\" not in value:
        return "".join(content)
    parts = (part[0] for text in content for part in _PARTS.finditer(text))
    return b"".join(_escape(part) if part[0] == "\\" else part.encode() for part in parts).decode()


@functools.lru_cache(1024)
def _escape(sequence: str) -> bytes:
    """The bytes of one escape sequence. For a whole string protobuf takes a time quadratic in its backslashes."""
    from google.protobuf.text_encoding import CUnescape  # here, because native layers run without protobuf

    return CUnescape(sequence)


def quoted(text: str) -> str:
    """The text as a string of a prototxt."""
    from google.protobuf.text_encoding import CEscape

    escape: Any = CEscape  # takes text, too, which its stubs do not say
    return f'"{escape(text, as_utf8=True)}"'


def integer(text: str) -> int:
    """The value of an integer: decimal, 0x1f, or octal as 017. ValueError if it is not one."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    return int(text, 8 if _OCTAL.fullmatch(text) else 0)


def number(text: str) -> float:
    """The value of a number, as protobuf reads it: 1.5, 1.5f, 1e-3, inf, nan, 0x1f, 017. ValueError if it is not
    one.
    """
    from google.protobuf.text_format import ParseFloat

    return float(integer(text)) if _INTEGER.fullmatch(text) else ParseFloat(text)


# ------------------------------------------------------------------------------------------------ parts


class _Parser:
    """Reads a text. `kind`, `token` and `line` are those of the next token."""

    def __init__(self, text: str, path):
        self.path, self.tokens = path, self._tokens(text)
        self.advance()

    def _tokens(self, text: str) -> Iterator[tuple[str, str, int]]:
        at, line = 0, 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self.line = line
                raise self.wrong("a string without its end")
            if match.lastgroup == "skip":
                line += match[0].count("\n")
            else:
                yield str(match.lastgroup), match[0], line
            at = match.end()
        yield "end", "the end of the text", line

    def advance(self) -> None:
        self.kind, self.token, self.line = next(self.tokens)

    def wrong(self, what: str) -> CaffeValueError:
        return CaffeValueError(f"{self.path}, line {self.line}: {what}")

    def at(self, marks: str) -> bool:
        return self.kind == "mark" and self.token in marks

    def took(self, marks: str) -> bool:
        """Is one of these marks next? Then read it."""
        found = self.at(marks)
        if found:
            self.advance()
        return found

    def message(self, node: Node, closer: str = "", depth: int = 1) -> None:
        """Read fields up to the message's closing brace, or to the end of the text."""
        while not (self.took(closer) if closer else self.kind == "end"):
            if self.kind == "end":
                raise self.wrong(f"the text ends inside of what begins at line {node.line}")
            self.field(node, depth)
            self.took(",;")

    def field(self, node: Node, depth: int) -> None:
        name, line = self.token, self.line
        if self.kind != "word" or not _NAME.fullmatch(name):
            raise self.wrong(f"expected the name of a field, found {name[:40]!r}")
        self.advance()
        colon = self.took(":")
        if not colon and not self.at("{<"):
            raise self.wrong(f"expected ':' or '{{' after {name!r}, found {self.token[:40]!r}")
        if not self.took("["):
            self.value(node, name, line, depth)
            return
        while not self.took("]"):  # the same as repeated fields
            self.value(node, name, self.line, depth)
            if not self.took(",") and not self.at("]"):
                raise self.wrong(f"expected ',' or ']' in the list of {name!r}, found {self.token[:40]!r}")

    def value(self, node: Node, name: str, line: int, depth: int) -> None:
        """Read a message, with the field's line, or a scalar."""
        if not self.at("{<"):
            line = self.line
            node.fields.append(Field(name, self.scalar(), line))
            return
        if depth == DEEPEST:
            raise self.wrong(f"more than {DEEPEST} messages within each other")
        inside, closer = Node(line, path=self.path), _CLOSES[self.token]
        node.fields.append(Field(name, inside, line))
        self.advance()
        self.message(inside, closer, depth + 1)

    def scalar(self) -> str:
        """Read a scalar as it is written. Adjacent strings are joined."""
        texts = []
        while self.kind == "text":
            texts.append(self.token)
            self.advance()
        if texts:
            return " ".join(texts)
        if self.kind != "word" or not _VALUE.fullmatch(self.token):
            raise self.wrong(f"expected a value, found {self.token[:40]!r}")
        value = self.token
        self.advance()
        return value


def _render(node: Node, pieces: list[str], line: int) -> int:
    for entry in node.fields:
        if entry.line > line:
            pieces.append("\n" * (entry.line - line))
            line = entry.line
        if isinstance(entry.value, Node):
            pieces.append(f" {entry.name} {{")
            line = _render(entry.value, pieces, line)
            pieces.append(" }")
        else:
            pieces.append(f" {entry.name}: {entry.value}")
    return line
