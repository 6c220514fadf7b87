"""Find the libraries that make could not build, and the reasons. Older libraries are removed.

A library that stays after a failed build would run the layer's old code. Python's error gives the reason.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import subprocess
from typing import NamedTuple

from ..files import read, write
from .backends import BACKENDS
from .folders import shown

_ERROR = re.compile(
    r"\b(error|undefined reference|No such file|cannot open|Permission denied|Killed|fatal)\b", re.I
)
# A line of an error is cut at this many characters.
_MOST = 240


class Failure(NamedTuple):
    """A library that is not built.

    Attributes:
        why: the first error.
        logs: the folder with the whole output; "" if there is none.
        only_host: the host lacks something that the kernels need. The layer is built for a GPU.
    """

    name: str
    backend: str
    why: str
    logs: str = ""
    only_host: bool = False

    def __str__(self) -> str:
        return f"{self.name} for {self.backend}: {self.why}" + (f" (logs: {self.logs})" if self.logs else "")


def failures(job, keep_going: bool) -> list[Failure]:
    """The failures of a make that has ended with an error. Their libraries are removed.

    Args:
        keep_going: make went on after an error. Otherwise a library without a log was only not reached.
    """
    missing = [key for key, path in job.rules.libraries.items() if not is_made(job, path)]
    found = []
    for name, backend in missing:
        logs = failed_logs(job, name, backend)
        if not (logs or keep_going or job.folder(name).refused):
            continue
        on_host = BACKENDS[backend].on_host
        for_gpus = [b for b in job.settings.backends if not BACKENDS[b].on_host and (name, b) not in missing]
        only_host = on_host and bool(for_gpus) and any(log.endswith(".cu.cpp.log") for log in logs)
        where = os.path.dirname(logs[0]) if logs else ""
        found.append(Failure(name, backend, reason(job, name, logs), where, only_host))
    for failure in found:
        _tell(job.rules.libraries[failure.name, failure.backend], failure)
    return found


def _tell(library: str, failure: Failure) -> None:
    """Remove the library, and write why it is missing into its description, where Python reads it."""
    backend = BACKENDS[failure.backend]
    said = {"layer": failure.name, "backend": backend.name, "failed": failure.why}
    with contextlib.suppress(OSError):  # a folder that cannot be written has no library of ours
        if os.path.lexists(library):
            os.unlink(library)
        write(
            os.path.join(os.path.dirname(library), backend.description),
            os.fsencode(json.dumps(said, indent=2) + "\n"),
        )


def is_made(job, library: str) -> bool:
    """Is the library up to date?"""
    if not os.path.exists(library):
        return False
    if os.stat(library).st_mtime_ns >= job.started:
        return True
    command = ["make", "-q", "-f", job.makefile, library]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(command, env=environment, capture_output=True).returncode == 0


def failed_logs(job, name: str, backend: str) -> list[str]:
    """The logs of a library's steps that failed in this run: their targets are missing, or older."""
    place = os.path.join(job.settings.build, name)
    logs = glob.glob(f"{glob.escape(place)}/*.log") + glob.glob(
        f"{glob.escape(place)}/{backend}/**/*.log", recursive=True
    )
    library = job.rules.libraries[name, backend]
    return [
        log
        for log in sorted(logs)
        if _failed(log, library if log.endswith("/link.log") else log[:-4], job.started)
    ]


def _failed(log: str, target: str, started: int) -> bool:
    written = os.stat(log).st_mtime_ns
    return written >= started and (not os.path.exists(target) or os.stat(target).st_mtime_ns < written)


def reason(job, name: str, logs: list[str]) -> str:
    """One line: why the library is missing."""
    folder = job.folder(name)
    if folder.refused:
        return "; ".join(folder.refused)
    lines = [line for log in logs for line in read(log, "utf-8").splitlines() if line.strip()]
    if errors := [line for line in lines if _ERROR.search(line)] or lines:
        return shown(" ".join(errors[0].split()))[:_MOST]
    return folder.kind.lacks(folder) or "see make's output above"
