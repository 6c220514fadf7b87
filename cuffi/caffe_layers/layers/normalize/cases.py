"""What normalize computes: by torch, over channels or the whole item."""

import torch

from cuffi import CaffeRuntimeError
from cuffi.caffe_layers.cases import Bad, caffe_case

from . import Normalize

# Sums over channels or whole images, in the tensors' own type and in another order than the reference.
TOLERANCE = {torch.float32: (1e-5, 1e-5)}
EPS = torch.tensor(1e-10, dtype=torch.float32).item()  # a message holds it as float


def reference(across_spatial, eps=EPS):
    def normalize(x, blob0):
        squares = x.square().flatten(1).sum(1) if across_spatial else x.square().sum(1)
        norm = (
            (squares + eps)
            .sqrt()
            .reshape(x.shape[0], 1, *([1] * (x.dim() - 2) if across_spatial else x.shape[2:]))
        )
        return blob0.reshape(-1, *[1] * (x.dim() - 2)) * x / norm

    return normalize


def inputs(channel_shared):
    def given(*shape):
        return lambda draw: (
            draw.normal(*shape),
            draw.uniform(low=0.5, high=2) if channel_shared else draw.normal(shape[1]),
        )

    return {
        "4d": given(2, 3, 4, 5),
        "large": given(2, 67, 19, 23),
        "2d": given(3, 7),
        "5d": given(2, 3, 2, 2, 2),
        "pixel": given(1, 16, 1, 1),
    }


def case(across_spatial, channel_shared, bench=False, **options):
    name = f"normalize_{'image' if across_spatial else 'position'}_{'shared' if channel_shared else 'per_channel'}"
    parameter = {"across_spatial": across_spatial, "channel_shared": channel_shared}
    return caffe_case(
        name,
        lambda: Normalize(norm_param=parameter),
        reference(across_spatial),
        inputs(channel_shared),
        empty=lambda draw: (draw.normal(0, 3, 4, 5), draw.uniform() if channel_shared else draw.uniform(3)),
        tolerance=TOLERANCE,
        # SSD's conv4_3
        bench={"conv4_3": lambda draw: (draw.normal(8, 512, 38, 38), draw.uniform(512))} if bench else {},
        **options,
    )


CASES = [
    case(
        False,
        False,
        bench=True,
        bad={
            "channels": Bad(
                lambda draw: (draw.normal(3), draw.normal(3)), CaffeRuntimeError, "images x channels"
            ),
        },
    ),
    case(False, True),
    case(True, False),
    case(True, True),
    caffe_case(
        "normalize_eps",  # large enough to matter
        lambda: Normalize(
            norm_param={
                "across_spatial": False,
                "eps": 0.5,
                "scale_filler": {"type": "constant", "value": 20},
            }
        ),
        reference(False, 0.5),
        {"4d": lambda draw: (draw.normal(2, 3, 4, 5), draw.uniform())},
        empty=lambda draw: (draw.normal(0, 3, 4, 5), draw.uniform()),
        tolerance=TOLERANCE,
    ),
]
