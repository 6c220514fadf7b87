"""Packages of layers outside of the toolkit: in them `.._runtime` is the toolkit's own module.

    adopt("my_layers")

From then on `from .._runtime import Layer` in my_layers/foo/__init__.py imports this package's `_runtime`, not a copy.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
from pathlib import Path
from types import ModuleType

from .errors import CaffeTypeError, describe

TOOLKIT = __package__.rpartition(".")[0]
PARTS = Path(__file__).resolve().parent.parent

_adopted: set[str] = set()


def adopt(package: str) -> None:
    """Make `_runtime` and the toolkit's other parts with an underscore importable from a package of yours.

    A layer's folder in it can then say `from .._runtime import Layer`, as in the toolkit.

    Args:
        package: its name, usually `__name__`.

    Raises:
        CaffeTypeError: not a name.
    """
    if not isinstance(package, str):
        raise CaffeTypeError(f"adopt: package: expected a package's name, got {describe(package)}")
    _adopted.add(package)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `my_layers._runtime.cases`: it is the module `layers._runtime.cases`."""

    def find_spec(self, fullname: str, path, target=None):
        words = fullname.split(".")
        for at, word in enumerate(words):
            if word.startswith("_") and ".".join(words[:at]) in _adopted:
                if not ((PARTS / word).is_dir() or (PARTS / f"{word}.py").exists()):
                    return None
                return importlib.machinery.ModuleSpec(fullname, self, origin=".".join([TOOLKIT, *words[at:]]))
        return None

    def create_module(self, spec) -> ModuleType:
        module = importlib.import_module(spec.origin)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Undo what the import machinery did: the module ran under its own name, and keeps that name's spec."""
        module.__spec__ = module.__spec__.loader_state
