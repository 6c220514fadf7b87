"""Sums and products: Scale, a learnable or computed factor; what Bias shares with it."""

from ..net.fillers import constant
from . import StockLayer


class Scale(StockLayer):
    """x * s, perhaps plus a bias. The axes of s are those of x from `axis` on. s is the layer's blob, or the second
    bottom.

    Top: the first bottom's shape. Blobs: s, unless it is a bottom, and the bias of the same shape.

    Source: BVLC's scale_layer.cpp.
    """

    bottoms = (1, 2)
    blobs = ("weight", "bias")

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.scale_param
        self.first_axis, self.num_axes, self.has_bias = p.axis, p.num_axes, p.bias_term
        self._definition = (p.filler if p.HasField("filler") else constant(1), p.bias_filler)
        self.own_weight = definition.bottoms == 1
        if not self.own_weight:
            self.blobs = ("bias",)

    def agree(self, x, *other):
        broadcast_shape(self, x, *other)

    def setup(self, x, *other):
        filler, bias_filler = self._definition
        del self._definition
        shape = broadcast_shape(self, x, *other)
        if not other:
            self.blob("weight", shape, filler)
        if self.has_bias:
            self.blob("bias", shape, bias_filler)

    def own_blobs(self):
        """Weight, and bias or None."""
        # A module's attribute that is a parameter takes long to find; a parametrized one is no entry there.
        weight, bias = map(self._parameters.get, ("weight", "bias"))
        if weight is None or (bias is None and self.has_bias):
            return self.weight, self.bias if self.has_bias else None
        return weight, bias

    def forward(self, x, other=None):
        weight = self.weight if other is None else other
        top = x * broadcast(self, x, weight)
        return top + broadcast(self, x, self.bias) if self.has_bias else top


def broadcast_shape(layer, x, other=None):
    """The shape of the blob for bottoms of these shapes, checked."""
    if other is None:
        axis = layer.axis(layer.first_axis, len(x))
        end = len(x) if layer.num_axes == -1 else axis + layer.num_axes
        layer.check(layer.num_axes >= -1, "num_axes must be non-negative, or -1 for all")
        layer.check(end <= len(x), f"num_axes extends to axis {end} of a bottom of {len(x)} axes")
        layer.first_axis = axis
        return x[axis:end]
    first = layer.axis(layer.first_axis, len(x)) if other else 0
    part = x[first : first + len(other)]
    layer.check(part == other, "the second bottom's {} are not the axes from {} of {}", other, first, x)
    if first != layer.first_axis:
        layer.first_axis = first
    return other


def broadcast(layer, x, blob):
    """The blob with axes of 1 to its right. It has the sizes of x's axes: torch would stretch an axis of 1."""
    own, first = blob.shape, layer.first_axis
    part = x.shape[first : first + len(own)]
    layer.check(part == own, "a blob of {} for the axes from {} of {}", own, first, x.shape)
    return blob.reshape(blob.shape + (1,) * (x.dim() - layer.first_axis - blob.dim()))
