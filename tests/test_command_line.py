"""What the commands say of a wrong command line."""

import subprocess
import sys
from pathlib import Path

import pytest

from cuffi.command_line import Parser

ROOT = Path(__file__).resolve().parents[1]


def said(capsys, *words: str) -> str:
    parser = Parser(prog="cuffi judge", endings={".caffemodel": "--weights"})
    parser.add_argument("solver")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--amp", choices=("bfloat16", "float16"))
    parser.add_argument("--weights")
    with pytest.raises(SystemExit) as end:
        parser.parse_args(words)
    assert end.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["s", "--jsn"], "no option --jsn; did you mean --json?"),
        (["s", "--secnods=3"], "no option --secnods=3; did you mean --seconds?"),
        (["s", "--colour"], "no option --colour. `cuffi judge --help` lists the options"),
        (["s", "--seconds", "ten"], "--seconds: expected a number such as 20, got 'ten'"),
        (["s", "--jobs", "2.5"], "--jobs: expected a whole number such as 4, got '2.5'"),
        (["s", "--seconds"], "--seconds takes a value: --seconds 20"),
        (["s", "--weights"], "--weights takes a value: --weights WEIGHTS"),
        (
            ["s", "--amp", "float61"],
            "--amp: there is no 'float61'; did you mean float16? There are: bfloat16, float16",
        ),
        (["s", "w.caffemodel"], "'w.caffemodel' is left over: give it as --weights w.caffemodel"),
        (
            ["s", "--json", "w.caffemodel"],
            "--json takes no file: leave it out, and give --weights w.caffemodel",
        ),
        (
            ["s", "--jobs", "2", "w.caffemodel"],
            "'w.caffemodel' is left over: give it as --weights w.caffemodel",
        ),
        (["s", "more"], "'more' is left over: leave it out. `cuffi judge --help` lists the options"),
        ([], "solver is missing. `cuffi judge --help` lists the options"),
    ],
)
def test_one_line_names_the_word_and_the_next_step(capsys, words, wanted):
    assert said(capsys, *words) == f"cuffi judge: {wanted}\n"


def test_a_test_file_that_is_not_there_is_told_before_pytest_starts():
    script = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}]; import test; print(test.no_such_test(sys.argv[1:]))"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True
        ).stdout
        for words in (["tests/test_setups.py"], ["tests/test_setup.py::x"], ["-k", "no.py"], ["-x", "nets"])
    ]
    assert said == ["test.py: no file tests/test_setups.py; did you mean tests/test_setup.py?\n", *["\n"] * 3]
