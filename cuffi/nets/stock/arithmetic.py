"""Sums and products: with weights, of several bottoms, and along axes.

InnerProduct: a fully connected layer.
Embed: rows of a table by their indices.
Parameter: a learnable blob by itself.
Scale: a learnable or computed factor.
Bias: a learnable or computed summand.
Eltwise: the sum, product or maximum of bottoms.
Reduction: the sum or mean of the last axes.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ..net.fillers import constant
from . import StockLayer

# ------------------------------------------------------------------------------------------- InnerProduct


class InnerProduct(StockLayer):
    """y = W x + b over the axes from `axis` on.

    Top: the axes before `axis` x num_output. Blobs: weight [num_output, K], or [K, num_output] with transpose, and
    bias [num_output]; K is the count of the axes from `axis` on.

    Source: BVLC's inner_product_layer.cpp.
    """

    blobs = ("weight", "bias")
    weight: Tensor
    bias: Tensor

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


# -------------------------------------------------------------------------------------------------- Embed


class Embed(StockLayer):
    """top[..., :] = weight[index[...]] + bias: rows of the weight by index.

    Bottom: indices of any shape, as floating numbers. Top: their shape x num_output. Blobs: weight [input_dim,
    num_output], bias [num_output].

    Source: BVLC's embed_layer.cpp.
    """

    blobs = ("weight", "bias")
    weight: Tensor
    bias: Tensor

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


# ---------------------------------------------------------------------------------------------- Parameter


class Parameter(StockLayer):
    """A learnable blob of parameter_param's shape, as a top. The layer has no bottom.

    Source: BVLC's parameter_layer.cpp.
    """

    bottoms = (0, 0)
    blobs = ("value",)
    value: Tensor

    def __init__(self, definition):
        super().__init__(definition)
        self.size = tuple(definition.message.parameter_param.shape.dim)

    def setup(self):
        # Stock Caffe does not fill it: it begins at zero.
        self.blob("value", self.size, constant(0))

    def forward(self):
        return self.value


# -------------------------------------------------------------------------------------------------- Scale


class Scale(StockLayer):
    """x * s, perhaps plus a bias. The axes of s are those of x from `axis` on. s is the layer's blob, or the second
    bottom.

    Top: the first bottom's shape. Blobs: s, unless it is a bottom, and the bias of the same shape.

    Source: BVLC's scale_layer.cpp.
    """

    bottoms = (1, 2)
    blobs = ("weight", "bias")
    weight: Tensor
    bias: Tensor

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


# --------------------------------------------------------------------------------------------------- Bias


class Bias(StockLayer):
    """x + b. The axes of b are those of x from `axis` on. b is the layer's blob, or the second bottom.

    Top: the first bottom's shape. Both have a gradient.

    Source: BVLC's bias_layer.cpp.
    """

    bottoms = (1, 2)
    blobs = ("bias",)
    bias: Tensor

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


# ------------------------------------------------------------------------------------------------ Eltwise


class Eltwise(StockLayer):
    """sum of coeff_i x_i, product of x_i, or their maximum, for bottoms of one shape.

    The gradient of a maximum goes to one bottom only. That of a product with stable_prod_grad: false is top / x_i.
    Stock Caffe requires two bottoms or more; forks accept one, to scale it (FlowNet2).

    Source: BVLC's eltwise_layer.cpp.
    """

    bottoms = (1, None)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.eltwise_param
        self.operation = {0: "PROD", 1: "SUM", 2: "MAX"}[p.operation]
        coeff, bottoms = tuple(p.coeff), definition.bottoms
        self.check(len(coeff) in (0, bottoms), f"{len(coeff)} coefficients for {bottoms} bottoms")
        self.check(not (self.operation == "PROD" and coeff), "coeff is for the sum, not for the product")
        self.stable = p.stable_prod_grad
        self.coeff = None if all(c == 1 for c in coeff) else coeff

    def agree(self, *shapes):
        for shape in shapes[1:]:
            self.check(
                shape == shapes[0],
                "bottoms of {} and {}: they must have one shape: Crop or Pooling cuts the larger one",
                shapes[0],
                shape,
            )

    def forward(self, *bottoms):
        top = bottoms[0]
        if self.operation == "PROD":
            for x in bottoms[1:]:
                top = top * x
            if not self.stable and torch.is_grad_enabled() and top.requires_grad:
                return _UnstableProduct.apply(*bottoms)
        elif self.operation == "MAX":
            for i, x in enumerate(bottoms[1:]):
                top = torch.where(top >= x if i else top > x, top, x)
        elif self.coeff is None:
            for x in bottoms[1:]:
                top = top + x
        else:
            top = top * self.coeff[0]
            for x, c in zip(bottoms[1:], self.coeff[1:], strict=True):
                top = torch.add(top, x, alpha=c)
        return top


class _UnstableProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *bottoms):
        ctx.save_for_backward(*bottoms)
        return math.prod(bottoms[1:], start=bottoms[0])

    @staticmethod
    def backward(ctx, *gradients):
        bottoms = ctx.saved_tensors
        top = math.prod(bottoms[1:], start=bottoms[0])
        return tuple(gradients[0] * (top / x) for x in bottoms)


# ---------------------------------------------------------------------------------------------- Reduction


class Reduction(StockLayer):
    """coeff times the sum, sum of |x|, sum of x² or mean of the axes from `axis` on.

    Top: the axes before `axis`.

    Source: BVLC's reduction_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.reduction_param
        self.operation = {1: "SUM", 2: "ASUM", 3: "SUMSQ", 4: "MEAN"}[p.operation]
        self.first_axis, self.coeff = p.axis, p.coeff

    def setup(self, x):
        self.first_axis = self.axis(self.first_axis, len(x))

    def forward(self, x):
        rows = x.reshape(*x.shape[: self.first_axis], -1)
        if self.operation == "MEAN":
            top = rows.mean(-1)
        elif self.operation == "ASUM":
            top = rows.abs().sum(-1)
        else:
            top = (rows.square() if self.operation == "SUMSQ" else rows).sum(-1)
        return top if self.coeff == 1 else top * self.coeff
