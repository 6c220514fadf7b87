"""Each layer's run for its line of the table: right, wrong, crashed, endless."""

import os
import shutil
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ROOT

from tools.make import trial
from tools.make.trial import Outcome

CASES = """import os, signal, sys, time

import torch

from .._runtime.cases import Case
from . import layer


def fill(x):
    top = torch.empty_like(x)
    layer.one_fill(top, top.numel())
    {after}
    return top


INPUTS = {{"vector": lambda draw: (draw.normal(9),)}}
CASES = [Case(function=fill, reference=torch.ones_like, inputs=INPUTS, gradient="none")]
"""
# What a layer does, and what is said of it; "" if it is good.
LAYERS = {
    "good": ("", ""),
    "wrong": ("top[3] = 2", "wrong result on cpu: 2 instead of 1 at [3], 5e+05 times the tolerance"),
    "nothing": ("top[3] = float('nan')", "nan instead of 1"),
    "shape": ("top = top[1:]", "shape [8] instead of [9]"),
    "raises": ("raise ValueError('no')", "ValueError: no"),
    "dies": (
        "os.kill(os.getpid(), signal.SIGSEGV)",
        "it ended its process (SIGSEGV): make sanitize LAYERS=dies",
    ),
    "leaves": ("os._exit(3)", "it ended its process (exit status 3): the layer calls exit"),
    "quits": ("sys.exit('enough')", "SystemExit: enough"),
    "hangs": ("while True: pass", "it did not end within 3 s"),
    "recursion": ("fill(x)", "RecursionError"),
    "last": ("", ""),
}
# Faults of a file: its text, or None if it is missing.
FILES = {
    "syntax": ("__init__.py", "def (:\n", "syntax/__init__.py:1)"),
    "imports": ("__init__.py", "import nowhere\n", "No module named 'nowhere'"),
    "no_layer": ("__init__.py", "", "ImportError"),
    "bad_cases": ("cases.py", "CASES = [\n", "SyntaxError: '[' was never closed (/"),
    "no_case": ("cases.py", "CASES = []\n", "IndexError"),
    "zeros": ("_host.abi3.so", "", "is empty, remove it"),
}


MUTE = "class Mute(Exception):\n    def __str__(self):\n        raise KeyError(1)\n\nraise Mute\n"


@pytest.fixture
def settings():
    return SimpleNamespace(
        backends=["cuda", "host"], limit=3,
        hint=lambda target="", **given: " ".join(["make", target, *(f"{k}={v}" for k, v in given.items())]),
    )  # fmt: skip


@pytest.fixture
def folder(workshop, settings):
    """Layers with one library, which was compiled once: only their Python differs."""
    one = workshop.layer("one", cases_py=CASES.format(after=""))
    workshop.build()
    for name, (after, _) in LAYERS.items():
        shutil.copytree(one, workshop.folder / name)
        (workshop.folder / name / "cases.py").write_text(CASES.format(after=after))
    for name, (file, text, _) in FILES.items():
        shutil.copytree(one, workshop.folder / name)
        (workshop.folder / name / file).write_text(text)
    return workshop.folder


def test_every_broken_layer_is_named_and_every_good_one_is_right(folder, settings, capsys):
    """20 folders: 2 good ones, and what breaks in one has no effect on the next."""
    names = [*FILES, *LAYERS]
    found = trial.outcomes_of(str(folder), names, settings)
    assert list(found) == names
    wanted = {
        **{name: said for name, (_, _, said) in FILES.items()},
        **{n: said for n, (_, said) in LAYERS.items()},
    }
    for name, said in wanted.items():
        assert found[name].good == (not said) and said in found[name].failed, found[name]
    assert found["good"].row[:3] == ("host", "cpu", "0.0e+00") and found["good"].row[3].endswith(" us")
    assert "  RUN   hangs: still running; the limit is 3 s\n" in capsys.readouterr().out


def test_ctrl_c(folder, settings):
    """The layer that runs is stopped, and what ran before is kept."""
    settings.limit = 60
    # A shell lets what it runs in the background ignore this signal.
    own = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(1, signal.raise_signal, [signal.SIGINT]).start()
    before = time.monotonic()
    try:
        assert list(trial.outcomes_of(str(folder), ["good", "hangs", "last"], settings)) == ["good"]
    finally:
        signal.signal(signal.SIGINT, own)
    assert time.monotonic() - before < 20


def test_a_child_for_the_rest(settings, monkeypatch, tmp_path):
    """A process that crashes affects only its own layer; its message is one line."""

    def outcome_of(folder, settings):
        if folder.name == "killed[b]":
            os.kill(os.getpid(), signal.SIGKILL)
        return Outcome(
            "host", "a\tb\nc", "1e-3", f"{os.getpid()} us", "[x]\n\0" if folder.name == "bad" else ""
        )

    monkeypatch.setattr(trial, "outcome_of", outcome_of)
    names = ["first", "killed[b]", "bad", "last"]
    found = trial.outcomes_of(str(tmp_path), names, settings)
    assert [one.good for one in found.values()] == [True, False, False, True]
    assert found["first"].row[:3] == ("host", "a b c", "1e-3") and found["bad"].row[2] == r"'\[x] \x00'"
    assert found["killed[b]"].failed.startswith(
        "it ended its process (SIGKILL): make sanitize LAYERS=killed[b]"
    )
    assert found["bad"].seconds == found["last"].seconds != found["first"].seconds != f"{os.getpid()} us"


def test_what_a_layer_is_said_to_be(settings, tmp_path):
    """Its files decide what it lacks, and the next command."""
    for name, files in {
        "caffe": {"__init__.py": ""},
        "native": {"__init__.py": "", "native.h": ""},
        "none": {},
        "to_do": {"__init__.py": "raise RuntimeError('[x]: not filled in: \\n write it')"},
        "broken": {"__init__.py": "raise OSError('[no] such\\n file')"},
        "mute": {"__init__.py": MUTE},
        "colour": {"__init__.py": "raise ValueError('\\033[31m\\0')\n"},
    }.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
        (tmp_path / name / "_host.abi3.so").touch()

    def row(name):
        found = trial.outcome_of(tmp_path / name, settings)
        return found.row, found.good

    assert row("caffe") == (("host", "", "make verify LAYER=caffe", ""), True)
    assert row("native") == (("host", "", "no cases yet: write cases.py", ""), True)
    assert row("none") == (("host", "", "no __init__.py yet: it has the functions for Python", ""), True)
    assert row("to_do") == (("", "[yellow]not filled in", r"\[x]: not filled in: write it", ""), True)
    assert row("broken") == (("host", "[red]failed", r"OSError: \[no] such file", ""), False)
    assert row("mute") == (("host", "[red]failed", "Mute: its message raises KeyError", ""), False)
    assert row("colour") == (("host", "[red]failed", r"'ValueError: \x1b[31m\x00'", ""), False)


def test_a_layer_of_the_toolkits(settings):
    found = trial.outcome_of(Path(ROOT, "layers"), "round", settings)
    assert (
        found.good
        and "host" in found.backends
        and float(found.error) < 1e-6
        and found.seconds.endswith(" us")
    )


def test_a_layer_that_only_a_gpu_can_run(folder, settings, monkeypatch):
    """Without a GPU it is not run, and that is no failure."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    (folder / "good" / "_host.abi3.so").rename(folder / "good" / "_cuda.abi3.so")
    found = trial.outcome_of(folder, "good", settings)
    assert found.good and found.row == ("cuda", "", "not run: it needs a GPU, and there is none here", "")
