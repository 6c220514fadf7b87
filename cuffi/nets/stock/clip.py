"""Activations: Clip, values between two limits."""

import torch

from . import StockLayer


class Clip(StockLayer):
    """min(max(x, min), max), for any shape. The gradient is 0 outside of [min, max].

    Source: BVLC's clip_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        self.least, self.most = definition.message.clip_param.min, definition.message.clip_param.max

    def forward(self, x):
        # Not clamp: from torch 2.15 on its gradient is 0 at the limits themselves, where Caffe's is 1.
        x = torch.where(x > self.most, self.most, x)
        return torch.where(x < self.least, self.least, x)
