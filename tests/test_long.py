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
        assert {name.partition("[")[0] for name in long.listed() if name.startswith(f"{file}::")} <= tests


@pytest.mark.parametrize(
    "words", [[], ["--all"], ["-k", "{name}"], ["{test}"]], ids=["none", "all", "k", "name"]
)
def test_long_tests_run_for_who_asks(words):
    test = min(name for name in long.listed() if "[" not in name)
    file, name = test.split("::")
    words = [word.format(name=name, test=test) for word in words]
    words += [] if words[-1:] == [test] else [file]
    done = python_with_torch.run([sys.executable, "-m", "pytest", "--co", "-q", *words])
    assert (f"::{name}" in done.stdout) == (words != [file]), done.stdout
    assert ("long tests. `python test.py --all` runs them, too." in done.stdout) == (words == [file])
