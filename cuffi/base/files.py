"""The user's files: find those that a prototxt names, and write files as a whole."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from .shown import shown

try:
    import fcntl
except ImportError:  # Windows, where an open file can be neither removed nor replaced
    fcntl = None


def named_by(path: str | os.PathLike, name: str) -> str | None:
    """Find a file or folder that the file `path` names. None if it does not exist.

    The search goes through the working directory, as in Caffe, then the folder of `path`, and then the three folders
    above that one.
    """
    beside = Path(path).resolve().parent
    folders = (Path(), beside, *list(beside.parents)[:3])
    # os.path.exists: a name that is too long, or has a null, exists nowhere.
    return next((str(folder / name) for folder in folders if os.path.exists(folder / name)), None)


# What a path may lead to, for messages.
_KINDS = (
    (stat.S_ISFIFO, "a pipe, which may never end"), (stat.S_ISCHR, "a device, which may never end"),
    (stat.S_ISBLK, "a disk"), (stat.S_ISSOCK, "a socket"),
)  # fmt: skip


# What git puts in the place of a large file that it has not downloaded.
_POINTER, _LARGEST_POINTER = b"version https://git-lfs.github.com/spec/", 1024


def to_read(path: str | os.PathLike, buffering: int = -1) -> BinaryIO:
    """Open a file of data, which somebody else may have named: a regular file, and nothing that waits or never ends.

    Raises:
        FileNotFoundError: it names the folder, and a file there of a like name.
        OSError: it cannot be opened, is no regular file, or is a pointer of Git LFS.
    """
    try:
        file = open(path, "rb", buffering=buffering, opener=_without_waiting)  # noqa: SIM115 - the caller closes it
    except FileNotFoundError:
        raise FileNotFoundError(
            errno.ENOENT, f"No such file or directory{nearest(path)}", str(path)
        ) from None
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        file.close()
        raise _irregular(found.st_mode, path)
    if found.st_size < _LARGEST_POINTER:
        begin = file.read(len(_POINTER))
        file.seek(0)
        if begin == _POINTER:
            file.close()
            said = (
                "A pointer of Git LFS in the place of the file. In its repository, git lfs pull downloads it"
            )
            raise OSError(errno.EINVAL, said, os.fspath(path))
    return file


def _without_waiting(path: str, flags: int) -> int:
    """Open a path: a pipe without its writer, and no device, for which opening may do something."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise _irregular(mode, path)
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _irregular(mode: int, path: str | os.PathLike) -> OSError:
    kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "no file")
    return OSError(errno.EINVAL, f"Not a regular file: {kind}", os.fspath(path))


# No list of images and no prototxt is as large: another file was named.
_LARGEST_TEXT = 1 << 28


def text_bytes(path: str | os.PathLike) -> bytes:
    """The bytes of a text of somebody else.

    Raises:
        OSError: as `to_read`; or the file is too large for a text.
    """
    with to_read(path) as file:
        data = file.read(_LARGEST_TEXT + 1)
    if len(data) > _LARGEST_TEXT:
        raise OSError(errno.EFBIG, f"File too large for a text, {len(data) - 1:,} bytes", os.fspath(path))
    return data


def nearest(path: str | os.PathLike) -> str:
    """` in /its/folder, which has deploy.prototxt`: where a file that is missing was looked for."""
    folder, name = os.path.split(os.path.abspath(path))
    if not os.path.isdir(folder):
        return f": there is no folder {shown(folder)}"
    found = os.listdir(folder)
    ending = os.path.splitext(name)[1]
    import difflib  # every tool of a build imports this file

    near = difflib.get_close_matches(name, found, n=1) or sorted(
        f for f in found if ending and f.endswith(ending)
    )
    return f" in {shown(folder)}" + (f", which has {', '.join(map(shown, near[:3]))}" if near else "")


_PARTIAL = re.compile(r"\.[0-9a-f]{16}\.partial$")


@contextlib.contextmanager
def written_whole(path: str | os.PathLike) -> Generator[BinaryIO]:
    """Open a file to write. At the end of the block it replaces `path`; if the block fails, nothing changes.

    Several processes may write to the same path: each file is whole. If `path` is a symbolic link, its target is
    replaced. The file keeps its mode. A device or a pipe is written to directly. What a killed process left behind is
    removed by the next call for that folder.

    Raises:
        OSError: as `open` does, with the name of `path`.
    """
    path = os.fspath(path)
    try:
        known = os.stat(path)
    except FileNotFoundError:
        known = None
    if known is not None and not stat.S_ISREG(known.st_mode):
        with _named(path), open(path, "wb") as file:
            yield file
        return
    if known is not None:
        open(path, "ab").close()  # a file that the user may not write to is refused
    folder, name = os.path.split(os.path.realpath(path))
    with _named(path):
        _sweep(folder)
        file = _opened(os.path.join(folder, name[:100]))
        partial = file.name
        try:
            with file:
                if known is not None:
                    os.chmod(partial, stat.S_IMODE(known.st_mode))
                yield file
                file.flush()
                if fcntl:  # before the file is closed, because that ends the lock
                    os.replace(partial, os.path.join(folder, name))
            if not fcntl:
                os.replace(partial, os.path.join(folder, name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise


@contextlib.contextmanager
def _named(path: str) -> Generator[None]:
    """Name `path` in an OSError that names no file, such as that of a full disk, or that of the partial file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and (error.filename is None or _PARTIAL.search(str(error.filename))):
            folder = os.path.dirname(path)
            no_folder = error.errno == errno.ENOENT and folder and not os.path.isdir(folder)
            raise OSError(
                error.errno, f"there is no folder {folder!r}: make it" if no_folder else error.strerror, path
            ) from None
        raise


def _opened(base: str) -> BinaryIO:
    """A new partial file. It is locked as long as its process lives."""
    while True:
        file = open(f"{base}.{os.urandom(8).hex()}.partial", "xb")  # noqa: SIM115 - the caller closes it
        with contextlib.suppress(OSError):  # a file system without locks
            _lock(file, wait=True)  # while another sweeps it
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another process has swept it before it was locked


def _lock(file: BinaryIO, wait: bool = False) -> None:
    """Lock an open file. OSError if another process has it, and this one does not wait."""
    if fcntl:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def _sweep(folder: str) -> None:
    """Remove partial files whose process is gone."""
    try:
        found = [name for name in os.listdir(folder or ".") if _PARTIAL.search(name)]
    except OSError:  # the file's own error says more
        return
    for name in found:
        partial = os.path.join(folder, name)
        with contextlib.suppress(OSError):  # a lock that another process holds is an error, too
            if not fcntl:
                os.unlink(partial)  # of a file that is open, Windows refuses it
            elif not os.path.islink(partial):
                with open(partial, "r+b") as file:
                    _lock(file)
                    os.unlink(partial)
