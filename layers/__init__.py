"""The layers, one folder each: `from layers.round import Round`. `make` builds them.

The package also has load and load_inline, which build layers at run time; caffe_net, which loads a whole Caffe net; and
Layer, operator and caffe_layer, from which a layer's Python side is made. Layers in the folders that LAYERS_DIR lists
are imported as if they were here.
"""

import importlib
import sys
from pathlib import Path

if "t" in getattr(sys, "abiflags", ""):
    raise ImportError(
        "free-threaded Python cannot load libraries of the stable ABI, as the layers' are: "
        f"use python{sys.version_info[0]}.{sys.version_info[1]} instead of its t variant"
    )

from . import _folders

_folders.install_finder()
# Each is imported at its first use, so that `import layers` does not import torch.
_PUBLIC = {
    "load": "_load.load",
    "load_inline": "_load.load_inline",
    "CaffeBuildError": "_load.run_make",
    "adopt": "_runtime.packages",
    "Layer": "_runtime",
    "operator": "_runtime",
    "CaffeError": "_runtime",
    "CaffeTypeError": "_runtime",
    "CaffeValueError": "_runtime",
    "CaffeRuntimeError": "_runtime",
    "caffe_layer": "_caffe",
    "caffe_net": "_net",
    "CaffeNet": "_net",
}


def __getattr__(name: str):
    """Import `layers.round` at its first use. The error for an unknown name lists the known ones."""
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _PUBLIC:
        return getattr(importlib.import_module(f".{_PUBLIC[name]}", __name__), name)
    folders = [*_folders.listed(), Path(__file__).parent]
    known = sorted({name for folder in folders for name in _folders.with_file(folder, "__init__.py")})
    if name in known:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"no layer {name!r}. There are: {', '.join(known)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
