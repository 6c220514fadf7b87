"""Locks: who holds one is told, once, and whoever waits gets it."""

import os
import subprocess
import sys

import pytest
from support.typed import not_none

from cuffi.loading import locks

# Takes the lock, says so, and keeps it until its input ends. Its child keeps it after that.
HOLDS = """
import fcntl, os, subprocess, sys
lock = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(lock, fcntl.LOCK_SH if sys.argv[2] == "shared" else fcntl.LOCK_EX)
if sys.argv[2] == "child":
    child = subprocess.Popen(["sleep", "60"], pass_fds=(lock,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    print(child.pid)
print("locked", flush=True)
sys.stdin.read()
"""


def holder(path, how="alone"):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    said = []
    while "locked" not in said:
        said.append(not_none(process.stdout).readline().strip())
        assert process.poll() is None
    return process, said


@pytest.fixture
def lock(tmp_path):
    made = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    yield made
    os.close(made)


def test_a_free_lock_waits_for_nobody(lock):
    locks.take(lock, pytest.fail)
    assert locks.holders(lock).startswith(f"process {os.getpid()} (")


def test_shared_locks_wait_for_nobody(lock, tmp_path):
    process, _ = holder(tmp_path / "lock", "shared")
    locks.take(lock, pytest.fail, shared=True)
    process.communicate()


@pytest.mark.parametrize("how", ["alone", "shared"])
def test_who_is_waited_for(lock, tmp_path, how):
    process, _ = holder(tmp_path / "lock", how)
    told = []

    def waiting(who):
        told.append(who)
        process.communicate()  # then it ends

    locks.take(lock, waiting)
    (who,) = told
    assert who.startswith(f"process {process.pid} ({sys.executable}"[:40]) and who.endswith(")"), who
    assert len(who) < 100


def test_the_children_of_a_process_that_has_ended(lock, tmp_path):
    process, said = holder(tmp_path / "lock", "child")
    process.communicate()
    told = []

    def waiting(who):
        told.append(who)
        os.kill(int(said[0]), 9)

    locks.take(lock, waiting)
    assert told == [f"the compilers of process {process.pid}, which has ended"]


def test_where_nothing_tells_who_holds_locks(lock, tmp_path, monkeypatch):
    process, _ = holder(tmp_path / "lock")
    monkeypatch.setattr(locks, "LOCKS", tmp_path / "no such file")
    assert locks.holders(lock) == "another process"
    process.communicate()
