"""Many judgements: each once, in order, whatever becomes of the judges."""

import json
import os
import random
import signal
import threading
import time

import pytest
from support.workshop import FIXTURES

from cuffi import judge as command
from cuffi.judging import pool
from cuffi.judging.pool import Judge, judge_all

# Answers with what it is asked; ends, sleeps or prints nonsense if a candidate says so.
FAKE = """import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    does = asked.get("text", "")
    if does == "ends": os._exit(9)
    if does.startswith("/") and not os.path.exists(does):
        open(does, "w").close()
        os._exit(9)
    if does == "sleeps": time.sleep(600)
    time.sleep(asked.get("seconds", 0))
    said = {"id": asked["id"], "verdict": "ok", "status": 0, "by": os.getpid()}
    print("no json" if does == "nonsense" else json.dumps(said), flush=True)
"""


@pytest.fixture(autouse=True)
def fake(tmp_path, monkeypatch):
    (tmp_path / "fake.py").write_text(FAKE)
    monkeypatch.setattr(Judge, "command", (str(tmp_path / "fake.py"),))


def requests(count: int, **more) -> list[dict]:
    return [{"id": number, "files": ["k.cu"]} | more for number in range(count)]


def test_each_once_and_in_order():
    asked = requests(30)
    asked[0]["seconds"] = 0.3  # later ones end sooner
    said = list(judge_all(asked, 3))
    assert [one["id"] for one in said] == list(range(30)) and len({one["by"] for one in said}) == 3


@pytest.mark.parametrize(
    ("text", "why"), [("ends", "status 9"), ("sleeps", "within 0.5 s"), ("nonsense", "3 judges")]
)
def test_a_candidate_that_loses_its_judges_is_told(text, why):
    asked = requests(4)
    asked[1]["text"] = text
    said = list(judge_all(asked, 2, seconds=0.5 if text == "sleeps" else 60))
    assert [one["verdict"] for one in said] == ["ok", "incomplete", "ok", "ok"] and said[1]["id"] == 1
    assert why in said[1]["findings"][0]["text"]


def test_a_judge_that_is_lost_once_is_replaced(tmp_path):
    asked = requests(3)
    asked[1]["text"] = str(tmp_path / "was here")
    assert [one["verdict"] for one in judge_all(asked, 1)] == ["ok"] * 3


def test_judges_that_are_killed_at_random(monkeypatch):
    """20 times: nothing is lost, and nothing is there twice."""
    living: list[int] = []
    made = Judge.__init__

    def noted(self, options=()):
        made(self, options)
        living.append(self.process.pid)

    monkeypatch.setattr(Judge, "__init__", noted)
    monkeypatch.setattr(pool, "TRIES", 100)
    stopped, killed = threading.Event(), []

    def kills():
        chance = random.Random(1)
        while not stopped.is_set() and len(killed) < 20:
            time.sleep(0.05)
            if living:
                killed.append(chance.choice(living[-3:]))
                try:
                    os.kill(killed[-1], signal.SIGKILL)
                except ProcessLookupError:
                    killed.pop()

    killer = threading.Thread(target=kills)
    killer.start()
    said = [one["id"] for one in judge_all(requests(300, seconds=0.02), 3)]
    stopped.set()
    killer.join()
    assert said == list(range(300)) and len(killed) >= 5


def test_a_pool_that_was_killed_goes_on(tmp_path):
    file = tmp_path / "answers"
    first = judge_all(requests(20), 2, to=file)
    assert [next(first)["id"] for _ in range(5)] == [0, 1, 2, 3, 4]
    first.close()
    with open(file, "a") as opened:
        opened.write('{"id": 5, "verd')  # as it was killed
    assert [one["id"] for one in judge_all(requests(20), 2, to=file)] == list(range(5, 20))
    assert [json.loads(line)["id"] for line in file.read_text().splitlines()] == list(range(20))


def test_no_more_requests_are_read_than_judges_need():
    read = []

    def endless():
        for number in range(10**6):
            read.append(number)
            yield {"id": number, "files": []}

    answers = judge_all(endless(), 2)
    next(answers)
    answers.close()
    assert len(read) <= 2 * pool.AHEAD + 1


def test_the_command(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(Judge, "command", ("-m", "cuffi.judge", "--resident"))
    (tmp_path / "none.cu").write_text("int f();\n")
    files = [str(tmp_path / "none.cu"), str(FIXTURES / "judge" / "missing_atomic.cu")]
    assert command.main([*files, "--jobs=2", "--seconds=30"]) == 1
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["verdict"] for one in said] == ["no-kernel", "race"] and [
        one["files"][0] for one in said
    ] == files
