"""Activations: PReLU, with a learnable slope below 0."""

import torch.nn.functional as F

from ..net.fillers import constant
from . import StockLayer


class PReLU(StockLayer):
    """max(x, 0) + slope_c min(x, 0). Blob: the slope, one number for each channel [C], or one for all.

    Source: BVLC's prelu_layer.cpp.
    """

    blobs = ("slope",)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.prelu_param
        self.channel_shared = p.channel_shared
        self._filler = p.filler if p.HasField("filler") else constant(0.25)

    def setup(self, x):
        self.check(len(x) >= 2, f"a bottom of 2 or more axes is needed, not {list(x)}")
        self.blob("slope", () if self.channel_shared else (x[1],), self._filler)
        del self._filler

    def forward(self, x):
        return F.prelu(x, self.slope.reshape(1) if self.channel_shared else self.slope)
