"""SECURITY.md lists each command, with what it runs and writes."""

import inspect
import re
from functools import cache

import pytest
from conftest import ROOT

import cuffi


@cache
def rows() -> dict[str, tuple[str, str]]:
    """What a command runs and what it writes, by the command."""
    text = (ROOT / "SECURITY.md").read_text()
    found = {}
    for line in re.findall(r"^\| (`.*) \|$", text, re.M):
        commands, runs, writes = line.split(" | ")
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", commands), (runs, writes))
    return found


def test_each_target_of_make_is_listed():
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M)
    commands = {"make" if target == "all" else f"make {target}" for target in targets}
    assert commands == {name for name in rows() if name.startswith("make")}


def test_each_module_that_is_a_program_is_listed():
    programs = [f for f in (ROOT / "cuffi").glob("[a-z]*.py") if "__main__" in f.read_text()]
    commands = {f"python -m cuffi.{file.stem}" for file in programs}
    assert commands == {name for name in rows() if name.startswith("python")} and len(commands) >= 4


def test_each_public_function_that_loads_something_is_listed():
    """Classes and functions that make a module of what is already loaded run nothing of others."""
    inner = {"adopt", "operator", "caffe_layer"}
    public = {n for n in cuffi._PUBLIC if inspect.isfunction(getattr(cuffi, n))} | {"OnnxSession"}
    assert public - inner == {name for name in rows() if " " not in name and name != "make"}


@pytest.mark.parametrize("target", ["port", "net", "verify-net", "caffetest"])
def test_what_reads_a_fork_names_it(target):
    runs, _ = rows()[f"make {target}"]
    assert "`CAFFE`" in runs or runs == "the same"


def test_the_solver_s_own_path_is_named():
    assert "`snapshot_prefix`" in rows()["make train"][1]
