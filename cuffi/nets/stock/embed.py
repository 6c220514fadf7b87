"""Products with weights: Embed, rows of a table by their indices."""

import torch.nn.functional as F

from . import StockLayer


class Embed(StockLayer):
    """top[..., :] = weight[index[...]] + bias: rows of the weight by index.

    Bottom: indices of any shape, as floating numbers. Top: their shape x num_output. Blobs: weight [input_dim,
    num_output], bias [num_output].

    Source: BVLC's embed_layer.cpp.
    """

    blobs = ("weight", "bias")

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.embed_param
        self.num_output, self.input_dim, self.has_bias = p.num_output, p.input_dim, p.bias_term
        self._definition = (p.weight_filler, p.bias_filler)
        self.check(p.num_output > 0 and p.input_dim > 0, "num_output and input_dim: expected more than 0")

    def setup(self, indices):
        weight, bias = self._definition
        del self._definition
        self.blob("weight", (self.input_dim, self.num_output), weight)
        if self.has_bias:
            self.blob("bias", (self.num_output,), bias)

    def forward(self, indices):
        top = F.embedding(indices.long(), self.weight)
        return top + self.bias if self.has_bias else top
