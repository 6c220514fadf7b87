"""The cache of layers built at run time: one entry for each key. The process that locks an entry first builds it.

An entry is a folder `<name>-<key>` with a file `complete`, which is written last and lists the digest of each file. A
folder without it was left by a stopped process, and is built again. The lock is an open file that make and its
compilers inherit, so it is free when the last of them has ended.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from ..runtime import CaffeRuntimeError

VARIABLE = "CUFFI_CACHE"
COMPLETE = "complete"


def folder() -> Path:
    """The cache's folder, created if necessary. CaffeRuntimeError if it is not writable, or if others can write to
    it.
    """
    path = Path(
        os.environ.get(VARIABLE) or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "cuffi")
    ).absolute()
    if " " in str(path):
        raise _unusable(path, "make cannot work in a path with spaces")
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
    except OSError as error:
        raise _unusable(path, error.strerror) from None
    if status.st_uid != os.geteuid():
        raise _unusable(path, f"it belongs to user {status.st_uid}, this process is user {os.geteuid()}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _unusable(path, f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})")
    return path


def _unusable(path: Path, why: str) -> CaffeRuntimeError:
    return CaffeRuntimeError(
        f"load: the cache folder {path} cannot be used: {why}. Set {VARIABLE} to a folder of your own."
    )


class Entry:
    """The folder of one key in the cache.

    Attributes:
        sources: the folder of copied sources.
        folder: the layer's own folder in it, with its libraries.
        build: the folder of make's files, removed when the entry is complete.
    """

    def __init__(self, name: str, key: str, layer: PurePosixPath):
        self.cache = folder()
        self.place = self.cache / f"{name}-{key}"
        self.sources, self.build = self.place / "src", self.place / "build"
        self.folder = self.sources / layer

    def is_complete(self) -> bool:
        """Are all libraries there, unchanged?"""
        try:
            made = dict(json.loads((self.place / COMPLETE).read_text()))
        except (OSError, ValueError, TypeError):
            return False
        if not made:
            return False
        for file, digest in made.items():
            try:
                same = digest_of(self.folder / file) == digest
            except OSError:
                same = False
            if not same:
                warnings.warn(
                    f"load: {self.folder / file} is not what was built; it is built again", stacklevel=4
                )
                return False
        return True

    def make(self, build: Callable[[int], None], waiting: Callable[[], None]) -> None:
        """Call `build` to fill the folder, unless another process has filled it in the meantime.

        Args:
            build: writes the layer's folder with its libraries. It gets the lock, which its child processes must
                inherit. If it raises, there is no entry.
            waiting: called once if another process is building this entry.
        """
        with self._locked(waiting) as lock:
            if self.is_complete():
                return
            try:
                shutil.rmtree(self.place, ignore_errors=True)
                self.folder.mkdir(parents=True)
                build(lock)
                files = (f for f in sorted(self.folder.rglob("*")) if f.is_file())
                made = {str(f.relative_to(self.folder)): digest_of(f) for f in files}
                partial = self.place / f"{COMPLETE}.partial"
                partial.write_text(json.dumps(made))
                shutil.rmtree(self.build, ignore_errors=True)
                partial.rename(self.place / COMPLETE)
            except BaseException as error:
                full = isinstance(error, CaffeRuntimeError) and shutil.disk_usage(self.place).free < 1 << 20
                shutil.rmtree(self.place, ignore_errors=True)
                if full:  # then a compiler's log is empty, too
                    raise _unusable(self.cache, os.strerror(errno.ENOSPC)) from None
                if isinstance(error, OSError):
                    raise _unusable(self.cache, error.strerror or str(error)) from None
                raise

    @contextlib.contextmanager
    def _locked(self, waiting: Callable[[], None]) -> Iterator[int]:
        try:
            lock = os.open(self.place.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise _unusable(self.cache, error.strerror) from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock
            # Unlocked, because closing is not enough: a process that another thread forked may hold the same open file.
            fcntl.flock(lock, fcntl.LOCK_UN)
        finally:
            os.close(lock)


def digest_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
