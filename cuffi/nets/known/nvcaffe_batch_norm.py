"""Normalisation: BatchNorm as NVCaffe has it, with its scale and bias."""

import torch
import torch.nn.functional as F

from ..net.fillers import constant
from . import KnownLayer


class BatchNorm(KnownLayer):
    """Batch normalisation, with scale_bias also times a scale and plus a bias of each channel.

    Training uses the batch's statistics, evaluation the running ones, regardless of use_global_stats. Running values
    become fraction * old + (1 - fraction) * batch, and the batch's in the first two calls; the factor is 1.
    """

    types = ("BatchNorm",)
    source = "NVIDIA/caffe"
    blobs = ("mean", "variance", "factor", "scale", "bias")
    statistics = ("mean", "variance", "factor")
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
