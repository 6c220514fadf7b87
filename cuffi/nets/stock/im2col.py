"""Convolutions: Im2col, the columns that a convolution multiplies."""

import torch.nn.functional as F

from .convolution import Convolution


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

    def setup(self, x):
        self.check(len(x) == 4, f"a bottom of 4 axes is needed, not {list(x)}")
        super().setup(x)
        del self.weight
        if self.has_bias:
            del self.bias
        self._fillers = {}

    def forward(self, x):
        columns = F.unfold(x, self.kernel, self.dilation, self.pad, self.stride)
        return columns.reshape(x.shape[0], -1, self.output(x.shape[2], 0), self.output(x.shape[3], 1))
