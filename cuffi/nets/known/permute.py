"""Shapes: Permute, axes in another order (SSD)."""

from . import KnownLayer


class Permute(KnownLayer):
    """The axes in another order: those that `order` names first, then the others.

    The top is a copy, because other layers and users expect contiguous memory.
    """

    types = ("Permute",)
    source = "weiliu89/caffe, ssd"

    def __init__(self, definition):
        super().__init__(definition)
        self.order = tuple(definition.message.permute_param.order)
        self.check(
            len(set(self.order)) == len(self.order), f"order: there are duplicate orders: {self.order}"
        )

    def setup(self, x):
        self.check(all(i < len(x) for i in self.order), f"order {self.order} of a bottom of {len(x)} axes")
        self.order += tuple(i for i in range(len(x)) if i not in self.order)

    def forward(self, x):
        return x.permute(self.order).contiguous()
