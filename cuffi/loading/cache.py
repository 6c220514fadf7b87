"""The cache of layers built at run time: one entry for each key. The process that locks an entry first builds it.

An entry is a folder `<name>-<key>` with a file `complete`, which is written last and lists the digest of each file. A
folder without it was left by a stopped process, and is built again. The lock is an open file that make and its
compilers inherit, so it is free when the last of them has ended.

An entry's libraries are run, so only its owner may enter it, and nobody else may change a folder above it (private.py).
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Generator
from pathlib import Path, PurePosixPath

from ..runtime import CaffeRuntimeError
from . import locks, private, sweep

VARIABLE = "CUFFI_CACHE"
COMPLETE = "complete"
# A path in which make can work.
_FIT = re.compile(r"(/(?!-)[\w.+@-]+)+", re.ASCII)


def folder() -> Path:
    """The cache's folder, created if necessary. CaffeRuntimeError if it is not writable, or if others can change it, by
    its own mode or by a folder above it.
    """
    path = Path(
        os.environ.get(VARIABLE) or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "cuffi")
    ).absolute()
    try:
        _made(path)
        why = private.why_unsafe(path)
        if os.statvfs(path).f_flag & os.ST_NOEXEC:
            why = "no library in it can be run, because it is mounted with noexec"
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None
    if why:
        raise _unusable(path, why)
    return path


def _made(path: Path) -> None:
    """Make a folder and the folders above it, whatever the umask, for this user alone."""
    for above in reversed([path, *path.parents]):
        with contextlib.suppress(FileExistsError):
            if not above.exists():
                above.mkdir(mode=0o700)
    path.mkdir(exist_ok=True)  # an error if it is no folder


def subfolder(name: str) -> Path:
    """A folder in the cache for its owner alone, created if necessary."""
    cache = folder()
    try:
        return private.make_private(cache / name)
    except OSError as error:
        raise _unusable(cache, error.strerror or str(error)) from None


def for_make(cache: Path) -> Path:
    """The cache's path for make, which cannot work in each path: the same one, or a link to it in a temporary folder.

    CaffeRuntimeError if there is no safe place for a link.
    """
    if _FIT.fullmatch(str(cache)):
        return cache
    name = f"cuffi-{os.geteuid()}-{hashlib.sha256(os.fsencode(cache)).hexdigest()[:16]}"
    for place in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp")):
        link = Path(place).absolute() / name
        with contextlib.suppress(OSError):
            if _FIT.fullmatch(str(link)) and not private.why_movable(link) and _links(link, cache):
                return link
    raise _unusable(
        cache, f"make cannot work in this path, and {tempfile.gettempdir()} cannot hold a link to it"
    )


def _links(link: Path, cache: Path) -> bool:
    """Make the link. False if the name is taken by somebody else."""
    if os.path.lexists(link) and (link.lstat().st_uid != os.geteuid() or not link.is_symlink()):
        return False
    if not link.is_symlink() or os.readlink(link) != str(cache):
        partial = link.with_name(f"{link.name}.{os.getpid()}")
        partial.unlink(missing_ok=True)
        partial.symlink_to(cache)
        partial.replace(link)
    return True


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

    def for_make(self, path: Path) -> Path:
        """A path in the cache, in a form that make can work with."""
        return for_make(self.cache) / path.relative_to(self.cache)

    def is_complete(self) -> bool:
        """Are all libraries there, unchanged, in a folder of this user alone?"""
        if self.place.is_dir() and not private.is_own(self.place):
            warnings.warn(
                f"load: others may change {self.place} (it must be yours, with mode 700); it is built again",
                stacklevel=4,
            )
            return False
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
        sweep.mark(self.place / COMPLETE)
        return True

    def make(self, build: Callable[[int], None], waiting: Callable[[str], None]) -> None:
        """Call `build` to fill the folder, unless another process has filled it in the meantime.

        Args:
            build: writes the layer's folder with its libraries. It gets the lock, which its child processes must
                inherit. If it raises, there is no entry.
            waiting: called once if another process is building this entry, with who it is.
        """
        with self._locked(waiting) as lock:
            if self.is_complete():
                return
            try:
                private.removed(self.place)
                private.make_private(self.place)
                self.folder.mkdir(parents=True)
                build(lock)
                self._complete()
            except BaseException as error:
                full = isinstance(error, CaffeRuntimeError) and shutil.disk_usage(self.cache).free < 1 << 20
                shutil.rmtree(self.place, ignore_errors=True)
                if full:  # then a compiler's log is empty, too
                    raise _unusable(self.cache, os.strerror(errno.ENOSPC)) from None
                if isinstance(error, OSError):
                    raise _unusable(self.cache, error.strerror or str(error)) from None
                raise

    def _complete(self) -> None:
        """Write the record of the files."""
        # Else Python makes it at the import, for all whom the umask lets write.
        for package in {file.parent for file in self.folder.rglob("*.py")}:
            (package / "__pycache__").mkdir(exist_ok=True)
        private.close(self.place)
        files = (f for f in sorted(self.folder.rglob("*")) if f.is_file())
        made = {str(f.relative_to(self.folder)): digest_of(f) for f in files}
        partial = self.place / f"{COMPLETE}.partial"
        partial.touch(mode=0o600)
        partial.write_text(json.dumps(made))
        shutil.rmtree(self.build, ignore_errors=True)
        partial.rename(self.place / COMPLETE)
        sweep.sweep(self.cache, COMPLETE)

    @contextlib.contextmanager
    def _locked(self, waiting: Callable[[str], None]) -> Generator[int]:
        file = self.place.with_suffix(".lock")
        try:
            if file.is_symlink() or file.is_dir():
                private.removed(file)
            lock = os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _unusable(self.cache, error.strerror or str(error)) from None
        try:
            locks.take(lock, waiting)
            yield lock
            # Unlocked, because closing is not enough: a process that another thread forked may hold the same open file.
            fcntl.flock(lock, fcntl.LOCK_UN)
        finally:
            os.close(lock)


def digest_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
