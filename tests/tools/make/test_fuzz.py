"""make fuzz: its arguments are read before anything is built, and nothing runs under make -n."""

import sys

import pytest

from tools.make import fuzz

WRONG = [
    (["--minutes=x"], "--minutes"),
    (["--minutes=nan"], "above 0"),
    (["--minutes=0"], "above 0"),
    (["--seed=1.5"], "--seed"),
    (["--layers", "../x"], "LAYER=../x"),
]


@pytest.fixture
def steps(monkeypatch, tmp_path):
    """What is built and called, in order."""
    made = []
    monkeypatch.setattr(fuzz, "Job", lambda settings: settings)
    monkeypatch.setattr(fuzz, "build", lambda s: made.append(f"build {' '.join(s.backends)}") or 0)
    monkeypatch.setattr(fuzz.subprocess, "call", lambda command: made.append(command[2:]) or 0)
    monkeypatch.setattr(fuzz.requirements, "need", lambda groups, _: made.append(f"need {' '.join(groups)}"))
    for name, place in {"BUILD": tmp_path / "b", "NVCC": ""}.items():
        monkeypatch.setenv(name, str(place))
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    return made


@pytest.mark.parametrize("options, said", WRONG)
def test_arguments_first(steps, monkeypatch, capsys, options, said):
    monkeypatch.setattr(sys, "argv", ["fuzz", *options])
    try:
        status = fuzz.main()
    except SystemExit as ended:
        status = ended.code
    assert status == 2 and said in capsys.readouterr().err and not steps


def test_builds_for_the_host_and_fuzzes(steps, monkeypatch, tmp_path):
    options = [f"--layers-dir={tmp_path}", "--minutes=0.5", "--seed=7", "--layers", "round"]
    monkeypatch.setattr(sys, "argv", ["fuzz", *options])
    assert fuzz.main() == 0
    assert steps == ["need build run test", "build host", ["tools.fuzz", *options]]


def test_dry(steps, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["fuzz", f"--layers-dir={tmp_path}"])
    monkeypatch.setenv("MAKEFLAGS", "n")
    assert fuzz.main() == 0 and steps[-1] == "build host"
