"""Shapes: Squeeze, without axes of size 1."""

from . import KnownLayer


class Squeeze(KnownLayer):
    """Without the axes of size 1 that `axis` names, or without all of them."""

    types = ("Squeeze",)
    source = "forks of SSD"

    def __init__(self, definition):
        super().__init__(definition)
        self.axes = tuple(definition.message.squeeze_param.axis)

    def setup(self, x):
        self.axes = tuple(self.axis(axis, len(x)) for axis in self.axes)
        for axis in self.axes:
            self.check(x[axis] == 1, f"axis {axis} of {list(x)} is not of size 1")

    def forward(self, x):
        return x.squeeze(self.axes) if self.axes else x.squeeze()
