"""load's cache: nothing is built twice, and no incomplete, foreign or changed entry is loaded."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from support import python_with_torch
from support.load import QUICK_FILL, loads, wait_for
from support.workshop import Fork

from cuffi import CaffeBuildError, CaffeRuntimeError, load_inline
from cuffi.loading import loaded, recipe
from cuffi.loading.cache import Entry

pytestmark = pytest.mark.usefixtures("cache")


def forget():
    """As in another process: nothing is imported yet."""
    loaded._imported.clear()


def test_a_hit_starts_nothing_and_is_quick(monkeypatch):
    load_inline("fills", QUICK_FILL.format(value=1))

    def refuse(*arguments, **options):
        raise AssertionError(f"a process was started: {arguments}")

    for module, starter in ((subprocess, "Popen"), (os, "posix_spawn"), (os, "fork"), (os, "system")):
        monkeypatch.setattr(module, starter, refuse)
    times = []
    for _ in range(5):
        forget()
        start = time.process_time()
        module = load_inline("fills", QUICK_FILL.format(value=1))
        times.append(time.process_time() - start)
    assert min(times) < 0.020, times
    top = torch.zeros(2)
    module.fill(top, 2)
    assert top.tolist() == [1, 1]


def test_ten_processes_build_once(own_cache, compiler):
    compiler.hold.touch()
    processes = [Fork(loads(3)) for _ in range(10)]
    wait_for(lambda: compiler.starts)
    time.sleep(0.5)
    compiler.hold.unlink()
    for process in processes:
        output, error = process.communicate()
        assert output == "3.0 3.0 3.0\n", error
    assert compiler.compiled("fills.cu.cpp") == 1


def test_a_killed_process_leaves_nothing_harmful(own_cache, compiler):
    compiler.hold.touch()
    process = Fork(loads(4))
    wait_for(lambda: compiler.starts)
    process.send_signal(signal.SIGKILL)  # SIGKILL: make and its compiler live on
    process.communicate()
    waiting = Fork(loads(4))
    time.sleep(1)
    assert waiting.poll() is None
    compiler.hold.unlink()
    out, error = waiting.communicate(timeout=120)
    assert out == "4.0 4.0 4.0\n", error


def test_a_library_that_was_tampered_with_is_built_again(kept):
    (library,) = kept.glob("**/_host.abi3.so")
    good = library.read_bytes()
    library.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.warns(UserWarning, match=r"_host\.abi3\.so is not what was built; it is built again"):
        module = load_inline("fills", QUICK_FILL.format(value=1))
    top = torch.zeros(1)
    module.fill(top, 1)
    assert top.item() == 1


def test_a_broken_record_is_no_hit(kept):
    entry = Entry("fills", kept.name.removeprefix("fills-"), "fills")
    assert entry.is_complete()
    for content in ("", "{", "{}", "[]", "[1]", '{"_host.abi3.so": 1}', '{"gone": ""}'):
        (kept / "complete").write_text(content)
        names_a_file = content.startswith('{"')
        with pytest.warns(UserWarning) if names_a_file else contextlib.nullcontext():
            assert not entry.is_complete(), content


def test_the_cache_folder_is_made_for_its_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(recipe, "make", lambda *given: None)
    monkeypatch.setenv("CUFFI_CACHE", str(tmp_path / "not" / "there"))
    load_inline("fills", QUICK_FILL.format(value=1))
    assert (tmp_path / "not" / "there").stat().st_mode & 0o777 == 0o700


def test_a_cache_folder_of_somebody_else(own_cache, monkeypatch):
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(
        CaffeRuntimeError, match=f"belongs to user {me}, this process is user {me + 1}"
    ) as raised:
        load_inline("fills", QUICK_FILL.format(value=1))
    assert "Set CUFFI_CACHE to a folder of your own" in str(raised.value)


def test_a_cache_folder_that_others_may_write_to(own_cache):
    own_cache.chmod(0o777)
    with pytest.raises(CaffeRuntimeError, match="others may write to it"):
        load_inline("fills", QUICK_FILL.format(value=1))


@pytest.mark.parametrize(
    ("folder", "why"),
    [("/proc/cuffi", "No such file"), ("/dev/null/cuffi", "Not a directory"), ("/tmp/with space", "spaces")],
)
def test_a_cache_folder_that_cannot_be(folder, why, monkeypatch):
    monkeypatch.setenv("CUFFI_CACHE", folder)
    there = os.path.exists(folder)
    with pytest.raises(CaffeRuntimeError, match=f"the cache folder {folder} cannot be used: .*{why}"):
        load_inline("fills", QUICK_FILL.format(value=1))
    assert os.path.exists(folder) == there


def mounted(folder: Path, options: str, script: str) -> subprocess.CompletedProcess:
    """Run a script with an empty file system with these options mounted on the folder, only for the script."""
    folder.mkdir(exist_ok=True)
    probe = ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs none {folder}"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    lies_there = MOUNTED.format(options=options, folder=folder)
    return python_with_torch.run([sys.executable, "-c", lies_there + script])


# What `unshare -rm mount` does: a user and file systems of this process's own.
MOUNTED = """
import ctypes, os, subprocess
maps = {{"uid_map": f"0 {{os.getuid()}} 1", "setgroups": "deny", "gid_map": f"0 {{os.getgid()}} 1"}}
assert ctypes.CDLL(None).unshare(0x10000000 | 0x00020000) == 0
for name, text in maps.items():
    with open(f"/proc/self/{{name}}", "w") as file:
        file.write(text)
subprocess.run(["mount", "-t", "tmpfs", "-o", "{options}", "none", "{folder}"], check=True)
"""
FAILS = """
import cuffi

try:
    cuffi.load_inline("fills", open("{source}").read())
except layers.CaffeRuntimeError as error:
    print(error)
"""


def test_a_home_that_is_read_only(tmp_path, monkeypatch):
    monkeypatch.delenv("CUFFI_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "source.cu").write_text(QUICK_FILL.format(value=1))
    done = mounted(tmp_path / "home", "ro", FAILS.format(source=tmp_path / "source.cu"))
    wanted = f"the cache folder {tmp_path}/home/.cache/cuffi cannot be used: Read-only file system. Set CUFFI_CACHE"
    assert wanted in done.stdout, done.stderr


@pytest.mark.parametrize("size", ["4k", "96k"])  # no room for the sources; none for what is made of them
def test_a_full_disk(tmp_path, monkeypatch, size):
    monkeypatch.setenv("CUFFI_CACHE", str(tmp_path / "disk"))
    (tmp_path / "source.cu").write_text(QUICK_FILL.format(value=1))
    done = mounted(tmp_path / "disk", f"size={size},mode=700", FAILS.format(source=tmp_path / "source.cu"))
    assert "No space left on device" in done.stdout, done.stdout + done.stderr


# ------------------------------------------------------------------------------------------ progress


def test_a_failing_source_leaves_no_entry(own_cache):
    with pytest.raises(CaffeBuildError):
        load_inline("fills", QUICK_FILL.format(value="no_such_name"))
    assert [p.suffix for p in own_cache.glob("fills-*")] == [".lock"]
