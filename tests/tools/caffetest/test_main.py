"""make caffetest: what is said of one backend's run, and the status that it gives."""

import io
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.table import Table

from tools.caffetest import __main__ as caffetest

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
        (77, None, (0, 0), "host: no GPU here: left out\n"),
        (-11, None, (1, 0), "host: ended before its report was written (status -11)\n"),
    ],
    ids=["right", "wrong", "no GPU", "crash"],
)
def test_outcome(tmp_path, monkeypatch, code, suites, wanted, said):
    """A run that ends without a report has failed, whatever an earlier run reported."""
    (tmp_path / "_host.xml").write_text(SUITES)

    def run(tree, folder, backend, filters, report):
        assert not report.exists()
        if suites:
            report.write_text(suites)
        return code

    monkeypatch.setattr(caffetest, "run", run)
    text, table = io.StringIO(), Table()
    asked = SimpleNamespace(filter="*", files=["a", "b"])
    found = caffetest.outcome(Console(file=text, width=200), table, None, tmp_path, "host", asked)
    assert found == wanted and text.getvalue() == said
    assert table.row_count == bool(suites)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["", ""], "make caffetest CAFFE=/path/to/fork TEST=test_x_layer.cpp\n"),
        (["/fork", " "], "make caffetest CAFFE=/path/to/fork TEST=test_x_layer.cpp\n"),
        (["/no/such/fork", "all"], "/no/such/fork"),
        (["", "all"], "no Caffe tree"),
    ],
)
def test_what_it_cannot_run_on(monkeypatch, capsys, arguments, said):
    monkeypatch.setattr(sys, "argv", ["caffetest", *arguments])
    assert caffetest.main() == 2 and said in capsys.readouterr().err


def test_what_it_is_asked(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["caffetest", "--filter=A*", "/fork", "a.cpp b.cpp", "c.cpp"])
    asked = caffetest.parsed()
    assert (asked.tests, asked.filter, str(asked.caffe)) == (["a.cpp", "b.cpp", "c.cpp"], "A*", "/fork")
