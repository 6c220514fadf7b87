"""Long tests (support/long.py): who asks for them, and tests/long.txt, which names tests that are there."""

import ast
import sys

import pytest
from support import long, python_with_torch
from support.workshop import ROOT


def test_each_name_is_a_tests():
    """A name that no test has would be left in the file when a test is renamed."""
    for file in {name.partition("::")[0] for name in long.listed()}:
        nodes = ast.walk(ast.parse((ROOT / file).read_text()))
        tests = {f"{file}::{node.name}" for node in nodes if isinstance(node, ast.FunctionDef)}
        assert {name for name in long.listed() if name.startswith(f"{file}::")} <= tests


def test_no_name_has_a_parameter():
    """Who gives a case another name would change the list: a number of cases stays (support/long.py)."""
    assert not [name for name in long.listed() if "[" in name]


def test_of_the_cases_of_a_test_some_stay(monkeypatch):
    """By their number, so that a parameter may get another name."""
    monkeypatch.setattr(long, "listed", lambda: {"a.py::test_all": 0, "a.py::test_some": 3})
    some = [f"a.py::test_some[{i}]" for i in range(8)]
    others = ["a.py::test_all", "a.py::test_all[x]@gpu", "a.py::test_other[1]"]
    assert long.long_of([*some, *others]) == {*some, *others[:2]} - {some[0], some[2], some[5]}
    assert long.long_of(some[:2]) == set()


@pytest.mark.parametrize(
    "words", [[], ["--all"], ["-k", "{name}"], ["{test}"]], ids=["none", "all", "k", "name"]
)
def test_long_tests_run_for_who_asks(words):
    test = min(name for name, stay in long.listed().items() if not stay)
    file, name = test.split("::")
    words = [word.format(name=name, test=test) for word in words]
    words += [] if words[-1:] == [test] else [file]
    done = python_with_torch.run([sys.executable, "-m", "pytest", "--co", "-q", *words])
    assert (f"::{name}" in done.stdout) == (words != [file]), done.stdout
    assert ("long tests. `python3 test.py --all` runs them, too." in done.stdout) == (words == [file])
