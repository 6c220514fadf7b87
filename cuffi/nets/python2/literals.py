"""Literals of Python 2: what their escapes mean, and how strings of bytes are held as text.

A string of Python 2 has bytes. Here it is text (`as_text`), and `as_bytes` gives the same bytes again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_STRING = re.compile(r"""#[^\n]*|(?<![\w])([uUbBrR]{0,2})('''|\"\"\"|'|")""")
# An escape of a plain string that today's Python reads in another way: \u \U \N, and bytes above 127.
_ESCAPE = re.compile(r"\\(?:([uUN])|x([89a-fA-F][0-9a-fA-F])|([23][0-7]{2})|(.))", re.DOTALL)
_RAW_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")


def as_text(data: bytes) -> str:
    """Bytes as a string of Python 2. What is not UTF-8 has one character for each byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("ascii", "surrogateescape")


def as_bytes(text: str) -> bytes:
    """The bytes of a string of Python 2."""
    return text.encode("utf-8", "surrogateescape")


def old_literals(text: str, of_unicode: bool) -> str:
    r"""A file's text with literals that today's Python reads as Python 2 read them. Lines keep their numbers.

    In a plain string `\u`, `\U` and `\N` are two characters, and `\xff` is a byte. `ur''` becomes `u''`.

    Args:
        of_unicode: the file has `from __future__ import unicode_literals`.
    """
    parts, place = [], 0
    for found, end in strings(text):
        parts.append(text[place : found.start()])
        prefix, quote, inside = found[1], found[2], text[found.end() : end]
        kind = prefix.lower()
        if "r" in kind and "u" in kind:
            prefix, inside = "u", _raw_unicode(inside, quote)
        elif "r" not in kind and ("b" in kind or not ("u" in kind or of_unicode)):
            prefix, inside = "", _ESCAPE.sub(_of_bytes, inside)
        elif "b" in kind:
            prefix = "r"
        parts.append(prefix + quote + inside)
        place = end
    return "".join(parts) + text[place:]


def strings(text: str) -> Iterator[tuple[re.Match, int]]:
    """The strings of a file: the match of the prefix and the opening quotes, and where its inside ends."""
    place = 0
    while found := _STRING.search(text, place):
        place = found.end()
        if found[2]:  # no comment
            end = _end(text, place, found[2])
            yield found, end
            place = end + (len(found[2]) if text.startswith(found[2], end) else 0)


def _end(text: str, place: int, quote: str) -> int:
    """Where the string ends that begins here: at its closing quote, or at the line's end."""
    ends = _ENDS[quote]
    while found := ends.search(text, place):
        if found[0][0] != "\\":
            return found.start()
        place = found.end()
    return len(text)


_ENDS = {
    quote: re.compile(rf"\\.|{quote}" if len(quote) == 3 else rf"\\.|{quote}|\n", re.DOTALL)
    for quote in ("'", '"', "'''", '"""')
}


def _of_bytes(found: re.Match) -> str:
    if found[1]:
        return rf"\\{found[1]}"
    if found[2] or found[3]:
        return rf"\udc{int(found[2], 16) if found[2] else int(found[3], 8):02x}"
    return found[0]


def _raw_unicode(inside: str, quote: str) -> str:
    r"""The inside of `ur''` for `u''`: backslashes are characters, but those of `\u` and `\U`."""
    parts, place = [], 0
    for found in _RAW_ESCAPE.finditer(inside):
        parts += [inside[place : found.start()].replace("\\", "\\\\"), found[1].replace("\\", "\\\\")]
        parts.append(f"\\{found[2]}")
        place = found.end()
    text = "".join(parts) + inside[place:].replace("\\", "\\\\")
    return text.replace(f"\\\\{quote[0]}", f"\\\\\\{quote[0]}")


class Literals(ast.NodeTransformer):
    """Holds strings of bytes as `as_text` does."""

    def visit_Constant(self, node: ast.Constant):
        if isinstance(node.value, str) and node.kind is None and not node.value.isascii():
            node.value = as_text(as_bytes(node.value))
        return node
