"""Activations: Mish."""

import torch.nn.functional as F

from . import KnownLayer


class Mish(KnownLayer):
    """x * tanh(log(1 + exp(x)))"""

    types = ("Mish",)
    source = "forks of YOLO v4"

    def forward(self, x):
        return F.mish(x)
