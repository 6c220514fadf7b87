"""The worker: a fork for each run, whatever a run does to it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT

from cuffi.judging import worker as module
from cuffi.judging.limits import Limits, run
from cuffi.judging.worker import Again

# A module whose main() does what its argument says; the worker imports no torch here.
RUNS = """import os, subprocess, sys, time
def main():
    exec(sys.argv[1])
    return 0
"""


@pytest.fixture
def again(tmp_path, monkeypatch):
    (tmp_path / "runs.py").write_text(RUNS)
    (tmp_path / "start.py").write_text(
        "import sys\nfrom cuffi.judging import worker\nworker.prepare = lambda: None\n"
        f"sys.path.insert(1, {str(tmp_path)!r})\nworker.main()\n"
    )
    started = subprocess.Popen

    def begins(words, **given):
        if words[1:3] == ["-m", "cuffi.judging.worker"]:
            words = [words[0], str(tmp_path / "start.py"), words[3]]
        return started(words, **given)

    monkeypatch.setattr(module.subprocess, "Popen", begins)
    made = Again(dict(os.environ) | {"PYTHONPATH": str(ROOT)})
    yield made
    if made.worker:
        made.worker.end()


def ran(again, code: str, tmp_path, **limits):
    return run("runs", [code], Limits(**limits), tmp_path, starts=again.start)


def test_status_output_and_environment(again, tmp_path, monkeypatch):
    monkeypatch.setenv("A_TOKEN", "abc")
    done = ran(
        again,
        "print(os.environ.get('A_TOKEN'), os.getcwd()); print(2, file=sys.stderr); sys.exit(5)",
        tmp_path,
    )
    assert (done.status, done.output, done.errors) == (5, f"None {os.getcwd()}\n", "2\n")
    assert ran(again, "sys.exit('words')", tmp_path).errors == "words\n"
    assert "KeyError: 3" in ran(again, "{}[3]", tmp_path).errors
    assert ran(again, "os.kill(os.getpid(), 11)", tmp_path).status == -11


def test_one_worker_and_a_process_for_each_run(again, tmp_path):
    code = "print(os.getpid(), os.environ.setdefault('KEPT', '0'), sys.modules.setdefault('own', 1))"
    said = [ran(again, code, tmp_path).output.split() for _ in range(2)]
    assert said[0][0] != said[1][0]
    first = again.worker
    ran(again, "sys.modules['json'] = None", tmp_path)
    assert ran(again, "import json; print(json.dumps(1))", tmp_path).output == "1\n" and again.worker is first


def test_of_the_functions_for_the_end_only_the_runs_own_are_called(again, tmp_path):
    """The others are torch's, and write to all of its memory."""
    end = "import ctypes; f = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)(lambda *_: os.write(1, {!r})); "
    end += "run = sys.modules.setdefault('kept', []); run.append(f); ctypes.CDLL(None).on_exit(f, None)"
    (tmp_path / "start.py").write_text(
        f"import os, sys\n{end.format(b'earlier')}\n{(tmp_path / 'start.py').read_text()}"
    )
    done = ran(again, end.format(b"later"), tmp_path)
    assert (done.status, done.output) == (0, "later")


def test_limits(again, tmp_path):
    began = time.time()
    assert ran(again, "time.sleep(60)", tmp_path, seconds=1).stopped == "time" and time.time() - began < 20
    code = "x = b'x' * (600 << 20); time.sleep(60)"
    assert ran(again, code, tmp_path, megabytes=300).stopped == "memory"


def gone(process: int) -> bool:
    """Within 10 s."""
    for _ in range(200):
        state = Path(f"/proc/{process}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


SLEEPER = "print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid, flush=True); "


@pytest.mark.parametrize("then", ["pass", "os.kill(os.getppid(), 9); time.sleep(600)", "time.sleep(600)"])
def test_what_a_run_started_ends_with_it(again, tmp_path, then):
    """Also if it kills the process between: then its children are the worker's."""
    done = ran(again, SLEEPER + then, tmp_path, seconds=2)
    assert gone(int(done.output))
    assert ran(again, "print(1)", tmp_path).output == "1\n"


def test_a_run_that_kills_its_worker_does_not_end_the_service(again, tmp_path, monkeypatch):
    """Without Landlock, which holds signals back."""
    monkeypatch.setattr("cuffi.judging.contained.version", lambda: 0)
    code = (
        "p = int(open(f'/proc/{os.getppid()}/stat').read().rpartition(') ')[2].split()[1]); "
        "os.kill(p, 9); time.sleep(9)"
    )
    assert ran(again, code, tmp_path, seconds=20).status == -9
    assert ran(again, "print(1)", tmp_path).output == "1\n"


def test_a_worker_ends_with_its_judge(again, tmp_path):
    ran(again, "pass", tmp_path)
    process = again.worker.process
    os.kill(process.pid, signal.SIGSTOP)
    again.worker._socket.close()
    os.kill(process.pid, signal.SIGCONT)
    assert process.wait(20) == 0


def test_many_at_once(again, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        done = list(
            pool.map(lambda n: ran(again, f"time.sleep(0.05); print({n})", tmp_path).output, range(12))
        )
    assert done == [f"{n}\n" for n in range(12)]


def test_the_module_imports_no_torch():
    code = "import cuffi.judging.worker, sys; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT) == b"False\n"
