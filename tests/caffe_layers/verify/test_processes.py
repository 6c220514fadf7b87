"""make verify: a layer that crashes, or never ends."""

import re
import subprocess
import sys
import time
from pathlib import Path


def test_crash(verify):
    """Guesses that crash are left out; a crash on given shapes is reported."""
    found = verify("SquareThatCrashes")
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert "guessed: SquareThatCrashes on 5,4" in found.text
    given = verify("SquareThatCrashes", "--shapes", "2,3,4,5")
    assert given.status == 1 and given.verdicts == {"CRASHED"}, given.text
    # The guard of a call made the fault an error, or it was in code of another library.
    assert re.search("used memory that is not there|SIGSEGV", given.text), given.text
    given = verify("SquareThatCrashes", "--shapes", "2,3,4")
    assert given.status == 1 and given.verdicts == {"CRASHED"} and "SIGABRT" in given.text, given.text
    # The C library's words, which stood alone on the screen
    assert re.search(r"ends its process: .*, with these words: .*\bfree\b", given.text), given.text


def test_no_end(crooked, verify, monkeypatch):
    """A guess that never ends is left out, and its process is ended."""
    monkeypatch.setattr("cuffi.caffe_layers.verify.processes.PATIENCE", 2)
    found = verify("SquareInCircles")
    assert found.status == 0 and "guessed: SquareInCircles on 5,4" in found.text, found.text
    command = [
        sys.executable,
        "-m",
        "cuffi.caffe_layers.verify",
        "--layers-dir",
        crooked,
        "--type",
        "SquareInCircles",
    ]
    with subprocess.Popen([*command, "caffe_crooked"], stdout=subprocess.DEVNULL) as parent:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        give_up = time.monotonic() + 60
        while not (child := children.read_text().split()) and time.monotonic() < give_up:
            time.sleep(0.1)
        parent.kill()
    status = Path(f"/proc/{child[0]}/stat")
    while alive(status) and time.monotonic() < give_up:
        time.sleep(0.1)
    assert not alive(status)


def alive(status: Path) -> bool:
    try:
        return status.read_text().rpartition(")")[2].split()[0] not in "ZX"  # ended, and not yet asked about
    except FileNotFoundError:
        return False
