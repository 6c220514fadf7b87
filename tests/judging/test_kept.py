"""What the judge keeps is its user's alone, and made anew if somebody has changed it."""

import os
import threading
import time

import pytest

from cuffi.judging import kept


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir(mode=0o700)
    monkeypatch.setenv("CUFFI_CACHE", str(tmp_path / "cache"))
    kept._of_this_process.cache_clear()
    return tmp_path / "cache"


def test_it_lies_in_the_cache_for_its_user_alone(cache):
    assert kept.folder() == cache / "judge" and kept.folder().stat().st_mode & 0o777 == 0o700
    with kept.of_a_run() as place:
        assert place.startswith(str(cache / "judge" / "run-")) and os.stat(place).st_mode & 0o777 == 0o700
    assert not os.path.exists(place)


def test_a_cache_that_others_can_change_is_not_used(cache, capsys):
    cache.chmod(0o777)
    other = kept.folder()
    assert not other.is_relative_to(cache) and other.stat().st_mode & 0o777 == 0o700
    assert "others may write to it" in capsys.readouterr().err and kept.folder() == other


def test_the_judge_s_folder_that_others_can_change_is_made_anew(cache):
    (kept.folder() / "file").write_text("")
    (cache / "judge").chmod(0o777)
    assert not (kept.folder() / "file").exists() and kept.folder().stat().st_mode & 0o777 == 0o700


def test_what_was_changed_is_not_whole(tmp_path):
    file, other = tmp_path / "launch.o", tmp_path / "judge.h"
    file.write_bytes(b"code"), other.write_bytes(b"header")
    assert not kept.is_whole(tmp_path)
    kept.complete(tmp_path, [file.name, other.name])
    assert kept.is_whole(tmp_path)
    state = file.stat()
    file.write_bytes(b"evil")  # as long, and as old
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert not kept.is_whole(tmp_path)
    kept.complete(tmp_path, [file.name, other.name])
    other.unlink()
    assert not kept.is_whole(tmp_path)
    (tmp_path / "complete").write_text("{}")
    assert not kept.is_whole(tmp_path)


def test_one_at_a_time_makes_what_has_a_name(cache):
    """Threads here; processes are held by the same lock."""
    inside, most = [], []

    def makes():
        with kept.only_one("x"):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    threads = [threading.Thread(target=makes) for _ in range(5)]
    for thread in threads:
        thread.start()
    with kept.only_one("y"):  # another name waits for nobody
        for thread in threads:
            thread.join(20)
    assert most == [1] * 5
    assert {lock.stat().st_mode & 0o777 for lock in (cache / "judge").glob("*.lock")} == {0o600}
