"""Locks on open files, and who holds one. tools/make imports this file, so it imports the standard library only."""

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

LOCKS = Path("/proc/locks")


def take(lock: int, waiting: Callable[[str], None], shared: bool = False) -> None:
    """Lock an open file. If others hold it, `waiting` is called once with who they are, in words.

    Raises:
        OSError: the file system has no locks.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting(holders(lock))
        fcntl.flock(lock, kind)


def holders(lock: int) -> str:
    """Who holds the lock, in words: `process 1234 (python train.py)`."""
    found = [_described(process) for process in _processes(lock)]
    return " and ".join(found[:3]) or "another process"


def _processes(lock: int) -> list[int]:
    """The processes that took the lock. One of them may have ended, and its children hold the file."""
    status = os.fstat(lock)
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    found = []
    with contextlib.suppress(OSError):
        for line in LOCKS.read_text().splitlines():
            words = line.split()
            # 1: FLOCK  ADVISORY  WRITE 1234 08:02:56 0 EOF; one that waits has `->` behind its number
            if words[1:2] == ["FLOCK"] and words[5:6] == [file] and words[4].isdigit() and words[4] != "0":
                found.append(int(words[4]))
    return sorted(dict.fromkeys(found))


def _described(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return f"the compilers of process {process}, which has ended"
    command = " ".join(filter(None, words))
    return f"process {process} ({command[:57]}...)" if len(command) > 60 else f"process {process} ({command})"
