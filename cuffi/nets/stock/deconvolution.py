"""Convolutions: Deconvolution, a transposed Convolution."""

import torch.nn.functional as F

from .convolution import Convolution


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
