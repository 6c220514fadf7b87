import torch
from torch.nn.functional import conv1d, conv2d, pad

from .._runtime import CaffeValueError
from .._runtime.cases import Bad, Case
from . import DepthwiseConv1d, DepthwiseConv2d, depthwise_conv1d, depthwise_conv2d


def reference(x, weight, bias=None, stride=1, padding=0, dilation=1):
    return conv2d(x, weight, bias, stride, padding, dilation, groups=x.shape[1])


def arguments(shape, kernel, stride=1, padding=0, dilation=1, bias=False, channels_last=False):
    """A function of a Draw that gives the call's arguments."""
    kernel = (kernel, kernel) if isinstance(kernel, int) else kernel

    def draw_all(draw):
        x = draw.normal(*shape)
        if channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        # Scaled so that a top is about 1 whatever the kernel's size.
        weight = draw.normal(shape[1], 1, *kernel, scale=(kernel[0] * kernel[1]) ** -0.5)
        return x, weight, draw.normal(shape[1]) if bias else None, stride, padding, dilation

    return draw_all


def reference1d(x, weight, bias=None, stride=1, padding=0, dilation=1, causal=False):
    if causal:
        x = pad(x, (dilation * (weight.shape[2] - 1), 0))
    return conv1d(x, weight, bias, stride, padding, dilation, groups=x.shape[1])


def arguments1d(shape, kernel, stride=1, padding=0, dilation=1, causal=False, bias=False):
    """A function of a Draw that gives the call's arguments."""

    def draw_all(draw):
        x, weight = draw.normal(*shape), draw.normal(shape[1], 1, kernel, scale=kernel**-0.5)
        return x, weight, draw.normal(shape[1]) if bias else None, stride, padding, dilation, causal

    return draw_all


# The shapes of issue 3: MobileNet's, and two large kernels.
BENCH = {
    "32x112 k3": ((64, 32, 112, 112), 3, 1, 1),
    "64x112 k3 s2": ((64, 64, 112, 112), 3, 2, 1),
    "256x28 k3": ((64, 256, 28, 28), 3, 1, 1),
    "512x14 k3": ((64, 512, 14, 14), 3, 1, 1),
    "1024x7 k3": ((64, 1024, 7, 7), 3, 1, 1),
    "96x56 k7": ((32, 96, 56, 56), 7, 1, 3),
    "192x56 k5 d2": ((32, 192, 56, 56), 5, 1, 4, 2),
}

CASES = [
    Case(
        function=depthwise_conv2d,
        module=lambda: DepthwiseConv2d(4, 3, padding=1, bias=True),
        reference=reference,
        inputs={
            "3x3": arguments((2, 4, 9, 10), 3, padding=1, bias=True),
            "3x3-last": arguments((2, 16, 9, 10), 3, padding=1, channels_last=True),
            "stride2": arguments((2, 3, 12, 15), 3, 2, 1),
            "stride2-last": arguments((2, 8, 11, 15), 3, 2, 1, bias=True, channels_last=True),
            # Smaller than the kernel: where the Caffe layer that this descends from is wrong.
            "1x1-map": arguments((2, 5, 1, 1), 3, padding=1),
            "2x1-map": arguments((2, 5, 2, 1), (5, 3), padding=(2, 1), bias=True),
            "7x7-map": arguments((3, 33, 7, 7), 3, padding=1),
            "14x14-map": arguments((2, 5, 14, 14), 3, padding=1),
            "k7": arguments((1, 3, 20, 18), 7, padding=3),
            "k5-d2": arguments((1, 6, 13, 17), 5, padding=4, dilation=2, bias=True),
            "pairs": arguments((2, 3, 11, 8), (2, 4), (3, 1), (0, 2), (1, 2), bias=True),
            "wide-pad": arguments((1, 2, 4, 3), 2, padding=3),
            "wide": arguments((2, 3, 5, 130), 3, padding=1),
        },
        # A top is a sum of kernel_h * kernel_w products, a weight's gradient one of as many as the map has places.
        tolerance={torch.float32: (1e-5, 1e-5), torch.float16: (2e-3, 4e-3), torch.bfloat16: (1.6e-2, 3e-2)},
        empty=arguments((0, 4, 9, 10), 3, padding=1, bias=True),
        bad={
            "rank": Bad(
                lambda d: (d.normal(4, 9, 9), d.normal(4, 1, 3, 3)),
                CaffeValueError,
                "depthwise_conv: bottom:",
            ),
            "channels": Bad(
                lambda d: (d.normal(1, 4, 9, 9), d.normal(5, 1, 3, 3)),
                CaffeValueError,
                "depthwise_conv: weight:",
            ),
            "grouped": Bad(
                lambda d: (d.normal(1, 4, 9, 9), d.normal(4, 2, 3, 3)),
                CaffeValueError,
                "depthwise_conv: weight:",
            ),
            "bias": Bad(
                lambda d: (d.normal(1, 4, 9, 9), d.normal(4, 1, 3, 3), d.normal(3)),
                CaffeValueError,
                "depthwise_conv: bias:",
            ),
            "stride": Bad(
                lambda d: (d.normal(1, 4, 9, 9), d.normal(4, 1, 3, 3), None, 0),
                CaffeValueError,
                "depthwise_conv: stride:",
            ),
            "padding": Bad(
                lambda d: (d.normal(2, 16, 9, 9), d.normal(16, 1, 3, 3), None, 1, 2**31 - 1),
                CaffeValueError,
                "depthwise_conv: padding: expected less",
            ),
            "kernel": Bad(
                lambda d: (d.normal(1, 4, 2, 9), d.normal(4, 1, 3, 3)),
                CaffeValueError,
                "depthwise_conv: weight:",
            ),
        },
        autocast="lower",
        stays_float=("weight", "bias"),
        bench={name: arguments(*shape) for name, shape in BENCH.items()},
        peers={"torch conv2d": reference},
    ),
    Case(
        function=depthwise_conv1d,
        module=lambda: DepthwiseConv1d(3, 4, bias=True, causal=True),
        reference=reference1d,
        inputs={
            "causal": arguments1d((2, 3, 64), 4, causal=True, bias=True),
            "causal-odd": arguments1d((2, 5, 37), 3, causal=True),
            "same": arguments1d((1, 4, 48), 7, padding=3, bias=True),
            "valid": arguments1d((3, 2, 40), 9),
            "k64": arguments1d((1, 2, 96), 64, causal=True, bias=True),
            # Longer than the bottom.
            "full": arguments1d((2, 3, 24), 6, padding=5, bias=True),
            "wide-pad": arguments1d((1, 2, 5), 2, padding=20),
            "one": arguments1d((2, 3, 8), 1),
            # So long that a thread computes several packs of a row, and not so that they come out even.
            "long": arguments1d((1, 2, 4352), 5, causal=True, bias=True),
            "long-near": arguments1d((1, 2, 4352), 4, causal=True),
            "near": arguments1d((2, 3, 64), 3, padding=1),
            "stride": arguments1d((2, 3, 33), 5, 2, 2, bias=True),
            "dilated": arguments1d((1, 3, 40), 4, dilation=3, causal=True),
        },
        tolerance={torch.float32: (1e-5, 1e-5), torch.float16: (2e-3, 4e-3), torch.bfloat16: (1.6e-2, 3e-2)},
        empty=arguments1d((0, 4, 16), 4, causal=True, bias=True),
        bad={
            "rank": Bad(
                lambda d: (d.normal(4, 9), d.normal(4, 1, 3)), CaffeValueError, "depthwise_conv: bottom:"
            ),
            "channels": Bad(
                lambda d: (d.normal(1, 4, 9), d.normal(5, 1, 3)), CaffeValueError, "depthwise_conv: weight:"
            ),
            "bias": Bad(
                lambda d: (d.normal(1, 4, 9), d.normal(4, 1, 3), d.normal(3)),
                CaffeValueError,
                "depthwise_conv: bias:",
            ),
            "stride": Bad(
                lambda d: (d.normal(1, 4, 9), d.normal(4, 1, 3), None, 0),
                CaffeValueError,
                "depthwise_conv: stride:",
            ),
            "kernel": Bad(
                lambda d: (d.normal(1, 4, 2), d.normal(4, 1, 3)), CaffeValueError, "depthwise_conv: weight:"
            ),
            "causal": Bad(
                lambda d: (d.normal(1, 4, 9), d.normal(4, 1, 3), None, 1, 2, 1, True),
                CaffeValueError,
                "depthwise_conv: padding:",
            ),
        },
        autocast="lower",
        stays_float=("weight", "bias"),
        bench={"12288x16384 k4 causal": arguments1d((1, 12288, 16384), 4, causal=True)},
        peers={"torch conv1d": reference1d},
    ),
]
