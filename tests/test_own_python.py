"""`python3 -m cuffi` in a checkout, where PATH's python3 is not the environment that `make` made."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from cuffi import own_python


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> dict[bool, Path]:
    """Checkouts with the package alone: one with an environment of make's, whose Python shows its arguments."""
    found = {}
    for made in (True, False):
        place = found[made] = tmp_path_factory.mktemp("places") / "a (b) é"
        for name in ("cuffi", "tools"):
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "layers"))
        (place / "test.py").touch()
        if made:
            python = place / ".venv" / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.write_text('#!/bin/sh\nprintf "%s|" "$@"; exit 7\n')
            python.chmod(0o755)
            (place / ".venv" / "made-by-make").touch()
    return found


def bare(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """By a Python without packages: this one's own, whose site is left out."""
    if (
        os.path.isdir(os.path.join(sys.base_prefix, "conda-meta"))
        and os.path.join("envs", "") in sys.base_prefix
    ):
        pytest.skip("this Python is itself an environment of conda's, and stays")
    command = [os.path.realpath(getattr(sys, "_base_executable", sys.executable)), "-S", "-E", *words]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=100)


COMMANDS = [
    ["cuffi", "judge", "my file.cu"],
    ["cuffi.judge", "my file.cu"],
    ["cuffi.run", "x.cu", "--", "2"],
    ["cuffi", "net", "x"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_goes_on_in_the_environment_of_make(words, places):
    done = bare(places[True], "-m", *words)
    assert done.returncode == 7 and done.stdout == "|".join(["-S", "-E", "-m", *words, ""]), done.stderr


@pytest.mark.parametrize(
    "words", [*COMMANDS[:3], ["cuffi.dnn", "x.py"], ["cuffi", "explain", "x.cu"]], ids=" ".join
)
def test_before_make_it_is_one_line(words, places):
    place = places[False]
    (place / "x.cu").touch()
    done = bare(place, "-m", *words)
    assert done.returncode and done.stderr.count("\n") == 1, done.stderr
    assert " is not installed for " in done.stderr and f"Type `make` in {place}" in done.stderr


def test_what_needs_no_package_runs_without(places):
    place = places[False]
    assert bare(place, "-m", "cuffi", "--version").stdout.startswith("cuffi ")
    assert bare(place, "-m", "cuffi", "judge", "--help").returncode == 0


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("line", ["from cuffi import load_inline", "from cuffi import caffe_net"])
def test_a_script_is_told_which_environment(made, line, places):
    place = places[made]
    done = bare(place, "-c", line)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: torch is not installed for ")
    assert last.endswith(f". {place}/.venv/bin/activate" if made else "which installs it into .venv there")


@pytest.mark.parametrize(
    "virtual, lacking, stays", [(True, True, True), (False, False, True), (False, True, False)]
)
def test_when_it_stays(virtual, lacking, stays, monkeypatch, tmp_path):
    started = []
    (tmp_path / "made").touch()
    monkeypatch.setattr(own_python, "MADE", tmp_path / "made")
    monkeypatch.setattr(own_python, "is_virtual", lambda: virtual)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if lacking else name)
    monkeypatch.setattr(sys, "argv", ["-m", "x"])
    monkeypatch.setattr(sys, "orig_argv", ["py", "-X", "dev", "-m", "cuffi", "net", "x"])
    monkeypatch.setattr(os, "execv", lambda program, words: started.append(words))
    own_python.start_again()
    assert bool(started) != stays and all(words[1:] == sys.orig_argv[1:] for words in started)


@pytest.mark.parametrize(
    "argv, orig", [(["x.py"], ["py", "x.py"]), (["-m"], ["py", "-m", "pytest"]), (["-c"], ["py", "-c", ""])]
)
def test_other_programs_are_left_alone(argv, orig, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: pytest.fail("asked"))
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", orig)
    own_python.start_again()
