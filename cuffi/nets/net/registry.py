"""Find the ported layer of a type in folders of layers.

The modules that provide `ported_layers` (cuffi/base/providers.py) read the folders. Each has

    folders()           the folders that are searched after those of the user's arguments
    layers_of(folder)   its ported layers, each a `Ported`
    is_ported(module)   is it such a layer's torch.nn.Module?
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ...base import CaffeValueError
from ...base.providers import providers, why_none
from ...caffe_files.parameters import plain

_WHAT = "ported_layers"


class Ported(Protocol):
    """A folder with a ported layer."""

    type: str
    folder: Path

    @property
    def is_own(self) -> bool:
        """Does it come with the toolkit?"""
        ...

    def has_gpu_library(self) -> bool: ...

    def module_class(self) -> Any:
        """Its torch.nn.Module class: it takes a prototxt's text, `bottom` and `top`."""
        ...


def is_ported(module) -> bool:
    """Is it a ported layer's torch.nn.Module?"""
    return any(provider.is_ported(module) for provider in providers(_WHAT))


class Folders:
    """The ported layers of the given folders, of those that LAYERS_DIR lists, and of the toolkit's own.

    If two folders have a type, the first one wins.
    """

    def __init__(self, folders=(), chosen: dict[str, str] | None = None):
        readers = providers(_WHAT)
        for folder in folders:
            if not Path(folder).is_dir():
                raise CaffeValueError(f"layers: no folder {folder}")
            if not readers:
                raise CaffeValueError(f"layers: {folder}: ported layers cannot run here: {why_none(_WHAT)}")
        every = [*map(Path, folders), *(folder for reader in readers for folder in reader.folders())]
        self.folders = list(dict.fromkeys(folder.resolve() for folder in every))
        self.chosen = chosen or {}
        self._layers: list[list[Ported]] = [
            [layer for reader in readers for layer in reader.layers_of(folder)] for folder in self.folders
        ]

    def find(self, type_name: str) -> Ported | None:
        """The layer of that type. CaffeValueError if a folder has several and `choose` does not decide."""
        chosen = self.chosen.get(type_name)
        for layers in self._layers:
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
