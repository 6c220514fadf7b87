"""What correlation computes: a channel for each displacement, in plain torch."""

import torch

from cuffi import CaffeRuntimeError
from cuffi.caffe_layers.cases import Bad, caffe_case

from . import Correlation

# Sums over channels and patches, in the tensors' own type and in another order than the reference.
TOLERANCE = {torch.float32: (1e-5, 1e-5)}


def reference(kernel_size, max_displacement, pad=0, stride_1=1, stride_2=1, correlation_type="MULTIPLY"):
    def correlation(first, second):
        first, second = (torch.nn.functional.pad(x, (pad,) * 4) for x in (first, second))
        height, width = (size - 2 * max_displacement for size in first.shape[2:])
        first = first[:, :, max_displacement:, max_displacement:][:, :, :height, :width]
        side = max_displacement // stride_2 * 2 + 1
        start = max_displacement % stride_2
        means = []
        for i in range(side):
            rows = second[:, :, start + i * stride_2 :, start:][:, :, :height]
            moved = rows.unfold(3, width, stride_2)[:, :, :, :side]  # [image, channel, y, displacement, x]
            one = first[:, :, :, None]
            product = one * moved if correlation_type == "MULTIPLY" else (one - moved).abs()
            means.append(product.mean(1).transpose(1, 2))
        return torch.nn.functional.avg_pool2d(torch.cat(means, 1), kernel_size, stride_1)

    return correlation


def pair(*shape):
    return lambda draw: (draw.normal(*shape), draw.normal(*shape))


def case(name, inputs, bench=None, bad=None, **parameter):
    return caffe_case(
        name,
        lambda: Correlation(correlation_param=parameter),
        reference(**parameter),
        inputs,
        tolerance=TOLERANCE,
        bench=bench or {},
        bad=bad or {},
    )


CASES = [
    case(
        "correlation",
        {"small": pair(2, 3, 6, 5), "tiles": pair(1, 35, 7, 41)},
        kernel_size=1,
        max_displacement=2,
        pad=2,
        bad={
            "shapes": Bad(
                lambda draw: (draw.normal(1, 2, 6, 6), draw.normal(1, 2, 6, 5)), CaffeRuntimeError, "differ"
            ),
            "too small": Bad(lambda draw: (draw.normal(1, 2, 1, 0),) * 2, CaffeRuntimeError, "do not fit"),
            "no image": Bad(lambda draw: (draw.normal(2, 6, 6),) * 2, CaffeRuntimeError, "images x channels"),
        },
    ),
    case(
        "correlation_strided",
        {"small": pair(2, 3, 9, 11), "wide": pair(1, 2, 12, 90)},
        kernel_size=3,
        max_displacement=4,
        pad=3,
        stride_1=2,
        stride_2=2,
    ),
    case("correlation_unpadded", {"small": pair(1, 2, 8, 9)}, kernel_size=3, max_displacement=1),
    # More padding than displacements reach, more displacements along an axis than a block takes at once.
    case("correlation_far", {"small": pair(1, 2, 5, 6)}, kernel_size=1, max_displacement=17, pad=18),
    case(
        "correlation_subtract",
        {"small": pair(2, 3, 6, 5)},
        kernel_size=3,
        max_displacement=2,
        pad=4,
        stride_2=2,
        correlation_type="SUBTRACT",
    ),
    case(
        "correlation_flownet",
        {"small": pair(1, 4, 7, 9)},
        kernel_size=1,
        max_displacement=20,
        pad=20,
        stride_2=2,
        bench={"flownet": pair(4, 256, 48, 64)},
    ),
]
