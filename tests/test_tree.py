"""The shape of the tree: short test files, short functions, imports that point one way."""

import ast
import subprocess

import pytest
from conftest import ROOT
from support.typed import not_none


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
        for file in [*sources("layers", "tools", "benchmarks", "tests", "examples"), *ROOT.glob("*.py")]
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and not_none(node.end_lineno) - node.lineno >= 50
    ]
    assert len(long) <= 3, long


# A wing of tools/ imports only those before it (docs/architecture.md).
WINGS = (
    "parts",
    "console",
    "files",
    "refused",
    "cuda",
    "caffe",
    "verify",
    "fuzz",
    "make",
    "ffi",
    "new_layer",
    "port",
    "caffetest",
    "net",
)


def imported(file):
    """The modules that a file imports, by their full names."""
    package = file.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_imports_point_one_way():
    wrong = [f"{f}: {name}" for f in sources("layers") for name in imported(f) if name.startswith("tools.")]
    for file in sources("tools"):
        wing = file.relative_to(ROOT / "tools").with_suffix("").parts[0]
        later = WINGS[WINGS.index(wing) + 1 :] if wing in WINGS else ()
        wings = {name.split(".")[1] for name in imported(file) if name.startswith("tools.")}
        wrong += [f"{file}: {other}" for other in sorted(wings.intersection(later))]
        wrong += [f"{file}: {name}" for name in imported(file) if name.startswith("build_ffi")]
    assert not wrong


# One class each, by type: tests/nets/net/test_stock*.py and tests/nets/forks have tables of types.
OF_TYPES = ("cuffi/nets/stock/", "cuffi/nets/forks/")


def is_tested(file) -> bool:
    """A module of the mirror; one without a function has nothing to run."""
    name = str(file.relative_to(ROOT))
    inside = name.startswith(("layers/_", "tools/")) and not name.startswith(OF_TYPES)
    functions = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef))
    return inside and file.stem not in ("__init__", "__main__") and any(functions)


def test_each_module_has_a_test_file_of_its_name():
    """cuffi/x/y.py: tests/x/test_y.py. tools/x/y.py: tests/tools/x/test_y.py."""
    lacking = []
    for file in filter(is_tested, sources("layers", "tools")):
        parts = [part.strip("_") for part in file.relative_to(ROOT).with_suffix("").parts]
        folders = parts[1:-1] if parts[0] == "layers" else parts[:-1]
        mirror = ROOT.joinpath("tests", *folders, f"test_{parts[-1]}.py")
        if not mirror.exists():
            lacking.append(f"{file.relative_to(ROOT)}: {mirror.relative_to(ROOT)}")
    assert not lacking, "\n".join(lacking)


ROOT_FILES = {
    ".clang-format", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "README.md", "SECURITY.md",
    "MANIFEST.in", "build_ffi.py", "pyproject.toml", "requirements.txt", "setup.py", "test.py",
}  # fmt: skip


def test_no_stray_file_lies_at_the_root():
    """A file that a test or a tool leaves in the working directory is easily committed."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True).stdout
    if not listed:
        pytest.skip("no checkout of git's")
    stray = {f for f in listed.split("\0") if f and "/" not in f and (ROOT / f).exists()} - ROOT_FILES
    assert not stray, "a new file for the root is a line of ROOT_FILES"


def test_each_module_has_a_name_of_its_own():
    """So that tracebacks and an editor's tabs are clear."""
    within = [
        f for f in sources("layers", "tools") if f.relative_to(ROOT).parts[1][0] == "_" or "tools" in f.parts
    ]
    names = [f.stem for f in within if f.name not in ("__init__.py", "__main__.py")]
    assert not {name for name in names if names.count(name) > 1}
