"""What make says when something is wrong: the layer, the file and the line, the setting, the folder."""

import os
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ROOT, Workshop, make

from tools.make import build, report
from tools.make.settings import Settings
from tools.refused import Refused


@pytest.mark.parametrize(
    "files, text",
    [
        (
            dict(h="int one_fill(double *top, int64_t count, void *stream);\n"),
            r"one/one\.cu:1:\d+: error: conflicting declaration",
        ),
        (
            dict(h="int one_fill(float *top, int64_t count, void *stream);\nint one_lost(int n);\n"),
            r"one/one\.h: error: declared here but defined nowhere .*: one_lost",
        ),
        (
            dict(h="#include <stdint.h>\nint one_fill(float *top, int64_t count, void *stream);\n"),
            r"one/one\.h:1: error: bare declarations only",
        ),
        (dict(h="void one_fill(float *top, int64_t count, void *stream);\n"), r"one/one\.(h|cu):\d+.*error"),
        (
            dict(h="int one_fill(float *, int64_t, void *);\n"),
            r"one/one\.h: error: one_fill: each parameter needs a name",
        ),
        (dict(h="// nothing\n"), r"one/one\.h: error: declares no function"),
        (dict(h="int one_fill(float *top int64_t count, void *stream);\n"), r"one/one\.h.*error"),
        (
            dict(cu='#include "caffe_cuda_macro.h"\n\nint x = nonsense;\n'),
            r"one/one\.cu:3:9: error: .*nonsense",
        ),
        (dict(cu='__global__ void k() {\n  asm("nop;");\n}\n'), r"one/one\.cu:2:3: error: .*PTX"),
    ],
    ids=[
        "drifted",
        "not defined",
        "directive",
        "returns void",
        "unnamed",
        "empty",
        "syntax",
        "compiler error",
        "rewriter's refusal",
    ],
)
def test_broken_layer_is_named_with_file_and_line(workshop, files, text):
    workshop.layer("one", **files)
    done = workshop.make()
    assert done.returncode != 0
    assert re.search(text, done.output), done.output
    assert not list(workshop.folder.glob("one/*.so*"))


def test_missing_header(workshop):
    (workshop.layer("one") / "one.h").unlink()
    done = workshop.make()
    assert done.returncode != 0 and "one/one.h" in done.output


def test_one_broken_layer_does_not_stop_the_others(workshop):
    """Its name and its log come last, and make says that it failed."""
    for name in ("first", "last"):
        workshop.layer(name)
    workshop.layer("middle", cu="int broken = ;\n")
    done = workshop.make("all", with_torch=True)
    assert done.returncode != 0
    assert all((workshop.folder / name / "_host.abi3.so").exists() for name in ("first", "last"))
    last = done.stdout.splitlines()[-1]
    assert last.startswith("FAILED: middle for host"), done.output
    logs = workshop.folder / "build" / "middle" / "host"
    assert str(logs) in last and any("broken" in log.read_text() for log in logs.glob("*.log"))


def test_layer_that_broke_after_it_was_built(workshop):
    """Its old library is still there; make must not count it as built."""
    one = workshop.layer("one")
    workshop.build()
    time.sleep(0.01)
    (one / "one.cu").write_text("int broken = ;\n")
    done = workshop.make("all", with_torch=True)
    assert done.returncode != 0 and "FAILED: one for host" in done.output, done.output


@pytest.mark.parametrize(
    "argument, text",
    [
        ("LAYRES=round", "LAYRES: no such setting. There are: PYTHON "),
        ("LAYERS=one nosuch", "LAYERS: no layer nosuch in .*There are: one"),
    ],
)
def test_misspelt_setting(workshop, argument, text):
    workshop.layer("one")
    done = workshop.make(argument, "libraries")
    assert done.returncode != 0 and re.search(text, done.output), done.output


@pytest.mark.parametrize("touch", ["-t", "-kt", "--touch"])
def test_touch_is_refused(workshop, touch):
    """make would make empty libraries, which are newer than their sources."""
    one = workshop.layer("one")
    done = workshop.make(touch, "libraries")
    assert done.returncode != 0 and "-t (--touch)" in done.output and not list(one.glob("*.so"))


def test_python_that_does_not_look_into_the_folder_where_it_is(tmp_path):
    done = make(f"LAYERS_DIR={tmp_path / 'nosuch'}", PYTHONSAFEPATH="1")
    assert "there is no folder" in done.stderr, done.stderr


def test_nobody_listens(tmp_path, monkeypatch):
    """`make >&-`"""
    monkeypatch.chdir(tmp_path)  # nor does it matter where it is typed
    monkeypatch.setattr(sys, "argv", ["build", "nothing"])
    monkeypatch.setattr(sys, "stdout", None)
    assert build.main() == 2 and not sys.stdout.isatty() and Path.cwd() == ROOT
    sys.stdout.close()


def test_a_layer_that_python_cannot_import_yet(tmp_path):
    """Its library is there, its __init__.py is not: Python would take the folder for an empty package."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "_host.abi3.so").touch()
    found = report.outcome_of(tmp_path, "one", SimpleNamespace(backends=["cuda", "host"]))
    assert found.good and found.row[0] == "host" and found.row[2].startswith("no __init__.py yet")


def test_what_a_layer_says_is_only_text(tmp_path, capsys):
    """Its brackets are no styles, and no control character reaches the terminal."""
    words = {"one": "see [/red] and\n  [bold]x[i]", "two": "\033[31m\0", "three": "\udcff"}
    for name, text in words.items():
        (tmp_path / name).mkdir()
        error = "SystemExit" if name == "one" else "ValueError"
        (tmp_path / name / "__init__.py").write_text(f"raise {error}({text!a})\n")
    (tmp_path / "four").mkdir()
    (tmp_path / "four" / "__init__.py").write_text(
        "class Mute(Exception):\n    def __str__(self):\n        raise KeyError(1)\n\nraise Mute\n"
    )
    settings = SimpleNamespace(backends=["host"], hint=lambda **_: "[/again]")
    assert not report.show(str(tmp_path), [*words, "four"], settings)
    said = capsys.readouterr().out
    assert "SystemExit: see [/red] and [bold]x[i]" in said, said
    assert "Mute: its message raises KeyError" in said, said
    assert r"'ValueError: \x1b[31m\x00'" in said and r"'ValueError: \udcff'" in said, said


def test_folder_that_is_not_there(tmp_path):
    done = Workshop(tmp_path / "nosuch").make()
    assert done.returncode != 0 and "LAYERS_DIR: there is no folder" in done.output
    assert not (tmp_path / "nosuch").exists()


@pytest.mark.parametrize("path", ["layers", "layers/", f"{ROOT}/layers", f"{ROOT}/tests/../layers"])
def test_own_layers_by_another_path(path):
    """The same build: what it remembers has paths in it."""
    assert Settings({"LAYERS_DIR": path}).layers_dir == "layers"
    assert Settings({"LAYERS_DIR": path}).build == "build"


def test_a_toolkit_of_another_user(workshop, monkeypatch):
    """The shared objects are there, or make must not write them."""
    workshop.layer("one")
    shared = ("layers/_runtime/_call.abi3.so", "layers/_net/_caffe.desc")
    known = os.access
    for writable in (True, False):
        monkeypatch.setattr(
            os, "access", lambda path, mode, can=writable: can if mode == os.W_OK else known(path, mode)
        )
        text = build.Job(Settings({"LAYERS_DIR": str(workshop.folder), "NVCC": ""})).text
        assert [path in text for path in shared] == [writable] * 2 and "one/_host.abi3.so" in text
    (workshop.folder / "build").mkdir()
    (workshop.folder / "build" / "lock").touch()
    with pytest.raises(Refused, match="it is another user's; nothing was removed"):
        build.clean(Settings({"LAYERS_DIR": str(workshop.folder)}))


def test_no_layers(workshop):
    workshop.folder.mkdir()
    assert f"make new LAYERS_DIR={workshop.folder} LAYER=foo" in workshop.make("all").output


def test_path_with_spaces(tmp_path):
    """Refused in one line: make itself can't quote them."""
    shop = Workshop(tmp_path / "my layers")
    shop.layer("one")
    done = shop.make()
    assert done.returncode != 0 and "LAYERS_DIR: make cannot work in a path with spaces: /" in done.output
