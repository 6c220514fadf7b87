"""The judge's part of the cache: what it builds once, and the folders of its runs. Judged programs cannot change it.

It lies in CUFFI_CACHE, for this user alone. If others can change that, what is built is built anew, in a folder of this
process. What was built is used as long as no file of it has changed since.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ..loading import private

_RECORD = "complete"


def folder() -> Path:
    """The folder, created if necessary."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "cuffi")
    path = Path(os.environ.get("CUFFI_CACHE") or base).absolute()
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        why = private.why_unsafe(path)
        if not why:
            return private.make_private(path / "judge")
    except OSError as error:
        why = error.strerror or str(error)
    return _of_this_process(path, why)


@functools.cache
def _of_this_process(path: Path, why: str) -> Path:
    print(f"cuffi judge: the cache {path} is not used: {why}", file=sys.stderr)
    made = tempfile.mkdtemp(prefix="cuffi-judge-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def of_a_run() -> tempfile.TemporaryDirectory:
    """A folder for what one judgement builds."""
    return tempfile.TemporaryDirectory(prefix="run-", dir=folder())


@contextlib.contextmanager
def only_one(name: str):
    """One process and thread at a time makes what has this name: the others wait, and find it."""
    with os.fdopen(os.open(folder() / f"{name}.lock", os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        with contextlib.suppress(OSError):  # the file system has no locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_whole(place: Path) -> bool:
    """Are all files in this folder as `complete` has found them?"""
    try:
        recorded = json.loads((place / _RECORD).read_text())
        return _states(place, recorded) == recorded and bool(recorded)
    except (OSError, ValueError, TypeError):
        return False


def complete(place: Path, names: Iterable[str]):
    """Record that these files are in the folder, and nothing else is needed."""
    partial = place / f"{_RECORD}.{os.getpid()}"
    partial.write_text(json.dumps(_states(place, names)))
    partial.replace(place / _RECORD)


def _states(place: Path, names: Iterable[str]) -> dict[str, list[int]]:
    found = {name: (place / name).stat() for name in names}
    return {name: [s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns] for name, s in found.items()}
