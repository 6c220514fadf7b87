"""Packages of layers outside of the toolkit: in them `.._runtime` and `.._caffe` are the toolkit's own modules.

    adopt("my_layers")

From then on `from .._runtime import Layer` in my_layers/foo/__init__.py imports the toolkit's module, not a copy.
Nothing here imports torch.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType

TOOLKIT = __name__.rpartition(".")[0]
# The names that layers' files use for the toolkit's modules.
NAMES = {"_runtime": "runtime", "_caffe": "caffe_layers.call"}

_adopted: set[str] = set()


def adopt(package: str) -> None:
    """Make `_runtime` and `_caffe` importable from a package of yours.

    A layer's folder in it can then say `from .._runtime import Layer`, as a folder of LAYERS_DIR can.

    Args:
        package: its name, usually `__name__`.

    Raises:
        CaffeTypeError: not a name.
    """
    if not isinstance(package, str):
        from .base import CaffeTypeError, describe

        raise CaffeTypeError(f"adopt: package: expected a package's name, got {describe(package)}")
    _adopted.add(package)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `my_layers._runtime.cases`: it is the module `cuffi.runtime.cases`."""

    def find_spec(self, fullname: str, path, target=None):
        words = fullname.split(".")
        for at, word in enumerate(words):
            if word in NAMES and ".".join(words[:at]) in _adopted:
                origin = ".".join([TOOLKIT, NAMES[word], *words[at + 1 :]])
                return importlib.machinery.ModuleSpec(fullname, self, origin=origin)
        return None

    def create_module(self, spec) -> ModuleType:
        module = importlib.import_module(spec.origin)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Undo what the import machinery did: the module ran under its own name, and keeps that name's spec."""
        spec = module.__spec__
        assert spec is not None  # the machinery has set it
        module.__spec__ = spec.loader_state
