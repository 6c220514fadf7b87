"""Old entries of the cache: which go, which stay."""

import fcntl
import os
import subprocess
import sys
import time

import pytest
from support.load import QUICK_FILL
from support.typed import not_none

from cuffi import load_inline
from cuffi.loading import loaded, sweep

KEY = "0123456789abcdef" * 2
HOLDS = """import fcntl, os, sys
f = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(f, fcntl.LOCK_SH)
print(1, flush=True)
input()"""


def entry(cache, name, days, size=1000):
    place = cache / name
    place.mkdir()
    (place / "complete").write_bytes(b"x" * size)
    when = time.time() - days * sweep.DAY
    os.utime(place / "complete", (when, when))
    os.utime(place, (when, when))
    return place


def names(cache):
    return sorted(path.name for path in cache.iterdir() if path.is_dir())


def test_what_nobody_has_used_for_30_days_goes(tmp_path):
    for name, days in (
        (f"a-{KEY}", 31),
        (f"b-{KEY}", 29),
        ("core-0123456789abcdef", 40),
        ("core-1123456789abcdef", 2),
    ):
        entry(tmp_path, name, days)
    entry(tmp_path, "notes", 400)  # the user's
    (tmp_path / f"file-{KEY}").touch()
    gone = sweep.sweep(tmp_path, "complete")
    assert sorted(gone) == [f"a-{KEY}", "core-0123456789abcdef"]
    assert names(tmp_path) == [f"b-{KEY}", "core-1123456789abcdef", "notes"]
    entry(tmp_path, f"c-{KEY}", 50)
    assert not sweep.sweep(tmp_path, "complete")  # today it was done


def test_the_oldest_go_if_the_cache_is_too_large(tmp_path, monkeypatch):
    for name, days in ((f"a-{KEY}", 5), (f"b-{KEY}", 3), (f"c-{KEY}", 1)):
        entry(tmp_path, name, days, size=1 << 20)
    monkeypatch.setenv(sweep.VARIABLE, str(2.5 * (1 << 20) / 1e9))
    assert sweep.sweep(tmp_path, "complete") == [f"a-{KEY}"]
    (tmp_path / sweep.STAMP).unlink()
    monkeypatch.setenv(sweep.VARIABLE, "0.0000001")
    assert sweep.sweep(tmp_path, "complete") == [f"b-{KEY}"]  # the newest one stays
    monkeypatch.setenv(sweep.VARIABLE, "no number")
    assert sweep.most_bytes() == sweep.MOST_GIGABYTES * 1e9


@pytest.mark.parametrize("lock", ["beside", "lock", "lock.used"])
def test_what_a_build_uses_stays(tmp_path, lock):
    place = entry(tmp_path, f"a-{KEY}", 100)
    file = tmp_path / f"a-{KEY}.lock" if lock == "beside" else place / lock
    file.touch()
    os.utime(place, (1, 1))
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert not_none(process.stdout).readline() == "1\n"
    assert not sweep.sweep(tmp_path, "complete") and place.exists()
    process.communicate("\n")
    (tmp_path / sweep.STAMP).unlink()
    assert sweep.sweep(tmp_path, "complete") == [place.name]


def test_a_load_marks_its_entry(own_cache, monkeypatch):
    monkeypatch.setenv("NVCC", "")
    place = load_inline("fills", QUICK_FILL.format(value=1)).layer.folder.parents[1]
    old = time.time() - 20 * sweep.DAY
    os.utime(place / "complete", (old, old))
    loaded._imported.clear()
    load_inline("fills", QUICK_FILL.format(value=1))
    assert time.time() - (place / "complete").stat().st_mtime < sweep.DAY
    assert (own_cache / sweep.STAMP).exists()


def test_a_lock_of_ones_own_is_released(tmp_path):
    place = entry(tmp_path, f"a-{KEY}", 1)
    (tmp_path / f"a-{KEY}.lock").touch()
    with sweep.unused(place) as free:
        assert free
    file = os.open(tmp_path / f"a-{KEY}.lock", os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(file)
