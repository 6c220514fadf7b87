"""Long tests (support/long.py): who asks for them, and tests/long.txt, which names tests that are there."""

import ast
import sys

import pytest
from support import long, python_with_torch
from support.workshop import ROOT


def test_each_name_is_a_tests_and_no_file_has_long_tests_alone():
    """A name that no test has would be left in the file when a test is renamed."""
    files = {name.partition("::")[0] for name in long.listed()}
    for file in files:
        nodes = ast.walk(ast.parse((ROOT / file).read_text()))
        tests = {
            node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        }
        names = {name.partition("[")[0] for name in long.listed() if name.startswith(f"{file}::")}
        assert names <= {f"{file}::{test}" for test in tests}
        whole = {name for name in long.listed() if name.startswith(f"{file}::") and "[" not in name}
        assert len(whole) < len(tests), f"of {file} only --all would run anything"


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
