"""Build Caffe's own layer tests, unedited, against the toolkit's core, and run them.

    make caffetest CAFFE=/path/to/caffe TEST=test_pooling_layer.cpp        (TEST=all: every layer's)

The tests and the layers under test are the tree's own files. They run on the host backend (Caffe's CPU tests, and its
GPU tests with the kernels on the host) and, where there is a GPU, on it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tools.files import write
from tools.make import requirements
from tools.make.backends import BACKENDS
from tools.make.build import build
from tools.make.job import Job
from tools.make.settings import Settings, from_environment
from tools.refused import Refused

from .aggregate import Layers
from .gather import LayerTests, read

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def lay_out(tree: LayerTests, tests: list[Path], folder: Path) -> None:
    """Write the folder that make builds. Unchanged files keep their time stamps."""
    folder.mkdir(parents=True, exist_ok=True)
    layers = Layers(tree.root)
    found = tree.files([*tests, *layers.in_aggregates([read(test) for test in tests])])
    wanted = {path.name: path.read_bytes() for path in [*found, HERE / "runner.cpp", HERE / "caffe_test.h"]}
    wanted |= {name: text.encode("latin-1") for name, text in layers.additions(found).items()}
    wanted["caffe.proto"] = (tree.root / "src/caffe/proto/caffe.proto").read_bytes()
    wanted.pop("test_caffe_main.cpp", None)
    for there in folder.iterdir():
        if there.is_file() and there.name not in wanted and not there.name.startswith("_"):
            there.unlink()
    for name, data in wanted.items():
        write(folder / name, data, if_changed=True)
    (folder / "__init__.py").touch()  # make would write it only for layers


def built_backends(folder: Path, settings: Settings) -> list[str]:
    """The backends whose library is up to date."""
    given = settings.environment() | {"LAYERS_DIR": str(folder.parent), "LAYERS": ""}
    given["BUILD"] = f"{settings.build}/caffetest/made"
    os.makedirs(given["BUILD"], exist_ok=True)
    built = []
    for (
        backend
    ) in settings.backends:  # one after the other, so that a failure does not hide the other's success
        only = Settings(given | ({"BACKENDS": backend}))
        if (
            not build(Job(only, only=[folder.name]), keep_going=True)
            and (folder / BACKENDS[backend].library).exists()
        ):
            built.append(backend)
    return built


def run(tree: LayerTests, folder: Path, backend: str, filters: str, report: Path) -> int:
    """Run a library of tests in a child process, so that a crash does not end the table.

    It runs in the tree's root, as Caffe's runtest does, because layers may read files there.
    """
    command = [sys.executable, "-m", "lab.caffetest.run_tests", str(folder), backend, filters, str(report)]
    return subprocess.run(command, cwd=tree.root, env=os.environ | {"PYTHONPATH": str(ROOT)}).returncode


def results(report: Path) -> dict[str, list[tuple[str, str]]]:
    """(test, its failure or ''), by test fixture."""
    found: dict[str, list[tuple[str, str]]] = {}
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            if case.get("status") == "notrun":  # the filter left it out
                continue
            failure = case.find("failure")
            text = "" if failure is None else (failure.get("message") or failure.text or "failed").strip()
            found.setdefault(suite.get("name", "?"), []).append((case.get("name", "?"), text))
    return found


def outcome(
    console: Console, table: Table, tree: LayerTests, folder: Path, backend: str, asked
) -> tuple[int, int]:
    """Run one backend's library, and add its row. Returns (0, or 1 if a test failed; the number of tests)."""
    report = folder / f"_{backend}.xml"
    report.unlink(missing_ok=True)
    code = run(tree, folder, backend, asked.filter, report)
    if code == 77:
        console.print(f"{backend}: skipped, because there is no GPU")
        return 0, 0
    if not report.exists():
        console.print(f"{backend}: ended before its report was written (status {code})")
        return 1, 0
    cases = results(report)
    failed = [(fixture, *case) for fixture, listed in cases.items() for case in listed if case[1]]
    total = sum(map(len, cases.values()))
    table.add_row(backend, str(len(asked.files)), str(total), str(total - len(failed)), str(len(failed)))
    for fixture, case, text in failed:
        first = text.splitlines()[0]
        console.print(f"[red]FAILED[/red] {escape(f'{backend} {fixture}.{case}: {first}')}", highlight=False)
    return int(bool(failed)), total


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("caffe", type=Path, help="a Caffe tree")
    parser.add_argument("tests", nargs="+", help="test files, or 'all'")
    parser.add_argument("--filter", default="*", help="gtest's own filter")
    asked = parser.parse_args()
    asked.tests = [name for word in asked.tests for name in word.split()]
    return asked


def main() -> int:
    asked = parsed()
    if not asked.tests or not str(asked.caffe):
        print(
            "which tests, of which fork? make caffetest CAFFE=/path/to/fork TEST=test_x_layer.cpp",
            file=sys.stderr,
        )
        return 2
    console = Console(width=max(100, shutil.get_terminal_size().columns))
    try:
        tree = LayerTests(asked.caffe)
        asked.files, left_out = tree.select(asked.tests)
        name = tree.root.name if asked.tests == ["all"] else f"{tree.root.name}_{asked.files[0].stem}"
        settings, _ = from_environment([])
        os.makedirs(settings.build, exist_ok=True)
        requirements.need(["build", "run"], f"{settings.build}/packages")
        folder = Path(settings.build, "caffetest/layers", "of_" + re.sub(r"\W", "_", name)).absolute()
        lay_out(tree, asked.files, folder)
        built = built_backends(folder, settings)
    except Refused as error:
        print(error, file=sys.stderr)
        return 2
    for test, reason in left_out.items():
        console.print(f"left out: {test}: needs {reason}")
    for backend in settings.missing:
        console.print(f"{backend.name}: no {backend.compiler.lower()} here: left out")
    columns = ("backend", "test files", "tests", "passed", "failed")
    table = Table(*columns, title=escape(f"Caffe's own tests of {tree.root.name}"))
    status, ran = 0, 0
    for backend in settings.backends:
        if backend in built:
            failed, count = outcome(console, table, tree, folder, backend, asked)
            status, ran = status | failed, ran + count
        else:
            console.print(f"{backend}: not built: the compiler's output is above")
            status |= BACKENDS[backend].on_host
    console.print(table)
    return int(status or not ran)


if __name__ == "__main__":
    sys.exit(main())
