"""Run the toolkit's make on a folder of layers outside the tree, with an empty build folder."""

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ._machine import cores

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Built:
    """The result of a make: its wall time, and the number of steps (compiler, cffi, ...) that it printed."""

    seconds: float
    steps: int


def make(folder: Path, *targets: str, **settings: str) -> Built:
    """Build the layers in folder/layers into folder/build, on all processors."""
    command = [
        "make",
        f"-j{cores()}",
        "-C",
        str(ROOT),
        f"PYTHON={sys.executable}",
        f"LAYERS_DIR={folder / 'layers'}",
        f"BUILD={folder / 'build'}",
        *(f"{k}={v}" for k, v in settings.items()),
        *targets,
    ]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return Built(seconds, len(re.findall(r"^  [A-Z]{3,5} +\S", done.stdout, re.M)))


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
