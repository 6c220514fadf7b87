"""A judged program ends at its limits, with all that it started."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT

from cuffi.judging import contained
from cuffi.judging.limits import Limits, run

PYTHON = sys.executable


def ran(code: str, tmp_path, **limits):
    return run(Path(PYTHON), ["-c", code], Limits(**limits), tmp_path)


def test_status_output_and_errors(tmp_path):
    done = ran("import sys; print(1); print(2, file=sys.stderr); sys.exit(5)", tmp_path)
    assert (done.status, done.output, done.errors, done.log) == (5, "1\n", "2\n", "")


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(60)"])
def test_time(code, tmp_path):
    began = time.time()
    done = ran(code, tmp_path, seconds=1)
    assert (done.status, done.stopped) == (None, "time") and time.time() - began < 20


def test_memory_and_files(tmp_path):
    code = "x = b'x' * (600 << 20); import time; time.sleep(60)"
    assert ran(code, tmp_path, megabytes=300).stopped == "memory"
    # Addresses alone are no memory.
    assert ran("import mmap; mmap.mmap(-1, 8 << 30)", tmp_path, megabytes=300).status == 0
    full = ran(f"open({str(tmp_path / 'f')!r}, 'wb').write(bytes(3 << 20))", tmp_path, file_megabytes=1)
    assert full.status != 0 and (tmp_path / "f").stat().st_size <= 1 << 20


def test_processes(tmp_path):
    code = "import subprocess as s, time; [s.Popen(['sleep', '60']) for _ in range(20)]; time.sleep(60)"
    began = time.time()
    assert ran(code, tmp_path, processes=10).stopped == "processes" and time.time() - began < 30


def ends(process: int) -> bool:
    """Within 5 s, or is killed here."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    os.kill(process, 9)
    return False


# Each prints the number of a process that sleeps.
DAEMON = """
import os, subprocess, sys, time
down, up = os.pipe()
if not os.fork():
    os.setsid()
    if not os.fork():
        os.setsid()
        sys.stdout.flush()
        os.write(up, b"%d" % os.getpid())
        time.sleep(600)
    os._exit(0)
print(os.read(down, 20).decode(), flush=True)
"""
STARTED = {
    "a child": "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)",
    "a session": "import subprocess as s; print(s.Popen(['sleep', '600'], start_new_session=True).pid)",
    "a daemon": DAEMON,
    "a daemon, and its program waits": DAEMON + "time.sleep(600)",
    "a daemon of a program that kills its parent": DAEMON + "os.kill(os.getppid(), 9); time.sleep(600)",
}


@pytest.mark.parametrize("code", STARTED.values(), ids=STARTED)
def test_what_the_program_started_ends_with_it(code, tmp_path):
    began = time.time()
    assert ends(int(ran(code, tmp_path, seconds=2).output)) and time.time() - began < 15


def test_processes_of_other_sessions_count(tmp_path):
    code = (
        "import subprocess as s, time\n"
        "for _ in range(40): print(s.Popen(['sleep', '60'], start_new_session=True).pid, flush=True)\n"
        "time.sleep(60)"
    )
    done = ran(code, tmp_path, processes=10)
    assert done.stopped == "processes" and all(ends(int(number)) for number in done.output.split())
    code = (
        "import os, time; os.fork() or (os.setsid(), [bytearray(600 << 20), time.sleep(60)]); time.sleep(60)"
    )
    assert ran(code, tmp_path, megabytes=300).stopped == "memory"


def test_a_large_output_is_cut(tmp_path):
    assert len(ran("print('x' * (3 << 20))", tmp_path).output) == 1 << 20


def test_a_judge_that_is_killed_ends_its_program(tmp_path):
    """SIGKILL, so that the judge cannot end it itself."""
    sleeper = (
        "import os, subprocess, time; other = subprocess.Popen(['sleep', '60'], start_new_session=True).pid; "
        f"open({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}} {{other}} '); time.sleep(60)"
    )
    call = f"run({PYTHON!r}, ['-c', {sleeper!r}], Limits(), {str(tmp_path)!r})"
    judge = f"from cuffi.judging.limits import Limits, run; {call}"
    with subprocess.Popen([PYTHON, "-c", judge], cwd=ROOT) as process:
        end, file = time.monotonic() + 30, tmp_path / "pid"
        while not (file.exists() and file.read_text().endswith(" ")) and time.monotonic() < end:
            time.sleep(0.01)
        program, daemon = map(int, file.read_text().split())
        assert Path(f"/proc/{daemon}").exists()
        process.kill()
    assert ends(program) and ends(daemon)


def test_a_program_cannot_kill_those_above_it(tmp_path):
    """Its parent, the judge, and what started the judge; nor read their environment, where tokens are."""
    code = """import os
def parent_of(n): return int(open(f'/proc/{n}/stat').read().rpartition(') ')[2].split()[1])
n, said = os.getppid(), []
while n > 1 and len(said) < 4:
    try: os.kill(n, 9 if n != 1 else 0); said.append('killed')
    except PermissionError: said.append('safe')
    try: open(f'/proc/{n}/environ').read(); said.append('read')
    except PermissionError: said.append('safe')
    n = parent_of(n)
print(*said)
"""
    if not contained.is_contained():
        pytest.skip("no Landlock that holds signals back")
    assert set(ran(code, tmp_path).output.split()) == {"safe"}


def test_a_program_that_kills_its_parent_does_not_kill_the_judge(tmp_path, monkeypatch):
    """Without Landlock, too."""
    monkeypatch.setattr(contained, "version", lambda: 0)
    assert ran("import os; os.kill(os.getppid(), 9)", tmp_path).status == -9


def test_a_program_changes_its_own_folder_alone(tmp_path, monkeypatch):
    if not contained.version():
        pytest.skip("no Landlock")
    kept, here = tmp_path / "kept", tmp_path / "here"
    kept.mkdir(), here.mkdir()
    monkeypatch.setattr(contained.tempfile, "gettempdir", lambda: str(here))
    monkeypatch.setattr(contained, "changeable", lambda own, more=(): [own, here, *more])
    code = f"""import os
def tries(what, *words):
    try: what(*words); return 'done'
    except OSError: return 'refused'
kept, here, own = {str(kept)!r}, {str(here)!r}, os.path.dirname(os.environ['CAFFE_RACES'])
print(tries(open, kept + '/a', 'a'), tries(os.mkdir, kept + '/b'), tries(os.remove, kept + '/c'))
print(tries(open, here + '/a', 'w'), tries(open, own + '/x', 'w'))
"""
    (kept / "c").write_text("")
    assert ran(code, tmp_path).output.split() == ["refused", "refused", "refused", "done", "done"]


def test_a_program_gets_no_tokens(tmp_path, monkeypatch):
    for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PATHS", "MY_PATH", "HF_TOKEN"):
        monkeypatch.setenv(name, "abc123")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    said = ran("import os; print(dict(os.environ))", tmp_path).output
    assert "abc123" not in said and "C.UTF-8" in said and "PATH" in said


def test_of_compilers_the_largest_counts(tmp_path):
    """Of processes with this name. A script's build starts one for each core."""
    hungry = "x = b'1' * (150 << 20); time.sleep(2)"
    two = f"import ctypes, os, time\nctypes.CDLL(None).prctl(15, {{name}}, 0, 0, 0)\nos.fork()\n{hungry}"
    assert ran(two.format(name="b'hungry'"), tmp_path, megabytes=250).stopped == "memory"
    assert ran(two.format(name="b'cc1plus'"), tmp_path, megabytes=250).stopped == ""
    assert ran(two.format(name="b'cc1plus'"), tmp_path, megabytes=100).stopped == "memory"
