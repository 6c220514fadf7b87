"""Find the toolkit's rules, headers and tools, and make digests of them and of the compilers."""

import functools
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import sys
from pathlib import Path

from .. import edge as _edge

# The parts of the toolkit that a build reads.
PARTS = ("Makefile", "mk", "build_ffi.py", "requirements", "include", "src", "tools")
# The folders of a wing that a build reads, cuffi/<wing>/core.
OF_WINGS = ("core", "edge", "include", "make", "src")
# Python packages that write code: patterns of their names.
WRITERS = ("cffi", "pycparser", "tree[-_.]sitter", "tree[-_.]sitter[-_.]cuda", "grpcio[-_.]tools")


@functools.cache
def root() -> Path:
    """The folder of the Makefile."""
    if folder := _edge.root():
        return folder
    # Imported here, because it imports torch, which `cuffi folder` does not need.
    from ..runtime import CaffeRuntimeError

    raise CaffeRuntimeError(
        f"load: the toolkit's Makefile is neither in {_edge.PACKAGE.parent} nor in {_edge.PACKAGE / _edge.INSTALLED}: "
        "install the toolkit again"
    )


def digest() -> bytes:
    """A digest of the files of the toolkit that a build reads."""
    total, package = hashlib.sha256(), f"{_edge.PACKAGE}/"
    wings = [f"{wing.name}/{part}" for wing in sorted(_edge.PACKAGE.iterdir()) for part in OF_WINGS]
    for above, parts in ((f"{root()}/", PARTS), (package, ("backends.py", "edge.py", "folders.py", *wings))):
        for name in sorted(_files(above, parts)):
            total.update(name.encode())
            # No Path and no file object, because half of the time of a load from the cache goes here.
            file = os.open(above + name, os.O_RDONLY)
            try:
                while part := os.read(file, 1 << 16):
                    total.update(part)
            finally:
                os.close(file)
    return total.digest()


def _files(above: str, parts) -> list[str]:
    """The paths of the files of these parts below a folder."""
    found = [p for p in parts if os.path.isfile(above + p)]
    folders = [p for p in parts if os.path.isdir(above + p)]
    while folders:
        folder = folders.pop()
        with os.scandir(above + folder) as entries:
            for entry in entries:
                if entry.name != "__pycache__":  # where other processes write at any time
                    (folders if entry.is_dir() else found).append(f"{folder}/{entry.name}")
    return found


@functools.cache
def has_bytecode() -> bool:
    """Is this an installed toolkit with its programs' bytecode, as pip writes it?"""
    if root() != _edge.PACKAGE / _edge.INSTALLED:
        return False
    programs = (f for part in ("tools", _edge.PACKAGE.name) for f in (root() / part).rglob("*.py"))
    return all(os.path.exists(importlib.util.cache_from_source(str(file))) for file in programs)


def find_nvcc() -> str:
    """The CUDA compiler that make's own search finds; "" if there is none."""
    setting = os.environ.get("NVCC", "search").strip()
    if setting != "search":
        return shutil.which(setting) or setting
    return _search(os.environ.get("PATH", ""), os.environ.get("CUDA_HOME", ""))


@functools.cache
def _search(path: str, cuda_home: str) -> str:
    spec = importlib.util.spec_from_file_location("find_nvcc", root() / "tools" / "make" / "find_nvcc.py")
    assert spec is not None and spec.loader is not None  # a .py file has a loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.find(cuda_home) or "")


def identity(program: str) -> list[tuple]:
    """Identify a compiler without starting it: by each file of its name on PATH, as a wrapper may call the next."""
    if os.sep in program:
        found = [Path(program)]
    else:
        found = [Path(folder, program) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)]
    result = []
    for path in found:
        try:
            real = path.resolve(strict=True)
            status = real.stat()
        except OSError:
            continue
        result.append((str(real), status.st_size, status.st_mtime_ns))
    return result


@functools.cache
def writers() -> list[str]:
    """The packages that take part in a build, by the names of their folders, which contain their versions."""
    called = re.compile(rf"({'|'.join(WRITERS)})-\d[^-]*(-.*)?\.(dist|egg)-info", re.IGNORECASE)
    folders = [folder for folder in sys.path if os.path.isdir(folder or ".")]
    return sorted(name for folder in folders for name in os.listdir(folder or ".") if called.fullmatch(name))


@functools.cache
def processor() -> str:
    """The meaning of -march=native on this machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return platform.machine() + platform.processor()
    return " ".join(
        line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))
    )
