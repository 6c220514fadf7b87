"""Shapes: Silence, a consumer of blobs that nobody reads."""

from . import StockLayer


class Silence(StockLayer):
    """Reads blobs, so that they are not outputs of the net. It has no top; the gradient is 0.

    Source: BVLC's silence_layer.cpp.
    """

    bottoms = (1, None)
    tops = (0, 0)

    def forward(self, *bottoms):
        return ()
