"""Texts from files of others, for a terminal: names, and commands to be pasted.

A name in a prototxt or a file's name can contain escape sequences, which change what a terminal shows, line breaks,
which look like a line of the toolkit's own, and what a shell expands.
"""

from __future__ import annotations

import os
import re
import shlex

# All that moves a terminal's cursor, changes its state or the order of its letters, or cannot be encoded.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]"
)


def shown(text: str | os.PathLike) -> str:
    """A name as one line that is safe to print: control characters become their escapes, such as \\x1b."""
    return without_escapes(os.fsdecode(text)).replace("\n", r"\n").replace("\t", r"\t")


def without_escapes(text: str) -> str:
    """The lines of a message, with the control characters in them as escapes. Tabs stay, as in compilers' messages."""
    return _UNSAFE.sub(_escaped, text)


def command(*words: str | os.PathLike) -> str:
    """A command that is safe to paste into a shell: each word is quoted if it must be.

    The value of `NAME=value` is quoted alone. bash, zsh and ksh read the $'...' of a word that is not printable.
    """
    return " ".join(map(_quoted, map(os.fsdecode, words)))


def _quoted(word: str) -> str:
    if setting := re.match(r"[A-Za-z_]\w*=", word, re.ASCII):
        value = word[setting.end() :]
        return setting[0] + (_quoted_value(value) if value else "")
    return _quoted_value(word)


def _quoted_value(word: str) -> str:
    if shown(word) == word:
        return shlex.quote(word)
    data = word.encode(errors="surrogateescape")
    return "$'" + "".join(chr(b) if 32 <= b < 127 and b not in b"\\'" else f"\\x{b:02x}" for b in data) + "'"


def _escaped(character: re.Match) -> str:
    return character[0].encode("unicode_escape", errors="backslashreplace").decode()
