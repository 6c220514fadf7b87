"""Judge many: a pool of resident judges, each a process of its own, here or on other machines (ray.py).

A judge that ends, or gives no answer in time, is lost: its candidate is given to another one, and not for ever. Answers
come in the order of the requests, and are written to a file as they come, so that a pool that was killed goes on where
it was.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

TRIES = 3  # of one candidate, if its judges are lost
AHEAD = 4  # requests that wait for each judge: no more are read from the caller


class Lost(Exception):
    """A judge has ended, or gave no answer in time."""


class AnyJudge(Protocol):
    """What answers one request at a time."""

    def ask(self, request: dict, seconds: float, /) -> dict: ...
    def end(self) -> None: ...


class Judge:
    """A resident judge."""

    command = ("-m", "cuffi.judge", "--resident")

    def __init__(self, options: Iterable[str] = ()):
        root = Path(__file__).resolve().parents[2]
        path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            [sys.executable, *self.command, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path},
        )

    def ask(self, request: dict, seconds: float) -> dict:
        """The answer to a request.

        Raises:
            Lost: there is none within so many seconds.
        """
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            line, end = b"", time.monotonic() + seconds
            while not line.endswith(b"\n"):
                left = end - time.monotonic()
                if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                    raise Lost(f"gave no answer within {seconds:g} s")
                part = os.read(self.process.stdout.fileno(), 1 << 16)
                if not part:
                    raise Lost(f"ended with status {self.process.wait()}")
                line += part
            return json.loads(line)
        except (OSError, ValueError) as error:
            raise Lost(str(error)) from None

    def end(self):
        """Kill it. What it runs ends with it."""
        self.process.kill()
        self.process.communicate()


class Pool:
    """So many judges."""

    def __init__(self, jobs: int, starts: Callable[[], AnyJudge], seconds: float = 600):
        self.jobs, self.starts, self.seconds = jobs, starts, seconds
        self._own = threading.local()
        self._judges: list[AnyJudge] = []
        self._is_over = False

    def _judge(self) -> AnyJudge:
        """This thread's own."""
        judge = getattr(self._own, "judge", None)
        if judge is None:
            judge = self._own.judge = self.starts()
            self._judges.append(judge)
        return judge

    def answer(self, request: dict) -> dict:
        """The answer to one request, or what has become of its judges."""
        why = ""
        for _ in range(TRIES):
            if self._is_over:  # nobody waits for the answer
                break
            judge = self._judge()
            try:
                return judge.ask(request, self.seconds)
            except Lost as error:
                why = str(error)
                judge.end()
                self._own.judge = None
        text = f"{TRIES} judges of it were lost; the last one {why}"
        finding = {"kind": "incomplete", "text": text, "place": "", "kernel": "", "is_warning": False}
        said = {
            "verdict": "incomplete",
            "status": 3,
            "findings": [finding],
            "files": request.get("files", []),
        }
        return said | ({"id": request["id"]} if "id" in request else {})

    def answers(self, requests: Iterable[dict]) -> Generator[dict]:
        """The answers, in order."""
        waiting: list[Future] = []
        with ThreadPoolExecutor(self.jobs) as threads:
            try:
                for request in requests:
                    waiting.append(threads.submit(self.answer, request))
                    if len(waiting) >= self.jobs * AHEAD:
                        yield waiting.pop(0).result()
                while waiting:
                    yield waiting.pop(0).result()
            finally:
                self._is_over = True
                for one in waiting:
                    one.cancel()
                for judge in self._judges:
                    judge.end()


def judge_all(
    requests: Iterable[dict],
    jobs: int,
    to: Path | None = None,
    options: Iterable[str] = (),
    seconds: float = 600,
    starts: Callable[[list[str]], AnyJudge] = Judge,
) -> Generator[dict]:
    """Judge each request once.

    Args:
        requests: as `--resident` reads them, each with an "id" of its own if `to` is given.
        jobs: how many judges work at once.
        to: a file that gets each answer as a line. Requests whose answer it has are not judged again.
        options: of the command, such as --seconds=5.
        seconds: after which a judge without an answer is lost.
        starts: makes a judge with these options.

    Yields:
        The answers of this call, in order.
    """
    done, words = _done(to) if to else set(), list(options)
    left = (request for request in requests if "id" not in request or json.dumps(request["id"]) not in done)
    for said in Pool(jobs, lambda: starts(words), seconds).answers(left):
        if to:
            with open(to, "a") as file:
                file.write(json.dumps(said) + "\n")
        yield said


def _done(file: Path) -> set[str]:
    """The ids that have an answer, as JSON. A last line that was not written whole is cut off."""
    if not file.exists():
        return set()
    text = file.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        file.write_bytes(whole)
    return {json.dumps(json.loads(line)["id"]) for line in whole.splitlines()}
