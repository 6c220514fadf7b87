"""Python programs of make's recipes, in forks of the program that runs make."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import ROOT

from tools.make import forks

# Runs a shell's command as make, in a process of one thread.
RUNS = "import os, sys; from tools.make import forks; sys.exit(forks.call(['sh', '-c', sys.argv[1]], os.environ))"
# The same where no process can be made any more.
CANNOT = f"import os\n\n\ndef fork():\n    raise BlockingIOError(11, 'no process is left')\n\n\nos.fork = fork\n{RUNS}"
AS_IT_STANDS = '"$PYTHON" '
IN_A_FORK = '"$PYTHON" $CUFFI_FORK '
# Programs by what they do. Each ends as Python ends it.
PROGRAMS = {
    "words": "print(sys.argv[1:], os.getcwd(), os.environ['OWN'], file=sys.stderr)\n    return 0",
    "input": "print(sys.stdin.read().upper())\n    return 7",
    "bytes": "sys.stdout.buffer.write(os.fsencode(sys.argv[1]))",
    "text": "sys.exit('this is wrong')",
    "nothing": "sys.exit()",
    "error": "print('before')\n    raise ValueError('no such layer')",
    "killed": "os.kill(os.getpid(), 9)",
    "child": "return subprocess.run(['sh', '-c', 'echo child; exit 5']).returncode",
    "large": "print(len(os.environ['A0']) + len(os.environ['A2']))",
}


def run(folder, command: str, words: str = "", runs: str = RUNS, **more: str) -> subprocess.CompletedProcess:
    """The command, `module` being a program of the folder, where it runs."""
    environment = (
        os.environ | {"PYTHON": sys.executable, "PYTHONPATH": f"{ROOT}:{folder}", "OWN": "mine"} | more
    )
    text = f"cd {folder}; OWN='a b'; export OWN; {command}-m {words}"
    return subprocess.run(
        [sys.executable, "-c", runs, text],
        cwd=ROOT, capture_output=True, env=environment, input=b"given", timeout=60)  # fmt: skip


@pytest.fixture
def programs(tmp_path):
    (tmp_path / "tools" / "make").mkdir(parents=True)  # make's folder has the client
    (tmp_path / "tools" / "make" / "ask_fork.py").write_bytes((ROOT / forks.CLIENT).read_bytes())
    for name, does in PROGRAMS.items():
        text = f"import os, subprocess, sys\n\n\ndef main():\n    {does}\n"
        (tmp_path / f"p_{name}.py").write_text(
            f"{text}\n\nif __name__ == '__main__':\n    sys.exit(main())\n"
        )
    return tmp_path


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_fork_ends_as_the_program_does(programs, name):
    large = {f"A{i}": "x" * 100_000 for i in range(3)} if name == "large" else {}
    words = f"p_{name} 'one word' '' \"$(printf 'gr\\366\\303\\237')\""
    forked, plain = (run(programs, way, words, **large) for way in (IN_A_FORK, AS_IT_STANDS))
    assert forked.stdout == plain.stdout
    last = [done.stderr.decode(errors="replace").splitlines()[-1:] for done in (forked, plain)]
    if name == "killed":  # the shell says so of the program alone
        assert forked.returncode == 1
        assert plain.returncode == 137
    else:
        assert last[0] == last[1]
        assert forked.returncode == plain.returncode


def test_it_is_a_fork_of_the_program_that_runs_make(programs):
    (programs / "parent.py").write_text("import os\n\n\ndef main():\n    print(os.getppid(), os.getpid())\n")
    done = run(programs, "sh -c 'echo $PPID' && for i in 1 2; do \"$PYTHON\" $CUFFI_FORK -m parent; done; : ")
    first, *forked = done.stdout.decode().splitlines()
    parents, own = zip(*map(str.split, forked), strict=True)
    assert parents[0] == parents[1] != first
    assert own[0] != own[1]


def test_a_program_without_main_runs_as_it_stands(programs):
    (programs / "bare.py").write_text(
        "import sys\n\nif __name__ == '__main__':\n    print('bare', *sys.argv[1:])\n"
    )
    assert run(programs, IN_A_FORK, "bare 1").stdout == b"bare 1\n"
    assert b"No module named none_such" in run(programs, IN_A_FORK, "none_such").stderr


def test_nobody_answers(programs):
    """The command of a make that has ended, as somebody may run it again."""
    done = run(programs, '"$PYTHON" -I -S tools/make/ask_fork.py 77 ', "p_words 1")
    assert (done.returncode, done.stderr.split(b"]")[0]) == (0, b"['1'")


def test_no_fork_can_be_made(programs):
    """Who waits for one ends with an error, and the next program runs as it stands; this says why."""
    twice = '"$PYTHON" $CUFFI_FORK -m p_words 1; echo $?; "$PYTHON" $CUFFI_FORK '
    done = run(programs, twice, "p_words 2", runs=CANNOT)
    assert done.stdout == b"1\n"
    assert b"['2']" in done.stderr
    assert b"BlockingIOError: [Errno 11] no process is left" in done.stderr


def test_a_fork_ends_with_its_make(programs):
    """A client is killed, and make ends while the fork still works: nothing of it is left, and nobody waits for it."""
    (programs / "sleeps.py").write_text(
        "import os, time\n\n\ndef main():\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(60)\n"
    )
    start = time.monotonic()
    wait = (
        '{ "$PYTHON" $CUFFI_FORK -m sleeps & }; while ! [ -s pid ]; do sleep 0.05; done; kill -9 $!; exit 4; '
    )
    assert run(programs, wait).returncode == 4
    assert time.monotonic() - start < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((programs / "pid").read_text()), 0)


def test_only_a_process_of_one_thread_forks(monkeypatch):
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    assert not forks.possible()
    end.set()
    thread.join()
    monkeypatch.setattr(os, "listdir", lambda path: ["1"])
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # another test's asyncio may have set it
    try:
        assert forks.possible()
        signal.signal(signal.SIGCHLD, lambda *_: None)
        assert not forks.possible()  # somebody waits for the children of this process
    finally:
        signal.signal(signal.SIGCHLD, before or signal.SIG_DFL)


@pytest.mark.parametrize("forks_are_possible", [True, False])
def test_the_word_of_somebody_else(programs, forks_are_possible):
    """CUFFI_FORK in the surroundings is no part of a recipe's command."""
    hides = (
        ""
        if forks_are_possible
        else "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start(); "
    )
    done = run(programs, IN_A_FORK, "p_words 1", hides + RUNS, CUFFI_FORK="-c wrong")
    assert done.returncode == 0 and b"wrong" not in done.stderr
