"""Reading and writing of files, for all tools.

Sources are decoded as latin-1: one character is one byte, so an index is also a byte offset, and a comment in GBK or a
stray byte is not an error.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re

from .package_module import package_module

written_whole = package_module("base/files").written_whole


def read(path: str | os.PathLike, encoding: str = "latin-1") -> str:
    """The text without the byte order mark at its start."""
    with open(path, "rb") as file:
        data = file.read()
    return data.removeprefix(b"\xef\xbb\xbf").decode(encoding, errors="surrogateescape")


def content(path: str | os.PathLike) -> bytes:
    """The bytes of a file; none if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def write(path: str | os.PathLike, text: str | bytes, if_changed: bool = False) -> None:
    """Write a file, and the folder for it, as a whole. With if_changed, an unchanged file keeps its time."""
    path, data = os.fspath(path), text if isinstance(text, bytes) else text.encode("latin-1")
    if if_changed and content(path) == data and os.path.exists(path):
        return
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with written_whole(path) as file:
        file.write(data)


@contextlib.contextmanager
def alone_in(folder: str | os.PathLike):
    """Lock a folder, made if necessary: other processes wait. The lock ends with the block, or with the process."""
    os.makedirs(folder, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # this file system has no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def depfile(output: str, prerequisites: list[str]) -> str:
    """A rule for make with the prerequisites of an output, the source first."""

    def escape(path: str) -> str:
        path = re.sub(r"([ #\\])", r"\\\1", path.replace("$", "$$"))
        return os.fsencode(path).decode("latin-1")

    rule = f"{escape(output)}: {' '.join(map(escape, prerequisites))}\n"
    # So that a removed header is no error.
    return rule + "".join(f"{escape(path)}:\n" for path in prerequisites[1:])
