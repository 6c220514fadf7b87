"""`python -m cuffi` prints the folder of the toolkit's Makefile, and on stderr the versions that a bug report needs.

make -C "$(python -m cuffi)" LAYERS_DIR=$PWD/my_layers
"""

import os
import platform
import re
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .loading.toolkit import root


def package(name: str) -> str:
    """`torch 2.13.0+cpu`, or `torch: not installed`. Imports nothing."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name}: not installed"


def program(command: str, *options: str) -> str:
    """The first line of the program's output that has a version, such as 12.2; or "not found"."""
    try:
        done = subprocess.run([*shlex.split(command), *options], capture_output=True, text=True, timeout=10)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return f"{command}: not found"
    lines = [line for line in done.stdout.splitlines() if re.search(r"\d\.\d", line)]
    return f"{command}: {lines[0].strip()}" if lines else f"{command}: no answer"


def versions() -> list[str]:
    """The versions that a build and a call depend on, one per line."""
    folder = Path(__file__).resolve().parent
    libraries = sorted({made.name.removesuffix(".abi3.so") for made in folder.glob("*/_*.abi3.so")})
    return [
        f"Python {platform.python_version()}, {platform.platform()}",
        ", ".join(package(name) for name in ("torch", "cffi", "protobuf", "cuffi")),
        program(os.environ.get("CXX") or "g++", "--version"),
        program(os.environ.get("NVCC") or "nvcc", "--version"),
        program("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
        f"libraries beside the layers: {', '.join(libraries) or 'none (type make)'}",
    ]


print(root(), flush=True)
print(*versions(), sep="\n", file=sys.stderr)
