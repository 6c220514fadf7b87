"""A wheel under several Pythons: the steps for each, and a row of the table."""

import hashlib
import subprocess
import sys
from types import SimpleNamespace

import pytest

from lab.wheel import tried

ROW = "words\nROW|3.12.1|2.9.1|9|40|cpu\n"


@pytest.fixture
def steps(monkeypatch):
    """The steps that were run, and those that fail: {place in the order: (stdout, stderr)}."""
    made = SimpleNamespace(ran=[], fails={})

    def run(command, cwd, **_):
        made.ran.append([part.replace(cwd, "ENV") for part in command])
        stdout, stderr = made.fails.get(len(made.ran), (ROW, ""))
        return SimpleNamespace(returncode=len(made.ran) in made.fails, stdout=stdout, stderr=stderr)

    monkeypatch.setattr(subprocess, "run", run)
    return made


def test_steps(steps, tmp_path):
    for torch, asked in (("2.9.1", "torch==2.9.1"), ("", "torch")):
        steps.ran.clear()
        assert tried.tried(tmp_path / "a.whl", "py", torch, tmp_path) == ["3.12.1", "2.9.1", "9", "40", "cpu"]
        install = ["-m", "pip", "install", "-q", "--no-cache-dir", asked, str(tmp_path / "a.whl")]
        assert steps.ran == [
            ["py", "-m", "venv", "ENV"],
            ["ENV/bin/python", *install],
            ["ENV/bin/python", str(tried.TRIAL)],
        ]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("step", "words", "said"),
    [
        (1, ("", ""), "failed: ['py', '-m', 'venv']"),
        (2, ("of pip\nlast", " \n"), "failed: last"),
        (3, ("out", "trace\nAssertionError: sigmoid\n"), "failed: AssertionError: sigmoid"),
    ],
)
def test_failures(steps, tmp_path, step, words, said):
    steps.fails[step] = words
    row = tried.tried(tmp_path / "a.whl", "py", "2.9.1", tmp_path)
    assert row[:2] == ["py", "2.9.1"] and row[2].startswith(said[:-1]) and len(steps.ran) == step


def test_the_table(steps, tmp_path, monkeypatch, capsys):
    wheel = tmp_path / "a.whl"
    wheel.write_bytes(b"of it")
    steps.fails[4] = "", "no such Python"
    command = ["tried", str(wheel), "python3.12=2.9.1", "/opt/python=", "--work", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    status = tried.main()
    said = capsys.readouterr().out
    assert said.startswith(f"a.whl, SHA-256 {hashlib.sha256(b'of it').hexdigest()[:16]}\n\n")
    rows = ["| Python | torch | layers | cases | ran on |", "|---|---|---|---|---|"]
    rows += ["| 3.12.1 | 2.9.1 | 9 | 40 | cpu |", "| /opt/python |  | failed: no such Python |"]
    assert said.splitlines()[2:] == rows and status == 1
    steps.fails.clear()
    assert tried.main() == 0
