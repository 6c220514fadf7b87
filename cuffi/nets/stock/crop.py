"""Shapes: Crop, a part of a map."""

from . import StockLayer


class Crop(StockLayer):
    """The first bottom, cut to the second's size from `offset` on, in the axes from `axis` on.

    Elsewhere the gradient is 0.

    Source: BVLC's crop_layer.cpp.
    """

    bottoms = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.crop_param
        self.first_axis, self.offsets = p.axis, tuple(p.offset)
        self.says_offsets = definition.message.HasField("crop_param")

    def agree(self, x, like):
        axis = self.axis(self.first_axis, len(x))
        self.check(len(like) >= len(x), "bottoms of {} and {} axes", len(x), len(like))
        for i, offset in enumerate(self._offsets(len(x) - axis), axis):
            self.check(
                x[i] - offset >= like[i],
                "axis {}: {} from {} on do not fit into {}",
                i,
                like[i],
                offset,
                x[i],
            )

    def _offsets(self, count: int) -> tuple[int, ...]:
        """An offset for each of the axes that are cut: one for all, or one each."""
        if len(self.offsets) > 1:
            self.check(len(self.offsets) == count, "{} offsets for {} axes", len(self.offsets), count)
        return self.offsets * count if len(self.offsets) == 1 else self.offsets or (0,) * count

    def setup(self, x, like):
        self.first_axis = self.axis(self.first_axis, len(x))
        self.offsets = self._offsets(len(x) - self.first_axis)

    def forward(self, x, like):
        for i, offset in enumerate(self.offsets, self.first_axis):
            x = x.narrow(i, offset, like.shape[i])
        return x
