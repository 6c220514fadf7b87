"""The C functions of a built extension, for packages of 2017: `from ._round import lib, ffi`.

The calls themselves are C (cuffi/old_torch/src/th_call.h).
"""

import importlib.machinery
import importlib.util
import os
from pathlib import Path

from cffi import FFI
from torch import Tensor

from ... import edge as _edge
from ...backends import BACKENDS, HOST
from ...runtime import (
    CaffeRuntimeError,
    CaffeTypeError,
    CaffeValueError,
    backends_here,
    describe,
    dtype_name,
)
from ...runtime.extension import of_torch
from ..edge_files import FILES
from .function import old_functions
from .th_operations import DTYPES, Services

_FFI = FFI()


class Library:
    """cffi's `lib`: the functions are its attributes, and dir() lists nothing else."""

    def __init__(self, functions: dict):
        self.__dict__.update(functions)

    def __dir__(self) -> list[str]:
        return sorted(self.__dict__)


def library(file: str) -> tuple[Library, object]:
    """(lib, ffi) for `_round.py`, whose libraries are beside it. From then on old-style Functions run around it.

    Raises:
        CaffeRuntimeError: the library is missing, cannot run here, or was built by another version of the toolkit.
    """
    place = Path(os.path.realpath(file))
    name = place.stem.removeprefix("_")
    old_functions(_top(place.parent))
    found = {}
    for backend in backends_here():
        path = place.with_name(f"{place.stem}{backend.library}")
        if path.exists():
            found[backend.name] = _load(name, path, backend.name)
    if not found:
        raise CaffeRuntimeError(f"{name}: there is no library beside {file}: run its build script again")
    first = found.get(HOST.name) or next(iter(found.values()))
    for one in found.values():
        for other in (o for o in found.values() if o is not one):
            for function in one.functions:
                if function in other.functions:
                    one.connect(function, other.functions[function])
    return Library(first.functions), None


def _top(package: Path) -> Path:
    """The folder around the outermost package, which has the Functions that use the extension."""
    while (package / "__init__.py").exists() and package.parent != package:
        package = package.parent
    return package


def _load(name: str, path: Path, backend: str):
    loader = importlib.machinery.ExtensionFileLoader(path.name.partition(".")[0], str(path))
    spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
    assert spec is not None  # there is a loader
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    root = _edge.root()
    if root and module.edge != _edge.digest(root, FILES):
        raise CaffeRuntimeError(
            f"{name}: another version of the toolkit built {path}: run the extension's build script again"
        )
    if module.unsupported:
        raise CaffeRuntimeError(f"{name}: {path.name} cannot run here: {module.unsupported}")
    module.configure(of_python(name, BACKENDS[backend].device))
    return module


def of_python(name: str, gpu: str) -> dict:
    """The functions that C calls, by their names in th_call.h. gpu: the device type of THC's tensors."""

    def refuse(function, argument, kind, place, index, least, most, value):
        where = f"{name}: {function}"
        if not argument:
            raise CaffeTypeError(f"{where}: expected {index} arguments, got {value}")
        if place:
            dtype = DTYPES[kind.removeprefix("TH").removeprefix("Cuda").removesuffix("Tensor") or "Float"]
            device = gpu if place == "gpu" else "cpu"
            raise CaffeTypeError(
                f"{where}: {argument}: expected a {kind} ({device} {dtype_name(dtype)}), got {describe(value)}"
            )
        if least < most and isinstance(value, int):
            raise CaffeValueError(f"{where}: {argument}: expected {kind} from {least} to {most}, got {value}")
        raise CaffeTypeError(f"{where}: {argument}: expected {kind}, got {describe(value)}")

    def fail(function, text, error):
        said = f"{text}: {error}" if error else text
        raise CaffeRuntimeError(f"{name}: {function}: {said}") from error

    return {
        "torch": of_torch(),
        "service": Services(gpu),
        "refuse": refuse,
        "fail": fail,
        "dense": lambda tensor: tensor.detach().resolve_neg().resolve_conj().contiguous(),
        "restore": _restore,
        "address_of": _address_of,
    }


def _address_of(pointer) -> int:
    if not isinstance(pointer, _FFI.CData):
        raise TypeError
    return int(_FFI.cast("uintptr_t", pointer))


def _restore(tensor: Tensor, copy: Tensor) -> None:
    """Copy a dense copy's values back to the caller's tensor, unless they share memory."""
    if tensor.shape != copy.shape:
        tensor.data = copy
    elif not any(step == 0 and size > 1 for size, step in zip(tensor.shape, tensor.stride(), strict=True)):
        tensor.data.copy_(copy)
