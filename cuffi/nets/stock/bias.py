"""Sums and products: Bias, a learnable or computed summand."""

from . import StockLayer
from .scale import broadcast, broadcast_shape


class Bias(StockLayer):
    """x + b. The axes of b are those of x from `axis` on. b is the layer's blob, or the second bottom.

    Top: the first bottom's shape. Both have a gradient.

    Source: BVLC's bias_layer.cpp.
    """

    bottoms = (1, 2)
    blobs = ("bias",)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.bias_param
        self.first_axis, self.num_axes, self.filler = p.axis, p.num_axes, p.filler

    def agree(self, x, *other):
        broadcast_shape(self, x, *other)

    def setup(self, x, *other):
        shape = broadcast_shape(self, x, *other)
        if not other:
            self.blob("bias", shape, self.filler)
        del self.filler

    def forward(self, x, other=None):
        return x + broadcast(self, x, self.bias if other is None else other)
