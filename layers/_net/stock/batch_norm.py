from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..fillers import constant
from . import StockLayer


class BatchNorm(StockLayer):
    """Normalisation over all axes but 1, without an affine part, which a Scale layer adds.

    `mean` and `variance` are decaying sums, divided by `factor` where they are used. Evaluation uses them, training
    the batch, unless use_global_stats says otherwise.
    """

    blobs = ("mean", "variance", "factor")
    statistics = blobs

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.batch_norm_param
        self.use_global_stats = p.use_global_stats if p.HasField("use_global_stats") else None
        self.fraction, self.eps = p.moving_average_fraction, p.eps
        self._normalised: _Normalised | None = None

    def setup(self, x):
        self.check(len(x) > 1, f"a bottom of 2 or more axes is needed, not {list(x)}")
        for name, size in (("mean", x[1]), ("variance", x[1]), ("factor", 1)):
            self.blob(name, (size,), constant(0))

    def top_shapes(self, x):
        self.check(
            x[1:2] == tuple(self.mean.shape), f"{len(self.mean)} channels are known, not those of {list(x)}"
        )
        return [x]

    def forward(self, x, weight=None, bias=None):
        """weight, bias: of a Scale layer that follows."""
        if not (self.training if self.use_global_stats is None else not self.use_global_stats):
            mean, variance = self._statistics()
            top = F.batch_norm(x, mean, variance, weight, bias, False, 0.0, self.eps)
        elif x.numel() // x.shape[1] == 1:  # torch refuses it; Caffe divides zero by sqrt(eps)
            zero = x * 0
            top = zero if weight is None else zero * _along(weight, zero)
            top = top if bias is None else top + _along(bias, top)
            self._update(x.detach().reshape(-1), torch.zeros_like(self.variance))
        else:
            # With momentum 1 the running statistics are the batch's: its mean, and its variance times m / (m - 1).
            mean, variance = self.mean.new_zeros(2, x.shape[1]).unbind()
            top = F.batch_norm(x, mean, variance, weight, bias, True, 1.0, self.eps)
            self._update(mean, variance)
        return top

    def _update(self, mean, variance):
        batch = _Batch(self.fraction, (self.mean, self.variance), self.factor, (mean, variance))
        waiting = None if torch.compiler.is_compiling() else _net.waiting
        if waiting is None:
            _add([batch])
        else:
            waiting.append(batch)

    def _statistics(self):
        if torch.compiler.is_compiling():
            return self._divided()
        # A module's attribute that is a buffer takes longer to find than all else here.
        blobs = self._buffers
        mean, variance, factor = blobs["mean"], blobs["variance"], blobs["factor"]
        known = self._normalised
        if (
            known is None
            or known.mean is not mean
            or known.variance is not variance
            or known.factor is not factor
            or known.versions != (mean._version, variance._version, factor._version)
            or known.divided[0].is_inference()
        ):
            versions = mean._version, variance._version, factor._version
            known = self._normalised = _Normalised(mean, variance, factor, versions, self._divided())
        return known.divided

    def _divided(self):
        scale = torch.where(self.factor == 0, 0, 1 / self.factor)
        return (self.mean * scale).detach(), (self.variance * scale).detach()

    def reset(self):
        self._normalised = None

    def __getstate__(self):
        return self.__dict__ | {"_normalised": None}


def _along(vector, x):
    return vector.reshape((1, -1) + (1,) * (x.dim() - 2))


class _Normalised(NamedTuple):
    """The mean and the variance that evaluation takes, and what they were made from."""

    mean: Tensor
    variance: Tensor
    factor: Tensor
    versions: tuple[int, int, int]
    divided: tuple[Tensor, Tensor]


class _Batch(NamedTuple):
    """What a batch adds to a layer's blobs."""

    fraction: float
    totals: tuple[Tensor, Tensor]
    factor: Tensor
    gains: tuple[Tensor, Tensor]


class _Net(threading.local):
    """Of the net that this thread runs: the batches that wait for its end; None outside of nets."""

    waiting: list[_Batch] | None = None


_net = _Net()


@contextmanager
def updated_together() -> Iterator[None]:
    """Running statistics of all layers that are called inside change at its end, unless it fails.

    A few launches instead of five a layer, each of which takes a GPU's host as long as the layer's own.
    """
    before, waiting = _net.waiting, []
    _net.waiting = waiting
    try:
        yield
    finally:
        _net.waiting = before
    together, blobs = [], set()
    for batch in waiting:
        own = {id(blob) for blob in (*batch.totals, batch.factor)}
        # Layers that share a blob follow one another.
        if not blobs.isdisjoint(own):
            _add(together)
            together, blobs = [], set()
        together.append(batch)
        blobs |= own
    if together:
        _add(together)


def _add(batches: list[_Batch]) -> None:
    factors = [batch.factor for batch in batches]
    totals = [total for batch in batches for total in batch.totals]
    fractions = [batch.fraction for batch in batches]
    torch._foreach_mul_(totals, [fraction for fraction in fractions for _ in range(2)])
    torch._foreach_add_(totals, [gain for batch in batches for gain in batch.gains])
    torch._foreach_mul_(factors, fractions)
    torch._foreach_add_(factors, 1)
