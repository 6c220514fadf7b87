"""The record of a caffe.Net: its layers, their blobs, and what its last call left. Look-ups say what there is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...base import CaffeValueError, some
from ...caffe_files.parameters import did_you_mean
from ..net.blob import BlobVec, Phase
from ..net.graph import Spec, Step
from ..net.net import CaffeNet
from . import mode
from .blobs import NetBlob


class Tape(NamedTuple):
    """What a call left for backward: its first and last layer, and its values with what autograd has recorded."""

    first: int
    last: int
    values: list


@dataclass
class Memory:
    """A MemoryData layer's arrays by top, and where the next batch begins."""

    arrays: dict[str, np.ndarray]
    at: int = 0


def why_unlike(name: str, given: tuple[int, ...], own: tuple[int, ...]) -> str:
    """Words for an array that does not have a blob's shape, and what to do."""
    said = f"could not broadcast {list(given)} to the blob's shape {list(own)}"
    if len(own) == 4 and len(given) in (3, 4) and given[-1] == own[1] and given[-3:-1] == own[2:]:
        order = "(2, 0, 1)" if len(given) == 3 else "(0, 3, 1, 2)"
        return f"{said}, which has the channels last: array.transpose{order} puts them first"
    if len(given) == len(own) - 1 and given == own[1:]:
        return f"{said}, which is one item without the axis of the batch: array[None], and a batch of 1"
    if len(given) == len(own) and given[1:] == own[1:]:
        said = f"expected a batch of {own[0]}, got {list(given)}"
    sizes = ", ".join(map(str, given))
    return f"{said}; net.blobs[{name!r}].reshape({sizes}) changes the blob's"


@dataclass(eq=False)
class NetState:
    """What caffe.Net's functions share. `specs` and `steps` have the layers in the file's order; data has no step."""

    module: CaffeNet
    phase: Phase
    force_backward: bool
    blobs: dict[str, NetBlob] = field(default_factory=dict)
    params: dict[str, BlobVec] = field(default_factory=dict)
    callbacks: dict[str, list] = field(default_factory=lambda: defaultdict(list))
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    feeds: dict | None = field(default_factory=dict)  # the data layers' batches; None: their data are missing
    memory: Memory | None = None
    is_stale: bool = False  # an input has another shape than at the last call
    tape: Tape | None = None
    bring_back: Callable[[], object] = lambda: None  # brings back what the last forward changed
    entered: dict[int, Tensor] = field(default_factory=dict)  # what the last call read, by value's number
    calls: dict[tuple[int, int, bool, bool], list] = field(default_factory=dict)

    def __post_init__(self):
        self.graph = self.module.phase.graph
        layers: list[tuple[Spec, Step | None]] = [(spec, None) for spec in self.graph.sources]
        layers += [(step.spec, step) for step in self.graph.steps]
        layers.sort(key=lambda layer: layer[0].line)
        self.specs = [spec for spec, _ in layers]
        self.steps = [step for _, step in layers]

    @property
    def names(self) -> list[str]:
        """The layers' names."""
        return [spec.name for spec in self.specs]

    def between(self, first: int, last: int) -> list[Step]:
        """The steps that compute, of the layers with these numbers."""
        return [step for step in self.steps[first : last + 1] if step is not None and step.key]

    def range(self, start: str | None, end: str | None) -> tuple[int, int]:
        """The numbers of these layers. None: the first, and the last."""
        first = 0 if start is None else self._number(start, "start")
        return first, len(self.specs) - 1 if end is None else self._number(end, "end")

    def _number(self, name: str, what: str) -> int:
        if name not in self.names:
            near, known = did_you_mean(name, self.names), ", ".join(some(self.names))
            raise CaffeValueError(
                f"{self.module.path}: {what}: no layer {name!r}{near or '.'} There are: {known}"
            )
        return self.names.index(name)

    def blob(self, name: str) -> NetBlob:
        if name not in self.blobs:
            known = ", ".join(some(self.blobs))
            raise CaffeValueError(f"{self.module.path}: no blob {name!r}. There are: {known}")
        return self.blobs[name]

    def read(self, names: Iterable[str], what: str) -> dict[str, np.ndarray]:
        """The blobs' arrays by name. what: data or diff."""
        return {name: getattr(self.blob(name), what) for name in dict.fromkeys(names)}

    def write(self, given: dict, names: list[str], words: str, what: str) -> None:
        """Write a call's arrays to the blobs' data or diff. They must be for all of `names`, which `words` says."""
        if set(given) != set(names):
            raise CaffeValueError(
                f"{self.module.path}: {words}: expected {', '.join(names) or 'none'}, got {', '.join(given)}"
            )
        for name, value in given.items():
            array = getattr(self.blob(name), what)
            if not np.ndim(value) or np.shape(value)[0] != array.shape[0]:
                raise CaffeValueError(
                    f"{self.module.path}: {name!r}: {why_unlike(name, np.shape(value), array.shape)}"
                )
            try:
                array[...] = value
            except ValueError as error:
                why = why_unlike(name, np.shape(value), array.shape) if np.ndim(value) else error
                raise CaffeValueError(f"{self.module.path}: {name!r}: {why}") from None
            except TypeError as error:
                raise CaffeValueError(f"{self.module.path}: {name!r}: {error}") from None

    def to_device(self) -> None:
        """Send the module to the mode's device, and what a script wrote to its parameters."""
        if self.device != mode.device():
            self.device = mode.device()
            self.module.to(self.device)
        for param in (param for params in self.params.values() for param in params):
            param.send()
