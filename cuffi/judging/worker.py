"""A process that has imported torch once, and forks itself for each run of a Python file: an import takes 2 s.

    python -m cuffi.judging.worker NUMBER      the number of an open socket, by which the judge asks

The worker itself runs nothing of a candidate's. Each run is a fork of its own, with the limits, the environment and the
rules of limits.py. If a run ends its worker nevertheless, the next one gets another worker.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO

from . import limits
from .limits import Limits

MOST_BYTES = 1 << 18  # of a request
# torch, what its first operation under a mode imports, and what `python -m cuffi.ext` runs.
PREPARED = (
    "torch",
    "torch._dynamo",
    "cuffi.ext",
    "cuffi.old_torch.cpp_extension",
    "cuffi.old_torch.on_processor",
)
_LIBC = ctypes.CDLL(None)
LOOK_SECONDS = 0.2  # between two looks for runs that have ended


class Forked:
    """A run, as subprocess.Popen is one."""

    def __init__(self, told: socket.socket):
        self._told, self._text = told, b""
        self.returncode: int | None = None
        while self._text.count(b"\n") < 1 and self._read(None):
            pass
        first, _, self._text = self._text.partition(b"\n")
        self.pid = int(first or 0)
        if not self.pid:
            raise ConnectionError("the worker has ended")

    def _read(self, seconds: float | None) -> bool:
        """Read once. False: there is nothing more."""
        self._told.settimeout(seconds)
        part = self._told.recv(64)
        self._text += part
        return bool(part)

    def wait(self, timeout: float | None = None) -> int:
        """The status, as Popen's.

        Raises:
            subprocess.TimeoutExpired
        """
        while self.returncode is None:
            try:
                goes_on = self._read(timeout)
            except TimeoutError:
                raise subprocess.TimeoutExpired("a run", timeout or 0) from None
            if self._text.endswith(b"\n"):
                self.returncode = int(self._text)
            elif not goes_on:  # the process between has ended without a word
                self.returncode = -signal.SIGKILL
        self._told.close()
        return self.returncode

    def terminate(self):
        self._send(signal.SIGTERM)

    def kill(self):
        self._send(signal.SIGKILL)

    def _send(self, number: int):
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Worker:
    """The judge's side of a worker. It ends with the judge."""

    def __init__(self, environment: Mapping[str, str]):
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cuffi.judging.worker", str(its.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
                cwd=Path(__file__).resolve().parents[2],  # no file of a candidate's is imported
                pass_fds=[its.fileno()],
                start_new_session=True,
            )

    def start(
        self, words: list[str], environment: Mapping[str, str], output: IO, errors: IO, within: Limits, rules
    ) -> Forked:
        """Run a module's main() with these arguments, in a fork.

        Raises:
            OSError: the worker has ended.
        """
        own, its = socket.socketpair()
        asked = {
            "words": words,
            "environment": dict(environment),
            "limits": asdict(within),
            "here": os.getcwd(),
        }
        files = [output.fileno(), errors.fileno(), its.fileno(), *([rules] if rules is not None else [])]
        with its:
            socket.send_fds(self._socket, [json.dumps(asked).encode()], files)
        return Forked(own)

    def end(self):
        """End it, and what it runs."""
        self._socket.close()
        self.process.wait()


class Again:
    """A worker that is begun when it is needed, and again if it has ended."""

    def __init__(self, environment: Mapping[str, str]):
        self.environment = environment
        self.worker: Worker | None = None
        self._lock = threading.Lock()

    def start(self, *given) -> Forked:
        for last in (False, True):
            with self._lock:
                if self.worker is None or self.worker.process.poll() is not None:
                    self.worker = Worker(self.environment)
                worker = self.worker
            try:
                return worker.start(*given)
            except OSError:
                if last:
                    raise
                worker.process.kill()
                worker.process.wait()
        raise AssertionError


# -------------------------------------------------------------------------------------- the worker's side


def serve(channel: socket.socket) -> dict | None:
    """Fork for each request, until the judge has ended. Returns the request in the fork, and None in the worker."""
    runs: set[int] = set()
    while True:
        ready = select.select([channel], [], [], LOOK_SECONDS if runs else None)[0]
        _reaped(runs)
        if not ready:
            continue
        text, files, *_ = socket.recv_fds(channel, MOST_BYTES, 4)
        if not text:
            return None
        output, errors, told, *rules = files
        asked = json.loads(text)
        if not (between := os.fork()):
            channel.close()
            limits.enter(Limits(**asked["limits"]), rules[0] if rules else None, told)
            os.dup2(output, 1), os.dup2(errors, 2)
            os.closerange(3, 1 << 16)
            return asked
        runs.add(between)
        with contextlib.suppress(OSError):
            os.write(told, b"%d\n" % between)
        for file in files:
            os.close(file)


def _reaped(runs: set[int]):
    """Forget the runs that have ended. If one was killed, its children are the worker's now, and end."""
    was_killed = False
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            was_killed = was_killed or ended[0] not in runs or os.WIFSIGNALED(ended[1])
            runs.discard(ended[0])
    if was_killed:
        limits.end_children(keep=runs)


def run(asked: dict):
    """Call the module's main(), as a Python of its own would, and end."""
    # Torch's functions for the end write to all of its memory. C calls the last one first, and so ends before torch's.
    atexit._clear()
    _LIBC.on_exit(_LIBC._exit, None)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["here"])
    module, *arguments = asked["words"]
    sys.path[0], sys.argv = asked["here"], [module, *arguments]
    import random

    random.seed()
    status = 1
    try:
        status = importlib.import_module(module).main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    _end(status or 0)


def _end(status: int):
    """End as Python does, but leave its memory as it is: of the functions for the end only the run's own are called."""
    threading._shutdown()  # ty: ignore[missing-attribute]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    _LIBC.fflush(None)
    _LIBC.exit(status)


def prepare():
    """Import what each run needs. None of it may read settings, which are those of a run."""
    for name in PREPARED:
        importlib.import_module(name)
    importlib.import_module("cuffi.old_torch.aten_declarations").schemas()
    gc.freeze()  # a collection in a fork would write to all of it


def main():
    os.environ.pop("LD_PRELOAD", None)  # it is loaded here; compilers need it not
    limits.take_orphans()
    prepare()
    if asked := serve(socket.socket(fileno=int(sys.argv[1]))):
        run(asked)
    os._exit(0)  # without Python's own end, which takes a while


if __name__ == "__main__":
    main()
