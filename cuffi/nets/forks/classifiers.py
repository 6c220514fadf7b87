"""Blocks of image classifiers: MobileNet, ShuffleNet, squeeze-and-excitation, and YOLO v4's activation.

DepthwiseConvolution and ConvolutionDepthwise: the two names of forks for a group for each channel.
ReLU6: ReLU6 (MobileNet).
Mish.
ShuffleChannel: channels of groups mixed (ShuffleNet).
Axpy: of squeeze-and-excitation nets.
"""

import torch.nn.functional as F

from ..stock.convolutions import Convolution
from . import ForkLayer

# ---------------------------------------------------------- DepthwiseConvolution and ConvolutionDepthwise


class DepthwiseConvolution(ForkLayer, Convolution):
    """Stock Caffe's Convolution; the fork differs only in speed. `group` makes it depthwise."""

    types = ("DepthwiseConvolution",)
    source = "yonghenglh6/DepthwiseConvolution"


class ConvolutionDepthwise(ForkLayer, Convolution):
    """A Convolution with a group for each channel; num_output and group of the file are ignored."""

    types = ("ConvolutionDepthwise",)
    source = "farmingyard/caffe-mobilenet"
    bottoms = (1, 1)

    def __init__(self, definition):
        p = definition.message.convolution_param
        p.num_output, p.group = max(p.num_output, 1), 1
        super().__init__(definition)

    def setup(self, x, *others):
        self.check(len(x) == 4, f"a bottom [num, channels, height, width] is needed, not {list(x)}")
        self.num_output = self.group = x[1]
        super().setup(x, *others)


# -------------------------------------------------------------------------------------------------- ReLU6


class ReLU6(ForkLayer):
    """min(max(x, 0) + negative_slope * min(x, 0), 6)"""

    types = ("ReLU6",)
    source = "eric612/MobileNet-YOLO"

    def __init__(self, definition):
        super().__init__(definition)
        self.negative_slope = definition.message.relu6_param.negative_slope

    def top_shapes(self, x):
        return [x]

    def forward(self, x):
        return F.leaky_relu(x, self.negative_slope).clamp(max=6) if self.negative_slope else F.relu6(x)


# --------------------------------------------------------------------------------------------------- Mish


class Mish(ForkLayer):
    """x * tanh(log(1 + exp(x)))"""

    types = ("Mish",)
    source = "forks of YOLO v4"

    def forward(self, x):
        return F.mish(x)


# ----------------------------------------------------------------------------------------- ShuffleChannel


class ShuffleChannel(ForkLayer):
    """The channels as a matrix of `group` rows, transposed."""

    types = ("ShuffleChannel",)
    source = "farmingyard/ShuffleNet"

    def __init__(self, definition):
        super().__init__(definition)
        self.group = definition.message.shuffle_channel_param.group
        self.check(self.group > 0, "group must be greater than 0")

    def setup(self, x):
        self.check(len(x) > 1 and x[1] % self.group == 0, f"{self.group} groups of {list(x)}")

    def forward(self, x):
        return x.unflatten(1, (self.group, -1)).transpose(1, 2).flatten(1, 2)


# --------------------------------------------------------------------------------------------------- Axpy


class Axpy(ForkLayer):
    """a * x + y, with a number `a` for each item and channel (the first bottom) and x, y of one shape."""

    types = ("Axpy",)
    source = "hujie-frank/SENet"
    bottoms = (3, 3)

    def agree(self, a, x, y):
        self.check(x == y, "bottoms of {} and {}", x, y)
        is_valid = a[:2] == x[:2] and all(size == 1 for size in a[2:])
        self.check(is_valid, "a number for each item and channel is needed, not {} for {}", a, x)

    def forward(self, a, x, y):
        return y + a.reshape(a.shape[:2] + (1,) * (x.dim() - 2)) * x
