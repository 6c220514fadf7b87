"""Remove what make wrote, and nothing else."""

from __future__ import annotations

import contextlib
import os
import re

from ..refused import Refused
from . import folders
from .backends import BACKENDS
from .folders import layers_in
from .job import FROM, MARK, remove
from .kinds import kinds
from .makefile import CALL
from .settings import Settings

# What make writes to BUILD: files, and folders that contain a mark (a layer's: FROM).
_MADE = {
    "_tmp": MARK,
    "core": "lock",
    **dict.fromkeys(
        ("sanitize", "races", *(name for kind in kinds() for name in kind.made_in_build)), "made"
    ),
}
_MADE_FILES = re.compile(
    r"(lock|report|inputs|call\.log|layers(\.dry)?\.mk|packages(\.build|\.test)?|[\w.]+\.flags)(\.\d+\.partial)?"
)


def is_made(entry: os.DirEntry) -> bool:
    """Did make write this to BUILD, and not a user?"""
    if entry.is_dir(follow_symlinks=False):
        return os.path.exists(os.path.join(entry.path, _MADE.get(entry.name, FROM)))
    return _MADE_FILES.fullmatch(entry.name) is not None


def clean(settings: Settings) -> int:
    """Remove what make wrote. A folder in which no make has built is refused."""
    build = settings.build
    if os.path.isdir(build):
        if os.path.islink(build) or not os.path.exists(f"{build}/lock"):
            raise Refused(f"BUILD={build}: make has not built in this folder; nothing was removed")
        if not os.access(build, os.W_OK):
            raise Refused(f"BUILD={build}: the folder belongs to another user; nothing was removed")
        made = [entry.name for entry in os.scandir(build) if is_made(entry)]
        # The lock goes last, because the next clean recognises the folder by it.
        for name in sorted(made, key="lock".__eq__):
            remove(f"{build}/{name}")
        if left := ", ".join(map(folders.shown, sorted(os.listdir(build))[:20])):
            print(f"{build}: not removed, because make did not write it: {left}")
        else:
            os.rmdir(build)
            print(f"rm -rf {build}")
    if not settings.outside:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(CALL)
    for folder in layers_in(settings.layers_dir).values():
        made = [file for backend in BACKENDS.values() for file in (backend.library, backend.description)]
        for file in [*made, *(name for kind in kinds() for name in kind.made)]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder.path, file))
    return 0
