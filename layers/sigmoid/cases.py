"""What sigmoid computes: by torch.sigmoid."""

import torch

from cuffi.runtime.cases import Case

from . import Sigmoid, d_sigmoid, sigmoid

CASES = [
    Case(
        function=sigmoid,
        module=Sigmoid,
        reference=torch.sigmoid,
        inputs={
            "vector": lambda draw: (draw.normal(1031, scale=3),),
            "matrix": lambda draw: (draw.normal(64, 129),),
            "4d": lambda draw: (draw.normal(2, 3, 5, 7),),
            "large": lambda draw: (torch.tensor([-1e4, -100.0, -30.0, 0.0, 30.0, 100.0, 1e4]),),
        },
        elementwise=True,
        bench={"2^24": lambda draw: (draw.normal(1 << 24),)},
        peers={"torch.sigmoid": torch.sigmoid},
    ),
    Case(
        function=d_sigmoid,
        reference=lambda y: y * (1 - y),
        inputs={"matrix": lambda draw: (draw.uniform(17, 9),)},
        gradient="none",
        elementwise=True,
    ),
]
