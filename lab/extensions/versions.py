"""Run one build of the tests' extensions under several Pythons and torches, and compare the results.

    python -m lab.extensions.versions /envs/old/bin/python /envs/new/bin/python folder-with-torch ...

This Python builds them for the processor. Each other Python imports the same files from the checkout; a folder is
put in front of this Python's path. Prints a row for each: its versions, and the largest difference to this one.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cuffi
from cuffi.old_torch import cpp_extension

ROOT = Path(cuffi.__file__).resolve().parents[1]
SOURCES = ROOT / "tests/fixtures/torch_extension"
BUILDS = {
    "values": ["values.cpp"],
    "things": ["things.cpp"],
    "launching": ["launching.cu"],
    "cell_cpp": ["cell.cpp"],
    "cell_cuda": ["cell_cuda.cpp", "cell_cuda_kernel.cu"],
    "operators": ["operators.cu"],
}
PROGRAM = """
import importlib.util, json, platform, sys
import torch

def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

m = {name: loaded(name, path) for name, path in json.loads(sys.argv[1]).items()}
numbers = lambda n: torch.linspace(-1, 1, n, dtype=torch.float64)
results = []
def add(*values):
    for v in values:
        if isinstance(v, (list, tuple)):
            add(*v)
        else:
            results.extend(v.double().flatten().tolist() if isinstance(v, torch.Tensor) else [v])
def error(call):
    try:
        call()
    except Exception as e:
        add(type(e).__name__, str(e).split(" (")[0].splitlines()[0].split(": ")[-1])

v, x = m["values"], torch.arange(6.0).view(2, 3)
add(v.scaled(x, 0.5, 2), v.kinds(True, -3, 1.5, "text", [4, 5], (6, 7)), v.facts(x.t()), list(v.several(x)))
add(v.made([2], torch.int32), v.sum(x.t()), v.limits(torch.bfloat16), v.halves(x.half()), v.parallel(1000))
add(v.turned(1 + 2j, torch.tensor([1 + 2j], dtype=torch.complex64)).imag, v.overloaded(x))
for how in (0, 1, 2, 3, 4, 6, 8, 9, 10, 14, 18):
    error(lambda: v.fail(how))
error(lambda: v.scaled(None)), error(lambda: v.first(x.double()))
q = numbers(4).requires_grad_()
y = m["things"].square(q, 3.0)
y.sum().backward()
add(y.detach(), q.grad, m["things"].apply(lambda a, b: a * b, 5), m["things"].Counter(2).n)
add(m["launching"].twice(x)), error(lambda: m["launching"].twice(x, 1, 2048))
shapes = [(3, 5), (12, 9), (1, 12), (3, 4), (3, 4)]
given = [numbers(a * b).view(a, b) for a, b in shapes]
for name in ("cell_cpp", "cell_cuda"):
    out = m[name].forward(*given)
    grads = m[name].backward(numbers(12).view(3, 4), numbers(12).view(3, 4), *out[1:], given[1])
    add(out, grads)
ops = torch.ops.aten_test_ops
add(ops.muladd(x, x, 2.0), ops.doubled(x), ops.inferred(x, 1, [6]))
compiled = torch.compile(lambda a: ops.doubled(a) + 1, backend="eager")
torch.library.register_fake("aten_test_ops::doubled")(torch.empty_like)
add(compiled(x))
print(json.dumps([platform.python_version(), torch.__version__, results]))
"""


def main() -> int:
    os.environ["BACKENDS"] = "host"
    files = {}
    for name, sources in BUILDS.items():
        paths = [SOURCES / source for source in sources]
        found = cpp_extension.load(name, paths, is_python_module=False, backends="host")
        files[name] = found
    first, status = run(sys.executable, "", files), 0
    print(f"{len(files)} files, {len(first[2])} results of Python {first[0]}, torch {first[1]}")
    for place in sys.argv[1:]:
        folder = place if os.path.isdir(place) else ""
        found = run(sys.executable if folder else place, folder, files)
        said = difference(first[2], found[2])
        status |= said > 1e-12
        print(f"Python {found[0]:8} torch {found[1]:14} largest difference {said:.1e}")
    return status


def run(python: str, folder: str, files: dict) -> list:
    path = os.pathsep.join(filter(None, [folder, str(ROOT)]))
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [python, "-c", PROGRAM, json.dumps(files)], cwd=empty, capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip
    if done.returncode:
        sys.exit(f"{python} {folder}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def difference(a: list, b: list) -> float:
    """Between numbers, relative to the larger; infinite if a text differs."""
    worst = 0.0 if len(a) == len(b) else float("inf")
    for x, y in zip(a, b, strict=False):
        if isinstance(x, str) or isinstance(y, str):
            worst = worst if x == y else print(f"  {x!r} is {y!r}") or float("inf")
        elif x != y:
            worst = max(worst, abs(x - y) / max(abs(x), abs(y)))
    return worst


if __name__ == "__main__":
    sys.exit(main())
