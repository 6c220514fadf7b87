"""The language of a file, and what it decides."""

import pytest
from support.typed import not_none


def test_a_file_that_tells_nothing_warns_where_division_makes_a_difference(run):
    with pytest.warns(UserWarning, match=r"old.py, line 2: `/` of integers rounds down"):
        assert run("\nout = 7 / 2", mark="") == 3
    assert run("\nout = 8 / 2", mark="") == 4


@pytest.mark.parametrize(
    "text", ["out = f'{7 / 2}' and 7 / 2", "#!/usr/bin/env python3\nout = 7 / 2", "x: int = 7\nout = x / 2",
             "print('a', end='')\nout = 7 / 2"]
)  # fmt: skip
def test_a_file_of_python_3_keeps_its_division(run, text):
    assert run(text, mark="") == 3.5


def test_what_is_neither_names_the_file_and_line(run):
    with pytest.raises(SyntaxError, match="nor is it Python 2") as error:
        run("print 'x'\nout = = 1", mark="")
    assert error.value.lineno == 1 and not_none(error.value.filename).endswith("old.py")


@pytest.mark.parametrize("text", ["x = 1", "x += 1", "1 <> 2; 3", "", "pass"])
def test_eval_takes_an_expression_and_nothing_else(run, text):
    with pytest.raises(SyntaxError):
        run(f"out = eval({text!r})")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("x = 7\nprint [x / 2]", "[3]\n"),
        ("import sys\nprint >>sys.stdout, 7 / 2", "3\n"),
        ("print (7 / 2), 5", "3 5\n"),
        ("print -7 / 2", "-4\n"),
        ("print ('%d') % 3", "3\n"),
        ("print [0.1 + 0.2], 0.1 + 0.2", "[0.30000000000000004] 0.3\n"),
        ("print ('a,b').split(',')[1].upper()", "B\n"),
        ("print (1) if 0 else (2)", "2\n"),
        ("print(7 / 2.0) if 0 else None\nprint(7 / 2.0) if 1 else None", "3.5\n"),
        ("from __future__ import print_function\nprint(1), print(2)", "1\n2\n"),
        ("#!/usr/bin/env python3\nprint(7 / 2), 5", "3.5\n"),
        ("print(7 / 2.0)\nx = [print]\nprint.__name__", "3.5\n"),
    ],
)
def test_print_as_a_statement_in_a_line_that_both_read(text, printed, run, capsys):
    run(f"{text}\nout = 0", mark="")
    assert capsys.readouterr().out == printed
