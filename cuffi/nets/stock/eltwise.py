"""Sums and products: Eltwise, the sum, product or maximum of bottoms."""

import math

import torch

from . import StockLayer


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
            self.check(shape == shapes[0], "bottoms of {} and {}", shapes[0], shape)

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
    def backward(ctx, gradient):
        bottoms = ctx.saved_tensors
        top = math.prod(bottoms[1:], start=bottoms[0])
        return tuple(gradient * (top / x) for x in bottoms)
