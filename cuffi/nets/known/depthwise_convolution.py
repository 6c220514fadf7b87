"""Convolutions: the two names of forks for a group for each channel."""

from ..stock.convolution import Convolution
from . import KnownLayer


class DepthwiseConvolution(KnownLayer, Convolution):
    """Stock Caffe's Convolution; the fork differs only in speed. `group` makes it depthwise."""

    types = ("DepthwiseConvolution",)
    source = "yonghenglh6/DepthwiseConvolution"


class ConvolutionDepthwise(KnownLayer, Convolution):
    """A Convolution with a group for each channel; num_output and group of the file are ignored."""

    types = ("ConvolutionDepthwise",)
    source = "farmingyard/caffe-mobilenet"
    bottoms = (1, 1)

    def __init__(self, definition):
        p = definition.message.convolution_param
        p.num_output, p.group = max(p.num_output, 1), 1
        super().__init__(definition)

    def setup(self, x):
        self.check(len(x) == 4, f"a bottom [num, channels, height, width] is needed, not {list(x)}")
        self.num_output = self.group = x[1]
        super().setup(x)
