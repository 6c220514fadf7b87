"""What depthwise_conv computes: by torch.nn.functional, in one and two dimensions, and packed sequences."""

import torch
import torch.nn.functional as F
from torch.nn.functional import conv1d, conv2d, pad

from cuffi import CaffeTypeError, CaffeValueError
from cuffi.runtime.cases import Bad, Case

from . import (
    DepthwiseConv1d,
    DepthwiseConv2d,
    depthwise_conv1d,
    depthwise_conv2d,
    depthwise_conv_norm,
)

ACTIVATED = {None: lambda x: x, "relu": F.relu, "relu6": F.relu6, "silu": F.silu, "gelu": F.gelu}


def reference(x, weight, bias=None, stride=1, padding=0, dilation=1, activation=None):
    return ACTIVATED[activation](conv2d(x, weight, bias, stride, padding, dilation, groups=x.shape[1]))


def arguments(
    shape, kernel, stride=1, padding=0, dilation=1, bias=False, channels_last=False, activation=None
):
    """A function of a Draw that gives the call's arguments."""
    kernel = (kernel, kernel) if isinstance(kernel, int) else kernel

    def draw_all(draw):
        x = draw.normal(*shape)
        if channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        # Scaled so that a top is about 1 whatever the kernel's size.
        weight = draw.normal(shape[1], 1, *kernel, scale=(kernel[0] * kernel[1]) ** -0.5)
        return x, weight, draw.normal(shape[1]) if bias else None, stride, padding, dilation, activation

    return draw_all


def reference1d(
    x, weight, bias=None, stride=1, padding=0, dilation=1, causal=False, activation=None, seq_idx=None, cu_seqlens=None
):  # fmt: skip
    if seq_idx is not None or cu_seqlens is not None:
        return packed(x, weight, bias, activation, seq_idx, cu_seqlens)
    if causal:
        x = pad(x, (dilation * (weight.shape[2] - 1), 0))
    return ACTIVATED[activation](conv1d(x, weight, bias, stride, padding, dilation, groups=x.shape[1]))


def packed(x, weight, bias, activation, seq_idx, cu_seqlens):
    """Each sequence by itself."""
    rows = []
    for i, row in enumerate(x):
        counts = (
            cu_seqlens.diff() if seq_idx is None else seq_idx[i].unique_consecutive(return_counts=True)[1]
        )
        parts = row[None].split(counts.tolist(), 2)
        rows.append(
            torch.cat([reference1d(part, weight, bias, causal=True) for part in parts if part.numel()], 2)
        )
    return ACTIVATED[activation](torch.cat(rows) if rows else x * 0)


def arguments1d(
    shape, kernel, stride=1, padding=0, dilation=1, causal=False, bias=False, activation=None,
    lengths=(), by_index=False,
):  # fmt: skip
    """A function of a Draw that gives the call's arguments. lengths: of the packed sequences in a row."""
    index, ends = None, None
    if by_index:
        index = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths)).expand(shape[0], -1).int()
    elif lengths:
        ends = torch.tensor((0, *lengths)).cumsum(0, dtype=torch.int32)

    def draw_all(draw):
        x, weight = draw.normal(*shape), draw.normal(shape[1], 1, kernel, scale=kernel**-0.5)
        bias_or_none = draw.normal(shape[1]) if bias else None
        return x, weight, bias_or_none, stride, padding, dilation, causal, activation, index, ends

    return draw_all


INDEX = torch.zeros(2, 9, dtype=torch.int32)
BAD_SEQUENCES = (
    # (name, arguments from causal on, error, message)
    ("not causal", (False, None, INDEX), CaffeValueError, "depthwise_conv: causal: expected True"),
    ("two ways", (True, None, INDEX, INDEX[0]), CaffeValueError, "depthwise_conv: cu_seqlens: expected None"),
    ("index's shape", (True, None, INDEX[:1]), CaffeValueError, "depthwise_conv: seq_idx: expected [2, 9]"),
    (
        "index's dtype",
        (True, None, INDEX.float()),
        CaffeTypeError,
        "depthwise_conv: seq_idx: expected int32 or",
    ),
    ("rows", (True, None, None, INDEX[0]), CaffeValueError, "depthwise_conv: bottom: expected one row"),
    ("axes", (True, None, None, INDEX), CaffeValueError, "depthwise_conv: cu_seqlens: expected 1 axis"),
)


def normed(x, weight, mean, variance, *parameters):
    stride, padding, dilation, eps, activation, bias, scale, shift = parameters
    top = F.batch_norm(
        reference(x, weight, bias, stride, padding, dilation), mean, variance, scale, shift, eps=eps
    )
    return list(ACTIVATED.values())[activation](top)


def arguments_of_norm(shape, affine, activation, channels_last=False):
    def draw_all(draw):
        x, weight, bias, *sizes, _ = arguments(shape, 3, (2, 1), (1, 1), (1, 1), affine, channels_last)(draw)
        mean, scale, shift = (draw.normal(shape[1]) for _ in range(3))
        sums = mean, draw.uniform(shape[1], low=0.5, high=2), *sizes, 1e-3, activation
        return x, weight, *sums, *((bias, scale, shift) if affine else (None, None, None))

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
            "relu": arguments((2, 4, 9, 10), 3, padding=1, bias=True, activation="relu"),
            "relu6-last": arguments((2, 16, 9, 10), 3, 2, 1, channels_last=True, activation="relu6"),
            "silu": arguments((2, 3, 7, 7), 5, padding=2, bias=True, activation="silu"),
            "gelu-last": arguments((1, 8, 12, 9), 7, padding=3, channels_last=True, activation="gelu"),
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
            "activation": Bad(
                lambda d: (d.normal(1, 4, 9, 9), d.normal(4, 1, 3, 3), None, 1, 0, 1, "tanh"),
                CaffeValueError,
                "depthwise_conv: activation: expected one of None, 'relu'",
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
        function=depthwise_conv_norm,
        reference=normed,
        inputs={
            "affine": arguments_of_norm((2, 4, 9, 10), True, 2),
            "plain-last": arguments_of_norm((2, 8, 9, 8), False, 0, channels_last=True),
        },
        gradient="none",
        # The weights are rounded once more.
        tolerance={torch.float32: (1e-5, 1e-5), torch.float16: (4e-3, 8e-3), torch.bfloat16: (3e-2, 6e-2)},
        empty=arguments_of_norm((0, 4, 9, 10), True, 1),
        autocast="lower",
        stays_float=("weight", "bias", "mean", "variance", "scale", "shift"),
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
            "silu": arguments1d((2, 3, 64), 4, causal=True, bias=True, activation="silu"),
            "packed": arguments1d((1, 3, 64), 4, causal=True, bias=True, lengths=(10, 1, 0, 2, 51)),
            "packed-silu": arguments1d(
                (2, 3, 77), 3, causal=True, activation="silu", lengths=(33, 1, 1, 42), by_index=True
            ),
            "packed-k6": arguments1d((1, 2, 40), 6, causal=True, lengths=(3, 20, 17)),
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
            **{
                name: Bad(
                    lambda d, more=more: (d.normal(2, 4, 9), d.normal(4, 1, 3), None, 1, 0, 1, *more),
                    error,
                    message,
                )
                for name, more, error, message in BAD_SEQUENCES
            },
        },
        autocast="lower",
        stays_float=("weight", "bias"),
        bench={
            "12288x16384 k4 causal": arguments1d((1, 12288, 16384), 4, causal=True),
            "12288x16384 k4 silu": arguments1d((1, 12288, 16384), 4, causal=True, activation="silu"),
            "12288x16384 k4 packed": arguments1d((1, 12288, 16384), 4, causal=True, lengths=(300, 724) * 16),
        },
        peers={"torch conv1d": reference1d},
    ),
]
