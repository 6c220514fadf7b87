"""Compile a folder of kernels twice: by the toolkit's make, and by nvcc with Caffe's own macro."""

import ctypes
import importlib.machinery
import importlib.util
import subprocess
from pathlib import Path

from tools import files

from . import _machine, _make

HERE = Path(__file__).resolve().parent / "kernels"


def by_toolkit(folder: str, out: Path):
    """The C functions as the toolkit's make builds them, as a cffi `lib`."""
    where = out.resolve() / "kernels"
    target = where / "layers" / folder
    for file in (HERE / folder).iterdir():
        files.write(target / file.name, file.read_bytes(), if_changed=True)
    _make.make(where, "libraries", BACKENDS=_make.CUDA.name, ARCH=_arch())
    library = target / _make.CUDA.library
    loader = importlib.machinery.ExtensionFileLoader(f"benchmarks.{folder}._cuda", str(library))
    spec = importlib.machinery.ModuleSpec(loader.name, loader, origin=str(library))
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module.lib


def classic(folder: str, out: Path) -> ctypes.CDLL:
    """The C functions of the same files, compiled with kernels/classic/caffe_cuda_macro.h."""
    library = out.resolve() / "kernels" / f"{folder}_classic.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    options = f"-std=c++17 -O3 -arch={_arch()} --threads 0 -shared -Xcompiler -fPIC".split()
    includes = [f"-I{HERE / 'classic'}", f"-I{_make.ROOT / 'include'}"]
    sources = map(str, sorted((HERE / folder).glob("*.cu")))
    subprocess.run([_make.nvcc(), *options, *includes, *sources, "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def _arch() -> str:
    return f"sm_{_machine.gpu_arch().replace('.', '')}"
