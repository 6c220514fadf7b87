"""Sums and products: Reduction, the sum or mean of the last axes."""

from . import StockLayer


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
