"""Run a program within limits of time, memory and files. Limits are no sandbox (SECURITY.md)."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

OUTPUT_BYTES = 1 << 20


@dataclass
class Limits:
    """The limits of a run: seconds, megabytes of memory, megabytes of a file, processes of this user."""

    seconds: float = 20
    megabytes: int = 6000
    file_megabytes: int = 256
    processes: int = 4096


@dataclass
class Ran:
    """How a program ended: its status (None: it was stopped after the limit), what it wrote, the finder's log."""

    status: int | None
    output: str
    errors: str
    log: str = ""
    settings: dict[str, str] = field(default_factory=dict)


def _limited(limits: Limits, by_address: bool):
    def apply():
        most = int(limits.seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_megabytes << 20, limits.file_megabytes << 20))
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes, limits.processes))
        if by_address:  # AddressSanitizer reserves all addresses
            resource.setrlimit(resource.RLIMIT_AS, (limits.megabytes << 20, limits.megabytes << 20))

    return apply


def run(
    program: Path, arguments: list[str], limits: Limits, folder: Path, by_address=True, **settings
) -> Ran:
    """Run a program in the current folder, as a group of processes that ends with it."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        log, out, err = (Path(place, name) for name in ("races", "out", "err"))
        environment = os.environ | {
            "CAFFE_RACES": str(log),
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1"
            ":alloc_dealloc_mismatch=0:new_delete_type_mismatch=0"
            f":hard_rss_limit_mb={limits.megabytes}",
            **settings,
        }
        with open(out, "wb") as output, open(err, "wb") as errors:
            process = subprocess.Popen(
                [str(program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=environment,
                start_new_session=True,
                preexec_fn=_limited(limits, by_address),
            )
            try:
                status: int | None = process.wait(limits.seconds)
            except subprocess.TimeoutExpired:
                status = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        texts = [_beginning(file) for file in (out, err, log)]
        return Ran(None if status == -signal.SIGXCPU else status, *texts, settings)


def _beginning(file: Path) -> str:
    if not file.exists():
        return ""
    with open(file, "rb") as opened:
        return opened.read(OUTPUT_BYTES).decode(errors="replace")
