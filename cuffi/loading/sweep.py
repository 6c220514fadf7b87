"""Old entries of the cache go: what nobody has used for 30 days, and the oldest ones of a cache that is too large.

A load marks its entry as used. A build looks for old ones, once a day. What a build is using stays.
"""

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Generator
from pathlib import Path

DAY = 24 * 3600
# What is unused for longer goes.
MOST_DAYS = 30
# The gigabytes of a cache, if CUFFI_CACHE_SIZE says nothing else.
MOST_GIGABYTES = 20.0
VARIABLE = "CUFFI_CACHE_SIZE"
# An entry, and the toolkit's own objects. Other folders of the cache are small.
SWEPT = re.compile(r".+-[0-9a-f]{32}|core-[0-9a-f]{16}")
# Its time is that of the last look.
STAMP = "swept"


def mark(file: Path) -> None:
    """Note that an entry is used, by the time of a file or a folder of it: at most once a day."""
    with contextlib.suppress(OSError):
        if time.time() - file.stat().st_mtime > DAY:
            os.utime(file)


def sweep(cache: Path, mark_of: str) -> list[str]:
    """Remove old entries, unless that was done today. Returns their names.

    Args:
        mark_of: the file in an entry whose time says when it was used.
    """
    stamp = cache / STAMP
    try:
        if stamp.exists() and time.time() - stamp.stat().st_mtime < DAY:
            return []
        stamp.touch(mode=0o600)
        found = [entry for entry in os.scandir(cache) if SWEPT.fullmatch(entry.name)]
        folders = [Path(entry) for entry in found if entry.is_dir(follow_symlinks=False)]
        by_age = sorted((_used(folder, mark_of), folder) for folder in folders)
    except OSError:  # a full disk, or a cache that another process clears
        return []
    old = [folder for used, folder in by_age if time.time() - used > MOST_DAYS * DAY]
    rest = [folder for _, folder in by_age if folder not in old]
    sizes = {folder: size_of(folder) for folder in rest}
    total = sum(sizes.values())
    for folder in rest[:-1]:  # the newest one was made now
        if total <= most_bytes():
            break
        old.append(folder)
        total -= sizes[folder]
    return [folder.name for folder in old if _removed(folder)]


def most_bytes() -> float:
    try:
        return float(os.environ.get(VARIABLE) or MOST_GIGABYTES) * 1e9
    except ValueError:
        return MOST_GIGABYTES * 1e9


def size_of(folder: Path) -> int:
    """The bytes of a folder's files on the disk."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total


def _used(folder: Path, mark_of: str) -> float:
    marked = folder / mark_of
    return (marked if marked.exists() else folder).stat().st_mtime


def _removed(folder: Path) -> bool:
    with unused(folder) as is_unused:
        if is_unused:
            shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


@contextlib.contextmanager
def unused(folder: Path) -> Generator[bool]:
    """Whether no build is using the folder: its locks are ours within the block. Lock files stay, for who waits."""
    with contextlib.ExitStack() as held:
        free = True
        for lock in (folder.with_suffix(".lock"), folder / "lock", folder / "lock.used"):
            if lock.is_file() and not lock.is_symlink():
                file = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
                held.callback(os.close, file)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    free = False
        yield free
