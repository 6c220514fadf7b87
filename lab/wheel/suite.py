"""Run the nets' tests on an installed cuffi-nets, with any Python that has it: no file of the checkout's cuffi is used.

    python -m lab.wheel.suite /path/to/python                              all of tests/nets
    python -m lab.wheel.suite /path/to/python -n2 tests/nets/dnn tests/base    pytest's arguments

The Python has cuffi-nets, torch, pytest, and what pycaffe and the tests import (requirements/test.txt). The tests are
copied to an empty folder. Files that import what only the kernels have are left out, and named.
"""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.make.distributions import NETS

ROOT = Path(__file__).resolve().parents[2]
TRIALS = Path(__file__).parent / "trials"
# Of tests/support: they import the kernels.
BUILDERS = {"layers", "load", "makefiles", "new_layer", "points", "wheels", "workshop", "zoo"}
WHERE = "import cuffi; print(*cuffi.__path__, sep='\\n')"


def needs_kernels(file: Path) -> bool:
    """Does a test import a part of `cuffi` that cuffi-nets does not have, or a tool of the checkout?"""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return any(map(_of_kernels, names))


def _of_kernels(name: str) -> bool:
    top, part, *_ = f"{name}.".split(".")
    if top == "cuffi":
        here = (ROOT / "cuffi" / part).is_dir() or (ROOT / "cuffi" / f"{part}.py").exists()
        return bool(part) and here and not {part, f"{part}.py"} & set(NETS)
    return top in ("tools", "lab") or (top == "support" and part in BUILDERS)


def copied(folder: Path) -> list[str]:
    """Put the tests into the folder; the files that were left out."""
    hidden = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("base", "caffe_files", "nets", "support"):
        shutil.copytree(ROOT / "tests" / name, folder / "tests" / name, ignore=hidden)
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=hidden)
    shutil.copy(TRIALS / "conftest_nets.py", folder / "tests" / "conftest.py")
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "layers").mkdir()
    out = [file for file in sorted(folder.glob("tests/*/**/test_*.py")) if needs_kernels(file)]
    for file in out:
        file.unlink()
    return [file.relative_to(folder).as_posix() for file in out]


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return 0 if arguments else 2
    python, *rest = arguments
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LAYERS_DIR")}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        out = copied(folder)
        where = subprocess.run([python, "-c", WHERE], cwd=folder, env=clean, capture_output=True, text=True)
        if where.returncode or Path(where.stdout.strip(), "runtime").exists():
            print(f"{python} has no cuffi-nets alone: {(where.stdout + where.stderr).strip()}")
            return 2
        print(f"{where.stdout.strip()}; left out: {', '.join(out)}", flush=True)
        chosen = rest if any(word.startswith("tests") for word in rest) else [*rest, "tests/nets"]
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:warnings", *chosen]
        return subprocess.run(command, cwd=folder, env=clean).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
