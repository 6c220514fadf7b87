"""Run trials one after the other, each in a process forked from this one, which has imported what all need."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path


def named(*what: str) -> str:
    """A file's name for a trial."""
    return hashlib.sha256(" ".join(what).encode()).hexdigest()[:12]


def cost(text: str) -> tuple[int, int]:
    """Sorts nets: those with the large layers of AlexNet and VGG last, and long files last."""
    return text.count("num_output: 4096"), len(text)


def ended(trial: Callable[[], object], limit: int, said: Path, folder: Path | None = None) -> str:
    """How a trial ended: '' if it returned, else 'status 1' or 'longer than 300 s of processor time'.

    `said` gets its output, and `folder` is its working directory.
    """
    process = multiprocessing.get_context("fork").Process(target=_run, args=(trial, limit, said, folder))
    process.start()
    process.join(20 * limit)
    if process.is_alive() or process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL):
        process.kill()
        process.join()
        return f"longer than {limit} s of processor time"
    return f"status {process.exitcode}" if process.exitcode else ""


def _run(trial, limit: int, said: Path, folder: Path | None) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    with open(said, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    warnings.simplefilter("ignore")
    if folder is not None:
        os.chdir(folder)
    try:
        trial()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
