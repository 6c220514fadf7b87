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

    def setup(self, x, like):
        axis = self.axis(self.first_axis, len(x))
        self.check(len(like) == len(x), f"bottoms of {len(x)} and {len(like)} axes")
        count = len(x) - axis
        if len(self.offsets) > 1:
            self.check(len(self.offsets) == count, f"{len(self.offsets)} offsets for {count} axes")
        self.offsets = self.offsets * count if len(self.offsets) == 1 else self.offsets or (0,) * count
        for i, offset in enumerate(self.offsets, axis):
            self.check(
                x[i] - offset >= like[i], f"axis {i}: {like[i]} from {offset} on do not fit into {x[i]}"
            )
        self.first_axis = axis

    def forward(self, x, like):
        for i, offset in enumerate(self.offsets, self.first_axis):
            x = x.narrow(i, offset, like.shape[i])
        return x
