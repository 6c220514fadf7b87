"""make's messages for errors: the layer, the file and the line, the setting, the folder."""

import json
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ROOT, Workshop, make
from support.compiler import CXX

from tools.make import build
from tools.make.failures import Failure, failures
from tools.make.job import init_text
from tools.make.kinds import kind_of
from tools.make.settings import Settings
from tools.refused import Refused

CASES = """import torch

from .._runtime.cases import Case
from . import layer


def fill(x):
    top = torch.empty_like(x)
    layer.{name}_fill(top, top.numel())
    return top


INPUTS = {{"vector": lambda draw: (draw.normal(9),)}}
CASES = [Case(function=fill, reference=torch.ones_like, inputs=INPUTS, gradient="none")]
"""


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
            r"one/one\.h:1: error: expected only C declarations",
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
    assert re.match(r"FAILED: middle for host: .*middle\.cu:1:\d+: error", last), done.output
    logs = workshop.folder / "build" / "middle" / "host"
    assert f"(logs: {logs})" in last and any("broken" in log.read_text() for log in logs.glob("*.log"))


def test_layer_that_broke_after_it_was_built(workshop):
    """Its old library would run the old kernel. So it is removed, and importing the layer gives the reason."""
    one = workshop.layer("one", beside_h="#define VALUE 1\n")
    (one / "one.cu").write_text('#include "beside.h"\n' + (one / "one.cu").read_text())
    workshop.build()
    (one / "beside.h").unlink()
    done = workshop.make()
    assert done.returncode != 0 and not (one / "_host.abi3.so").exists(), done.output
    (workshop.folder / "__init__.py").write_text(init_text())
    said = workshop.forked(
        "import warnings\nwarnings.showwarning = lambda w, *_: print(w)\n" + workshop.importing("one")
    )
    why = r"one: its last build for host failed: \S*/one\.cu:1:\d+: .*beside\.h.*"
    assert re.fullmatch(rf"{why}\nCaffeRuntimeError: {why} Type `make LAYERS_DIR=\S+ LAYERS=one` .*", said), (
        said
    )
    (one / "beside.h").write_text("")
    workshop.build()
    assert workshop.import_and_fill("one") == "1.0"


def test_a_build_that_is_killed_leaves_no_old_library(workshop):
    """Stale files are removed before the first compiler starts."""
    one = workshop.layer("one")
    workshop.build()
    (one / "one.cu").write_text((one / "one.cu").read_text().replace("= 1;", "= 2;"))
    job = build.Job(Settings({"LAYERS_DIR": str(workshop.folder), "NVCC": "", "CXX": CXX}))
    job.rules.layer_inputs.forget()
    assert not (one / "_host.abi3.so").exists()


def test_what_only_the_host_lacks(tmp_path):
    """The GPU's library is built, so this is no failure; without it, or with another error, it is one."""
    folder = SimpleNamespace(name="one", path=str(tmp_path / "one"), refused=[], kind=kind_of("native"))
    (tmp_path / "build/one/host").mkdir(parents=True), (tmp_path / "one").mkdir()
    libraries = {("one", b): str(tmp_path / "one" / f"_{b}.abi3.so") for b in ("host", "cuda")}
    job = SimpleNamespace(
        settings=SimpleNamespace(build=str(tmp_path / "build"), backends=["host", "cuda"]), started=1,
        rules=SimpleNamespace(libraries=libraries), folder=lambda name: folder, makefile=os.devnull,
    )  # fmt: skip
    Path(libraries["one", "cuda"]).touch()
    log = tmp_path / "build/one/host/one.cu.cpp.log"
    log.write_text("note\none.cu:2:3: error: inline PTX\n")
    (failure,) = failures(job, keep_going=True)
    assert failure == Failure("one", "host", "one.cu:2:3: error: inline PTX", str(log.parent), only_host=True)
    assert json.loads((tmp_path / "one" / "_host.json").read_text())["failed"] == failure.why
    log.rename(log.with_name("one.cu.o.log"))  # the compiler's error, not a refusal of the rewriter's
    assert [f.only_host for f in failures(job, keep_going=True)] == [False]
    log.with_name("one.cu.o.log").rename(log)
    Path(libraries["one", "cuda"]).unlink()
    assert [(f.backend, f.only_host) for f in failures(job, keep_going=True)] == [
        ("host", False),
        ("cuda", False),
    ]
    assert [f.backend for f in failures(job, keep_going=False)] == ["host"]  # the other was not reached


def test_one_make_for_all_that_is_broken(workshop):
    """`make -k -j2`: it ends; what is broken is in the last lines with its reason; what is good is built."""
    workshop.layer("good", cases_py=CASES.format(name="good"))
    workshop.layer("compiles_not", cu="int x = ;\n")
    workshop.layer("links_not", h="int links_not_fill(float *top, int64_t n, void *s);\nint lost(int n);\n")
    workshop.layer("python", cases_py="CASES = [\n")
    (workshop.layer("headless") / "headless.h").unlink()
    workshop.layer("b_bad-name"), workshop.layer("class")
    done = workshop.make("-k", "-j2", "all")
    assert done.returncode != 0
    count, *last = done.stdout.splitlines()[-7:]
    assert count == "2 of 5 layers built for host, 1 of them failed when they ran."
    for line, (name, why) in zip(
        last,
        [("Left out: .*/b_bad-name", "a layer is named like"), ("Left out: .*/class", "keyword of Python"),
         ("FAILED: compiles_not for host", "compiles_not.cu:1:9: error"),
         ("FAILED: headless for host", r"headless/headless\.h: error: this file is missing; it must declare"),
         ("FAILED: links_not for host", r"declared here but defined nowhere .*: lost"),
         ("FAILED: python", r"SyntaxError: .*cases\.py:1")],
        strict=True,
    ):  # fmt: skip
        assert re.match(rf"{name}: .*{why}", line), line


@pytest.mark.parametrize(
    "argument, text",
    [
        ("LAYER=round", "LAYER=round: to build it alone: LAYERS=round"),
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
    """make would create empty libraries, which are newer than their sources."""
    one = workshop.layer("one")
    done = workshop.make(touch, "libraries")
    assert done.returncode != 0 and "-t (--touch)" in done.output and not list(one.glob("*.so"))


def test_python_that_does_not_look_into_the_folder_where_it_is(tmp_path):
    done = make(f"LAYERS_DIR={tmp_path / 'nosuch'}", PYTHONSAFEPATH="1")
    assert "there is no folder" in done.stderr, done.stderr


@pytest.mark.parametrize("target", ["libraries", "test", "new", "port", "clean"])
def test_a_python_that_is_not_there(target):
    """Those that are there are named, each with a line to type."""
    done = make("PYTHON=python3.99", target)
    first = done.stderr.splitlines()[0]
    assert done.returncode == 2 and first.startswith(
        "make: PYTHON=python3.99: there is no such program: name one"
    )
    named = re.findall(r"PYTHON=(/\S+)", first)
    assert named and all(os.access(name, os.X_OK) for name in named), first


def test_nobody_listens(tmp_path, monkeypatch):
    """`make >&-`"""
    monkeypatch.chdir(tmp_path)  # nor does it matter where it is typed
    monkeypatch.setattr(sys, "argv", ["build", "nothing"])
    monkeypatch.setattr(sys, "stdout", None)
    assert build.main() == 2 and not sys.stdout.isatty() and Path.cwd() == ROOT
    sys.stdout.close()


def test_folder_that_is_not_there(tmp_path):
    done = Workshop(tmp_path / "nosuch").make()
    assert done.returncode != 0 and "LAYERS_DIR: there is no folder" in done.output
    assert not (tmp_path / "nosuch").exists()


@pytest.mark.parametrize("path", ["layers", "layers/", f"{ROOT}/layers", f"{ROOT}/tests/../layers"])
def test_own_layers_by_another_path(path):
    """The same build, although its records contain paths."""
    assert Settings({"LAYERS_DIR": path}).layers_dir == "layers"
    assert Settings({"LAYERS_DIR": path}).build == "build"


def test_a_toolkit_of_another_user(workshop, monkeypatch):
    """The shared objects must exist, because make must not write them."""
    workshop.layer("one")
    shared = ("cuffi/runtime/_call.abi3.so", "cuffi/nets/net/_caffe.desc")
    known = os.access
    for writable in (True, False):
        monkeypatch.setattr(
            os, "access", lambda path, mode, can=writable: can if mode == os.W_OK else known(path, mode)
        )
        text = build.Job(Settings({"LAYERS_DIR": str(workshop.folder), "NVCC": ""})).text
        assert [path in text for path in shared] == [writable] * 2 and "one/_host.abi3.so" in text
    (workshop.folder / "build").mkdir()
    (workshop.folder / "build" / "lock").touch()
    with pytest.raises(Refused, match="the folder belongs to another user; nothing was removed"):
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


@pytest.mark.parametrize("setting", ["LAYERS_DIR", "BUILD"])
def test_a_folder_that_cannot_be_written(workshop, monkeypatch, setting):
    """The message says what to do instead. (Root, who sometimes runs these tests, may write anywhere.)"""
    workshop.layer("one")
    settings = Settings({"LAYERS_DIR": str(workshop.folder), "NVCC": ""})
    closed = {"LAYERS_DIR": str(workshop.folder), "BUILD": str(workshop.folder / "build")}[setting]
    Path(settings.build).mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != closed)
    with pytest.raises(Refused, match=rf"^{setting}: {closed} cannot be written") as said:
        build.run(lambda settings: 0, settings)
    assert f"cp -r {workshop.folder} ~/my_layers\n    make LAYERS_DIR=~/my_layers" in str(said.value)


def test_a_build_folder_below_a_file(workshop):
    workshop.layer("one")
    done = workshop.make("BUILD=/dev/null/build", "libraries")
    assert done.returncode and "BUILD: /dev/null cannot be written" in done.output, done.output


def test_lint_without_its_tools(tmp_path):
    for name in ("make", "sh", "echo", "python3"):
        (tmp_path / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    done = make("lint", PATH=str(tmp_path))
    assert (
        done.returncode and "ruff is missing: python -m pip install -r requirements/lint.txt" in done.stdout
    )


def test_what_cannot_be_built_names_the_folder_and_what_to_do(tmp_path):
    (tmp_path / "foo").mkdir()
    (tmp_path / "foo/__init__.py").touch()
    settings = Settings({"LAYERS_DIR": str(tmp_path), "NVCC": ""})
    with pytest.raises(Refused, match=r"foo has no foo\.cu: write it, or remove the folder"):
        build._refuse_empty(settings)
