"""The values that a forward of caffe.Net begins with: fillers, batches of data layers, arrays that a script gave."""

from __future__ import annotations

import numpy as np
import torch

from ...base import CaffeError, CaffeRuntimeError
from ..net.fillers import fill
from ..net.graph import Spec
from ..net.messages import layer_parameter
from ..net.net import CaffeNet
from . import mode
from .blobs import NetBlob


class Feeds:
    """Fills the tops of a net's layers without bottoms.

    Args:
        sources: these layers.
        blobs: the net's blobs by name.
    """

    def __init__(self, sources: list[Spec], blobs: dict[str, NetBlob]):
        self.sources, self.blobs = sources, blobs
        self._batches: dict | None = {}  # of the data layers; None: their data are missing
        self._arrays: dict[str, np.ndarray] = {}  # of set_arrays, by MemoryData's tops
        self._at = 0  # the next item of these

    def fill_dummies(self, first: bool = False) -> None:
        """Fill the tops of DummyData: constants once, other fillers at each call."""
        for spec in self.sources:
            if spec.type != "DummyData":
                continue
            fillers = layer_parameter(spec.node)[0].dummy_data_param.data_filler
            for i, top in enumerate(spec.tops):
                filler = fillers[min(i, len(fillers) - 1)] if fillers else None
                if filler is not None and (first or filler.type != "constant"):
                    fill(self.blobs[top].tensor(), filler)

    def read(self, module: CaffeNet, device: torch.device) -> None:
        """The next batch of each data layer that has files. Without files, the script's own values are used."""
        others = ("Input", "DummyData", "MemoryData") if self._arrays else ("Input", "DummyData")
        sources = {spec.name: spec for spec in self.sources if spec.type not in others}
        if self._arrays:
            self._read_arrays(device)
        if not sources or self._batches is None:
            return
        try:
            self._batches = self._batches or {
                name: iter(loader) for name, loader in module.data_loaders(seed=mode.seed()).items()
            }
            read = [next(batches) for batches in self._batches.values()]
        except (CaffeError, OSError):
            if not all(self.blobs[top].is_out for spec in sources.values() for top in spec.tops[:1]):
                raise
            self._batches = None
            return
        for batch in read:
            for top, value in batch.items():
                self.blobs[top].take(value.to(device))

    def set_arrays(self, spec: Spec, path: str, data, labels) -> None:
        """The arrays of a MemoryData layer, as in Net.set_input_arrays. CaffeRuntimeError if they do not fit."""
        if spec.type != "MemoryData":
            raise CaffeRuntimeError(f"{path}: set_input_arrays: the first layer is {spec.type}")
        labels = np.reshape(labels, (-1,))
        shape = self.blobs[spec.tops[0]].shape
        for name, array, wanted in (("data", data, shape[1:]), ("labels", labels, ())):
            if (
                array.dtype != np.float32
                or array.shape[1:] != wanted
                or not len(array)
                or len(array) % shape[0]
            ):
                raise CaffeRuntimeError(
                    f"set_input_arrays: {name}: expected float32 of [n * {shape[0]}, *{list(wanted)}], "
                    f"got {array.dtype} of {list(array.shape)}"
                )
        if len(data) != len(labels):
            raise CaffeRuntimeError(f"set_input_arrays: {len(data)} items and {len(labels)} labels")
        self._arrays, self._at = dict(zip(spec.tops, (data, labels), strict=False)), 0

    def _read_arrays(self, device: torch.device) -> None:
        first = next(iter(self._arrays))
        size, count = self.blobs[first].num, len(self._arrays[first])
        for top, array in self._arrays.items():
            part = np.ascontiguousarray(array[self._at : self._at + size])
            self.blobs[top].take(torch.from_numpy(part.copy()).to(device))
        self._at = (self._at + size) % count
