"""What leaky computes: by torch, for the tests."""

import torch

from cuffi.runtime.cases import Case

from . import leaky

CASES = [
    Case(
        function=leaky,
        reference=torch.nn.functional.leaky_relu,
        inputs={"4d": lambda draw: (draw.normal(2, 3, 5, 7), 0.2)},
        kinks=((0.0, 0.01),),
        elementwise=True,
    )
]
