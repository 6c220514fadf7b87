"""A net's data layers as torch DataLoaders."""

from __future__ import annotations

import functools
import random
import signal
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from ...base import CaffeError, CaffeValueError
from ...base.files import named_by
from ...base.shown import shown
from ..net.graph import Spec
from ..net.messages import layer_parameter
from .sources import LMDB, HDF5Files, ImageList, LevelDB
from .transform import Draws, Transform

# The types that are read.
READ = ("Data", "ImageData", "HDF5Data")
# Types that are not supported, with advice.
_OUT = {
    "AnnotatedData": "SSD's augmentation is not supported: load boxes with your own Dataset",
    "WindowData": "give its blobs yourself",
    "MemoryData": "give its blobs: Training(data=...), or set_input_arrays of caffe.Net",
}


class LayerData(Dataset):
    """The items of one data layer, by (position in the sequence, index of the item).

    The random numbers of an item, for crop and mirror, depend only on the seed and the position. So they do not change
    with workers, restarts or the number of processes.
    """

    def __init__(self, spec: Spec, phase: str, find, seed: int):
        self.where = f"layer {spec.name!r} ({spec.type}), line {spec.line}"
        message, unknown = layer_parameter(spec.node)
        if unknown:
            names = ", ".join(f"{one.path} (line {one.line})" for one in unknown)
            raise CaffeValueError(f"{self.where}: unknown fields: {names}")
        self.tops, self.seed = spec.tops, seed
        find = functools.partial(find, self.where)
        self.source, param = _source(spec, message, find, self.where)
        self.batch_size, self.shuffled = param.batch_size, bool(getattr(param, "shuffle", False))
        if not self.batch_size:
            raise CaffeValueError(f"{self.where}: batch_size: expected more than 0")
        self.rand_skip = getattr(param, "rand_skip", 0)
        if self.rand_skip and spec.type == "Data":
            warnings.warn(f"{self.where}: rand_skip is ignored, as in Caffe since 2015", stacklevel=2)
            self.rand_skip = 0
        self.transform = None
        if spec.type != "HDF5Data":
            self.transform = Transform(message.transform_param, phase == "TRAIN", find, self.where)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: tuple[int, int]) -> dict[str, torch.Tensor]:
        position, item = index
        values = self.source[item]
        if self.transform is not None:
            values[0] = self.transform(values[0], Draws(self.seed, self.where, position))
        # as_tensor takes three times as long.
        made = [torch.from_numpy(value) if isinstance(value, np.ndarray) else value for value in values]
        return dict(zip(self.tops, made, strict=False))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the layer's tops, by its first item."""
        values = self.source.item()
        if self.transform is not None:
            values[0] = self.transform(values[0], Draws(0))
        return {top: (self.batch_size, *v.shape) for top, v in zip(self.tops, values, strict=False)}

    def skip(self) -> int:
        """ImageData's rand_skip: the number of items that the first pass leaves out."""
        if self.rand_skip > len(self):
            raise CaffeValueError(f"{self.where}: rand_skip: {self.rand_skip} of {len(self)} images")
        return numbers(self.seed, self.where, "skip").randrange(self.rand_skip) if self.rand_skip else 0

    def collate(self, items: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        """Stack items. Images of a batch must have one size, unless there is a crop."""
        try:
            return {top: torch.stack([item[top] for item in items]) for top in items[0]}
        except RuntimeError:
            shapes = [sorted({tuple(item[top].shape) for item in items}) for top in items[0]]
            unlike = next((some for some in shapes if len(some) > 1), None)
            if unlike is None:
                raise
            raise CaffeValueError(
                f"{self.where}: images of {unlike} in one batch: give a size or a crop"
            ) from None


def numbers(seed: int, *what) -> random.Random:
    """Random numbers that depend only on the seed and on `what`."""
    return random.Random(repr((seed, *what)))


def _source(spec: Spec, message, find, where: str):
    """(the source, the layer's own parameters)."""
    if spec.type == "ImageData":
        return ImageList(message.image_data_param, find, where), message.image_data_param
    if spec.type == "HDF5Data":
        return HDF5Files(message.hdf5_data_param, spec.tops, find, where), message.hdf5_data_param
    transform = message.transform_param
    color = True if transform.force_color or message.data_param.force_encoded_color else None
    kind = LMDB if message.data_param.backend == message.data_param.LMDB else LevelDB
    color = False if transform.force_gray else color
    source = find(message.data_param.source, f"the layer's source, a folder of {kind.__name__}")
    return kind(source, color, where), message.data_param


class Batches(Sampler):
    """Lists of (position, index) of one process's batches, from the batch `start` on.

    The order is the source's, repeated; with shuffle, a new order in each pass. Of `world` processes, process `rank`
    takes every world-th batch.
    """

    def __init__(
        self, data: LayerData, start: int = 0, passes: int | None = None, rank: int = 0, world: int = 1
    ):
        self.data, self.start, self.passes, self.rank, self.world = data, start, passes, rank, world

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        data, batch = self.data, self.start * self.world + self.rank
        skip = data.skip() if self.passes is None else 0
        order = functools.lru_cache(maxsize=2)(self._order)
        while True:
            positions = range(batch * data.batch_size, (batch + 1) * data.batch_size)
            if self.passes is not None:
                positions = [p for p in positions if p < self.passes * len(data)]
                if not positions:
                    return
            places = [(p, p + skip) for p in positions]
            yield [(p, order(at // len(data))[at % len(data)]) for p, at in places]
            batch += self.world

    def _order(self, number: int):
        """The order of one pass."""
        if not self.data.shuffled:
            return range(len(self.data))
        own, random = getattr(self.data.source, "order", None), numbers(self.data.seed, "order", number)
        if own is not None:
            return own(random)
        order = list(range(len(self.data)))
        random.shuffle(order)
        return order


def data_loaders(
    net,
    *,
    passes: int | None = None,
    start: int = 0,
    workers: int = 0,
    seed: int = 0,
    rank: int = 0,
    world: int = 1,
) -> dict[str, DataLoader]:
    """A DataLoader for each data layer of a net's phase, by the layer's name. See `CaffeNet.data_loaders`."""
    made = {}
    for spec in net.phase.graph.sources:
        if spec.type in _OUT:
            raise CaffeValueError(f"{net.path}, line {spec.line}: {spec.type} is not read: {_OUT[spec.type]}")
        if spec.type not in READ:
            continue
        try:
            data = LayerData(spec, net.phase_name, functools.partial(_find, net.path), seed)
        except CaffeValueError as error:
            raise CaffeValueError(f"{shown(str(net.path))}: {error}") from None
        batches = Batches(data, start, passes, rank, world)
        own = torch.Generator()  # otherwise the loader would draw from torch's generator
        # Two layers may have one name: often "data", one for the images and one for the labels.
        name = spec.name if spec.name not in made else f"{spec.name}, line {spec.line}"
        made[name] = DataLoader(
            data,
            batch_sampler=batches,
            num_workers=workers,
            collate_fn=data.collate,
            generator=own,
            worker_init_fn=_ignore_interrupts,
        )
    return made


def _ignore_interrupts(worker: int) -> None:
    """Ctrl-C goes to all processes; the one that trains decides when to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def item_shapes(spec: Spec, net_path) -> dict[str, tuple[int, ...]]:
    """The shapes of a data layer's tops, by its first item; {} if there is nothing to read."""
    if spec.type not in READ:
        return {}
    try:
        return LayerData(spec, "TEST", functools.partial(_find, str(net_path)), 0).shapes()
    except (CaffeError, OSError):
        return {}


def first_items(specs: Iterable[Spec], net_path) -> dict[Spec, dict[str, tuple[int, ...]]]:
    """The shapes of what each data layer reads first; none of a layer that has nothing to read."""
    found = {spec: item_shapes(spec, net_path) for spec in specs if not spec.bottoms}
    return {spec: shapes for spec, shapes in found.items() if shapes}


def why_unread(spec: Spec, net_path) -> str:
    """Why a data layer's source cannot be read; empty if it can be."""
    if spec.type in _OUT:
        return f"{spec.type} is not read: {_OUT[spec.type]}"
    try:
        if spec.type in READ:
            LayerData(spec, "TEST", functools.partial(_find, str(net_path)), 0).shapes()
    except (CaffeError, OSError) as error:
        return str(error)
    return ""


def merged(loaders: dict[str, DataLoader]) -> Iterator[dict[str, torch.Tensor]]:
    """The batches of several loaders, as one dict of all their blobs each."""
    for batches in zip(*loaders.values(), strict=False):
        yield {top: value for batch in batches for top, value in batch.items()}


def _find(net_path: str, where: str, name: str, place: str = "the layer's source") -> str:
    """A file that the net names: relative to the working directory, the net's folder, or a folder above it.

    Args:
        place: where the net names it, and what it is.
    """
    if not name:
        raise CaffeValueError(f"{where}: it names no source")
    if (found := named_by(net_path, name)) is not None:
        return found
    folders = dict.fromkeys(shown(folder) for folder in (Path().resolve(), Path(net_path).resolve().parent))
    raise CaffeValueError(
        f"{where}: no such file: {shown(name[:200])} (looked for in {' and '.join(folders)}, and in three folders "
        f"above): put its path, from here or a full one, into {place}"
    )
