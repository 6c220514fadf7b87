"""Find the folders with layers, their kind and their files. Every make does this, so nothing slow is imported here."""

from __future__ import annotations

import os
import re

from ..caffe.macros import INSTANTIATE, REGISTER
from ..files import content
from . import names

SOURCES = (".cpp", ".cc", ".cu")
HEADERS = (".hpp", ".h", ".cuh", ".hh", ".inl")
# Words that mark a folder as a Caffe layer's, or as one of Caffe's tests (tools/caffetest).
_REGISTERS = re.compile(
    rb'^[ \t]*(?:%b)[^A-Z_]|^extern "C" int64_t caffe_test_run' % "|".join([*REGISTER, INSTANTIATE]).encode(),
    re.M,
)
# Words of sources that need the Caffe core's layers or its Net: their headers, and functions that make a layer by type.
_STOCK = re.compile(
    rb"caffe/(?:layers/(?!loss_layer\.|neuron_layer\.)\w+_layer|(?:common|neuron|vision)_layers|net|caffe|layer_factory)"
    rb"\.hpp|caffe/util/insert_splits\.hpp|\bCreateLayer\b|\bNet\s*<"
)
# A kernel that asks for the GPU's architecture is compiled for each one. Asking only for sm_80 is excepted: nvcc's
# front runs once for the GPUs before sm_80, and once for those from there on (mk/cuda.mk).
_ASKS_ARCH = re.compile(
    rb"__CUDA_ARCH(?!__\s*(?:>=|<)\s*800\b)|cuda/(?:ptx|barrier|pipeline)|cooperative_groups|mma\.h\b"
)
_DEFINES_ARCH = re.compile(rb"defined\s*\(?\s*__CUDA_ARCH__\s*\)?|#\s*ifn?def\s+__CUDA_ARCH__\b")


class Folder:
    """A layer's folder. Its files are named by their path in it."""

    def __init__(self, path: str):
        self.path, self.name = path, os.path.basename(path)
        files = sorted(_files(path))
        self.sources = [f for f in files if f.endswith(SOURCES)]
        self.headers = [f for f in files if f.endswith(HEADERS)]
        self.protos = [f for f in files if f.endswith(".proto") and "/" not in f]
        # For a broken link, which has no content, the compiler has an error.
        texts = {file: content(os.path.join(path, file)) for file in self.sources + self.headers}
        self.is_caffe = any(_REGISTERS.search(texts[source]) for source in self.sources)
        own = {os.path.basename(file).encode() for file in files}
        self.uses_stock = self.is_caffe and any(
            os.path.basename(found) not in own for text in texts.values() for found in _STOCK.findall(text)
        )
        self.asks_arch = any(_ASKS_ARCH.search(_DEFINES_ARCH.sub(b"", text)) for text in texts.values())
        if not self.is_caffe:  # a native layer has only .cu files; <name>_ffi.cpp belongs to the wrapper
            self.sources = [f for f in self.sources if f.endswith(".cu") and "/" not in f]
        # Other files that decide what is built.
        beside = ("plain_loops", "overwrites", f"{self.name}_ffi.cpp")
        self.beside = [file for file in beside if self.has(file)]
        self.has_init = os.path.exists(os.path.join(path, "__init__.py"))
        # The reasons why this layer cannot be built.
        used = self.sources + (self.headers + self.protos if self.is_caffe else [])
        self.refused = [why for why in map(names.check_file, used) if why]

    def has(self, file: str) -> bool:
        return os.path.exists(os.path.join(self.path, file))


def folders(layers_dir: str) -> tuple[dict[str, Folder], dict[str, str]]:
    """The layers by name; and the folders with sources that cannot be a layer, with the reason."""
    found, unfit = {}, {}
    for entry in sorted(os.scandir(layers_dir), key=lambda entry: entry.name):
        if entry.name.startswith((".", "_")) or entry.name == "build" or not entry.is_dir():
            continue
        folder = Folder(os.path.join(layers_dir, entry.name))
        if not folder.sources:
            continue
        if why := names.why_no_layer(entry.name):
            unfit[entry.name] = why
        else:
            found[entry.name] = folder
    return found, unfit


def layers_in(layers_dir: str) -> dict[str, Folder]:
    return folders(layers_dir)[0] if os.path.isdir(layers_dir) else {}


def _files(path: str, below: str = ""):
    for entry in os.scandir(os.path.join(path, below)):
        if entry.name.startswith((".", "__pycache__")):
            continue
        name = f"{below}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _files(path, f"{name}/")
        elif entry.name.endswith((*SOURCES, *HEADERS, ".proto")):
            yield name
