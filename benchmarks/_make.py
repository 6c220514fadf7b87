"""Run the toolkit's make on a folder of layers outside the tree, with an empty build folder."""

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from cuffi.backends import BACKENDS

from ._machine import cores

ROOT = Path(__file__).resolve().parent.parent
CUDA = next(backend for backend in BACKENDS.values() if backend.compiler == "NVCC")


@dataclass(frozen=True)
class Built:
    """The result of a make: its wall time, and the number of steps (compiler, cffi, ...) that it printed."""

    seconds: float
    steps: int


def make(folder: Path, *targets: str, **settings: str) -> Built:
    """Build the layers in folder/layers into folder/build, on all processors."""
    settings |= {"PYTHON": sys.executable, "LAYERS_DIR": f"{folder}/layers", "BUILD": f"{folder}/build"}
    command = ["make", f"-j{cores()}", *(f"{name}={value}" for name, value in settings.items()), *targets]
    start = time.perf_counter()
    printed = run(command)
    return Built(time.perf_counter() - start, len(re.findall(r"^  [A-Z]{3,5} +\S", printed, re.M)))


def seconds_of(module: str, *arguments: str, **environment: str) -> float:
    """The seconds that a module of the benchmarks prints at its end, run in a process of its own."""
    return float(run([sys.executable, "-m", module, *arguments], **environment).split()[-1])


def run(command: list[str], **environment: str) -> str:
    """Run a command in the toolkit's folder. Returns what it prints."""
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def copy_layer(source: Path, folder: Path, name: str) -> None:
    """Copy a layer's own files to layers/<name> in a folder."""
    target = folder / "layers" / name
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.suffix in (".cu", ".cuh", ".h", ".hpp", ".cpp", ".py", ".proto"):
            shutil.copy(file, target / file.name.replace(source.name, name))


def nvcc() -> str:
    """The CUDA compiler that make uses, or "" if there is none or NVCC= is set."""
    if (wanted := os.environ.get("NVCC", "search")) != "search":
        return wanted
    search = [sys.executable, str(ROOT / "tools" / "make" / "find_nvcc.py")]
    return subprocess.run(search, capture_output=True, text=True).stdout.strip()


def has_nvcc() -> bool:
    return bool(nvcc())
