"""Folders whose content nobody else can change, because what lies in them is run.

A folder is as safe as each folder above it: who may write to one of these can put another one in its place. In a folder
with the sticky bit, such as /tmp, a user cannot rename what belongs to others, so the check ends there.
"""

import contextlib
import os
import shutil
import stat
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def why_unsafe(folder: Path) -> str | None:
    """Why others can change what lies in the folder, by its own mode or by a folder above it; None if they cannot."""
    status, me = folder.stat(), os.geteuid()
    if status.st_uid != me:
        return f"it belongs to user {status.st_uid}, this process is user {me}"
    if status.st_mode & _OTHERS_WRITE:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return why_movable(folder.resolve())


def why_movable(path: Path) -> str | None:
    """Why others can put something else in the place of a path that belongs to this user; None if they cannot.

    A link's place counts, not its target's.
    """
    # Who owns / can change everything. In a user namespace root may have another number.
    trusted = {os.geteuid(), 0, os.stat("/").st_uid}
    place = path.parent.resolve()
    for above in (place, *place.parents):
        status = above.stat()
        if status.st_uid not in trusted:
            return f"{above}, above it, belongs to user {status.st_uid}"
        if status.st_mode & stat.S_ISVTX:
            return None
        if status.st_mode & _OTHERS_WRITE:
            return f"others may write to {above}, above it (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def is_own(folder: Path) -> bool:
    """Is it a folder, and no link, that nobody else can enter?"""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def make_private(folder: Path) -> Path:
    """The folder, made if necessary, for this user alone. Anything else of this name is removed.

    Raises:
        OSError: it cannot be made.
    """
    while True:
        try:
            folder.mkdir(mode=0o700)
            return folder
        except FileExistsError:
            if is_own(folder):  # perhaps another process made it now
                return folder
        with contextlib.suppress(FileNotFoundError):  # another process removes it, too
            removed(folder)


def removed(path: Path) -> None:
    """Remove a folder, a file or a link, if it is there.

    Raises:
        OSError: it cannot be removed.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def close(folder: Path) -> None:
    """Take others' permissions from all that lies in the folder."""
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(above, name)
            if not os.path.islink(path):
                os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) & 0o700)
