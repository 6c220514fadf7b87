import torch.nn.functional as F

from .convolution import Convolution

_FUNCTIONS = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


class Deconvolution(Convolution):
    """The transposed convolution; its weight has the bottom's channels first."""

    transposed = True

    def output(self, size: int, i: int) -> int:
        extent = self.dilation[i] * (self.kernel[i] - 1) + 1
        return self.stride[i] * (size - 1) + extent - 2 * self.pad[i]

    def setup(self, x, *others):
        super().setup(x, *others)
        self.function = _FUNCTIONS[len(x) - 2]

    def convolved(self, x, weight, bias):
        return self.function(x, weight, bias, self.stride, self.pad, 0, self.group, self.dilation)
