"""cuffi cache: what is in the cache, and its end. Nothing else goes, and nothing that a build is using."""

import fcntl
import os

import pytest

from cuffi.commands.main import main

KEY = "0123456789abcdef" * 2


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A cache with a layer, an object folder, a folder of bytecode, and files of the user."""
    monkeypatch.setenv("CUFFI_CACHE", str(tmp_path / "cache"))
    for name in (f"relu-{KEY}", "core-0123456789abcdef", "bytecode", "thesis", f"{KEY}"):
        (tmp_path / "cache" / name).mkdir(parents=True)
        (tmp_path / "cache" / name / "file").write_bytes(os.urandom(100_000))
    (tmp_path / "cache").chmod(0o700)
    (tmp_path / "cache" / "notes.txt").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache" / f"link-{KEY}").symlink_to(tmp_path / "elsewhere")
    return tmp_path / "cache"


def test_it_is_shown(place, capsys):
    assert main(["cache"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{place}: 0.3 MB, 1 built layers") and len(rows) == 3
    assert {row.split()[-1] for row in rows} == {"relu", "core-0123456789abcdef", "bytecode"}


def test_what_is_ours_is_removed(place, capsys):
    assert main(["cache", "--clear"]) == 0
    assert {f.name for f in place.iterdir()} == {"thesis", KEY, "notes.txt", f"link-{KEY}"}
    assert "3 folders removed, 0.3 MB" in capsys.readouterr().out and (place.parent / "elsewhere").exists()


@pytest.mark.parametrize("name, lock", [(f"relu-{KEY}", f"relu-{KEY}.lock"),
                                        ("core-0123456789abcdef", "core-0123456789abcdef/lock")])  # fmt: skip
def test_what_a_build_is_using_stays(place, capsys, name, lock):
    with open(place / lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert main(["cache", "--clear"]) == 1
    assert (place / name / "file").exists() and not (place / "bytecode").exists()
    assert f"In use, or not to be removed: {name}" in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0 and not (place / name).exists()
