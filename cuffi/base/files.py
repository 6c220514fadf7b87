"""The user's files: find those that a prototxt names, and write files as a whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO


def named_by(path: str | os.PathLike, name: str) -> str | None:
    """Find a file or folder that the file `path` names. None if it does not exist.

    The search goes through the working directory, as in Caffe, then the folder of `path`, and then the three folders
    above that one.
    """
    beside = Path(path).resolve().parent
    folders = (Path(), beside, *list(beside.parents)[:3])
    return next((str(folder / name) for folder in folders if (folder / name).exists()), None)


@contextlib.contextmanager
def written_whole(path: str | os.PathLike) -> Generator[BinaryIO]:
    """Open a file to write. At the end of the block it replaces `path`; if the block fails, nothing changes.

    Several processes may write to the same path: each file is whole. If `path` is a symbolic link, its target is
    replaced. The file keeps its mode. A device or a pipe is written to directly.

    Raises:
        OSError: as `open` does.
    """
    path = os.fspath(path)
    try:
        known = os.stat(path)
    except FileNotFoundError:
        known = None
    if known is not None and not stat.S_ISREG(known.st_mode):
        with open(path, "wb") as file:
            yield file
        return
    if known is not None:
        os.close(os.open(path, os.O_WRONLY))  # a file that the user may not write to is refused
    folder, name = os.path.split(os.path.realpath(path))
    partial = os.path.join(folder, f"{name[:100]}.{secrets.token_hex(8)}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        error.filename = path
        raise
    try:
        with open(descriptor, "wb") as file:
            if known is not None:
                os.fchmod(descriptor, stat.S_IMODE(known.st_mode))
            yield file
        os.replace(partial, os.path.join(folder, name))
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
