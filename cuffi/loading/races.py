"""sanitize="races": each call of a launcher asks the race finder, and raises if the kernel's threads race."""

import functools
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from ..backends import HOST
from ..runtime import CaffeRuntimeError, CaffeTypeError, CaffeValueError
from ..runtime.planning import watcher
from . import toolkit
from .run_make import environment

# The file that a library with the race finder writes to (src/host/host_races.h).
VARIABLE = "CAFFE_RACES"
# The variable belongs to the process, so one call at a time is watched.
_lock = threading.Lock()

OF_BOUNDS = '. "races" looks for races between threads; cuffi judge file.cu also finds an index out of bounds'


def settings_of(
    who: str, sanitize, backends: Iterable[str] | None
) -> tuple[dict[str, str], Iterable[str] | None]:
    """(make's settings for `sanitize`, the backends to build). The race finder is for the host alone."""
    if sanitize is None:
        return {}, backends
    if not isinstance(sanitize, str):
        raise CaffeTypeError(f'{who}: sanitize: expected "races" or None, got {sanitize!r}{OF_BOUNDS}')
    if sanitize != "races":
        raise CaffeValueError(f'{who}: sanitize: expected "races" or None, got {sanitize!r}{OF_BOUNDS}')
    if backends is not None and {*([backends] if isinstance(backends, str) else backends)} != {HOST.name}:
        raise CaffeValueError(
            f'{who}: backends: sanitize="races" runs kernels on the host, so it takes "{HOST.name}", got {backends!r}. '
            "On a GPU use compute-sanitizer --tool racecheck"
        )
    return {"SANITIZE": sanitize}, (HOST.name,)


def refuse_extension(who: str, sanitize) -> None:
    """Refuse `sanitize` for an extension of torch/extension.h, which is built without the race finder."""
    if sanitize is not None:
        raise CaffeValueError(
            f"{who}: sanitize: expected None for an extension of torch/extension.h, got {sanitize!r}. "
            "Pass its kernels alone, as cuda_source"
        )


def checked(call, shown: Callable[[str], str]):
    """A launcher that raises CaffeRuntimeError after a launch whose threads race. The message has both lines.

    Args:
        shown: replaces names of built files in the error's text by the user's.
    """

    @functools.wraps(call)
    def launch(*arguments, **named):
        if watching := watcher():
            watching.is_plain = False  # a plan would launch without this function
        with _lock, tempfile.TemporaryDirectory() as folder:
            if VARIABLE in os.environ:  # whoever set it reads the log
                return call(*arguments, **named)
            log = Path(folder, "races")
            os.environ[VARIABLE] = str(log)
            try:
                result = call(*arguments, **named)
            finally:
                del os.environ[VARIABLE]
            if told := _told(log):
                raise CaffeRuntimeError(f"{call.__qualname__}: {shown(told)}")
        return result

    vars(launch)["__signature__"] = call.__signature__
    return launch


def _told(log: Path) -> str:
    """The races of a log in words; "" if there is none."""
    lines = log.read_text().splitlines() if log.exists() else []
    if all(line.startswith("ran\t") for line in lines):
        return ""
    command = [sys.executable, "-m", "tools.cases.races", str(log)]
    done = subprocess.run(
        command, cwd=toolkit.root(), capture_output=True, text=True, errors="replace", env=environment()
    )
    return (done.stdout + done.stderr).strip()
