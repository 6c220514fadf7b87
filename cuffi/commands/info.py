"""`cuffi info`: the folder of the toolkit's Makefile on stdout, and on stderr the versions that a bug report needs."""

import os
import platform
import re
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

from ..base.compiler import cxx
from ..installed import PACKAGE, has_kernels


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
    made = [*PACKAGE.glob("*/*/_*.abi3.so"), *PACKAGE.parent.glob("layers/*/_*.abi3.so")]
    libraries = sorted({file.name.removesuffix(".abi3.so") for file in made})
    return [
        f"Python {platform.python_version()}, {platform.platform()}",
        ", ".join(package(name) for name in ("torch", "numpy", "cffi", "protobuf", "cuffi", "cuffi-nets")),
        program(cxx(), "--version"),
        program(os.environ.get("NVCC") or "nvcc", "--version"),
        program("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
        f"libraries beside the layers: {', '.join(libraries) or 'none (type make)'}",
    ]


def main() -> int:
    if has_kernels():
        from ..edge import root

        print(root(), flush=True)
    print(*versions(), sep="\n", file=sys.stderr)
    return 0
