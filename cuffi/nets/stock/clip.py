"""Activations: Clip, values between two limits."""

from . import StockLayer


class Clip(StockLayer):
    """min(max(x, min), max), for any shape. The gradient is 0 outside of [min, max].

    Source: BVLC's clip_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        self.least, self.most = definition.message.clip_param.min, definition.message.clip_param.max

    def forward(self, x):
        return x.clamp(self.least, self.most)
