"""Find the ported layer of a type in folders of layers."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from ...base import CaffeValueError
from ...caffe_files.parameters import plain
from ...folders import listed, own
from ...runtime.cases import load_package

_DEFINES = re.compile(r"""caffe_layer\(\s*__name__\s*,\s*["'](\w+)["']""")
_TOOLKIT = __package__.rsplit(".", 2)[0]


@dataclass(frozen=True)
class Ported:
    """A folder with a ported layer."""

    type: str
    folder: Path

    def module_name(self) -> str:
        """`cuffi.foo` if that is this folder, so that torch's name of its operator is the same on every machine."""
        name = f"{_TOOLKIT}.{self.folder.name}"
        spec = importlib.util.find_spec(name)
        if spec and spec.origin and Path(spec.origin).resolve().parent == self.folder:
            return name
        parent = self.folder.parent
        package = "caffe_layers_" + re.sub(r"\W", "_", str(parent))
        # Another folder may have this name: /my-layers and /my_layers.
        while package in sys.modules and sys.modules[package].__path__ != [str(parent)]:
            package += "_"
        return f"{package if package in sys.modules else load_package(parent, package)}.{self.folder.name}"

    def module_class(self):
        """Its nn.Module class."""
        module = importlib.import_module(self.module_name())
        for value in vars(module).values():
            if getattr(value, "type_name", None) == self.type:
                return value
        raise CaffeValueError(f"{self.folder}: no class of type {self.type!r} in its __init__.py")


class Folders:
    """The ported layers of the given folders, of those that LAYERS_DIR lists, and of the toolkit's own.

    If two folders have a type, the first one wins.
    """

    def __init__(self, folders=(), chosen: dict[str, str] | None = None):
        for folder in folders:
            if not Path(folder).is_dir():
                raise CaffeValueError(f"layers: no folder {folder}")
        every = [*map(Path, folders), *listed(), *own()]
        self.folders = list(dict.fromkeys(folder.resolve() for folder in every))
        self.chosen = chosen or {}
        self._found = [_layers_of(folder) for folder in self.folders]

    def find(self, type_name: str) -> Ported | None:
        """The layer of that type. CaffeValueError if a folder has several and `choose` does not decide."""
        chosen = self.chosen.get(type_name)
        for layers in self._found:
            of_type = [layer for layer in layers if plain(layer.type) == plain(type_name)]
            if chosen is not None:
                of_type = [layer for layer in of_type if layer.folder.name == chosen]
            if len(of_type) > 1:
                own = [layer for layer in of_type if plain(layer.folder.name) == plain(type_name)]
                if len(own) != 1:
                    names = ", ".join(layer.folder.name for layer in of_type)
                    raise CaffeValueError(
                        f"several folders have it: set choose={{{type_name!r}: ...}} to one of {names}"
                    )
                of_type = own
            if of_type:
                return of_type[0]
        if chosen is not None:
            raise CaffeValueError(f"choose: no folder {chosen!r} has a layer of type {type_name!r}")
        return None


def _layers_of(folder: Path) -> list[Ported]:
    found = []
    for file in sorted(folder.glob("*/__init__.py")):
        if not file.parent.name.startswith("_"):
            found += [Ported(t, file.parent) for t in _DEFINES.findall(file.read_text(errors="replace"))]
    return found
