"""Reading and writing of files."""

import os
import threading

import pytest

from tools import files


def test_read(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"\xef\xbb\xbfone\xef\xbb\xbf\xff")
    assert files.read(file) == "one\xef\xbb\xbf\xff" and len(files.read(str(file))) == 7
    assert files.read(file, "utf-8") == "one\ufeff\udcff"


def test_write(tmp_path):
    file = tmp_path / "deep" / "er" / "a"
    files.write(file, "\xff")
    assert file.read_bytes() == b"\xff"
    os.utime(file, (5, 5))
    files.write(file, b"\xff", if_changed=True)
    assert file.stat().st_mtime == 5
    files.write(file, b"\xff")
    assert file.stat().st_mtime > 5
    os.utime(file, (5, 5))
    files.write(file, b"other", if_changed=True)
    assert file.read_bytes() == b"other" and file.stat().st_mtime > 5
    assert [p.name for p in file.parent.iterdir()] == ["a"]


def test_a_write_that_fails_leaves_nothing(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError):
        files.write(tmp_path / "a", "text")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_write_beside_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files.write("a", "text")
    assert (tmp_path / "a").read_text() == "text"


def test_alone_in(tmp_path):
    went = []

    def other():
        with files.alone_in(tmp_path / "new" / "folder"):
            went.append("other")

    with files.alone_in(tmp_path / "new" / "folder"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.2)
        went.append("first")
    thread.join(5)
    assert went == ["first", "other"]
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(KeyError), files.alone_in(tmp_path):
            raise KeyError
    assert len(os.listdir("/proc/self/fd")) == before


def test_depfile():
    rule = files.depfile("out $x", ["a b", "c#d", "e\\f"])
    assert rule == "out\\ $$x: a\\ b c\\#d e\\\\f\nc\\#d:\ne\\\\f:\n"
