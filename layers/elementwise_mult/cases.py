"""What elementwise_mult computes: a * b."""

import torch

from cuffi import CaffeValueError
from cuffi.runtime.cases import Bad, Case

from . import ElementwiseMult, elementwise_mult

CASES = [
    Case(
        function=elementwise_mult,
        module=ElementwiseMult,
        reference=lambda a, b: a * b,
        inputs={
            "vector": lambda draw: (draw.normal(1031), draw.normal(1031)),
            "4d": lambda draw: (draw.normal(2, 3, 5, 7), draw.normal(2, 3, 5, 7)),
        },
        twice=True,
        bad={
            "shape": Bad(
                lambda draw: (draw.normal(2, 3), draw.normal(3, 2)),
                CaffeValueError,
                "elementwise_mult: b: expected",
            ),
            "rank": Bad(
                lambda draw: (draw.normal(2, 3), draw.normal(3)),
                CaffeValueError,
                "elementwise_mult: b: expected",
            ),
        },
        elementwise=True,
        bench={"2^24": lambda draw: (draw.normal(1 << 24), draw.normal(1 << 24))},
        peers={"torch.mul": torch.mul},
    )
]
