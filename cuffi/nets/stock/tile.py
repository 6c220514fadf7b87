"""Shapes: Tile, a bottom repeated."""

from . import StockLayer


class Tile(StockLayer):
    """The bottom `tiles` times on `axis`, one after the other. The gradient is the sum of the copies'.

    Source: BVLC's tile_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        self.dim, self.tiles = definition.message.tile_param.axis, definition.message.tile_param.tiles
        self.check(self.tiles >= 1, f"tiles: expected 1 or more, got {self.tiles}")

    def setup(self, x):
        self.dim = self.axis(self.dim, len(x))

    def forward(self, x):
        return x.repeat([self.tiles if i == self.dim else 1 for i in range(x.dim())])
