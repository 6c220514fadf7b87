"""What round computes: 1 from 0.5 on, else 0, with the gradient passed through."""

import torch

from cuffi.runtime.cases import Case

from . import Round, round_ste

CASES = [
    Case(
        function=round_ste,
        module=Round,
        # The value is the rounded one, the gradient that of x.
        reference=lambda x: x + ((x >= 0.5).to(x.dtype) - x).detach(),
        inputs={
            "vector": lambda draw: (draw.uniform(1031),),
            "4d": lambda draw: (draw.uniform(2, 3, 5, 7),),
            "scalar": lambda draw: (draw.uniform(),),
            "edges": lambda draw: (torch.tensor([0.5, 0.4999, 0.5001, 0.0, 1.0, -0.5, 2.0]),),
        },
        gradient="reference",
        twice=True,
        elementwise=True,
        bench={"2^24": lambda draw: (draw.uniform(1 << 24),)},
        peers={"torch.round": torch.round},
    )
]
