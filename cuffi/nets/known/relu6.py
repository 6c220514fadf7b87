"""Activations: ReLU6 (MobileNet)."""

import torch.nn.functional as F

from . import KnownLayer


class ReLU6(KnownLayer):
    """min(max(x, 0) + negative_slope * min(x, 0), 6)"""

    types = ("ReLU6",)
    source = "eric612/MobileNet-YOLO"

    def __init__(self, definition):
        super().__init__(definition)
        self.negative_slope = definition.message.relu6_param.negative_slope

    def top_shapes(self, x):
        return [x]

    def forward(self, x):
        return F.leaky_relu(x, self.negative_slope).clamp(max=6) if self.negative_slope else F.relu6(x)
