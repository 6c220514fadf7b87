"""What the tree promises of its own shape: small tests, short functions."""

import ast

from conftest import ROOT


def sources(*folders: str):
    return [f for folder in folders for f in sorted((ROOT / folder).rglob("*.py")) if "build" not in f.parts]


def test_no_file_of_tests_is_long():
    long = {
        str(f.relative_to(ROOT)): n for f in sources("tests") if (n := len(f.read_text().splitlines())) > 500
    }
    assert not long, "split it by what it tests"


def test_few_functions_are_longer_than_a_screen():
    long = [
        f"{file.relative_to(ROOT)}: {node.name}"
        for file in sources("layers", "tools", "benchmarks")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 50
    ]
    assert len(long) <= 3, long
