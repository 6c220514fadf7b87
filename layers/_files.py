"""Files of the user: those that a prototxt names, and those that are written, which appear as a whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO


def named_by(path: str | os.PathLike, name: str) -> str | None:
    """A file or folder that the file `path` names. None if there is none.

    Caffe looks in the working directory, which was mostly Caffe's own. Then the folder of `path` counts, and the three
    above it.
    """
    beside = Path(path).resolve().parent
    folders = (Path(), beside, *list(beside.parents)[:3])
    return next((str(folder / name) for folder in folders if (folder / name).exists()), None)


@contextlib.contextmanager
def written_whole(path: str | os.PathLike) -> Generator[BinaryIO]:
    """A file to write. At the end of the block it takes the place of `path`; if the block fails, nothing changes.

    Others may write to the same path at the same time: each file is whole. A symbolic link stays, and what it names is
    replaced. The file keeps its mode. What is no regular file, such as a device or a pipe, is written to as it is.

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
