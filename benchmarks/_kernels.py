"""Compile a folder of kernels twice: by the toolkit's make, and by nvcc with Caffe's own macro."""

import ctypes
import importlib.machinery
import importlib.util
import subprocess
from pathlib import Path

from . import _machine, _make

HERE = Path(__file__).resolve().parent / "kernels"


def by_toolkit(folder: str, out: Path):
    """The C functions as the toolkit's make builds them, as a cffi `lib`."""
    where = out.resolve() / "kernels"
    target = where / "layers" / folder
    target.mkdir(parents=True, exist_ok=True)
    for file in (HERE / folder).iterdir():
        if not (target / file.name).exists() or (target / file.name).read_bytes() != file.read_bytes():
            (target / file.name).write_bytes(file.read_bytes())
    library = target / "_cuda.abi3.so"
    _make.make(where, str(library), ARCH=_arch())
    loader = importlib.machinery.ExtensionFileLoader(f"benchmarks.{folder}._cuda", str(library))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_file_location(loader.name, library, loader=loader)
    )
    loader.exec_module(module)
    return module.lib


def classic(folder: str, out: Path) -> ctypes.CDLL:
    """The C functions of the same files, compiled with kernels/classic/caffe_cuda_macro.h."""
    library = out.resolve() / "kernels" / f"{folder}_classic.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    include = _make.ROOT / "include"
    subprocess.run(
        [
            _make.nvcc(),
            "-std=c++17",
            "-O3",
            f"-arch={_arch()}",
            "--threads",
            "0",
            "-shared",
            "-Xcompiler",
            "-fPIC",
            f"-I{HERE / 'classic'}",
            f"-I{include}",
            *map(str, sorted((HERE / folder).glob("*.cu"))),
            "-o",
            str(library),
        ],
        check=True,
    )
    return ctypes.CDLL(str(library))


def _arch() -> str:
    return f"sm_{_machine.gpu_arch().replace('.', '')}"
