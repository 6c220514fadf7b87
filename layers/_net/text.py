"""A prototxt as a tree that remembers the line of every field. What a value means, protobuf decides later."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .._runtime import CaffeValueError, some

DEEPEST = 64  # messages within messages; real files have 4

_TOKEN = re.compile(
    r"""(?P<skip>[\s\ufeff]+|\#[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<mark>[{}<>\[\]:,;])|(?P<word>[^\s{}<>\[\]:,;"'\#]+)""",
    re.VERBOSE,
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_VALUE = re.compile(r"-?[\w.][\w.+-]*")
_PLACEHOLDER = re.compile(r"\$([A-Za-z_]\w*)\$?")
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

    def nodes(self, name: str) -> list[Node]:
        return [f.value for f in self.fields if f.name == name and isinstance(f.value, Node)]

    def node(self, name: str) -> Node | None:
        return next(iter(self.nodes(name)), None)

    def values(self, name: str) -> list[str]:
        """The values of the fields of that name, strings without their quotes."""
        return [unquoted(f.value) for f in self.fields if f.name == name and isinstance(f.value, str)]

    def value(self, name: str, default: str = "") -> str:
        return next(iter(self.values(name)), default)

    def has(self, name: str) -> bool:
        return any(f.name == name for f in self.fields)

    def add(self, name: str, value: str | Node) -> None:
        self.fields.append(Field(name, value, value.line if isinstance(value, Node) else self.line))

    def without(self, *names: str) -> Node:
        return Node(self.line, [f for f in self.fields if f.name not in names])


def read_text(path, replace: dict | None = None) -> str:
    """The text of a prototxt file, with its `$NAME$` filled in."""
    with open(path, "rb") as file:
        data = file.read()
    if b"\0" in data[:65536]:
        raise CaffeValueError(f"{path}: not a prototxt: it is a binary file")
    return filled_in(data.decode("utf-8", errors="replace"), replace or {}, path)


def filled_in(text: str, replace: dict, path) -> str:
    """A template's text with `$NAME$`, or `$NAME`, replaced."""
    missing = {}

    def one(match: re.Match) -> str:
        if match[1] in replace:
            return str(replace[match[1]])
        missing.setdefault(match[1], text.count("\n", 0, match.start()) + 1)
        return match[0]

    if "$" not in text:
        return text
    lines = [
        code + mark + _comment
        for code, mark, _comment in (_without_comment(t, one) for t in text.split("\n"))
    ]
    if missing:
        listed = ", ".join(some(f"{name} (line {line})" for name, line in missing.items()))
        raise CaffeValueError(f"{path}: a template: say replace={{name: value}} for {listed}")
    return "\n".join(lines)


def parse(text: str, path="prototxt") -> Node:
    """The tree of a text; CaffeValueError with the line if it is not prototxt."""
    tokens = _tokens(text, path)
    root = Node(1)
    stack: list[tuple[Node, str]] = [(root, "")]
    kind, token, line = next(tokens)
    while kind != "end":
        node, closer = stack[-1]
        if kind == "mark" and token == closer:
            stack.pop()
            kind, token, line = next(tokens)
            if kind == "mark" and token in ",;":
                kind, token, line = next(tokens)
            continue
        if kind != "word" or not _NAME.fullmatch(token):
            raise _wrong(path, line, f"expected the name of a field, found {token[:40]!r}")
        name, at = token, line
        kind, token, line = next(tokens)
        colon = kind == "mark" and token == ":"
        if colon:
            kind, token, line = next(tokens)
        if kind == "mark" and token in _CLOSES:
            inside = Node(at)
            node.fields.append(Field(name, inside, at))
            if len(stack) >= DEEPEST:
                raise _wrong(path, line, f"more than {DEEPEST} messages within each other")
            stack.append((inside, _CLOSES[token]))
            kind, token, line = next(tokens)
            continue
        if not colon:
            raise _wrong(path, line, f"expected ':' or '{{' after {name!r}, found {token[:40]!r}")
        if kind == "mark" and token == "[":
            kind, token, line = _list(tokens, node, name, path)
        else:
            value, at, (kind, token, line) = _value(tokens, kind, token, line, path)
            node.fields.append(Field(name, value, at))
        if kind == "mark" and token in ",;":
            kind, token, line = next(tokens)
    if len(stack) > 1:
        opened = stack[-1][0].line
        raise _wrong(path, line, f"the text ends inside of what begins at line {opened}")
    return root


def render(node: Node) -> str:
    """The tree's text again, each field on the line where it stood, so that errors name the user's line."""
    pieces: list[str] = []
    _render(node, pieces, 1)
    return "".join(pieces)


def unquoted(value: str) -> str:
    """A string's content; its escapes, which names of layers and blobs do not have, are left as they are."""
    if value[:1] in ("'", '"'):
        return "".join(m[0][1:-1] for m in re.finditer(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""", value))
    return value


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# ------------------------------------------------------------------------------------------------ parts


def _without_comment(line: str, one) -> tuple[str, str, str]:
    code, mark, comment = line.partition("#")
    return _PLACEHOLDER.sub(one, code), mark, comment


def _wrong(path, line: int, what: str) -> CaffeValueError:
    return CaffeValueError(f"{path}, line {line}: {what}")


def _tokens(text: str, path) -> Iterator[tuple[str, str, int]]:
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _wrong(path, line, "a string without its end")
        if match.lastgroup == "skip":
            line += match[0].count("\n")
        else:
            yield match.lastgroup, match[0], line
        at = match.end()
    while True:
        yield "end", "the end of the text", line


def _value(tokens, kind: str, token: str, line: int, path):
    """One scalar: (as written, its line, the token after it). Strings that stand side by side are one."""
    if kind == "text":
        text = token
        following = next(tokens)
        while following[0] == "text":
            text += " " + following[1]
            following = next(tokens)
        return text, line, following
    if kind == "word" and _VALUE.fullmatch(token):
        return token, line, next(tokens)
    raise _wrong(path, line, f"expected a value, found {token[:40]!r}")


def _list(tokens, node: Node, name: str, path):
    """`name: [1, 2]`: the same as the field repeated. Returns the token after it."""
    kind, token, line = next(tokens)
    while not (kind == "mark" and token == "]"):
        value, at, (kind, token, line) = _value(tokens, kind, token, line, path)
        node.fields.append(Field(name, value, at))
        if kind == "mark" and token == ",":
            kind, token, line = next(tokens)
        elif not (kind == "mark" and token == "]"):
            raise _wrong(path, line, f"expected ',' or ']' in the list of {name!r}, found {token[:40]!r}")
    return next(tokens)


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
