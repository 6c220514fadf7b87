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
    """Why others can change what lies in the folder; None if they cannot.

    By its own mode, by a folder above it, or by a link on the way to it.
    """
    status, me = folder.stat(), os.geteuid()
    if status.st_uid != me:
        return f"it belongs to user {status.st_uid}, this process is user {me}"
    if status.st_mode & _OTHERS_WRITE:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return why_redirectable(folder) or why_movable(folder.resolve())


def why_redirectable(path: Path) -> str | None:
    """Why others can put another link in the place of one on the way to the path; None if they cannot.

    The links that a link leads to count, too. In a folder with the sticky bit a link's owner can replace it.
    """
    waiting, place = [*reversed(Path(path).absolute().parts[1:])], Path("/")
    while waiting:
        part = waiting.pop()
        if part == "..":
            place = place.parent
            continue
        place /= part
        if not place.is_symlink():
            continue
        owner = place.lstat().st_uid
        if owner not in _trusted():
            return f"the link {place}, on the way to it, belongs to user {owner}"
        if why := why_movable(place):
            return f"{why}, and has the link {place.name} to it"
        target = Path(os.readlink(place))
        waiting += [part for part in reversed(target.parts) if part != "/"]
        place = Path("/") if target.is_absolute() else place.parent
    return None


def _trusted() -> set[int]:
    """Who owns / can change everything. In a user namespace root may have another number."""
    return {os.geteuid(), 0, os.stat("/").st_uid}


def why_movable(path: Path) -> str | None:
    """Why others can put something else in the place of a path that belongs to this user; None if they cannot.

    A link's place counts, not its target's.
    """
    trusted, place = _trusted(), path.parent.resolve()
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
