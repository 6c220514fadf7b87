"""Run modules whose kernels are strings of load_inline, and compare each with its plain torch.

    python -m lab.extensions.inline /fetched/board [--seconds 300] [WORD ...]

KernelBench's form: NAME.py has ModelNew, and NAME.ref.py beside it has Model, get_inputs() and get_init_inputs(). Both
models are made after the same seed, and Model runs in double. Each file has a process of its own. Without a GPU the
processor is one, as by `python -m cuffi.ext`. The sizes of a problem are made smaller, because a processor is not a
GPU. First all large ones are divided by 8, and a batch has four at most. If a file does not take them, only the batch
is smaller. At last it runs with its own sizes.

Prints a row for each file: right, with the largest error relative to the largest value; or why not. A file that
results.jsonl of the folder has is not run again. WORD: only names with it.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import torch

TOLERANCE = 1e-4
SIZES = ("all", "batch", "own")
BATCH = re.compile(r"batch", re.IGNORECASE)
# Sizes of a problem that are no amount of data.
SHAPE = re.compile(r"kernel|stride|pad|dilation|group|dim$|classes|head", re.IGNORECASE)
# Files that no processor runs: inline PTX, tensor cores, and libraries of a GPU.
OTHER = re.compile(r"\basm\b|wmma|mma\.h|cutlass|cute/|cublas|cudnn")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seconds", type=int, default=300, help="for one try of a file")
    parser.add_argument("--sizes", choices=SIZES, help=argparse.SUPPRESS)  # the child's
    asked = parser.parse_intermixed_args()
    if asked.sizes:
        return print(json.dumps(tried(asked.folder, asked.sizes))) or 0
    log = asked.folder / "results.jsonl"
    known = (
        {row["name"]: row for row in map(json.loads, log.read_text().splitlines())} if log.exists() else {}
    )
    files = [f for f in sorted(asked.folder.glob("*.py")) if f.with_suffix(".ref.py").exists()]
    files = [f for f in files if all(word in f.name for word in asked.words)]
    for file in files:
        if file.stem not in known:
            known[file.stem] = row = {"name": file.stem, **of_file(file, asked.seconds)}
            with log.open("a") as out:
                out.write(json.dumps(row) + "\n")
        print(shown(known[file.stem]), flush=True)
    rows = [known[f.stem] for f in files]
    plain = [row for row in rows if not row["other"]]
    right = sum(row["result"] == "right" for row in plain)
    print(
        f"{right} of {len(plain)} right; {len(rows) - len(plain)} more need a GPU's own instructions or libraries"
    )
    return 0 if all(row["result"] != "wrong" for row in rows) else 1


def shown(row: dict) -> str:
    what = f"{row['error']:.1e}" if "error" in row else row.get("why", "")
    return f"{row['name']:24} {row['result']:9} sizes: {row['sizes']:5} {row['seconds']:5.0f} s  {what}"


def of_file(file: Path, seconds: int) -> dict:
    row: dict = {"other": bool(OTHER.search(file.read_text()))}
    if row["other"]:
        return row | {"result": "left out", "sizes": "own", "seconds": 0}
    for sizes in SIZES:
        start = time.monotonic()
        command = [sys.executable, "-m", "lab.extensions.inline", str(file), "--sizes", sizes]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
            lines = done.stdout.strip().splitlines()
            row |= json.loads(lines[-1]) if done.returncode == 0 else failure(done.stderr, done.returncode)
        except subprocess.TimeoutExpired:
            row |= {"result": "long", "why": f"more than {seconds} s"}
        row |= {"sizes": sizes, "seconds": time.monotonic() - start}
        if row["result"] in ("right", "no build", "long"):
            break
    return row


def failure(text: str, status: int) -> dict:
    """The line that says why a process failed."""
    lines = [line for line in text.splitlines() if line.strip()] or [f"ended by status {status}"]
    built = any("CaffeBuildError" in line for line in lines)
    errors = [line for line in lines if re.search(r"error:|Error", line) and "CaffeBuildError" not in line]
    return {"result": "no build" if built else "failed", "why": (errors or lines)[0 if built else -1][:200]}


def tried(file: Path, sizes: str) -> dict:
    """The result of one file in this process."""
    from cuffi.old_torch import cpp_extension, on_processor

    cpp_extension.install()
    where = "cuda" if torch.cuda.is_available() else "cpu"
    if where == "cpu":
        on_processor.stand_in()
    built: list[str] = []  # a file may catch the error of a build, and go without its kernels
    for name in ("load", "load_inline"):
        setattr(cpp_extension, name, noting(getattr(cpp_extension, name), built))
    problem = loaded(file.with_suffix(".ref.py"), sizes)
    torch.manual_seed(1)
    arguments = problem["get_init_inputs"]()
    given = [arguments] if isinstance(arguments, dict) else arguments
    inputs = problem["get_inputs"]()
    torch.manual_seed(2)
    reference = problem["Model"](*given)
    torch.manual_seed(2)
    model = loaded(file, "own")["ModelNew"](*given)
    with torch.no_grad():
        expected = reference.to(where).double()(*(doubled(moved(x, where)) for x in inputs))
        got = model.to(where)(*(moved(x, where) for x in inputs))
    if (failed := [text for text in built if text]) or not built:
        return {"result": "no build", "why": failed[0] if failed else "no extension was loaded"}
    return compared(got, expected)


def noting(load, built: list[str]):
    """`load`, which adds the error of each build to a list, "" if there is none."""

    def noted(*given, **named):
        try:
            found = load(*given, **named)
        except Exception as error:
            built.append(f"{type(error).__name__}: {error}"[:200])
            raise
        built.append("")
        return found

    return noted


def moved(value, where: str):
    return value.to(where) if isinstance(value, torch.Tensor) else value


def doubled(value):
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def compared(got, expected) -> dict:
    pairs = list(zip(listed(got), listed(expected), strict=True))
    if wrong := [(list(g.shape), list(e.shape)) for g, e in pairs if g.shape != e.shape]:
        return {"result": "wrong", "why": f"shapes {wrong}"}
    errors = [float((g.double() - e).abs().max() / e.abs().max().clamp_min(1e-12)) for g, e in pairs]
    error = max(errors) if all(e == e for e in errors) else float("inf")  # a NaN is wrong
    return {"result": "right" if error <= TOLERANCE else "wrong", "error": error}


def listed(value) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else [v for v in value if isinstance(v, torch.Tensor)]


def loaded(file: Path, sizes: str) -> dict:
    """The names of a Python file, whose large sizes are made smaller."""
    tree = ast.parse(file.read_text())
    for place in tree.body:
        target = ast.unparse(place.targets[0]) if isinstance(place, ast.Assign) else ""
        if sizes != "own" and BATCH.search(target):
            Smaller(lambda size: min(size, 4)).visit(place)
        elif sizes == "all" and (
            (target and not SHAPE.search(target)) or getattr(place, "name", "") == "get_inputs"
        ):
            Smaller(eighth).visit(place)
    names: dict = {"__name__": "file", "__file__": str(file)}
    exec(compile(tree, str(file), "exec"), names)
    return names


def eighth(size: int) -> int:
    """An eighth of a large size. Kernels often want a multiple of a warp or of a tile."""
    if size < 64:
        return size
    step = next(s for s in (32, 16, 8, 4, 2, 1) if size % s == 0)
    return max(32, size // 8 // step * step)


class Smaller(ast.NodeTransformer):
    """Changes the whole numbers of a statement."""

    def __init__(self, change):
        self.change = change

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if type(node.value) is not int:
            return node
        return ast.copy_location(ast.Constant(self.change(node.value)), node)


if __name__ == "__main__":
    sys.exit(main())
