"""The language of a file, and what it decides."""

import pytest


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
    assert (error.value.lineno, error.value.filename.endswith("old.py")) == (1, True)
