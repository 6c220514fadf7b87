"""Shapes: Flatten, several axes as one."""

from . import StockLayer


class Flatten(StockLayer):
    """The axes from `axis` to `end_axis` as one; 1 and -1 by default: [N, C * H * W].

    Source: BVLC's flatten_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.flatten_param
        self.first_axis, self.last_axis = p.axis, p.end_axis

    def setup(self, x):
        first, last = self.axis(self.first_axis, len(x)), self.axis(self.last_axis, len(x))
        self.check(first <= last, f"axis {first} is after end_axis {last}")

    def forward(self, x):
        return x.flatten(self.first_axis, self.last_axis)
