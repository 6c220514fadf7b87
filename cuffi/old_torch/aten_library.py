"""Import the libraries of a built extension of torch/extension.h."""

import enum
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from ..backends import BACKENDS
from ..base import CaffeRuntimeError
from ..loading.cache import Entry
from ..runtime import backends_here

# The end of the name of the library for GPUs, beside that for the processor, where Python imports both as one module.
BESIDE = ".gpu.abi3.so"
_imported: dict[str, ModuleType] = {}


def libraries_of(entry: Entry, name: str) -> dict[str, Path]:
    """The libraries that were built, by backend."""
    found = {backend: entry.folder / f"_{name}{row.library}" for backend, row in BACKENDS.items()}
    return {backend: path for backend, path in found.items() if path.exists()}


def module_of(entry: Entry, name: str) -> ModuleType:
    """The module of an extension in the cache. The same build is imported once."""
    key = str(entry.place)
    if key not in _imported:
        here = [backend.name for backend in backends_here()]
        found = {b: path for b, path in libraries_of(entry, name.rpartition(".")[2]).items() if b in here}
        if not found:
            raise CaffeRuntimeError(f"{name}: there is no library for this machine in {entry.folder}")
        modules = [import_library(name, path) for path in found.values()]
        for other in modules[1:]:
            connect(modules[0], other)
        _imported[key] = modules[0]
    return _imported[key]


def import_library(name: str, path: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise CaffeRuntimeError(f"{name}: {path} is no library")
    before = sys.modules.get(name)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    if before is not None:
        sys.modules[name] = before
    return module


def connect(module: ModuleType, other: ModuleType) -> None:
    """Tensors on a GPU go to the functions of the other library; names that only it has become the module's.

    The classes of py::class_ are the other library's, as in torch's extensions, because instances may have tensors. So
    are functions of a module's own PyInit function, whose arguments are not read here.
    """
    if connect_one := getattr(module, "_connect", None):
        _connect_names(module, other, connect_one)


def _connect_names(module: ModuleType, other: ModuleType, connect_one: Callable) -> None:
    for name, value in list(vars(other).items()):
        own = getattr(module, name, None)
        if own is None:
            setattr(module, name, value)
        elif isinstance(value, ModuleType) and value.__name__ == f"{other.__name__}.{name}":
            sys.modules[own.__name__] = own
            _connect_names(own, value, connect_one)
        elif name.startswith("_") or type(own) is not type(value) or isinstance(value, enum.EnumMeta):
            pass  # an enum's numbers are those of both
        elif callable(value) and (not connect_one(own, value) or isinstance(value, type)):
            setattr(module, name, value)


def join(module: ModuleType, file: str) -> None:
    """Connect a module, whose library is `file`, with the library for GPUs that lies beside it."""
    if file.endswith(BESIDE):
        return
    beside = Path(file.partition(".")[0] + BESIDE)
    if beside.exists() and any(not backend.on_host for backend in backends_here()):
        connect(module, import_library(module.__name__, beside))
