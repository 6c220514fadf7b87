"""What a caffe.Net's data layers put into its blobs: DummyData's fillers, the batches of files, a script's arrays."""

from __future__ import annotations

import numpy as np
import torch

from ...base import CaffeError, CaffeRuntimeError
from ..net.fillers import fill
from ..net.messages import layer_parameter
from . import mode
from .net_state import Memory, NetState


def fill_dummies(net: NetState, first: bool = False) -> None:
    """Fill the tops of DummyData: constants once, other fillers at each call."""
    for spec in net.graph.sources:
        if spec.type != "DummyData":
            continue
        fillers = layer_parameter(spec.node)[0].dummy_data_param.data_filler
        for i, top in enumerate(spec.tops):
            filler = fillers[min(i, len(fillers) - 1)] if fillers else None
            if filler is not None and (first or filler.type != "constant"):
                fill(net.blobs[top].tensor(), filler)


def read_data(net: NetState) -> None:
    """The next batch of each data layer that has files. Without files, the script's own values are used."""
    own = ("Input", "DummyData", "MemoryData") if net.memory else ("Input", "DummyData")
    sources = {spec.name: spec for spec in net.graph.sources if spec.type not in own}
    if net.memory:
        _read_memory(net, net.memory)
    if not sources or net.feeds is None:
        return
    try:
        net.feeds = net.feeds or {
            name: iter(all) for name, all in net.module.data_loaders(seed=mode.seed()).items()
        }
        batches = [next(feed) for feed in net.feeds.values()]
    except (CaffeError, OSError):
        if not all(net.blobs[top].is_out for spec in sources.values() for top in spec.tops[:1]):
            raise
        net.feeds = None
        return
    for batch in batches:
        for top, value in batch.items():
            net.blobs[top].take(value.to(net.device))


def set_input_arrays(net: NetState, data, labels) -> None:
    spec = net.specs[0]
    if spec.type != "MemoryData":
        raise CaffeRuntimeError(f"{net.module.path}: set_input_arrays: the first layer is {spec.type}")
    labels = np.reshape(labels, (-1,))
    shape = net.blobs[spec.tops[0]].shape
    for name, array, wanted in (("data", data, shape[1:]), ("labels", labels, ())):
        is_wrong = array.dtype != np.float32 or array.shape[1:] != wanted
        if is_wrong or not len(array) or len(array) % shape[0]:
            raise CaffeRuntimeError(
                f"set_input_arrays: {name}: expected float32 of [n * {shape[0]}, *{list(wanted)}], "
                f"got {array.dtype} of {list(array.shape)}"
            )
    if len(data) != len(labels):
        raise CaffeRuntimeError(f"set_input_arrays: {len(data)} items and {len(labels)} labels")
    net.memory = Memory(dict(zip(spec.tops, (data, labels), strict=False)))


def _read_memory(net: NetState, memory: Memory) -> None:
    size = net.blobs[net.specs[0].tops[0]].num
    for top, array in memory.arrays.items():
        part = np.ascontiguousarray(array[memory.at : memory.at + size])
        net.blobs[top].take(torch.from_numpy(part.copy()).to(net.device))
    memory.at = (memory.at + size) % len(array)
