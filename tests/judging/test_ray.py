"""Judges on a Ray cluster. Without Ray, objects of this process stand for its actors."""

import importlib.util
import os
import signal
import sys
import types
from pathlib import Path

import pytest

from cuffi.judging import pool
from cuffi.judging.pool import Lost
from cuffi.judging.ray import judge_all


class Judge:
    """Answers at once; a request says what becomes of it."""

    def __init__(self, options):
        self.options = options

    def ask(self, request, seconds):
        if request.get("does") == "lost":
            raise Lost("ended with status 9")
        return {"id": request["id"], "verdict": "ok", "by": list(self.options)}


@pytest.fixture
def ray(monkeypatch):
    """A module like Ray, whose actors are killed by requests that say so: the first time, or always."""
    made, killed = types.SimpleNamespace(actors=[], ended=[], starting=lambda actor: None), set()

    class RayError(Exception):
        pass

    class Actor:
        def __init__(self, kind, given):
            self.its = kind(*given)
            self.ask = types.SimpleNamespace(remote=lambda *words: (self, words))
            self.ready = types.SimpleNamespace(remote=lambda: (self, ()))
            made.actors.append(self)

    def get(waiting, timeout):
        actor, words = waiting
        if not words:  # asked whether it is there
            return made.starting(actor)
        request, seconds = words
        assert timeout > seconds
        if actor in made.ended:
            raise RayError("the actor is dead")
        if request.get("does") == "dies" or (
            request.get("does") == "dies once" and request["id"] not in killed
        ):
            killed.add(request["id"])
            raise RayError("the actor died\nmore of it")
        return actor.its.ask(request, seconds)

    module = types.SimpleNamespace(
        remote=lambda **_: lambda kind: types.SimpleNamespace(remote=lambda *given: Actor(kind, given)),
        get=get,
        kill=made.ended.append,
        exceptions=types.SimpleNamespace(RayError=RayError),
        cluster_resources=lambda: {"CPU": 3.0},
    )
    monkeypatch.setitem(sys.modules, "ray", module)
    monkeypatch.setattr(pool, "Judge", Judge)
    return made


def requests(count: int, **does: str) -> list[dict]:
    return [{"id": n, "does": does.get(f"at{n}", ""), "text": ""} for n in range(count)]


def test_each_once_in_order_by_as_many_as_there_are_processors(ray):
    said = list(judge_all(requests(20), options=["--seconds=5"]))
    assert [one["id"] for one in said] == list(range(20)) and said[0]["by"] == ["--seconds=5"]
    assert 1 <= len(ray.actors) <= 3 and ray.ended == ray.actors


def test_lost_actors(ray):
    said = list(judge_all(requests(6, at1="dies once", at2="dies", at3="lost"), jobs=2))
    assert [one["verdict"] for one in said] == ["ok", "ok", "incomplete", "incomplete", "ok", "ok"]
    assert "the actor died" in said[2]["findings"][0]["text"] and "more" not in said[2]["findings"][0]["text"]
    assert "status 9" in said[3]["findings"][0]["text"] and set(ray.ended) == set(ray.actors)


def test_an_actor_that_cannot_start_ends_all_with_the_reason(ray):
    def starting(actor):
        error = sys.modules["ray"].exceptions.RayError(
            "the actor died\nModuleNotFoundError: No module named 'cuffi'"
        )
        error.actor_init_failed = True
        raise error

    ray.starting = starting
    with pytest.raises(
        RuntimeError, match="a judge cannot start: ModuleNotFoundError: No module named 'cuffi'"
    ):
        list(judge_all(requests(20), jobs=2))
    assert len(ray.actors) <= 3


def test_an_actor_that_is_killed_while_it_starts_is_no_try_of_a_candidate(ray):
    def starting(actor):
        if len(ray.actors) < 6:
            raise sys.modules["ray"].exceptions.RayError("the actor died")

    ray.starting = starting
    assert [one["verdict"] for one in judge_all(requests(3), jobs=1)] == ["ok"] * 3 and len(ray.actors) == 6


def test_a_file_of_answers_goes_on(ray, tmp_path):
    first = judge_all(requests(9), jobs=1, to=tmp_path / "answers")
    assert [next(first)["id"] for _ in range(3)] == [0, 1, 2]
    first.close()
    assert [one["id"] for one in judge_all(requests(9), jobs=2, to=tmp_path / "answers")] == list(range(3, 9))


TEXT = """__global__ void k(int* x) { x[0] = threadIdx.x; }
int main() { int* x; cudaMalloc(&x, 4); k<<<1, %d>>>(x); cudaDeviceSynchronize(); }
"""


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="ray is not installed")
def test_with_ray_itself():
    """Actors that are killed."""
    ray = importlib.import_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        answers = judge_all([{"id": n, "text": TEXT % (1 + n % 2)} for n in range(12)])
        said = [next(answers)]
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            if b"ray::Host" in process.read_bytes():
                os.kill(int(process.parent.name), signal.SIGKILL)
        said += list(answers)
    finally:
        ray.shutdown()
    assert [(one["id"], one["verdict"]) for one in said] == [
        (n, "race" if n % 2 else "ok") for n in range(12)
    ]
