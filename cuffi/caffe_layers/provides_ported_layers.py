"""For nets: find the ported layers of folders, and their classes (cuffi/base/providers.py)."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from ..backends import BACKENDS, GPU
from ..base import CaffeValueError
from ..folders import listed, toolkit_folders
from ..runtime.cases import load_package
from .call import CaffeModule

_DEFINES = re.compile(r"""caffe_layer\(\s*__name__\s*,\s*["'](\w+)["']""")
_TOOLKIT = __name__.rsplit(".", 2)[0]


@dataclass(frozen=True)
class Ported:
    """A folder with a ported layer."""

    type: str
    folder: Path

    @property
    def is_own(self) -> bool:
        """Does it come with the toolkit?"""
        return self.folder.parent in toolkit_folders()

    def has_gpu_library(self) -> bool:
        return any((self.folder / b.library).exists() for b in BACKENDS.values() if b.device == GPU)

    def module_name(self) -> str:
        """`cuffi.foo` if that is this folder, so that torch's name of its operator is the same on every machine."""
        name = f"{_TOOLKIT}.{self.folder.name}"
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:  # the toolkit names its own layers of a like name
            spec = None
        if spec and spec.origin and Path(spec.origin).resolve().parent == self.folder:
            return name
        parent = self.folder.parent
        package = "caffe_layers_" + re.sub(r"\W", "_", str(parent))
        # Another folder may have this name: /my-layers and /my_layers.
        while package in sys.modules and sys.modules[package].__path__ != [str(parent)]:
            package += "_"
        return f"{package if package in sys.modules else load_package(parent, package)}.{self.folder.name}"

    def module_class(self) -> type[CaffeModule]:
        """Its nn.Module class."""
        module = importlib.import_module(self.module_name())
        for value in vars(module).values():
            if getattr(value, "type_name", None) == self.type:
                return value
        raise CaffeValueError(f"{self.folder}: no class of type {self.type!r} in its __init__.py")


def folders() -> list[Path]:
    """Those that LAYERS_DIR lists, and the toolkit's own.

    Raises:
        ImportError: LAYERS_DIR lists a folder that does not exist.
    """
    return [*listed(), *toolkit_folders()]


def layers_of(folder: Path) -> list[Ported]:
    """The ported layers in a folder of layers, found without importing them."""
    found = []
    for file in sorted(folder.glob("*/__init__.py")):
        if not file.parent.name.startswith("_"):
            found += [Ported(t, file.parent) for t in _DEFINES.findall(file.read_text(errors="replace"))]
    return found


def is_ported(module) -> bool:
    """Is it a ported layer's torch.nn.Module?"""
    return isinstance(module, CaffeModule)
