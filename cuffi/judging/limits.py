"""Run a program within limits of time, memory and files. Limits are no sandbox (SECURITY.md)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import secrets
import signal
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from . import contained

OUTPUT_BYTES = 1 << 20
OWN = "\x1eJUDGE"
WATCH_SECONDS = 0.25  # between two looks at how much of the machine is used
LOOK_SECONDS = 2.0  # between two looks at a run's processes, unless the machine is used much more
END_SECONDS = 10  # that ending them may take


@dataclass
class Limits:
    """The limits of a run: seconds, megabytes of memory and of a file, processes. `building`: seconds of a compiler."""

    seconds: float = 20
    megabytes: int = 6000
    file_megabytes: int = 256
    processes: int = 200
    building: float = 60


# Set by Ctrl-C: all runs end.
interrupted = threading.Event()


@dataclass
class Ran:
    """How a program ended: its status (None: a limit stopped it), what it wrote, the finder's log, and which limit.

    Lines of the judge's own, and no others, begin with OWN.
    """

    status: int | None
    output: str
    errors: str
    log: str = ""
    stopped: str = ""


_COMPILERS = re.compile(r"Name:\s+(cc1plus|clang\S*|cudafe\S*|cicc|ptxas|fatbinary|as|ld\S*|collect2|lto1)\n")
# The variables that programs get: where things are, languages, settings of compilers, Python, torch and the toolkit.
_GIVEN = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|TMPDIR|LANG|LANGUAGE|LC_\w+|LD_LIBRARY_PATH|XDG_\w+|VIRTUAL_ENV|CONDA_PREFIX"
    r"|CC|CXX|CPATH|C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|LIBRARY_PATH|MAX_JOBS|CCACHE_\w+|NVCC|CUDA_\w+|(OMP|MKL)_\w+"
    r"|PYTHON(PATH|HOME|HASHSEED|DONTWRITEBYTECODE|UNBUFFERED|WARNINGS|PYCACHEPREFIX)|TORCH_(HOME|EXTENSIONS_DIR|CUDA_ARCH_LIST)"
    r"|CUFFI_CACHE|CAFFE_RACES_MEGABYTES|ARCH|HOST_ARCH|BUILD|CORE"
)
# How the sanitizers of programs behave.
SANITIZERS = {
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1"
    ":alloc_dealloc_mismatch=0:new_delete_type_mismatch=0:redzone=512",  # an index may be far off
}
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def take_orphans():
    """Linux gives this process each orphan that its children leave, of any session."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def enter(limits: Limits, rules: int | None, report: int | None = None):
    """Make of this process, which was forked for it, one between the judge and a program. Returns in the program.

    The process between gets each orphan that the program leaves. It ends them all if the program has ended, if the
    judge says so, and if the judge is killed. A program that kills its parent does not kill the judge.

    Args:
        report: a file that gets the program's status. Without, it is that of the process between.
    """
    take_orphans()
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if program := os.fork():
        signal.signal(signal.SIGTERM, lambda *_: os.kill(program, signal.SIGKILL))
        os.closerange(3, report or 3)  # Popen waits for the end of one of them
        os.closerange((report or 2) + 1, 1 << 16)
        number = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_children(program)
        if report:
            with contextlib.suppress(OSError):
                os.write(report, b"%d\n" % number)
        elif number < 0:
            signal.signal(-number, signal.SIG_DFL) if -number != signal.SIGKILL else None
            os.kill(os.getpid(), -number)
        os._exit(number if number >= 0 else 1)
    os.setpgid(0, 0)
    contained.enter(rules)
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    most = int(limits.seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_megabytes << 20, limits.file_megabytes << 20))


def end_children(group: int = 0, keep: Collection[int] = ()):
    """Kill this group of processes, then the children of this process but those to keep, and theirs, which become
    its own.
    """
    end = time.monotonic() + END_SECONDS
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < end:
            while not keep and os.waitpid(-1, os.WNOHANG)[0]:  # an error if there is no child any more
                pass
            if group:
                _kill(os.killpg, group)
            own = [
                child for child, parent in _parents().items() if parent == os.getpid() and child not in keep
            ]
            if keep and not own:
                return
            for child in own:
                _kill(os.kill, child)
                if keep:
                    os.waitpid(child, os.WNOHANG)


def _kill(call, number: int):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        call(number, signal.SIGKILL)


def given(environment: Mapping[str, str]) -> dict[str, str]:
    """What of the environment a judged program gets: no tokens or passwords, which a CI has there."""
    return {name: value for name, value in environment.items() if _GIVEN.fullmatch(name)}


class Process(Protocol):
    """A run, as subprocess.Popen is one."""

    pid: int
    returncode: int | None

    def wait(self, timeout: float | None = None) -> int: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


# What starts a run: of a program with its arguments, its environment, files for what it writes, limits, and the rules
# of contained.py.
Starts = Callable[[list[str], Mapping[str, str], IO, IO, Limits, int | None], Process]


def _program(
    words: list[str],
    environment: Mapping[str, str],
    output: IO,
    errors: IO,
    within: Limits,
    rules: int | None,
) -> Process:
    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: enter(within, rules),
    )


def run(
    program: Path | str,
    arguments: list[str],
    limits: Limits,
    folder: Path,
    more: tuple[Path, ...] = (),
    starts: Starts = _program,
    **settings,
) -> Ran:
    """Run a program in the current folder. All processes that it starts end with it.

    Args:
        more: folders that it may change, besides those of contained.py.
        settings: of its environment.
    """
    mark = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        log, out, err = (Path(place, name) for name in ("races", "out", "err"))
        environment = (
            given(os.environ) | {"CAFFE_JUDGE": mark, "CAFFE_RACES": str(log)} | SANITIZERS | settings
        )
        allowed = contained.changeable(Path(place), more)
        with open(out, "wb") as output, open(err, "wb") as errors, contained.ruleset(allowed) as rules:
            process = starts([str(program), *arguments], environment, output, errors, limits, rules)
            stopped = _waited(process, limits)
            status = process.returncode
            if status == -signal.SIGKILL:  # maybe the process between was killed, and its children live
                _end_marked(mark)
        texts = [_beginning(file).replace(OWN, "") for file in (out, err, log)]
        texts = [text.replace(f"JUDGE {mark}", OWN) for text in texts]
        if status == -signal.SIGXCPU:
            stopped = stopped or "time"
        return Ran(None if stopped else status, *texts, stopped)


def _waited(process: Process, limits: Limits) -> str:
    """Wait for the end, or end it at a limit. Returns the limit."""
    stopped = _watched(process, limits)
    if stopped:
        process.terminate()
    try:
        process.wait(2 * END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return stopped


def _end_marked(mark: str):
    """Kill the processes whose environment, as they began, has this mark."""
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if mark.encode() in file.read_bytes():
                _kill(os.kill, int(file.parent.name))


def _watched(process: Process, limits: Limits) -> str:
    """Wait for the end of a process. Returns "", or the limit that it reached.

    A look at all processes takes milliseconds. How many threads the machine has, and how much memory is free, is known
    at once: a fork bomb shows there, and most of what takes too much memory.
    """
    end, looked, threads, free = time.monotonic() + limits.seconds, time.monotonic(), _threads(), _free()
    while (left := end - time.monotonic()) > 0 and not interrupted.is_set():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(left, WATCH_SECONDS / 10))
            return ""
        if _threads() < threads + limits.processes:
            is_much = _free() + (limits.megabytes << 19) < free
            if time.monotonic() < looked + (WATCH_SECONDS if is_much else LOOK_SECONDS):
                continue
        looked = time.monotonic()
        processes, size = _used(process.pid)
        if processes > limits.processes:
            return "processes"
        if size > limits.megabytes << 20:
            return "memory"
    return "interruption" if interrupted.is_set() else "time"


def _threads() -> int:
    """How many threads the machine has."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])


def _free() -> int:
    """The bytes of memory that the machine has left."""
    found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return 1024 * int(found[1]) if found else 0


def _parents() -> dict[int, int]:
    """The parent of each process."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            words = file.read_text(errors="replace").rpartition(") ")[2].split()
            found[int(file.parent.name)] = int(words[1])
    return found


def _memory(process: int) -> tuple[int, bool]:
    """Its bytes of memory, and whether it is a compiler. Files that it maps do not count: torch for GPUs maps
    gigabytes, which processes share.
    """
    with contextlib.suppress(OSError):  # it has ended
        text = Path(f"/proc/{process}/status").read_text(errors="replace")
        size = 1024 * sum(int(n) for n in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+)", text, re.M))
        return size, bool(_COMPILERS.match(text))
    return 0, False


def _used(top: int) -> tuple[int, int]:
    """The number of processes that this one started, and that they started, and their bytes of memory.

    Of compilers the largest alone counts: a script's build starts one for each core.
    """
    children = defaultdict(list)
    for process, parent in _parents().items():
        children[parent].append(process)
    waiting, count, size, largest = children[top], 0, 0, 0
    while waiting:
        process = waiting.pop()
        waiting += children[process]
        bytes_of, compiles = _memory(process)
        count, size = count + 1, size + bytes_of * (not compiles)
        largest = max(largest, bytes_of * compiles)
    return count, size + largest


def _beginning(file: Path) -> str:
    if not file.exists():
        return ""
    with open(file, "rb") as opened:
        return opened.read(OUTPUT_BYTES).decode(errors="replace")
