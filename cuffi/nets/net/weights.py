"""Load weights from files into a net, by the layers' names; read mean files."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...base import CaffeValueError, some
from ...base.files import to_read
from ...base.shown import shown
from ...caffe_files import hdf5
from ...caffe_files.caffemodel import HDF5_MAGIC, StoredLayer, stored_layers
from ..stock import StockLayer, blobs_of

if TYPE_CHECKING:
    from .net import CaffeNet  # which loads by this module


@dataclass
class Report:
    """Which layers were loaded, and which did not match."""

    loaded: list[str] = field(default_factory=list)  # layers
    missing: list[str] = field(default_factory=list)  # layers of the net whose parameters no file has
    unused: list[str] = field(default_factory=list)  # layers of the files that the net does not have

    def __str__(self) -> str:
        parts = [f"loaded the weights of {len(self.loaded)} layers"]
        if self.missing:
            parts.append(
                f"no weights for {', '.join(some(self.missing, 8))}: they have their fillers' values"
            )
        if self.unused:
            parts.append(f"not in the net, ignored: {', '.join(some(self.unused, 8))}")
        return "; ".join(parts)


def load(net: CaffeNet, paths: list, fill: bool = False) -> Report:
    """Load files into a CaffeNet, one after the other. The last file that has a layer wins.

    Args:
        fill: fill layers that were not loaded, by their fillers.

    Raises:
        CaffeValueError: layers of a file differ from those of the net. Nothing of the file is loaded then.
    """
    report, got, loaded = Report(), set(), set()
    for path in paths:
        with _opened(path) as (layers, read):
            pairs = [(key, layer) for layer in layers for key in net.keys.get(layer.name, [])]
            if misfits := [words for pair in pairs if (words := _misfit(net, *pair))]:
                raise CaffeValueError(f"{path}: " + "\n  ".join(some(misfits, 20)))
            for layer in layers:
                keys = net.keys.get(layer.name, [])
                if not any(blobs_of(net.get_layer(key)) for key in keys):
                    report.unused.append(layer.name)
                    continue
                report.loaded += [layer.name] * (layer.name not in got)
                got.add(layer.name)
                loaded |= _load_layer(net, keys, layer, read)
    with_blobs = {name for name, keys in net.keys.items() if any(blobs_of(net.get_layer(k)) for k in keys)}
    report.missing = [name for name in net.keys if name in with_blobs and name not in got]
    report.missing = [name for name in report.missing if not _ids(net, net.keys[name]) <= loaded]
    report.unused = list(dict.fromkeys(name for name in report.unused if name not in got))
    if fill:
        for module in net.children():  # the first that has a blob owns it, and fills it
            keep = set()
            for name, blob in blobs_of(module):
                keep |= {name} if id(blob) in loaded else set()
                loaded.add(id(blob))
            if isinstance(module, StockLayer):
                module.fill(keep)
    return report


def stored_counts(paths: list) -> dict[str, int]:
    """The number of blobs of each layer in the last file that has it. It distinguishes forks' versions of a type."""
    counts = {}
    for path in paths:
        with _opened(path) as (layers, _):
            counts |= {layer.name: len(layer.blobs) for layer in layers}
    return counts


def _ids(net: CaffeNet, keys: list[str]) -> set[int]:
    """The identities of these submodules' blobs. Layers that share a blob have the same."""
    return {id(blob) for key in keys for _, blob in blobs_of(net.get_layer(key))}


# The blobs that forks keep in a layer of a type, by their number.
_OTHERS = {
    (
        "BatchNorm",
        5,
    ): "NVCaffe's has mean, variance, factor, scale and bias, with batch_norm_param { scale_bias: true }",
    ("BatchNorm", 4): "another fork's BatchNorm, with its own scale and bias: port that layer",
}


def _misfit(net: CaffeNet, key: str, layer: StoredLayer) -> str:
    """Why a file's layer cannot be this layer of the net; "" if it can."""
    own, spec = blobs_of(net.get_layer(key)), net.specs[key]
    count, where = len(layer.blobs), f"{net.path}, line {net.specs[key].line}"
    if own and (count > len(own) or (count < len(own) and not layer.may_lack)):
        hint = _OTHERS.get((spec.type, count))
        words = f"{layer.name!r}: {count} blobs in the file, {len(own)} in {where}"
        return words + (f". {hint}" if hint else "")
    for i, (name, blob) in enumerate(own):
        stored = layer.blobs[i] if i < count else None
        if stored is None:
            if _owner(net, blob) == layer.name:
                return f"{layer.name!r}: blob {name!r}, dataset {i}, is not in the file"
        elif not stored.fits(blob.shape):
            return (
                f"{layer.name!r}: blob {name!r} is {list(stored.shape)} in the file and {list(blob.shape)} in "
                f"{where}. To train it from scratch, rename the layer"
            )
    return ""


@torch.no_grad()
def _load_layer(net: CaffeNet, keys: list[str], layer: StoredLayer, read) -> set[int]:
    """Load one layer, which fits. Returns the identities of the blobs that were loaded."""
    loaded = set()
    for key in keys:
        for (_, blob), stored in zip(blobs_of(net.get_layer(key)), layer.blobs, strict=False):
            if stored is not None:
                read(stored, blob)
                loaded.add(id(blob))
    return loaded


def _owner(net: CaffeNet, blob: Tensor) -> str:
    """The first layer that has this blob, which other layers may share."""
    return next(net.specs[key].name for key in net.specs if id(blob) in _ids(net, [key]))


@contextlib.contextmanager
def _opened(path):
    """(the layers of a file, a function that reads one of their blobs into a tensor)."""
    with to_read(path) as file:
        is_hdf5 = file.read(len(HDF5_MAGIC)) == HDF5_MAGIC
    if is_hdf5:
        with hdf5.opened(path) as file:
            yield _h5_layers(file, path), lambda stored, blob: _read_h5(path, stored, blob)
        return
    layers = [layer for layer in stored_layers(path) if layer.blobs]
    with to_read(path, buffering=0) as file:
        yield layers, lambda stored, blob: _read(file, stored, blob)


def _read(file, stored, blob: Tensor) -> None:
    if blob.device.type == "cpu" and blob.dtype == stored.dtype and blob.is_contiguous() and blob.numel():
        stored.read_into(file, blob.detach())
        torch.autograd.graph.increment_version(blob)
    else:
        blob.copy_(stored.read(file).view(blob.shape))


# ------------------------------------------------------------------------------------------------- HDF5


_INDEX = re.compile(r"[0-9]{1,3}")


@dataclass
class _H5Blob:
    dataset: Any  # h5py's, which may not be installed
    shape: tuple[int, ...]

    def fits(self, shape) -> bool:
        return tuple(shape) == self.shape


def _h5_layers(file, path) -> list[StoredLayer]:
    """The layers of data/<layer>/<blob's index>. If a layer's name has slashes, they are groups of the file.

    Caffe leaves out blobs that the layer shares with an earlier one.
    """
    if "data" not in file:
        raise CaffeValueError(f"{path}: not a .caffemodel.h5: it has no group 'data'")
    h5py, found = hdf5.package(str(path)), {}

    def visit(name, item):
        layer, _, number = name.rpartition("/")
        if isinstance(item, h5py.Dataset) and _INDEX.fullmatch(number):
            found.setdefault(layer, {})[int(number)] = _H5Blob(item, tuple(item.shape))

    file["data"].visititems(visit)
    return [
        StoredLayer(shown(name), [blobs.get(i) for i in range(max(blobs) + 1)], may_lack=True)
        for name, blobs in found.items()
    ]


def _read_h5(path, stored: _H5Blob, blob: Tensor) -> None:
    blob.copy_(torch.from_numpy(hdf5.values(stored.dataset, str(path))).reshape(blob.shape))
