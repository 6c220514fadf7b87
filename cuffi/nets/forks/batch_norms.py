"""Batch normalisation with a scale and a shift of its own: SegNet's, PSPNet's, NVCaffe's.

BN: as SegNet and as PSPNet have it.
BatchNorm: BatchNorm as NVCaffe has it, with its scale and bias.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ...base import CaffeValueError
from ..net.fillers import constant
from . import ForkLayer

# ----------------------------------------------------------------------------------------------------- BN


def _normalised(x, weight, bias, eps, wanted=True):
    """(top, the batch's mean, and its variance times m / (m - 1)) by the batch's statistics, which may be unwanted."""
    weight, bias = weight.reshape(-1), bias.reshape(-1)
    if x.shape[1] != len(weight):
        raise CaffeValueError(f"{len(weight)} channels are known, not those of {list(x.shape)}")
    if x.numel() // x.shape[1] == 1:  # torch refuses it; the numerator is zero
        top = (x * 0).transpose(0, 1) * weight.reshape(-1, *(1,) * (x.dim() - 1))
        top = (top + bias.reshape(-1, *(1,) * (x.dim() - 1))).transpose(0, 1)
        return top, x.detach().reshape(-1), torch.zeros_like(weight)
    mean = variance = None
    if wanted:
        mean, variance = torch.zeros_like(weight).detach(), torch.zeros_like(weight).detach()
    return F.batch_norm(x, mean, variance, weight, bias, True, 1.0, eps), mean, variance


class SegNetBN(ForkLayer):
    """Batch normalisation with scale and shift, by the batch's statistics in both phases; eps 1e-9.

    With bn_mode INFERENCE it is scale * x + shift: the statistics are folded into both. In training, a second and a
    third top are the batch's mean and variance.
    """

    types = ("BN",)
    source = "alexgkendall/caffe-segnet"
    variant = "segnet"
    tops = (1, 3)
    blobs = ("scale", "shift")
    scale: Tensor
    shift: Tensor

    @classmethod
    def fits(cls, definition):
        p = definition.message.bn_param
        others = ("slope_filler", "bias_filler", "momentum", "eps", "frozen")
        return not any(map(p.HasField, others)) and definition.stored_blobs in (None, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.bn_param
        self.folded, self._fills = p.bn_mode == p.INFERENCE, (p.scale_filler, p.shift_filler)
        self.check(
            not self.folded or definition.tops == 1, "bn_mode INFERENCE has no statistics for more tops"
        )

    def setup(self, x):
        self.check(len(x) in (2, 4), f"a bottom of 2 or 4 axes is needed, not {list(x)}")
        for name, filler in zip(self.blobs, self._fills, strict=True):
            self.blob(name, (1, x[1], 1, 1), filler)
        del self._fills

    def forward(self, x):
        if self.folded:
            self.check(x.shape[1] == self.scale.numel(), "{} channels, not {}", self.scale.numel(), x.shape)
            along = (1, -1) + (1,) * (x.dim() - 2)
            return x * self.scale.reshape(along) + self.shift.reshape(along)
        top, mean, variance = _normalised(x, self.scale, self.shift, 1e-9, self.top_count > 1)
        if self.top_count == 1:
            return top
        count = x.numel() // x.shape[1]
        variance = variance * ((count - 1) / count)
        return (top, mean.reshape(1, -1, 1, 1), variance.reshape(1, -1, 1, 1))[: self.top_count]


class PSPNetBN(ForkLayer):
    """Batch normalisation with slope and bias, running mean and variance; training uses the batch's statistics.

    Running values become momentum * old + (1 - momentum) * batch, with the batch's variance divided by m. If the layer
    is frozen, training also uses the running values, and no parameter of the layer is trained.
    """

    types = ("BN",)
    source = "hszhao/PSPNet"
    variant = "pspnet"
    blobs = ("slope", "bias", "mean", "variance")
    statistics = ("mean", "variance")
    slope: Tensor
    bias: Tensor
    mean: Tensor
    variance: Tensor

    @classmethod
    def fits(cls, definition):
        p = definition.message.bn_param
        others = ("scale_filler", "shift_filler", "bn_mode")
        return not any(map(p.HasField, others)) and definition.stored_blobs in (None, 4)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.bn_param
        self.frozen, self.momentum, self.eps = p.frozen, p.momentum, p.eps
        self._fills = (p.slope_filler, p.bias_filler)
        if self.frozen:
            self.statistics = self.blobs

    def setup(self, x):
        self.check(len(x) in (2, 4), f"a bottom of 2 or 4 axes is needed, not {list(x)}")
        fillers = (*self._fills, constant(0), constant(1 if self.frozen else 0))
        for name, filler in zip(self.blobs, fillers, strict=True):
            self.blob(name, (1, x[1], 1, 1), filler)
        del self._fills

    def forward(self, x):
        if self.frozen or not self.training:
            blobs = (self.mean, self.variance, self.slope, self.bias)
            return F.batch_norm(x, *(blob.reshape(-1) for blob in blobs), False, 0.0, self.eps)
        top, mean, variance = _normalised(x, self.slope, self.bias, self.eps)
        count = x.numel() // x.shape[1]
        with torch.no_grad():
            for running, batch in ((self.mean, mean), (self.variance, variance * ((count - 1) / count))):
                running.mul_(self.momentum).add_(
                    batch.reshape(running.shape).to(running.dtype), alpha=1 - self.momentum
                )
        return top


# ---------------------------------------------------------------------------------------------- BatchNorm


class BatchNorm(ForkLayer):
    """Batch normalisation, with scale_bias also times a scale and plus a bias of each channel.

    Training uses the batch's statistics, evaluation the running ones, regardless of use_global_stats. Running values
    become fraction * old + (1 - fraction) * batch, and the batch's in the first two calls; the factor is 1.
    """

    types = ("BatchNorm",)
    source = "NVIDIA/caffe"
    blobs = ("mean", "variance", "factor", "scale", "bias")
    statistics = ("mean", "variance", "factor")
    mean: Tensor
    variance: Tensor
    scale: Tensor
    bias: Tensor
    understands = ("batch_norm_param.scale_bias",)
    kept = ("calls",)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.batch_norm_param
        self.fraction, self.eps, self.calls = p.moving_average_fraction, max(p.eps, 1e-5), 0
        self.has_scale = definition.flag("batch_norm_param.scale_bias", False)

    def setup(self, x):
        self.check(len(x) > 1, f"a bottom of 2 or more axes is needed, not {list(x)}")
        values = {"mean": 0, "variance": 0, "factor": 1, "scale": 1, "bias": 0}
        for name in self.blobs if self.has_scale else self.statistics:
            self.blob(name, (1 if name == "factor" else x[1],), constant(values[name]))

    def forward(self, x):
        scale, bias = (self.scale, self.bias) if self.has_scale else (None, None)
        if not self.training:
            return F.batch_norm(x, self.mean, self.variance, scale, bias, False, 0.0, self.eps)
        mean, variance = torch.zeros_like(self.mean), torch.zeros_like(self.mean)
        top = F.batch_norm(x, mean, variance, scale, bias, True, 1.0, self.eps)
        count = x.numel() // x.shape[1]
        kept = self.fraction if self.calls > 1 else 0.0
        with torch.no_grad():
            for running, batch in ((self.mean, mean), (self.variance, variance * ((count - 1) / count))):
                running.mul_(kept).add_(batch, alpha=1 - kept)
        self.calls += 1
        return top

    def reset(self):
        self.calls = 0
