from . import StockLayer


class Power(StockLayer):
    """(shift + scale * x) ^ power, for any shape. Source: BVLC's power_layer.cpp."""

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.power_param
        self.power, self.scale, self.shift = p.power, p.scale, p.shift

    def forward(self, x):
        if self.scale != 1:
            x = x * self.scale
        if self.shift != 0:
            x = x + self.shift
        return x if self.power == 1 else x.pow(self.power)
