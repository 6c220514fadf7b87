"""print as Python 2 wrote it."""

from __future__ import annotations

import builtins
import contextlib
import re
import sys
import weakref
from typing import Any

from .literals import as_bytes


class _Short(float):
    """A float whose text has twelve digits, as Python 2's had."""

    def __str__(self) -> str:
        text = f"{float(self):.12g}"
        return f"{text}.0" if text.lstrip("-").isdigit() else text


class _Type:
    """A type of Python or numpy, with Python 2's text: <type 'int'>."""

    def __init__(self, of: type):
        self.text = builtins.repr(of).replace("<class", "<type")

    def __repr__(self) -> str:
        return self.text


def shortened(value):
    """The value, with Python 2's text if it is a float or a type."""
    if isinstance(value, type) and value.__module__ in ("builtins", "numpy"):
        return _Type(value)
    return _Short(value) if type(value) is float else value


_NOT_ASCII = re.compile(r"\\udc([89a-f][0-9a-f])|[^\x00-\x7f]+")


def represented(value) -> str:
    """repr(value): bytes above 127 as `\\xff`."""
    if type(value) in (set, frozenset):
        return f"{type(value).__name__}({represented(list(value)) if value else ''})"
    text = builtins.repr(shortened(value) if isinstance(value, type) else value)
    if text.isascii() and "\\udc" not in text:
        return text
    return _NOT_ASCII.sub(
        lambda found: (
            f"\\x{found[1]}" if found[1] else "".join(f"\\x{byte:02x}" for byte in as_bytes(found[0]))
        ),
        text,
    )


def shown(value) -> str:
    """str(value)"""
    is_own = type(value) in (list, tuple, dict, set, frozenset)
    return represented(value) if is_own else str(shortened(value))


# Files whose last print ended with a comma: the next one writes a blank first.
_continued: Any = weakref.WeakSet()


def forget_comma(file) -> None:
    """After file.write: no blank is written before what is printed next."""
    with contextlib.suppress(TypeError):
        _continued.discard(file)


def end_line() -> None:
    """What Python 2 did at a program's end: a line that ended with a comma ends."""
    if sys.stdout in _continued:
        forget_comma(sys.stdout)
        sys.stdout.write("\n")


def printed(*values, file=None, continues: bool = False, **named) -> None:
    """`print a, b`, or print(...) with today's keywords.

    Args:
        continues: the statement ends with a comma.
    """
    file = sys.stdout if file is None else file
    if named:
        return builtins.print(*map(shown, values), file=file, **named)
    try:
        continued = file in _continued
        forget_comma(file)
    except TypeError:
        continued = False
    text = ""
    for value in values:
        one = shown(value)
        text += " " + one if continued else one
        continued = not (isinstance(value, str) and one[-1:].isspace() and one[-1:] != " ")
    _write(file, text if continues else f"{text}\n")
    if continues and continued and values:
        with contextlib.suppress(TypeError):
            _continued.add(file)
    return None


def _write(file, text: str) -> None:
    if not text or file is None:
        return
    try:
        file.write(text)
    except TypeError:
        file.write(as_bytes(text))
