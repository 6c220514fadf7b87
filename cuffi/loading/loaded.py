"""Import the Python side of a built layer, as a package beside the toolkit's own parts."""

import hashlib
import importlib.util
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from ..packages import TOOLKIT, adopt
from ..runtime.layer import layer_of
from .cache import Entry


class Loaded(ModuleType):
    """A layer that was built at run time. It shows its functions: their names are LAYER_KERNEL, in snake case."""

    def __repr__(self) -> str:
        names = [name for name in dir(self) if not name.startswith("_") and name != "layer"]
        shown = [f"{name}{getattr(getattr(self, name), '__signature__', '(...)')}" for name in names]
        return f"<layer {self.__name__.rpartition('.')[2]}: {'; '.join(shown) or 'no functions'}>"

    def __reduce__(self):
        return module_of, (self.__name__,)


def module_of(name: str) -> ModuleType:
    """A loaded layer's module, for copies and pickles. CaffeRuntimeError if it was not loaded in this process."""
    layer_of(name)
    return sys.modules[name]


_lock = threading.RLock()
_imported: dict[str, ModuleType] = {}


def imported(name: str, entry: Entry, *folders: Path, wrap: Callable | None = None) -> ModuleType:
    """Import the module of a layer, with the libraries of a cache entry.

    The first of the folders has the __init__.py. The others may have more of the layer's Python, such as its cases.py.

    The module is `<toolkit>.loaded_<key>.<name>`, so that two layers of the same name are two modules, with two
    namespaces of torch operators. The same Python files with the same libraries are imported once. `wrap` makes another
    function of each launcher.
    """
    digest = hashlib.sha256(f"{folders[-1]} {entry.place.name}".encode())
    for file in sorted(file for folder in folders for file in folder.rglob("*.py")):
        digest.update(str(file).encode() + file.read_bytes())
    package = f"{TOOLKIT}.loaded_{digest.hexdigest()[:12]}"
    with _lock:
        if package not in _imported:
            _imported[package] = _import(package, name, entry, folders, wrap)
        return _imported[package]


def _import(package: str, name: str, entry: Entry, folders: tuple[Path, ...], wrap) -> ModuleType:
    parent = ModuleType(package, f"Holds {name} of {folders[-1]}.")
    parent.__path__ = []
    adopt(package)
    spec = importlib.util.spec_from_file_location(
        f"{package}.{name}", folders[0] / "__init__.py", submodule_search_locations=list(map(str, folders))
    )
    assert spec is not None and spec.loader is not None  # a .py file has a loader
    module = importlib.util.module_from_spec(spec)
    vars(module)["__libraries__"] = str(entry.folder)
    if wrap:
        vars(module)["__wrap__"] = wrap
    sys.modules[package], sys.modules[spec.name] = parent, module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        for known in [m for m in sys.modules if m == package or m.startswith(f"{package}.")]:
            del sys.modules[known]
        raise
    setattr(parent, name, module)
    module.__class__ = Loaded
    return module
