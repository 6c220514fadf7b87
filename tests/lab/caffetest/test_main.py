"""make caffetest: the output for one backend, and the exit status."""

import io
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from lab.caffetest import __main__ as caffetest
from tools.make import find_nvcc
from tools.make.settings import Settings

SUITES = """<testsuites>
<testsuite name="PoolingLayerTest">
<testcase name="TestForward" status="run"/>
<testcase name="TestGradient" status="run"><failure message="wrong [/a] x[i]&#10;by far"/></testcase>
<testcase name="TestLeftOut" status="notrun"/>
</testsuite>
<testsuite name="OtherTest"><testcase name="TestIt" status="run"/></testsuite>
</testsuites>"""


@pytest.mark.parametrize(
    ("code", "suites", "wanted", "said"),
    [
        (0, SUITES.replace('<failure message="wrong [/a] x[i]&#10;by far"/>', ""), (0, 3), ""),
        (1, SUITES, (1, 3), "FAILED host PoolingLayerTest.TestGradient: wrong [/a] x[i]\n"),
        (77, None, (0, 0), "host: skipped, because there is no GPU\n"),
        (-11, None, (1, 0), "host: ended before its report was written (status -11)\n"),
    ],
    ids=["right", "wrong", "no GPU", "crash"],
)
def test_outcome(tmp_path, monkeypatch, code, suites, wanted, said):
    """A run that ends without a report has failed, even if an earlier run wrote a report."""
    (tmp_path / "_host.xml").write_text(SUITES)

    def run(tree, folder, backend, filters, report):
        assert not report.exists()
        if suites:
            report.write_text(suites)
        return code

    monkeypatch.setattr(caffetest, "run", run)
    text, table = io.StringIO(), Table()
    asked = SimpleNamespace(filter="*", files=["a", "b"])
    tree: Any = None  # only what runs asks it
    found = caffetest.outcome(Console(file=text, width=200), table, tree, tmp_path, "host", asked)
    assert found == wanted and text.getvalue() == said
    assert table.row_count == bool(suites)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["", ""], "which tests, of which fork? make caffetest CAFFE=/path/to/fork TEST=test_x_layer.cpp\n"),
        (
            ["/fork", " "],
            "which tests, of which fork? make caffetest CAFFE=/path/to/fork TEST=test_x_layer.cpp\n",
        ),
        (["/no/such/fork", "all"], "/no/such/fork"),
        (["", "all"], "not a Caffe tree"),
    ],
)
def test_what_it_cannot_run_on(monkeypatch, capsys, arguments, said):
    monkeypatch.setattr(sys, "argv", ["caffetest", *arguments])
    assert caffetest.main() == 2 and said in capsys.readouterr().err


def test_what_it_is_asked(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["caffetest", "--filter=A*", "/fork", "a.cpp b.cpp", "c.cpp"])
    asked = caffetest.parsed()
    assert (asked.tests, asked.filter, str(asked.caffe)) == (["a.cpp", "b.cpp", "c.cpp"], "A*", "/fork")


@pytest.fixture
def tested(fork, monkeypatch, tmp_path):
    """A fork with tests of two layers and of a solver; what is built and run is told by the test that asks."""
    for file in ("gtest-all.cpp", "gtest.h"):
        fork.write(f"src/gtest/{file}", "")
    for name in ("shift", "other"):
        fork.layer(name.title())
        fork.write(f"src/caffe/test/test_{name}_layer.cpp", f'#include "caffe/layers/{name}_layer.hpp"\n')
    fork.write("src/caffe/test/test_data_layer.cpp", '#include "caffe/solver.hpp"\n')
    monkeypatch.setattr(find_nvcc, "find", lambda cuda_home: "")
    settings = Settings({"NVCC": "search", "BUILD": str(tmp_path / "build"), "LAYERS_DIR": str(tmp_path)})
    monkeypatch.setattr(caffetest, "from_environment", lambda _: (settings, None))
    monkeypatch.setenv("COLUMNS", "200")
    return fork


NO_NVCC = "cuda: no nvcc here: left out"
NOT_BUILT = "host: not built: the compiler's output is above"
CASE = "<testcase name='A' status='run'>{}</testcase>"
FAILURE = "<failure message='off'/>"


@pytest.mark.parametrize(
    ("asked", "cases", "status", "said", "row"),
    [
        ("all", 3 * [""], 0, ["left out: test_data_layer.cpp: needs a solver", NO_NVCC], "2 3 3 0"),
        ("test_shift_layer", ["", FAILURE], 1, [NO_NVCC, "FAILED host Suite.A: off"], "1 2 1 1"),
        ("test_other_layer.cpp", None, 1, [NO_NVCC, NOT_BUILT], ""),
        ("test_shift_layer", [], 1, [NO_NVCC], "1 0 0 0"),  # the filter leaves nothing
    ],
)
def test_all_that_it_says(tested, monkeypatch, capsys, asked, cases, status, said, row):
    def run(tree, folder, backend, filters, report):
        name = "" if asked == "all" else "_test_shift_layer"
        assert (folder.parent.name, folder.name) == ("layers", f"of_{tree.root.name}{name}")
        assert (backend, filters) == ("host", "A*")
        listed = "".join(CASE.format(failure) for failure in cases)
        report.write_text(f"<all><testsuite name='Suite'>{listed}</testsuite></all>")
        return 0

    monkeypatch.setattr(caffetest, "run", run)
    monkeypatch.setattr(caffetest, "built_backends", lambda *_: [] if cases is None else ["host"])
    monkeypatch.setattr(sys, "argv", ["caffetest", "--filter=A*", str(tested.root), asked])
    assert caffetest.main() == status
    lines = [" ".join(re.sub("[┃│]", " ", line).split()) for line in capsys.readouterr().out.splitlines()]
    got = [line for line in lines if line and not set(line) & set("━─┏┡└")]
    title = f"Caffe's own tests of {tested.root.name}"
    rows = [f"host {row}"] if row else []
    assert got == [*said, title, "backend test files tests passed failed", *rows]


def test_what_is_built_is_asked_of_each_backend(tested, monkeypatch, tmp_path):
    """An older library does not count."""
    folder = tmp_path / "layers" / "of_fork"
    folder.mkdir(parents=True)
    (folder / "_host.abi3.so").touch()
    asked, statuses = [], [2, 0]

    def build(job, keep_going):
        asked.append((job["settings"].backends, job["only"], keep_going))
        return statuses.pop()

    monkeypatch.setattr(caffetest, "build", build)
    monkeypatch.setattr(caffetest, "Job", lambda settings, only: dict(settings=settings, only=only))
    settings, _ = caffetest.from_environment([])
    assert caffetest.built_backends(folder, settings) == ["host"]
    assert caffetest.built_backends(folder, settings) == []
    assert asked == [(["host"], ["of_fork"], True)] * 2
    assert (tmp_path / "build" / "caffetest" / "made").is_dir()
