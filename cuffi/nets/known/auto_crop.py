"""Shapes: AutoCrop, Crop of before BVLC's."""

from ..stock.crop import Crop
from . import KnownLayer


class AutoCrop(KnownLayer, Crop):
    """Crop as it was before BVLC took it: the first bottom, cut to the second's height and width.

    The offsets follow from the geometry of the layers between them and the value that both are computed from.
    """

    types = ("AutoCrop",)
    source = "yun-liu/rcf"

    def __init__(self, definition):
        super().__init__(definition)
        self.first_axis, self.offsets, self.says_offsets = 2, (), False

    def agree(self, x, like):
        self.check(len(self.offsets) == 2, "the geometry of the net does not determine where it is cut")
        super().agree(x, like)
