"""Judge many on the machines of a Ray cluster: `pip install ray`, and the toolkit on each machine.

    import ray
    from cuffi.judging.ray import judge_all

    ray.init()  # this machine alone; ray.init("auto") for the cluster that it belongs to
    for said in judge_all(requests, to=Path("answers.jsonl")):
        print(said["id"], said["verdict"])

Each judge is an actor that has a processor of its own. The rest is pool.py's: order, backpressure, tries, the file.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterable
from pathlib import Path

from . import pool
from .pool import Lost

PATIENCE = 120  # seconds for an actor that waits for its machine
STARTS = 10  # of an actor that is lost before it is there, which is no candidate's fault


class Host:
    """A resident judge in an actor's process."""

    def __init__(self, options: list[str]):
        self.options, self.judge = options, pool.Judge(options)

    def ready(self):
        """Nothing: whoever waits for it knows that the actor is there."""

    def ask(self, request: dict, seconds: float) -> dict | str:
        """The answer, or why there is none."""
        try:
            return self.judge.ask(request, seconds)
        except Lost as error:
            return str(error)


class Remote:
    """A judge on one of the machines, which is there.

    Raises:
        RuntimeError: no actor can start, such as on a machine without the toolkit.
    """

    def __init__(self, options: list[str]):
        self._ray = importlib.import_module("ray")
        for left in reversed(range(STARTS)):
            self._actor = self._ray.remote(num_cpus=1, max_restarts=0)(Host).remote(options)
            try:
                self._ray.get(self._actor.ready.remote(), timeout=PATIENCE)
                return
            except self._ray.exceptions.RayError as error:
                if getattr(error, "actor_init_failed", False) or not left:
                    why = (str(error).strip() or type(error).__name__).splitlines()[-1]
                    raise RuntimeError(f"a judge cannot start: {why}") from None

    def ask(self, request: dict, seconds: float) -> dict:
        """The answer to a request.

        Raises:
            Lost: the actor or its machine has ended, or there is no answer in time.
        """
        waiting = self._actor.ask.remote(request, seconds)
        try:
            said = self._ray.get(waiting, timeout=seconds + PATIENCE)
        except self._ray.exceptions.RayError as error:  # GetTimeoutError is one
            raise Lost((str(error).strip() or type(error).__name__).splitlines()[0]) from None
        if isinstance(said, str):
            raise Lost(said)
        return said

    def end(self):
        """End the actor. Its judge ends with it."""
        self._ray.kill(self._actor)


def judge_all(
    requests: Iterable[dict],
    jobs: int | None = None,
    to: Path | None = None,
    options: Iterable[str] = (),
    seconds: float = 600,
) -> Generator[dict]:
    """Judge each request once, as pool.judge_all does. Requests have texts, or paths that each machine has.

    Args:
        jobs: how many judges work at once; as many as the cluster has processors.
    """
    count = jobs or int(importlib.import_module("ray").cluster_resources().get("CPU", 1))
    return pool.judge_all(requests, count, to, options, seconds, starts=Remote)
