"""Depthwise 2-d convolution: each channel with a filter of its own."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .._ops import operator
from .._runtime import Layer

# Both layouts, contiguous and channels_last, are the kernels' own; `_dense` below sees to it.
layer = Layer(__name__, any_layout=True)

Pair = int | tuple[int, int]


def _layout(bottom: Tensor) -> torch.memory_format:
    """The layout in which a bottom lies, or is to be brought into: channels_last only if it is nothing else."""
    last = not bottom.is_contiguous() and bottom.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last else torch.contiguous_format


def _geometry(bottom: Tensor, kernel: Sequence[int], stride, padding, dilation, layout) -> tuple[int, ...]:
    """The C functions' own numbers, from num to channels_last."""
    return (*bottom.shape, *kernel, *stride, *padding, *dilation, int(layout == torch.channels_last))


@operator(layer, autocast="lower")
def depthwise_conv(
    bottom: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """`depthwise_conv2d` with its parameters as pairs."""
    layer.check(bottom.dim() == 4, "bottom", "4 axes [num, channels, height, width]", bottom)
    channels = bottom.shape[1]
    wanted = f"[channels, 1, kernel_h, kernel_w] with {channels} channels as bottom has"
    layer.check(weight.dim() == 4 and tuple(weight.shape[:2]) == (channels, 1), "weight", wanted, weight)
    if bias is not None:
        layer.check(tuple(bias.shape) == (channels,), "bias", f"[{channels}]", bias)
    size = []
    for axis, name in enumerate(("height", "width")):
        span = dilation[axis] * (weight.shape[2 + axis] - 1) + 1
        padded = bottom.shape[2 + axis] + 2 * padding[axis]
        layer.check(span <= padded, "weight", f"a kernel that spans at most the padded {name} {padded}", span)
        size.append((padded - span) // stride[axis] + 1)
    layout = _layout(bottom)
    shape = (bottom.shape[0], channels, *size)
    top = torch.empty(shape, dtype=bottom.dtype, device=bottom.device, memory_format=layout)
    bottom, weight = bottom.contiguous(memory_format=layout), weight.contiguous()
    bias = bias if bias is None else bias.contiguous()
    geometry = _geometry(bottom, weight.shape[2:], stride, padding, dilation, layout)
    layer.depthwise_conv_forward(bottom, weight, bias, top, *geometry)
    return top


@operator(layer)
def backward_input(
    top_diff: Tensor,
    weight: Tensor,
    bottom: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """The gradient by bottom, whose shape and layout alone are used."""
    layout = _layout(bottom)
    bottom_diff = torch.empty_like(bottom, memory_format=layout)
    top_diff, weight = top_diff.contiguous(memory_format=layout), weight.contiguous()
    geometry = _geometry(bottom, weight.shape[2:], stride, padding, dilation, layout)
    layer.depthwise_conv_backward_input(top_diff, weight, bottom_diff, *geometry)
    return bottom_diff


@operator(layer)
def backward_weight(
    top_diff: Tensor,
    bottom: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    weight_wanted: bool,
    bias_wanted: bool,
) -> tuple[Tensor, Tensor]:
    """The gradients by weight, whose shape alone is used, and by bias; the same bits on every run.

    One that is not wanted is not computed and has 0 elements.
    """
    layout = _layout(bottom)
    weight_diff = weight.new_empty(weight.shape if weight_wanted else 0)
    bias_diff = weight.new_empty(weight.shape[0] if bias_wanted else 0)
    top_diff, bottom = top_diff.contiguous(memory_format=layout), bottom.contiguous(memory_format=layout)
    geometry = _geometry(bottom, weight.shape[2:], stride, padding, dilation, layout)
    if not isinstance(bottom, torch._subclasses.FakeTensor):
        count = layer.depthwise_conv_backward_weight_workspace(bottom, *geometry)
        bytes_each = 8 if bottom.dtype == torch.float64 else 4
        workspace = torch.empty(count * bytes_each, dtype=torch.uint8, device=bottom.device)
        outputs = weight_diff if weight_wanted else None, bias_diff if bias_wanted else None
        layer.depthwise_conv_backward_weight(bottom, top_diff, *outputs, workspace, *geometry)
    return weight_diff, bias_diff


def _save(ctx, inputs, top):
    bottom, weight, _, *ctx.parameters = inputs
    ctx.save_for_backward(bottom, weight)


@depthwise_conv.backward(save=_save)
def _(ctx, top_diff):
    bottom, weight = ctx.saved_tensors
    bottom_wanted, weight_wanted, bias_wanted, *_ = ctx.needs_input_grad
    bottom_diff = weight_diff = bias_diff = None
    if bottom_wanted:
        bottom_diff = backward_input(top_diff, weight, bottom, *ctx.parameters)
    if weight_wanted or bias_wanted:
        diffs = backward_weight(top_diff, bottom, weight, *ctx.parameters, weight_wanted, bias_wanted)
        weight_diff, bias_diff = (
            d if wanted else None for d, wanted in zip(diffs, (weight_wanted, bias_wanted), strict=True)
        )
    return bottom_diff, weight_diff, bias_diff, None, None, None


def _pair(name: str, value: Pair, least: int) -> tuple[int, int]:
    """An int or a pair, as a pair."""
    pair = (value, value) if isinstance(value, int) else tuple(value)
    good = len(pair) == 2 and all(isinstance(v, int) and v >= least for v in pair)
    layer.check(good, name, f"an int or a pair of ints, at least {least}", value)
    return pair


def depthwise_conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
) -> Tensor:
    """Per-channel 2-d correlation with zero padding: torch.nn.functional.conv2d with groups = channels.

    Args:
        x: [num, channels, height, width], contiguous or channels_last in memory (anything else is copied);
            float32, float64, float16 or bfloat16; the half types are accumulated in float32.
        weight: [channels, 1, kernel_h, kernel_w], dtype and device of x.
        bias: [channels], or None.
        stride, padding, dilation: ints, or (height, width) pairs.

    Returns:
        [num, channels, top_height, top_width] in x's layout, where
        top = floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1. Differentiable once, by x, weight
        and bias, each only if wanted; the weight's gradient is deterministic.

    Raises:
        CaffeTypeError, CaffeValueError: naming the argument.
    """
    stride, padding = _pair("stride", stride, 1), _pair("padding", padding, 0)
    return depthwise_conv(x, weight, bias, stride, padding, _pair("dilation", dilation, 1))


class DepthwiseConv2d(nn.Module):
    """`depthwise_conv2d` as a module; initialised as torch.nn.Conv2d(groups=channels) is, U(±1/sqrt(kh kw)).

    Attributes:
        weight: [channels, 1, kernel_h, kernel_w].
        bias: [channels], or None.
    """

    def __init__(
        self,
        channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Pair = 0,
        dilation: Pair = 1,
        bias: bool = False,
    ):
        super().__init__()
        kernel = _pair("kernel_size", kernel_size, 1)
        self.stride, self.padding = _pair("stride", stride, 1), _pair("padding", padding, 0)
        self.dilation = _pair("dilation", dilation, 1)
        bound = 1 / math.sqrt(kernel[0] * kernel[1])
        self.weight = nn.Parameter(torch.empty(channels, 1, *kernel).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(channels).uniform_(-bound, bound)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return depthwise_conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation)

    def extra_repr(self) -> str:
        channels, _, *kernel = self.weight.shape
        return (
            f"{channels}, kernel_size={tuple(kernel)}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, bias={self.bias is not None}"
        )
