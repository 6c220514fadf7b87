"""What a judged program may change: Linux's Landlock holds it to its own folder and to where programs leave files.

So it cannot replace what later judgements load, kill the judge or others, or read their environment. It may still read
files and use the network (SECURITY.md). An older Linux, or another system, has no Landlock: then nothing is held back.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ..loading import toolkit

# linux/landlock.h and its system calls, which have these numbers on each processor.
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION, _PATH_BENEATH, _SCOPE_SIGNAL, _SCOPED_SINCE = 1, 1, 1 << 1, 6
_WRITE_FILE, _TRUNCATE, _REFER = 1 << 1, 1 << 14, 1 << 13
_CHANGES = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))  # remove and make
_NO_NEW_PRIVILEGES, _DROP_CAPABILITY = 38, 24  # linux/prctl.h
# linux/capability.h: kill, net_admin, sys_module, sys_rawio, sys_ptrace, sys_admin, sys_boot, mknod, perfmon. By the
# last one root reads the memory of others, whatever Landlock says.
_NOT_FOR_PROGRAMS = (5, 12, 16, 17, 19, 21, 22, 27, 38)
_LIBC = ctypes.CDLL(None, use_errno=True)


@functools.cache
def version() -> int:
    """Of Landlock; 0 if there is none."""
    return max(0, _LIBC.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))


def is_contained() -> bool:
    """Are judged programs held back, their signals too?"""
    return version() >= _SCOPED_SINCE


def changeable(own: Path, more: Iterable[Path] = ()) -> list[Path]:
    """The folders that a program may change: its own, those for temporary files, devices, and where it runs.

    Where it runs is left out if the toolkit, the Python or the home of this user lie there.
    """
    here = Path.cwd()
    kept = [toolkit.root(), Path(sys.prefix), Path.home()]
    temporary = [Path(place) for place in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev")]
    found = [own, *more, *temporary]
    if not any(one.resolve().is_relative_to(here) for one in kept) and not here.is_relative_to(
        toolkit.root()
    ):
        found.append(here)
    return [place for place in dict.fromkeys(found) if place.is_dir()]


@contextlib.contextmanager
def ruleset(folders: Iterable[Path]):
    """The file descriptor of the rules, for `enter` in a child process; None if there is no Landlock."""
    if not version():
        yield None
        return
    changes = _CHANGES | (_REFER if version() >= 2 else 0) | (_TRUNCATE if version() >= 3 else 0)
    scoped = _SCOPE_SIGNAL if is_contained() else 0
    words = struct.pack("QQQ", changes, 0, scoped)[
        : 24 if version() >= _SCOPED_SINCE else 16 if version() >= 4 else 8
    ]
    rules = _LIBC.syscall(_CREATE, words, ctypes.c_size_t(len(words)), ctypes.c_uint32(0))
    if rules < 0:
        yield None
        return
    try:
        for folder in folders:
            with contextlib.suppress(OSError):
                _allow(rules, folder, changes)
        yield rules
    finally:
        os.close(rules)


def _allow(rules: int, folder: Path, changes: int):
    place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        _LIBC.syscall(_ADD, rules, _PATH_BENEATH, struct.pack("=Qi", changes, place), ctypes.c_uint32(0))
    finally:
        os.close(place)


def enter(rules: int | None):
    """Hold this process, and those that it starts, to the rules. Called between fork and exec."""
    if rules is not None:
        for capability in _NOT_FOR_PROGRAMS:
            _LIBC.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)
        _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _LIBC.syscall(_RESTRICT, rules, ctypes.c_uint32(0))
