"""Products with weights: Parameter, a learnable blob by itself."""

from ..net.fillers import constant
from . import StockLayer


class Parameter(StockLayer):
    """A learnable blob of parameter_param's shape, as a top. The layer has no bottom.

    Source: BVLC's parameter_layer.cpp.
    """

    bottoms = (0, 0)
    blobs = ("value",)

    def __init__(self, definition):
        super().__init__(definition)
        self.size = tuple(definition.message.parameter_param.shape.dim)

    def setup(self):
        # Stock Caffe does not fill it: it begins at zero.
        self.blob("value", self.size, constant(0))

    def forward(self):
        return self.value
