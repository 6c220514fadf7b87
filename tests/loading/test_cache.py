"""load's cache: nothing is built twice, and no incomplete, foreign or changed entry is loaded."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path, PurePosixPath

import pytest
import torch
from support import python_with_torch
from support.load import QUICK_FILL, loads, wait_for
from support.workshop import Fork

from cuffi import CaffeBuildError, CaffeRuntimeError, load_inline
from cuffi.loading import loaded, recipe
from cuffi.loading.cache import Entry, for_make, subfolder
from cuffi.loading.cache import folder as cache_folder
from cuffi.loading.recipe import core_in

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
    wait_for(lambda: compiler.starts, processes[0])
    time.sleep(0.5)
    compiler.hold.unlink()
    for process in processes:
        output, error = process.communicate()
        assert output == "3.0 3.0 3.0\n", error
    assert compiler.compiled("fills.cu.cpp") == 1


def test_a_killed_process_leaves_nothing_harmful(own_cache, compiler):
    compiler.hold.touch()
    process = Fork(loads(4))
    wait_for(lambda: compiler.starts, process)
    process.send_signal(signal.SIGKILL)
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
    entry = Entry("fills", kept.name.removeprefix("fills-"), PurePosixPath("fills"))
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


@pytest.mark.parametrize(("mode", "refused"), [(0o777, True), (0o775, True), (0o1777, False), (0o755, False)])
@pytest.mark.parametrize("levels", [1, 2])
def test_a_folder_above_the_cache_that_others_may_write_to(tmp_path, monkeypatch, mode, refused, levels):
    above = tmp_path / "above"
    cache = above / "/".join(["between"] * (levels - 1)) / "cuffi"
    cache.mkdir(parents=True)
    cache.chmod(0o700)
    above.chmod(mode)
    monkeypatch.setenv("CUFFI_CACHE", str(cache))
    if refused:
        wanted = rf"others may write to {above}, above it \(mode {mode:o}\)"
        with pytest.raises(CaffeRuntimeError, match=wanted) as raised:
            cache_folder()
        assert "Set CUFFI_CACHE to a folder of your own" in str(raised.value)
    else:
        assert cache_folder() == cache


def test_a_link_to_the_cache_is_followed_to_the_folders_above_it(tmp_path, monkeypatch):
    (tmp_path / "open" / "cuffi").mkdir(parents=True, mode=0o700)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open" / "cuffi")
    monkeypatch.setenv("CUFFI_CACHE", str(tmp_path / "link"))
    with pytest.raises(CaffeRuntimeError, match=f"others may write to {tmp_path}/open, above it"):
        cache_folder()


def test_a_folder_of_somebody_else_above_the_cache(own_cache, monkeypatch):
    if os.geteuid():
        pytest.skip("only root can give a folder away")
    above = own_cache / "above"
    (above / "cuffi").mkdir(parents=True, mode=0o700)
    os.chown(above, 12345, -1)
    monkeypatch.setenv("CUFFI_CACHE", str(above / "cuffi"))
    with pytest.raises(CaffeRuntimeError, match=f"{above}, above it, belongs to user 12345"):
        cache_folder()


@pytest.mark.parametrize("umask", [0o002, 0o000])
def test_nobody_else_may_write_to_an_entry(own_cache, compiler, umask):
    own_cache.chmod(0o755)
    before = os.umask(umask)
    try:
        load_inline("fills", QUICK_FILL.format(value=7))
        subfolder("proto-x")
    finally:
        os.umask(before)
    modes = {p: stat.S_IMODE(p.lstat().st_mode) for p in own_cache.rglob("*") if not p.is_symlink()}
    assert not {p: oct(mode) for p, mode in modes.items() if mode & 0o022}
    assert {oct(modes[p]) for p in own_cache.iterdir() if p.is_dir()} == {"0o700"}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755])
def test_an_entry_that_others_may_enter_is_built_again(kept, mode):
    (library,) = kept.glob("**/_host.abi3.so")
    kept.chmod(mode)
    before = library.stat().st_ino
    with pytest.warns(UserWarning, match="others may change .*fills-.*; it is built again"):
        module = load_inline("fills", QUICK_FILL.format(value=1))
    assert kept.stat().st_mode & 0o777 == 0o700 and library.stat().st_ino != before
    top = torch.zeros(1)
    module.fill(top, 1)
    assert top.item() == 1


def test_the_toolkit_s_objects_that_others_may_change_are_not_linked(own_cache):
    core = Path(core_in(own_cache))
    (core / "host").mkdir()
    core.chmod(0o777)
    assert Path(core_in(own_cache)).stat().st_mode & 0o777 == 0o700 and not (core / "host").exists()


def stray_file(path):
    path.write_text("")


@pytest.mark.parametrize("make", [stray_file, Path.mkdir, lambda path: path.symlink_to("/nowhere")])
@pytest.mark.parametrize("suffix", ["", ".lock"])
def test_a_stray_file_of_an_entrys_name_does_not_block_it(kept, make, suffix):
    shutil.rmtree(kept)
    stray = kept.with_name(kept.name + suffix)
    stray.unlink(missing_ok=True)
    make(stray)
    module = load_inline("fills", QUICK_FILL.format(value=1))
    top = torch.zeros(1)
    module.fill(top, 1)
    assert top.item() == 1 and (kept / "complete").is_file()


@pytest.mark.parametrize("name", ["a b", "a$b", "a#b", "a:b", "-a", "ä"])
def test_a_cache_in_a_path_in_which_make_cannot_work(own_cache, tmp_path, monkeypatch, name):
    cache = own_cache / name
    monkeypatch.setenv("CUFFI_CACHE", str(cache))
    module = load_inline("fills", QUICK_FILL.format(value=1))
    top = torch.zeros(1)
    module.fill(top, 1)
    assert top.item() == 1 and cache in module.layer.folder.parents
    for_make(cache).unlink()  # a link in /tmp may be removed at any time
    loaded._imported.clear()
    assert cache in load_inline("fills", QUICK_FILL.format(value=1)).layer.folder.parents


def test_an_error_in_such_a_path_names_the_users_line(own_cache, monkeypatch):
    monkeypatch.setenv("CUFFI_CACHE", str(own_cache / "a b"))
    with pytest.raises(CaffeBuildError) as raised:
        load_inline("fills", QUICK_FILL.format(value="no_such_name"))
    assert "cuffi" not in str(raised.value), raised.value


def test_a_link_for_make_that_somebody_else_made(own_cache, tmp_path, monkeypatch):
    """Nothing is built through it, because its owner may turn it."""
    cache = own_cache / "a b"
    cache.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    link = for_make(cache)
    assert link.parent == tmp_path and link.resolve() == cache
    link.unlink()
    link.symlink_to("/nowhere")
    assert for_make(cache).resolve() == cache  # one's own is mended
    link.unlink()
    link.mkdir()
    assert for_make(cache).parent != tmp_path
    tmp_path.chmod(0o777)
    link.rmdir()
    elsewhere = for_make(cache)
    assert elsewhere.parent != tmp_path
    assert for_make(cache) == elsewhere  # the link's place counts, not the cache's
    elsewhere.unlink()


@pytest.mark.parametrize(
    ("folder", "why"),
    [("/proc/cuffi", "No such file"), ("/dev/null/cuffi", "Not a directory"), ("/dev/null", "File exists")],
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
except cuffi.CaffeRuntimeError as error:
    print(error)
"""


def test_a_disk_from_which_nothing_is_run(tmp_path, monkeypatch):
    """Told before anything is built: the loader's own words are `failed to map segment`."""
    monkeypatch.setenv("CUFFI_CACHE", str(tmp_path / "disk"))
    (tmp_path / "source.cu").write_text(QUICK_FILL.format(value=1))
    done = mounted(tmp_path / "disk", "noexec,mode=700", FAILS.format(source=tmp_path / "source.cu"))
    assert f"the cache folder {tmp_path}/disk cannot be used: no library in it can be run" in done.stdout, (
        done.stderr
    )


def test_a_home_that_is_read_only(tmp_path, monkeypatch):
    monkeypatch.delenv("CUFFI_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "source.cu").write_text(QUICK_FILL.format(value=1))
    done = mounted(tmp_path / "home", "ro", FAILS.format(source=tmp_path / "source.cu"))
    wanted = f"the cache folder {tmp_path}/home/.cache/cuffi cannot be used: Read-only file system. Set CUFFI_CACHE"
    assert wanted in done.stdout, done.stderr


# No room for the sources; none for what is made of them; for the object; for what it is linked with.
@pytest.mark.parametrize("size", ["4k", "96k", "400k", "1500k", "5m"])
def test_a_full_disk(tmp_path, monkeypatch, size):
    monkeypatch.setenv("CUFFI_CACHE", str(tmp_path / "disk"))
    (tmp_path / "source.cu").write_text(QUICK_FILL.format(value=1))
    done = mounted(tmp_path / "disk", f"size={size},mode=700", FAILS.format(source=tmp_path / "source.cu"))
    wanted = (
        f"load: the cache folder {tmp_path}/disk cannot be used: No space left on device. Set CUFFI_CACHE"
    )
    assert done.stdout.startswith(wanted) and done.stdout.count("\n") == 1, done.stdout + done.stderr


# ------------------------------------------------------------------------------------------ progress


def test_a_failing_source_leaves_no_entry(own_cache):
    with pytest.raises(CaffeBuildError):
        load_inline("fills", QUICK_FILL.format(value="no_such_name"))
    assert [p.suffix for p in own_cache.glob("fills-*")] == [".lock"]
