"""Normalisation: by a batch's statistics, by neighbours, by each image's own.

BatchNorm: by a batch's statistics or by those that training collected.
LRN: by neighbouring channels or positions.
MVN: by the mean and variance of each image.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..net.fillers import constant
from . import StockLayer, root

# ---------------------------------------------------------------------------------------------- BatchNorm


class BatchNorm(StockLayer):
    """(x - mean) / sqrt(variance + eps), over all axes but 1, without an affine part, which a Scale layer adds.

    Top: the bottom's shape. Blobs: `mean` [C] and `variance` [C], decaying sums, and `factor` [1], by which they
    are divided where they are used. Evaluation uses them, training the batch's, unless use_global_stats says
    otherwise. A sum becomes moving_average_fraction * sum + the batch's value; the batch's variance is divided by m
    - 1.

    Source: BVLC's batch_norm_layer.cpp.
    """

    blobs = ("mean", "variance", "factor")
    statistics = blobs
    mean: Tensor
    variance: Tensor
    factor: Tensor

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.batch_norm_param
        self.use_global_stats = p.use_global_stats if p.HasField("use_global_stats") else None
        self.fraction, self.eps = p.moving_average_fraction, p.eps
        self._room: _Room | None = None

    def setup(self, x):
        self.check(len(x) > 1, f"a bottom of 2 or more axes is needed, not {list(x)}")
        for name, size in (("mean", x[1]), ("variance", x[1]), ("factor", 1)):
            self.blob(name, (size,), constant(0))

    def top_shapes(self, x):
        self.check(
            x[1:2] == tuple(self.mean.shape), f"{len(self.mean)} channels are known, not those of {list(x)}"
        )
        return [x]

    def uses_batch(self) -> bool:
        """Does a call take the batch's own mean and variance?"""
        return self.training if self.use_global_stats is None else not self.use_global_stats

    def forward(self, x, weight=None, bias=None):
        """weight, bias: of a Scale layer that follows."""
        if not self.uses_batch():
            mean, variance = self.normalised()
            top = F.batch_norm(x, mean, variance, weight, bias, False, 0.0, self.eps)
        elif x.numel() // x.shape[1] == 1:  # torch refuses it; Caffe divides zero by sqrt(eps)
            zero = x * 0
            top = zero if weight is None else zero * _along(weight, zero)
            top = top if bias is None else top + _along(bias, top)
            room = self._take_room()
            room.mean.copy_(x.detach().reshape(-1))
            self._update(room)
        else:
            # With momentum 1 the running statistics are the batch's: its mean, and its variance times m / (m - 1).
            room = self._take_room()
            top = F.batch_norm(x, room.mean, room.variance, weight, bias, True, 1.0, self.eps)
            self._update(room)
        return top

    def _take_room(self) -> _Room:
        # Nobody else may take it until it is given back: not another thread, and no second call of this forward.
        room = None if torch.compiler.is_compiling() else self.__dict__.pop("_room", None)
        mean = self.mean
        return room if room is not None and room.of is mean and room.dtype == mean.dtype else _room(mean)

    def _update(self, room):
        batch = _Batch(self, room)
        calls = None if torch.compiler.is_compiling() else _net.calls
        if calls is None:
            _add([batch])
        else:
            calls.batches.append(batch)

    def statistics_blobs(self):
        # Looking up a buffer as an attribute of the module would be the slowest step here.
        blobs = self._buffers
        return blobs["mean"], blobs["variance"], blobs["factor"]

    def normalised(self):
        """The mean and the variance to normalise with in evaluation."""
        calls = None if torch.compiler.is_compiling() else _net.calls
        return calls.normalised(self) if calls is not None else self._divided()

    def _divided(self) -> tuple[Tensor, Tensor]:
        scale = torch.where(self.factor == 0, 0, 1 / self.factor)
        return (self.mean * scale).detach(), (self.variance * scale).detach()

    def reset(self):
        self._room = None

    def __getstate__(self):
        return self.__dict__ | {"_room": None}


def _along(vector, x):
    return vector.reshape((1, -1) + (1,) * (x.dim() - 2))


def _divided(layers: list[BatchNorm]) -> dict[BatchNorm, tuple[Tensor, Tensor]]:
    """Each layer's mean and variance, divided by its factor; 0 where the factor is 0."""
    sums = [blob for layer in layers for blob in layer.statistics_blobs()[:2]]
    factors = [layer.factor.expand(2 * len(layer.mean)) for layer in layers]
    factor = torch.cat(factors)
    divided = torch.cat(sums) * torch.where(factor == 0, 0, 1 / factor)
    parts = divided.detach().split([len(blob) for blob in sums])
    return dict(zip(layers, zip(parts[::2], parts[1::2], strict=True), strict=True))


class _Room(NamedTuple):
    """The memory for a batch's mean and variance. A layer keeps it for the next batch."""

    of: Tensor  # the layer's mean when this was made; `to` gives the layer another
    dtype: torch.dtype
    mean: Tensor
    variance: Tensor
    gains: list[Tensor]  # the batch's mean and variance, and the 1 that is added to the factor
    fresh: list[Tensor]  # the values that `gains` have before a batch


def _room(of: Tensor) -> _Room:
    mean, variance, zero = of.new_zeros(3, len(of)).unbind()
    one = of.new_ones(1)
    gains = [mean, variance, one.clone()]
    if not torch.compiler.is_compiling():
        # Autograd saves the mean and the variance, though it does not read them. `.data` has its own version counter,
        # so that the net may run again before the gradient is computed.
        gains = [gain.data for gain in gains]
    return _Room(of, of.dtype, mean, variance, gains, [zero, zero, one])


class _Batch(NamedTuple):
    """What a batch adds to a layer's blobs."""

    layer: BatchNorm
    room: _Room


class _Calls:
    """The calls of one net's forward."""

    def __init__(self, layers: Iterable[BatchNorm]):
        self.batches: list[_Batch] = []  # added to the layers' blobs when the forward ends
        self.layers = layers
        self.evaluated: dict[BatchNorm, tuple[Tensor, Tensor]] | None = None
        # Later calls cannot use memory that was made under a dispatch mode or a transform.
        modes = torch._C._len_torch_dispatch_stack()
        self.keep_rooms = not modes and torch._C._functorch.peek_interpreter_stack() is None

    def normalised(self, layer: BatchNorm) -> tuple[Tensor, Tensor]:
        """The mean and the variance to normalise with in evaluation.

        The first call computes them for all layers of the same dtype and device."""
        if self.evaluated is None:
            like = _kind(layer)
            alike = [other for other in self.layers if not other.uses_batch() and _kind(other) == like]
            self.evaluated = _divided(alike) if alike else {}
        found = self.evaluated.get(layer)
        return found if found is not None else layer._divided()


def _kind(layer: BatchNorm) -> set[tuple[torch.dtype, torch.device]]:
    return {(blob.dtype, blob.device) for blob in layer.statistics_blobs()}


class _Net(threading.local):
    """The calls of the net that this thread runs; None outside of nets."""

    calls: _Calls | None = None


_net = _Net()


@contextmanager
def together(layers: Iterable[BatchNorm]) -> Generator[None]:
    """A call of a net with these layers. Their statistics are divided by their factors together.

    The running statistics of all layers that are called inside change at its end, unless it fails. This takes a few
    launches instead of five a layer, each of which takes a GPU's host as long as the layer's own.
    """
    before, calls = _net.calls, _Calls(layers)
    _net.calls = calls
    try:
        yield
    finally:
        _net.calls = before
    together, blobs = [], set()
    for batch in calls.batches:
        own = {id(blob) for blob in batch.layer.statistics_blobs()}
        # Layers that share a blob follow one another.
        if not blobs.isdisjoint(own):
            _add(together)
            together, blobs = [], set()
        together.append(batch)
        blobs |= own
    if together:
        _add(together)
    if calls.keep_rooms:
        for layer, room in calls.batches:
            if not room.mean.is_inference():
                layer._room = room


def _add(batches: list[_Batch]) -> None:
    """mean = fraction * mean + the batch's mean; the variance likewise; factor = fraction * factor + 1."""
    for fraction in {layer.fraction: None for layer, _ in batches}:
        of_it = [batch for batch in batches if batch.layer.fraction == fraction]
        totals = [blob for layer, _ in of_it for blob in layer.statistics_blobs()]
        gains = [gain for _, room in of_it for gain in room.gains]
        torch._foreach_add_(gains, totals, alpha=fraction)
        torch._foreach_copy_(totals, gains)
        torch._foreach_copy_(gains, [value for _, room in of_it for value in room.fresh])


# ---------------------------------------------------------------------------------------------------- LRN


class LRN(StockLayer):
    """x / (k + alpha / n sum of x²)^beta: local response normalisation.

    ACROSS_CHANNELS: the sum is over local_size channels around the value's channel, and n is local_size.
    WITHIN_CHANNEL: it is over a square of local_size x local_size, n is its area, and k is 1. Bottom and top: [N,
    C, H, W].

    Source: BVLC's lrn_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.lrn_param
        self.size, self.alpha, self.beta, self.k = p.local_size, p.alpha, p.beta, p.k
        self.within_channel = p.norm_region == 1
        self.check(self.size % 2 == 1, f"local_size: expected an odd number, got {self.size}")

    def setup(self, x):
        self.check(len(x) == 4, f"input must have 4 axes, not {list(x)}")

    def forward(self, x):
        if not self.within_channel:
            return F.local_response_norm(x, self.size, self.alpha, self.beta, self.k)
        squares = F.avg_pool2d(x.square(), self.size, 1, (self.size - 1) // 2)
        return x * (1 + self.alpha * squares).pow(-self.beta)


# ---------------------------------------------------------------------------------------------------- MVN


class MVN(StockLayer):
    """(x - mean) / (sqrt(variance) + eps), for each channel of each image, or for each image with across_channels.

    The gradient is the source's, which divides by the root plus eps where the exact one has the root: no 0 / 0 for a
    constant channel. normalize_variance: false leaves out the division. Top: the bottom's count with four axes, as the
    source has it.

    Source: BVLC's mvn_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.mvn_param
        self.normalize_variance, self.across_channels = p.normalize_variance, p.across_channels
        self.eps = p.eps

    def setup(self, x):
        self.check(2 <= len(x) <= 4, f"a bottom of 2 to 4 axes is needed, not {list(x)}")

    def forward(self, x):
        rows = x.flatten(1)[:, None] if self.across_channels else x.reshape(x.shape[0], x.shape[1], -1)
        centred = rows - rows.mean(-1, keepdim=True)
        if self.normalize_variance:
            variance = centred.square().mean(-1, keepdim=True)
            centred = centred / (root(variance, self.eps) + self.eps)
        return centred.reshape(x.shape + (1,) * (4 - x.dim()))
