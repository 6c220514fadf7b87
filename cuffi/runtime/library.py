"""Find, load and check a layer's compiled libraries."""

import importlib.machinery
import importlib.util
import json
from pathlib import Path

import torch

from .. import edge as _edge
from ..backends import BACKENDS, HOST, Backend
from ..base.errors import CaffeRuntimeError, dtype_name
from ..base.shown import command
from ..folders import toolkit_folders
from .elf import why_broken
from .kernels import KernelLibrary

FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
# The dtypes of a tensor that the declaration calls `int32 or int64`.
INDICES = (torch.int32, torch.int64)
# Those of templates that somebody launches with them.
OTHERS = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.uint32, torch.uint64, torch.bool)
# The names of the element types in include/caffe_ffi.h.
_DTYPE_NAMES = {dtype: f"CAFFE_{dtype_name(dtype).upper()}" for dtype in (*FLOATING, *INDICES, *OTHERS)}


_BY_DEVICE = {backend.device: backend for backend in BACKENDS.values()}


def backend_of(device: torch.device) -> Backend:
    """The backend that computes with tensors on this device."""
    return _BY_DEVICE.get(device.type, HOST)


def backends_here() -> list[Backend]:
    """The backends that this torch has devices for, in the order of the table."""
    return [backend for backend in BACKENDS.values() if _BY_DEVICE[backend.device] is backend]


class Library:
    """One loaded extension: a layer's C functions for one backend.

    Args:
        name: the layer's name, for messages.
        module: the layer package's `__name__`.
        folder: the extension's folder.
        backend: a name in the table of backends.
        dtypes: the dtypes that the layer computes in.

    Attributes:
        is_program: are its functions data that the extension runs? See KernelLibrary.
        lib, ffi: cffi's.
        signatures: for each function its return type, its parameters and the extents of its tensors (build_ffi.py).
        codes: the C code of each dtype that a tensor may have.

    Raises:
        CaffeRuntimeError: the library is missing, was built by another version of the toolkit, or cannot run on this
            machine.
    """

    is_program = False

    def __init__(self, name: str, module: str, folder: Path, backend: str, dtypes: tuple):
        self.name, self.backend = name, backend
        path = folder / BACKENDS[backend].library
        if not path.exists():
            raise CaffeRuntimeError(how_to_build(name, backend, path))
        if broken := why_broken(path):
            raise CaffeRuntimeError(how_to_build(name, backend, path, f"{path} {broken}, remove it"))
        # Loaded by path, under a unique name, because two packages may have a layer of the same name.
        loader = importlib.machinery.ExtensionFileLoader(f"{module}._{backend}", str(path))
        spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
        assert spec is not None  # there is a loader
        extension = importlib.util.module_from_spec(spec)
        loader.exec_module(extension)
        self.lib, self.ffi = extension.lib, extension.ffi
        edge = getattr(self.lib, "caffe_edge", None)
        if not _edge.matches(self.text(edge()) if edge else ""):
            why = f"{path} was built by another version of the toolkit"
            raise CaffeRuntimeError(how_to_build(name, backend, path, why))
        if reason := self.text(self.lib.caffe_unsupported()):
            raise CaffeRuntimeError(f"{name}: {path.name} cannot run here: {reason}")
        self.signatures = json.loads(self.text(self.lib.caffe_signatures()))
        self.codes = {dtype: getattr(self.lib, name) for dtype, name in _DTYPE_NAMES.items()}

    def text(self, pointer) -> str:
        """A C string; '' for NULL."""
        return self.ffi.string(pointer).decode(errors="replace") if pointer else ""

    def runner(self, function: str) -> int:
        """The address of the wrapper that takes the function's arguments as words (src/edge/ffi_run.h)."""
        return self.lib.caffe_runner(function.encode())

    @property
    def set_num_threads(self) -> int:
        """The address of the function that limits the threads of a launch on the host."""
        return self.lib.caffe_set_num_threads_address()

    def fail(self, function: str):
        """Raise the error that C has stored."""
        text = self.text(self.lib.caffe_last_error()) or "failed without a message"
        raise CaffeRuntimeError(f"{self.name}: {function} on {self.backend}: {text}")


def last_failure(library: Path) -> str:
    """Why the last build of a library failed, from the file that make wrote beside it; "" if it did not fail."""
    backend = next((b for b in BACKENDS.values() if b.library == library.name), HOST)
    try:
        why = json.loads(library.with_name(backend.description).read_bytes()).get("failed", "")
    except (OSError, ValueError, AttributeError):
        return ""
    return f"its last build for {backend.name} failed: {why}" if why else ""


class Libraries(dict):
    """The libraries of one layer by the names of their backends, each loaded at its first use.

    The arguments are those of Library.
    """

    def __init__(self, name: str, module: str, folder: Path, dtypes: tuple):
        super().__init__()
        self.name, self.module, self.folder, self.dtypes = name, module, folder, dtypes

    def __missing__(self, backend: str) -> Library | KernelLibrary:
        if (self.folder / BACKENDS[backend].kernels).exists():
            self[backend] = KernelLibrary(self.name, self.folder, backend)
        else:
            self[backend] = Library(self.name, self.module, self.folder, backend, self.dtypes)
        return self[backend]

    def built(self) -> list[str]:
        """The backends that there is a library for."""
        return [
            backend.name
            for backend in backends_here()
            if any((self.folder / file).exists() for file in (backend.library, backend.kernels))
        ]

    def signatures(self) -> dict[str, dict]:
        """The C functions' signatures. If the layer is not built, the error names the command that builds it."""
        built = self.built()
        if not built:
            raise CaffeRuntimeError(how_to_build(self.name, HOST.name, self.folder / HOST.library))
        on_gpu = len(built) > 1 and torch.cuda.is_available()  # which takes 0.15 s at first
        return self[built[-1] if on_gpu else built[0]].signatures

    def codes(self) -> dict[torch.dtype, int]:
        """The C code of each dtype that a tensor may have: the same in all libraries."""
        self.signatures()
        return next(iter(self.values())).codes


def how_to_build(name: str, backend: str, path: Path, wrong: str = "") -> str:
    """An error's text: why the library cannot be used, and the command that builds it with make, pip or load."""
    package, wrong = path.parent.parent, wrong or last_failure(path)
    if any((above / "complete").exists() for above in path.parents):
        if wrong == last_failure(path) != "":
            return f"{name}: {wrong}"
        wrong = wrong or f"not built for {backend}"
        return f"{name}: {wrong}: load it with backends='{backend}', which needs its compiler."
    if installed := next((f for f in path.parents if (f / _edge.INSTALLED).exists()), None):
        missing = f"not built for {backend}: there was no compiler for it when {installed.name} was installed"
        return (
            f"{name}: {wrong or missing}. "
            "Install it again on a machine with nvcc: pip install --force-reinstall --no-deps --no-cache-dir"
        )
    compiler = BACKENDS[backend].compiler.lower()
    needs = "" if BACKENDS[backend].on_host else f" (needs {compiler}, see README.md)"
    where = [] if package in toolkit_folders() else [f"LAYERS_DIR={package}"]
    return (
        f"{name}: {wrong or f'not built for {backend}: {path} is missing'}. "
        f"Type `{command('make', *where, f'LAYERS={name}')}` in the toolkit's folder{needs}."
    )
