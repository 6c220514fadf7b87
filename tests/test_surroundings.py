"""What the tests take out of their environment (support/surroundings.py)."""

import tempfile

import pytest
from support import surroundings


@pytest.fixture
def temporary(monkeypatch, tmp_path):
    """tempfile asks its environment again, now and after the test."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    return monkeypatch


def test_a_temporary_folder_with_a_blank_is_told_and_left(temporary, tmp_path):
    (tmp_path / "my files").mkdir()
    temporary.setenv("TMPDIR", str(tmp_path / "my files"))
    temporary.setattr(surroundings, "_TEMPORARY", (str(tmp_path / "none"), str(tmp_path)))
    environment = {"TMPDIR": str(tmp_path / "my files")}
    said = surroundings.clean(environment)
    assert environment == {"TMPDIR": str(tmp_path)} and tempfile.gettempdir() == str(tmp_path)
    assert said.startswith("TMPDIR: ") and "my files" in said and said.endswith(f"The tests use {tmp_path}")


def test_no_other_folder_is_one_line(temporary, tmp_path):
    (tmp_path / "a(b").mkdir()
    temporary.setenv("TMPDIR", str(tmp_path / "a(b"))
    temporary.setattr(surroundings, "_TEMPORARY", (str(tmp_path / "none"),))
    with pytest.raises(SystemExit, match=r"TMPDIR: .*set TMPDIR to another folder"):
        surroundings.clean({})


def test_an_ordinary_one_stays(temporary, tmp_path):
    temporary.setenv("TMPDIR", str(tmp_path))
    environment = {"GIT_DIR": "/x", "COLUMNS": "40", "CXXFLAGS": "-O0", "GIT_INDEX_FILE": "i", "CXX": "g++"}
    assert surroundings.clean(environment) == "" and environment == {"CXX": "g++"}
