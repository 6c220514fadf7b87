"""The layers, one folder each: `from layers.round import Round`. `make` builds them.

Also in this package:

    load, load_inline               build a layer at run time, from a folder or a string
    caffe_net                       load a whole Caffe model as a torch.nn.Module
    OnnxSession                     run the ONNX file that a model's to_onnx writes
    train, caffe, dnn, ffi          modules: train by a solver file; pycaffe; cv2.dnn's Caffe importer; torch.utils.ffi
    Layer, operator, caffe_layer    the parts of a layer's own Python file

Layers in the folders of LAYERS_DIR are imported in the same way: `from layers.my_layer import ...`. In an installed
toolkit the package is `cuffi`.
"""

import importlib
import sys
from pathlib import Path

if sys.version_info < (3, 10):  # noqa: UP036 (an old Python cannot read the other files)
    version = ".".join(map(str, sys.version_info[:2]))
    said = f"{__name__}: {sys.executable} is Python {version}; 3.10 or newer is needed"
    if sys.argv[:1] == ["-m"]:
        sys.exit(said)
    raise ImportError(said)

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
    "OnnxSession": "_net.onnx",
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
