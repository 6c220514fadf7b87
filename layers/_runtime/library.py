"""A layer's compiled libraries: where they are, how they are loaded, what they say of themselves."""

import importlib.machinery
import importlib.util
import json
from pathlib import Path

import torch

from .. import _edge
from .._backends import BACKENDS, HOST, Backend
from .errors import CaffeRuntimeError

# Element types by the code that include/caffe_ffi.h gives them.
_DTYPE_NAMES = {
    torch.float32: "CAFFE_FLOAT32",
    torch.float64: "CAFFE_FLOAT64",
    torch.float16: "CAFFE_FLOAT16",
    torch.bfloat16: "CAFFE_BFLOAT16",
}
FLOATING = tuple(_DTYPE_NAMES)


def serving_by(version) -> dict[str, Backend]:
    """By a device's type, the backend for it. Of those that share one, torch's `version` names the one of its build."""
    first = {backend.device: backend for backend in reversed(BACKENDS.values())}
    built = {backend.device: backend for backend in BACKENDS.values() if getattr(version, backend.name, None)}
    return first | built


_SERVING = serving_by(torch.version)


def serving(device: torch.device) -> Backend:
    """The backend that tensors on a device are computed by."""
    return _SERVING.get(device.type, HOST)


def served() -> list[Backend]:
    """The backends that this torch has devices for, as the table has them."""
    return [backend for backend in BACKENDS.values() if _SERVING[backend.device] is backend]


class Library:
    """One loaded extension: a layer's C functions for one backend.

    Args:
        name: the layer's name, for messages.
        module: the layer package's `__name__`.
        folder: where the extension is.
        backend: its name in the table of backends.
        dtypes: what the layer computes in.

    Attributes:
        lib, ffi: cffi's.
        signatures: by function: what it returns, its parameters, the extents of its tensors (build_ffi.py).
        codes: the C code of each dtype that the layer computes in.

    Raises:
        CaffeRuntimeError: it is not built, or not by this toolkit, or cannot run on this machine.
    """

    def __init__(self, name: str, module: str, folder: Path, backend: str, dtypes: tuple):
        self.name, self.backend = name, backend
        path = folder / BACKENDS[backend].library
        if not path.exists():
            raise CaffeRuntimeError(how_to_build(name, backend, path))
        # Loaded by path, under a name of its own: two packages may hold a layer of the same name.
        loader = importlib.machinery.ExtensionFileLoader(f"{module}._{backend}", str(path))
        spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
        extension = importlib.util.module_from_spec(spec)
        loader.exec_module(extension)
        self.lib, self.ffi = extension.lib, extension.ffi
        said = getattr(self.lib, "caffe_edge", None)
        if not _edge.fits(self.text(said()) if said else ""):
            why = f"{path} was built by another version of the toolkit"
            raise CaffeRuntimeError(how_to_build(name, backend, path, why))
        if reason := self.text(self.lib.caffe_unsupported()):
            raise CaffeRuntimeError(f"{name}: {path.name} cannot run here: {reason}")
        self.signatures = json.loads(self.text(self.lib.caffe_signatures()))
        self.codes = {d: getattr(self.lib, n) for d, n in _DTYPE_NAMES.items() if d in dtypes}

    def text(self, pointer) -> str:
        """A C string; '' for NULL."""
        return self.ffi.string(pointer).decode(errors="replace") if pointer else ""

    def runner(self, function: str) -> int:
        """The address of the function that takes its arguments as words (src/ffi_run.h)."""
        return self.lib.caffe_runner(function.encode())

    @property
    def set_num_threads(self) -> int:
        """The address of the function that says how many threads a launch on the host may use."""
        return self.lib.caffe_set_num_threads_address()

    def fail(self, function: str):
        """Raise what the C side left in its error slot."""
        text = self.text(self.lib.caffe_last_error()) or "failed without saying why"
        raise CaffeRuntimeError(f"{self.name}: {function} on {self.backend}: {text}")


def how_to_build(name: str, backend: str, path: Path, wrong: str = "") -> str:
    """Why there is no library, or what is wrong with it, and what to type. Make, pip or load has built the layer."""
    package = path.parent.parent
    if any((above / "complete").exists() for above in path.parents):
        wrong = wrong or f"not built for {backend}"
        return f"{name}: {wrong}: load it with backends='{backend}', which needs its compiler."
    if (package / "_toolkit").exists():
        missing = f"not built for {backend}: where {package.name} was installed there was no compiler for it"
        return (
            f"{name}: {wrong or missing}. "
            "Install it again where nvcc is found: pip install --force-reinstall --no-deps --no-cache-dir"
        )
    compiler = BACKENDS[backend].compiler.lower()
    needs = "" if BACKENDS[backend].on_host else f" (needs {compiler}, see README.md)"
    where = "" if package == Path(__file__).resolve().parents[1] else f"LAYERS_DIR={package} "
    return (
        f"{name}: {wrong or f'not built for {backend}: {path} is missing'}. "
        f"Type `make {where}LAYERS={name}` in the toolkit's folder{needs}."
    )
