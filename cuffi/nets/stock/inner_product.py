"""Products with weights: InnerProduct, a fully connected layer."""

import torch
import torch.nn.functional as F

from . import StockLayer


class InnerProduct(StockLayer):
    """y = W x + b over the axes from `axis` on.

    Top: the axes before `axis` x num_output. Blobs: weight [num_output, K], or [K, num_output] with transpose, and
    bias [num_output]; K is the count of the axes from `axis` on.

    Source: BVLC's inner_product_layer.cpp.
    """

    blobs = ("weight", "bias")

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.inner_product_param
        self.num_output, self.first_axis = p.num_output, p.axis
        self.has_bias, self.transpose = p.bias_term, p.transpose
        self._definition = (p.weight_filler, p.bias_filler)
        self.check(p.num_output > 0, "num_output: expected more than 0")

    def setup(self, x):
        weight, bias = self._definition
        del self._definition
        self.first_axis = self.axis(self.first_axis, len(x))
        self.inputs = torch.Size(x[self.first_axis :]).numel()
        shape = (self.inputs, self.num_output) if self.transpose else (self.num_output, self.inputs)
        self.blob("weight", shape, weight)
        if self.has_bias:
            self.blob("bias", (self.num_output,), bias)

    def forward(self, x):
        weight = self.weight.t() if self.transpose else self.weight
        return F.linear(x.flatten(self.first_axis), weight, self.bias if self.has_bias else None)
