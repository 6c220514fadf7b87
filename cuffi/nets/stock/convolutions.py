"""Convolutions, in one to three dimensions.

Convolution: in one to three dimensions.
Deconvolution: a transposed Convolution.
Im2col: the columns that a convolution multiplies.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from . import StockLayer, nothing_left


class Convolution(StockLayer):
    """Convolution over one to three axes after the channels; several bottoms share the weights.

    Bottom: [N, C, spatial axes]. Top: [N, num_output, (size + 2 pad - (dilation (kernel - 1) + 1)) / stride + 1],
    rounded down. Blobs: weight [num_output, C / group, kernel], bias [num_output]. All axes before the channels
    (usually only the batch) count as one.

    Source: BVLC's conv_layer.cpp.
    """

    bottoms = (1, None)
    tops = (1, None)
    blobs = ("weight", "bias")
    transposed = False
    understands = ("convolution_param.weight_filler.diag_val",)
    functions: tuple[Callable[..., Tensor], ...] = (F.conv1d, F.conv2d, F.conv3d)
    weight: Tensor
    bias: Tensor

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.convolution_param
        self.num_output, self.group, self.channel_axis = p.num_output, p.group, p.axis
        weight_filler = definition.filler(p.weight_filler, "convolution_param.weight_filler")
        self.has_bias, self._definition = p.bias_term, (p, weight_filler, p.bias_filler)
        self._fused = None  # see ../fused.py
        self.check(definition.bottoms == definition.tops, "as many tops as bottoms are needed")
        self.check(p.num_output > 0, "num_output: expected more than 0")
        self.check(p.group > 0 and p.num_output % p.group == 0, "num_output should be a multiple of group")

    def agree(self, x, *others):
        for other in others:
            self.check(other == x, "all bottoms must have the same shape: {}, {}", x, other)

    def setup(self, x, *others):
        p, weight_filler, bias_filler = self._definition
        del self._definition
        axis = self.axis(self.channel_axis, len(x))
        axes = len(x) - axis - 1
        self.check(1 <= axes <= 3, f"{axes} axes after axis {axis} of {list(x)}: torch convolves 1 to 3")
        self.channel_axis, channels = axis, x[axis]
        self.kernel = self._sizes(p, "kernel_size", "kernel_", axes, None)
        self.stride = self._sizes(p, "stride", "stride_", axes, 1)
        self.pad = self._sizes(p, "pad", "pad_", axes, 0)
        self.dilation = self._sizes(p, "dilation", None, axes, 1)
        self.check(min(self.kernel) > 0 and min(self.stride) > 0, "kernel and stride: expected more than 0")
        self.check(
            channels % self.group == 0,
            f"{channels} channels are not a multiple of group {self.group}: give a group that divides them",
        )
        outputs = [self.output(size, i) for i, size in enumerate(x[axis + 1 :])]
        self.check(min(outputs) > 0, nothing_left(x, self.kernel))
        first, second = (channels, self.num_output) if self.transposed else (self.num_output, channels)
        self.blob("weight", (first, second // self.group, *self.kernel), weight_filler)
        if self.has_bias:
            self.blob("bias", (self.num_output,), bias_filler)
        self.function = self.functions[axes - 1]

    def output(self, size: int, i: int) -> int:
        extent = self.dilation[i] * (self.kernel[i] - 1) + 1
        return (size + 2 * self.pad[i] - extent) // self.stride[i] + 1

    def forward(self, x, *others):
        weight, bias = self.weight, self.bias if self.has_bias else None
        if self.channel_axis != 1:
            tops = [self._batched(bottom, weight, bias) for bottom in (x, *others)]
            return tuple(tops) if others else tops[0]
        top = self.convolved(x, weight, bias)
        return (top, *(self.convolved(other, weight, bias) for other in others)) if others else top

    def _batched(self, x, weight, bias):
        before = x.shape[: self.channel_axis]
        top = self.convolved(x.reshape(-1, *x.shape[self.channel_axis :]), weight, bias)
        return top.reshape(*before, *top.shape[1:])

    def convolved(self, x, weight, bias):
        return self.function(x, weight, bias, self.stride, self.pad, self.dilation, self.group)

    def reset(self):
        self._fused = None

    def __getstate__(self):
        return self.__dict__ | {"_fused": None}

    def _sizes(self, p, name: str, pair: str | None, axes: int, default: int | None) -> tuple[int, ...]:
        """Sizes by axis: one for all, one each, or `_h` and `_w`."""
        values = tuple(getattr(p, name))
        if pair and (p.HasField(pair + "h") or p.HasField(pair + "w")):
            self.check(axes == 2 and not values, f"{name}: either {name} or {pair}h and {pair}w, for 2 axes")
            return getattr(p, pair + "h"), getattr(p, pair + "w")
        if not values and default is not None:
            values = (default,)
        self.check(len(values) in (1, axes), f"{name}: {len(values)} sizes for {axes} axes")
        return values * axes if len(values) == 1 else values


class Deconvolution(Convolution):
    """The transposed convolution.

    Bottom: [N, C, spatial axes]. Top: [N, num_output, stride (size - 1) + dilation (kernel - 1) + 1 - 2 pad].
    Blobs: weight [C, num_output / group, kernel], with the bottom's channels first, and bias [num_output].

    Source: BVLC's deconv_layer.cpp.
    """

    transposed = True
    functions = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)

    def output(self, size: int, i: int) -> int:
        extent = self.dilation[i] * (self.kernel[i] - 1) + 1
        return self.stride[i] * (size - 1) + extent - 2 * self.pad[i]

    def convolved(self, x, weight, bias):
        return self.function(x, weight, bias, self.stride, self.pad, 0, self.group, self.dilation)


class Im2col(Convolution):
    """The columns that a convolution multiplies, for two spatial axes.

    Bottom: [N, C, H, W]. Top: [N, C * kernel_h * kernel_w, H', W'], with Convolution's H' and W'.

    Source: BVLC's im2col_layer.cpp.
    """

    bottoms = (1, 1)
    tops = (1, 1)
    blobs = ()

    def __init__(self, definition):
        definition.message.convolution_param.num_output = definition.message.convolution_param.num_output or 1
        super().__init__(definition)

    def setup(self, x, *others):
        self.check(len(x) == 4, f"a bottom of 4 axes is needed, not {list(x)}")
        super().setup(x, *others)
        del self.weight
        if self.has_bias:
            del self.bias
        self._fillers = {}

    def forward(self, x, *others):
        columns = F.unfold(x, self.kernel, self.dilation, self.pad, self.stride)
        return columns.reshape(x.shape[0], -1, self.output(x.shape[2], 0), self.output(x.shape[3], 1))
