"""Caffe's fillers: initial values of parameters, drawn from torch's generators."""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
from torch import Tensor

from ...base import CaffeValueError


@torch.no_grad()
def fill(blob: Tensor, filler) -> None:
    """Fill a blob by a FillerParameter."""
    kind = filler.type or "constant"
    if kind not in _KINDS:
        raise CaffeValueError(f"filler: no type {kind!r}. There are: {', '.join(_KINDS)}")
    if filler.sparse != -1 and kind != "gaussian":
        raise CaffeValueError(f"filler: sparse is for the gaussian filler, not for {kind}")
    if blob.numel():
        _KINDS[kind](blob, filler)


def constant(value: float):
    """A constant filler, the default of most layers."""
    return SimpleNamespace(type="constant", sparse=-1, value=value)


def _constant(blob: Tensor, filler) -> None:
    blob.fill_(filler.value)


def _uniform(blob: Tensor, filler) -> None:
    blob.uniform_(filler.min, filler.max)


def _gaussian(blob: Tensor, filler) -> None:
    blob.normal_(filler.mean, filler.std)
    if filler.sparse >= 0:  # on average, each output has this many inputs that are not zero
        if blob.dim() < 1:
            raise CaffeValueError("filler: sparse: the blob has no axes")
        blob.mul_(torch.empty_like(blob).bernoulli_(min(1.0, filler.sparse / blob.shape[0])))


def _positive_unitball(blob: Tensor, filler) -> None:
    blob.uniform_(0, 1)
    rows = blob.view(blob.shape[0], -1)
    rows.div_(rows.sum(1, keepdim=True))


def _xavier(blob: Tensor, filler) -> None:
    limit = math.sqrt(3.0 / _fan(blob, filler))
    blob.uniform_(-limit, limit)


def _msra(blob: Tensor, filler) -> None:
    blob.normal_(0, math.sqrt(2.0 / _fan(blob, filler)))


def _bilinear(blob: Tensor, filler) -> None:
    """The weights of a deconvolution that interpolates."""
    if blob.dim() != 4 or blob.shape[2] != blob.shape[3]:
        raise CaffeValueError(
            f"filler: bilinear: expected a blob of 4 axes with square kernels, got {list(blob.shape)}"
        )
    side = blob.shape[3]
    factor = math.ceil(side / 2)
    centre = (side - 1) / (2.0 * factor)
    line = 1 - (torch.arange(side, dtype=torch.float64) / factor - centre).abs()
    blob.copy_((line[:, None] * line[None, :]).expand(blob.shape))


def _diagonal(blob: Tensor, filler) -> None:
    """FlowNet2's: filter i computes the mean of channel i, times diag_val i, whose default is 1."""
    blob.zero_()
    area = blob[0, 0].numel()
    for i in range(min(blob.shape[:2])):
        blob[i, i] = (filler.diag_val[i] if i < len(filler.diag_val) else 1.0) / area


def _fan(blob: Tensor, filler) -> float:
    fan_in = blob.numel() / blob.shape[0]
    fan_out = blob.numel() / (blob.shape[1] if blob.dim() > 1 else 1)
    norm = filler.variance_norm  # FAN_IN, FAN_OUT, AVERAGE
    return fan_in if norm == 0 else fan_out if norm == 1 else (fan_in + fan_out) / 2


_KINDS = {
    "constant": _constant,
    "uniform": _uniform,
    "gaussian": _gaussian,
    "positive_unitball": _positive_unitball,
    "xavier": _xavier,
    "msra": _msra,
    "bilinear": _bilinear,
    "diagonal": _diagonal,
}
