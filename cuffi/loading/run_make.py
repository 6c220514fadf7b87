"""Run the toolkit's make for one layer, with a line of progress and errors that name the user's file."""

import contextlib
import errno
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..base.shown import command
from ..runtime import CaffeRuntimeError
from . import cache, toolkit

# Runs make, and ends all that it has started as soon as this process ends, however it does: `read` then sees the end of
# its pipe. The shell is the leader of the processes' group.
GUARDED = """exec 3<&0 </dev/null
(read -r _ <&3; kill -TERM -$$) >/dev/null 2>&1 &
"$@" 3<&-
status=$?
kill $! 2>/dev/null
wait $! 2>/dev/null
exit $status"""
# make's line for a step: "  NVCC  foo/foo.cu".
STEP = re.compile(r"  ([A-Z]{2,5}) +(\S.*)")
WAIT = "WAIT"
FAILED = re.compile(r"  FAIL  (.*): all of it in (.*)")
# make's line for a layer that is built for the GPU only (tools/make/report.py).
NO_HOST = "No host library: "
# And for kernels that do not compile as loops (mk/rules.mk).
NO_LOOPS = "No loops: "
# A linker that maps its output into memory is killed by SIGBUS (7) on a full tmpfs.
FULL = re.compile(re.escape(os.strerror(errno.ENOSPC)) + r"|terminated with signal 7\b")
# A package in a file of requirements.
PACKAGE = re.compile(r"^([A-Za-z][\w.-]*)", re.M)
# The most lines of a compiler's output in an exception.
MOST_LINES = 120


class CaffeBuildError(CaffeRuntimeError):
    """A layer does not build. The message has the compiler's output.

    Attributes:
        output: the message with the paths that the compiler saw.
    """

    def __init__(self, output: str = ""):
        super().__init__(output)
        self.output = output


def check_can_build(settings: dict[str, str]) -> None:
    """Check that the programs and the packages of a build are here.

    Args:
        settings: make's settings, by name.

    Raises:
        CaffeRuntimeError: one is missing. The text is one line.
    """
    make = shutil.which("make") or shutil.which("gmake")
    for needed, found in (("make", make), *((c, shutil.which(c)) for c in settings["CXX"].split()[:1])):
        if not found:
            raise CaffeRuntimeError(
                f"load: there is no {needed!r}: building a layer needs make and a C++ compiler"
            )
    text = (toolkit.root() / "requirements" / "build.txt").read_text(encoding="utf-8")
    if lacking := [name for name in PACKAGE.findall(text) if not _is_installed(name)]:
        raise CaffeRuntimeError(
            f"load: building a layer needs Python packages that are missing: {command('pip', 'install', *lacking)}"
        )


def has_compilers() -> bool:
    """Are make and a C++ compiler here?"""
    named = os.environ.get("CXX", "").split()[:1] or ["g++", "clang++"]
    return any(map(shutil.which, ("make", "gmake"))) and any(map(shutil.which, named))


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def environment() -> dict[str, str]:
    """The environment of the toolkit's programs, without the options of a make that runs this process.

    Their bytecode goes into the cache, unless pip has written it: it takes a fifth of a small build to compile, and
    nothing is written into the toolkit's folder.
    """
    found = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    if not toolkit.has_bytecode():
        found.pop("PYTHONDONTWRITEBYTECODE", None)
        found.setdefault("PYTHONPYCACHEPREFIX", bytecode())
    return found


def bytecode() -> str:
    """The folder of the bytecode of the toolkit's programs."""
    return str(cache.subfolder("bytecode"))


def make(goals: list[str], settings: dict[str, str], progress: "Progress", lock: int) -> None:
    """Run the toolkit's make.

    Args:
        goals: what to make.
        settings: make's settings, by name.
        progress: shows each step.
        lock: an open file that make and the compilers inherit.

    Raises:
        CaffeBuildError: with the failed step's log.
        CaffeRuntimeError: a program or a package of a build is missing.
        OSError: the disk is full.
    """
    check_can_build(settings)
    progress.step("")  # it has the lock that it perhaps waited for
    program = shutil.which("make") or shutil.which("gmake") or "make"
    # -k: a kernel that the host cannot run must not stop the build for the GPU.
    words = [program, "-C", str(toolkit.root()), "--no-print-directory", "-k", f"-j{os.cpu_count() or 2}"]
    words += [*goals, *(f"{name}={value}" for name, value in settings.items())]
    with _alive() as alive:
        process = subprocess.Popen(
            ["/bin/sh", "-c", GUARDED, "sh", *words], stdin=alive, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", env=environment(), pass_fds=(lock,),
            start_new_session=True, umask=0o077)  # fmt: skip
        try:
            lines = list(_told(process.stdout, progress))
            status = process.wait()
        except BaseException:  # Ctrl-C, for example: stop the compilers
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
    if status:
        text = failure(lines)
        if any(FULL.search(line) for line in (text, *lines)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise CaffeBuildError(text)
    for line in lines:
        if line.startswith((NO_HOST, NO_LOOPS)):
            warnings.warn(line, RuntimeWarning, stacklevel=2)


# The ends of pipes that say to make that this process is alive. A fork of this process must not say so, too.
_ends: set[int] = set()


def _close_in_fork() -> None:
    for end in _ends:
        os.close(end)
    _ends.clear()


os.register_at_fork(after_in_child=_close_in_fork)


@contextlib.contextmanager
def _alive() -> Generator[int]:
    """A pipe whose other end is closed when this process ends."""
    read, write = os.pipe()
    _ends.add(write)
    try:
        yield read
    finally:
        os.close(read)
        if write in _ends:  # not in a fork
            _ends.discard(write)
            os.close(write)


def _told(output, progress: "Progress") -> Iterator[str]:
    for line in output:
        line = line.rstrip("\n")
        if step := STEP.fullmatch(line):
            if step[1] == WAIT:
                progress.wait(step[2])
            else:
                progress.step(f"{step[1]} {step[2]}")
        yield line


def failure(lines: list[str]) -> str:
    """The error's text: the logs of the failed steps, or else all that make printed."""
    texts = []
    for line in lines:
        if found := FAILED.fullmatch(line):
            with contextlib.suppress(OSError):
                log = Path(found[2]).read_text(errors="replace").strip("\n").split("\n")
                cut = [f"... and {len(log) - MOST_LINES} lines more"] if len(log) > MOST_LINES else []
                texts.append("\n".join([*log[:MOST_LINES], *cut]))
    return "\n".join(texts or [line for line in lines if not STEP.fullmatch(line)])


class Progress:
    """A line of progress, in a terminal or a notebook. Elsewhere only a long wait for another process is told."""

    FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
    WIDTH = 78
    PATIENCE = 5.0  # the seconds after which a wait is told everywhere

    def __init__(self, name: str):
        self.name, self.now, self.began = name, "", time.monotonic()
        self._write = _writer()
        self._ended = threading.Event()
        self._wait: threading.Timer | None = None

    def step(self, text: str) -> None:
        self._end_wait()
        self.now = text

    def wait(self, text: str) -> None:
        """Another process has what this build needs. `text` says who."""
        self.step(f"waits {text}")
        if not self._write:
            self._wait = threading.Timer(self.PATIENCE, _say, [f"load: {self.name} waits {text}\n"])
            self._wait.daemon = True
            self._wait.start()

    def _end_wait(self) -> None:
        if self._wait:
            self._wait.cancel()
            self._wait = None

    def __enter__(self) -> "Progress":
        if self._write:
            self._thread = threading.Thread(
                target=self._turn, args=(self._write,), name="cuffi progress", daemon=True
            )
            self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._end_wait()
        if self._write:
            self._ended.set()
            self._thread.join()
            self._write("\r" + " " * self.WIDTH + "\r")

    def _turn(self, write: Callable[[str], None]) -> None:
        for frame in itertools.cycle(self.FRAMES):
            text = f"{frame} building {self.name}  {time.monotonic() - self.began:.1f} s  {self.now}"
            write("\r" + text[: self.WIDTH].ljust(self.WIDTH))
            if self._ended.wait(0.1):
                return


def _say(text: str) -> None:
    with contextlib.suppress(AttributeError, OSError, ValueError, UnicodeEncodeError):  # perhaps no stream
        sys.stderr.write(text)
        sys.stderr.flush()


def _writer() -> Callable[[str], None] | None:
    """A function that writes the line; None if there is neither a terminal nor a notebook."""
    notebook = "ipykernel" in sys.modules and type(sys.stdout).__module__.startswith("ipykernel")
    stream = sys.stdout if notebook else sys.stderr

    def write(text: str) -> None:
        with contextlib.suppress(OSError, ValueError, UnicodeEncodeError):
            stream.write(text)
            stream.flush()

    try:
        return write if notebook or stream.isatty() else None
    except (AttributeError, ValueError):  # no stream, or a closed one
        return None
