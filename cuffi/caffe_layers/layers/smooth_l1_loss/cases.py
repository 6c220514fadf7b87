"""What smooth_l1_loss computes: the weighted loss, in plain torch."""

import torch

from cuffi import CaffeRuntimeError
from cuffi.caffe_layers.cases import Bad, caffe_case

from . import SmoothL1Loss

# The layer adds up in the tensors' own type, in another order than the reference.
TOLERANCE = {torch.float32: (1e-5, 1e-6)}


def reference(sigma):
    def smooth_l1(prediction, target, inside=None, outside=None):
        x = prediction - target
        if inside is not None:
            x = inside * x
        loss = torch.where(x.abs() < 1 / sigma**2, 0.5 * (sigma * x) ** 2, x.abs() - 0.5 / sigma**2)
        if outside is not None:
            loss = outside * loss
        return loss.sum() / prediction.shape[0]

    return smooth_l1


def pair(*shape):
    return lambda draw: (draw.normal(*shape), draw.normal(*shape))


def weighted(draw):
    shape = (5, 8, 3, 2)
    return draw.normal(*shape), draw.normal(*shape), draw.uniform(*shape), draw.uniform(*shape)


def boxes(draw):
    return tuple(draw.normal(2000, 84) for _ in range(4))


CASES = [
    caffe_case(
        "smooth_l1_loss",
        SmoothL1Loss,
        reference(1.0),
        inputs={"4d": pair(3, 4, 2, 5), "2d": pair(7, 84), "many": pair(300, 1031), "one": pair(1, 1)},
        empty=lambda draw: (draw.normal(3, 0), draw.normal(3, 0)),
        bad={
            "shapes": Bad(
                lambda draw: (draw.normal(2, 3), draw.normal(2, 4)), CaffeRuntimeError, "bottom 1 has shape"
            ),
            "nums": Bad(
                lambda draw: (draw.normal(2, 3), draw.normal(3, 3)), CaffeRuntimeError, "Check failed"
            ),
        },
        tolerance=TOLERANCE,
    ),
    caffe_case(
        "smooth_l1_loss_weighted",
        lambda: SmoothL1Loss(smooth_l1_loss_param={"sigma": 3}),
        reference(3.0),
        inputs={"both": weighted, "inside": lambda draw: weighted(draw)[:3]},
        empty=lambda draw: tuple(draw.normal(3, 0) for _ in range(4)),
        tolerance=TOLERANCE,
        bench={"2000x84": boxes},
    ),
]
