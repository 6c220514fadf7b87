"""The last line of make verify, and its exit status."""

import io

import pytest
from rich.console import Console

from cuffi.caffe_layers.verify import table
from cuffi.caffe_layers.verify.table import CRASHED, FAILED, NO_CODE, RIGHT, UNSURE, WRONG, Row

GUESSED = "the shapes were guessed, and may not fit the layer"


@pytest.mark.parametrize(
    ("verdicts", "races", "said", "status"),
    [
        ([RIGHT, RIGHT], 0, "gradient right in 2 ways", 0),
        ([RIGHT, NO_CODE], 0, "gradient right in 1 ways", 0),
        ([RIGHT, WRONG, NO_CODE, FAILED], 0, "wrong in 1 of 2 ways", 1),
        ([RIGHT, WRONG, CRASHED], 0, "the layer ends its process: SIGSEGV", 1),
        ([RIGHT, CRASHED], 2, "the layer ends its process: SIGSEGV, 2 races", 1),
        ([RIGHT], 1, "1 races", 1),
        ([RIGHT, UNSURE], 0, f"no verdict: {GUESSED}. Give SHAPES", 3),
        ([RIGHT, FAILED, FAILED], 0, "could not be run in 2 ways", 3),
        ([FAILED], 0, "could not be run in any way", 3),
        ([NO_CODE], 0, "could not be run in any way", 3),
        ([table.NO_GRADIENT, NO_CODE], 0, "no gradient to check; the ways agree", 0),
        ([], 0, "could not be run in any way", 3),
    ],
)  # fmt: skip
def test_closing(capsys, verdicts, races, said, status):
    rows = [Row("s", "c", "d", verdict=verdict, remark="SIGSEGV") for verdict in verdicts]
    assert table.closing("foo", rows, [None] * races) == status
    assert capsys.readouterr().out == f"foo: {said}\n"


@pytest.mark.parametrize(
    ("verdict", "said", "status"), [(RIGHT, "but none of its kernels ran", 3), (WRONG, "wrong in", 1)]
)
def test_closing_of_a_layer_whose_kernels_did_not_run(capsys, verdict, said, status):
    assert table.closing("foo", [Row("s", "c", "d", verdict=verdict)], [], idle=True) == status
    assert said in capsys.readouterr().out


def test_show():
    rows = [
        Row("[a]", "CPU", "float", "0", "1e-9", "2e-6", RIGHT),
        Row(
            "[a]", "kernels", "float", verdict=WRONG, remark="by [b]far[/b]", details=["bottom [0] :smile: 7"]
        ),
        Row("b", "CPU", "double"),
    ]
    text = io.StringIO()
    table.show(Console(file=text, width=150), "foo", rows)
    lines = [
        [cell.strip() for cell in line.strip("│┃ ").replace("┃", "│").split("│")]
        for line in text.getvalue().splitlines()
    ]
    cells = [line for line in lines if line != [""] and not set(line[0]) & set("━─┏┡└")]
    assert cells == [
        ["foo"],
        ["on", "code", "dtype", "forward vs first", "backward vs first", "gradient error", "verdict"],
        ["[a]", "CPU", "float", "0", "1e-9", "2e-6", RIGHT],
        ["kernels", "float", "-", "-", "-", f"{WRONG}: by [b]far[/b]"],
        ["b", "CPU", "double", "-", "-", "-", FAILED],
        ["[a]: kernels, float: bottom [0] :smile: 7"],
    ]
