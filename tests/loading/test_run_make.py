"""make as load runs it: Ctrl-C, and the line of progress."""

import contextlib
import fcntl
import os
import pty
import signal
import sys
import time
from pathlib import Path

import pytest
from support.load import loads, wait_for
from support.workshop import CORE, Fork

import cuffi
from cuffi.loading import recipe, run_make
from cuffi.old_torch.ffi.build_extension import create_extension

pytestmark = pytest.mark.usefixtures("cache")


SOURCE = "__global__ void twice(float* x) { *x *= 2; }"


def test_a_missing_compiler_is_one_line(own_cache, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(cuffi.CaffeRuntimeError) as raised:
        cuffi.load_inline("twice", SOURCE)
    said = "load: there is no 'no-such-compiler': building a layer needs make and a C++ compiler"
    assert str(raised.value) == said


@pytest.mark.parametrize("writes", [True, False])
def test_bytecode_lies_in_the_cache(own_cache, monkeypatch, writes):
    """Whatever Python is told. The toolkit's folder may be somebody else's."""
    monkeypatch.undo()
    monkeypatch.setenv("CUFFI_CACHE", str(own_cache))
    monkeypatch.setattr(recipe, "core_in", lambda cache: CORE.core)
    monkeypatch.setattr(sys, "dont_write_bytecode", not writes)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "" if writes else "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    cuffi.load_inline("twice", SOURCE, backends="host")
    kept = {file.name.partition(".")[0] for file in (own_cache / "bytecode").rglob("*.pyc")}
    assert {"inline", "build", "to_host", "link"} <= kept
    assert (own_cache / "bytecode").stat().st_mode & 0o777 == 0o700


def test_each_door_says_that_make_is_missing(own_cache, monkeypatch, tmp_path):
    """Also those that prepare their build without recipe.py."""
    (tmp_path / "a.c").write_text("int a(void) { return 1; }\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    extension = create_extension("_ext.a", headers=[], sources=["a.c"])
    for build in (
        lambda: cuffi.load_inline("twice", SOURCE),
        lambda: cuffi.load_inline("one", "int one() { return 1; }", functions="one"),
        extension.build,
    ):
        with pytest.raises(cuffi.CaffeRuntimeError, match="there is no 'make'"):
            build()


@pytest.mark.parametrize("lacking", ["cffi", "tree-sitter tree-sitter-cuda", "pycparser"])
def test_missing_packages_are_one_line(own_cache, monkeypatch, lacking):
    def version(name: str) -> str:
        if name in lacking.split():
            raise run_make.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(run_make, "version", version)
    with pytest.raises(cuffi.CaffeRuntimeError) as raised:
        cuffi.load_inline("twice", SOURCE)
    said = f"load: building a layer needs Python packages that are missing: pip install {lacking}"
    assert str(raised.value) == said
    assert not [p for p in own_cache.glob("twice-*") if p.is_dir()]


def test_ctrl_c_stops_the_compilers(own_cache, compiler):
    compiler.hold.touch()
    # As in a terminal: a shell starts what runs in its background with Ctrl-C ignored, the suite for one.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = Fork(heard + loads(5))
    wait_for(lambda: compiler.starts, process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in error
    assert not [p for p in own_cache.glob("fills-*") if p.is_dir()]  # nothing is half-built
    # What held the lock is gone, or this would wait for ever.
    compiler.hold.unlink()
    assert Fork(loads(5)).communicate()[0] == "5.0 5.0 5.0\n"


def test_silent_where_nobody_looks(own_cache, capfd):
    exec(loads(8), {})
    assert tuple(capfd.readouterr()) == ("8.0 8.0 8.0\n", "")


def test_a_line_turns_in_a_terminal(own_cache):
    control, terminal = pty.openpty()
    process = Fork(loads(9), stderr=terminal)
    os.close(terminal)
    seen = b""
    while True:
        try:
            chunk = os.read(control, 4096)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(control)
    text = seen.decode()
    assert process.communicate()[0] == "9.0 9.0 9.0\n", text
    assert "building fills" in text and "CXX fills/fills.cu" in text
    assert text.endswith(" \r")  # the line is wiped


def below(group: int | None) -> list[str]:
    """The commands of the processes in a group, zombies left out."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            command = Path("/proc", entry, "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        if int(status[2]) == group and status[0] != "Z":
            found.append(command)
    return found


def wait_until(condition, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def group_of(command: str) -> int | None:
    """The group of a process whose command has this word."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if command in Path("/proc", entry, "cmdline").read_text().split("\0"):
                return os.getpgid(int(entry))
    return None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_make_and_its_compilers_end_with_the_process(own_cache, compiler, number):
    """However it ends: make, shells, compilers, and with them the lock."""
    compiler.hold.touch()
    process = Fork(
        f"import signal; signal.signal({int(number)}, signal.SIG_DFL)\n" * (number != 9) + loads(6)
    )
    wait_for(lambda: compiler.starts, process)
    (entry,) = (p for p in own_cache.glob("fills-*") if p.is_dir())
    group = group_of(f"BUILD={entry}/build")
    assert group is not None and len(below(group)) > 3
    process.send_signal(number)
    process.communicate()
    wait_until(lambda: not below(group))
    lock = os.open(entry.with_suffix(".lock"), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # free
    os.close(lock)


def test_a_build_leaves_no_process(own_cache, compiler):
    """Neither the guard nor a zombie of it."""
    before = children()
    exec(loads(7), {})
    assert children() == before


def children() -> set[str]:
    return {p for p in filter(str.isdigit, os.listdir("/proc")) if parent_of(p) == os.getpid()}


def parent_of(process: str) -> int | None:
    with contextlib.suppress(OSError):
        return int(Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[1])
    return None


def test_a_fork_does_not_keep_make_alive(own_cache, compiler):
    """A DataLoader's worker that began during a build, and outlives its process."""
    compiler.hold.touch()
    forks = f"""
import os, threading, time, signal
signal.signal(signal.SIGTERM, signal.SIG_DFL)
def fork():
    while not os.path.exists({str(compiler._starts)!r}):
        time.sleep(0.02)
    if not os.fork():
        time.sleep(30)
        os._exit(0)
threading.Thread(target=fork).start()
"""
    process = Fork(forks + loads(6))
    wait_for(lambda: compiler.starts, process)
    (entry,) = (p for p in own_cache.glob("fills-*") if p.is_dir())
    group = group_of(f"BUILD={entry}/build")
    time.sleep(0.5)  # it forks
    process.send_signal(signal.SIGTERM)
    process.communicate()
    wait_until(lambda: not below(group))


def told_by(process: Fork) -> str:
    """What the process has written to its errors so far."""
    return os.pread(process._texts[1].fileno(), 9999, 0).decode()


def test_a_long_wait_for_an_entry_is_told_where_nobody_looks(own_cache, compiler, monkeypatch):
    monkeypatch.setattr(run_make.Progress, "PATIENCE", 0.3)
    compiler.hold.touch()
    first = Fork(loads(6))
    wait_for(lambda: compiler.starts, first)
    second = Fork(loads(6))
    wait_until(lambda: "waits" in told_by(second), seconds=250)
    compiler.hold.unlink()
    first.communicate()
    error = second.communicate()[1]
    assert error.count("waits") == 1 and f"load: fills waits for process {first.pid} (" in error


@pytest.mark.xdist_group("the core's objects")  # both remove one that all workers share
def test_a_long_wait_for_the_toolkits_objects_is_told(own_cache, compiler, monkeypatch):
    monkeypatch.setattr(run_make.Progress, "PATIENCE", 0.3)
    exec(loads(5), {})
    core = Path(recipe.core_in(own_cache))
    for path in core.glob("host-*/host_launch.o"):
        path.unlink()
    lock = os.open(core / "lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    process = Fork(loads(7))
    wait_until(lambda: "waits" in told_by(process), seconds=250)
    fcntl.flock(lock, fcntl.LOCK_UN)  # the fork has the file open, too
    os.close(lock)
    out, error = process.communicate()
    assert out == "7.0 7.0 7.0\n", error
    assert (
        error.count("waits") == 1 and f"load: fills waits for another make, process {os.getpid()} (" in error
    )


@pytest.mark.xdist_group("the core's objects")  # both remove one that all workers share
def test_who_uses_the_toolkits_objects_hinders_nobody_who_adds_some(own_cache, compiler):
    """A build of minutes holds the shared lock. Another one that lacks an object builds it beside that."""
    exec(loads(5), {})
    core = Path(recipe.core_in(own_cache))
    for path in core.glob("host-*/host_launch.o"):
        path.unlink()
    lock = os.open(core / "lock.used", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_SH)
    out, error = Fork(loads(8)).communicate()
    os.close(lock)
    assert out == "8.0 8.0 8.0\n", error
