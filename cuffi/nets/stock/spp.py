"""Pooling: SPP, a pyramid of grids."""

import torch

from . import StockDefinition, StockLayer
from .pooling import Pooling


class SPP(StockLayer):
    """Spatial pyramid pooling: pyramid_height grids of 1, 2, 4, ... windows per side, concatenated in one row.

    Bottom: [N, C, H, W]. Top: [N, C * (1 + 4 + 16 + ...)].

    Source: BVLC's spp_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.spp_param
        self.levels, self._definition = p.pyramid_height, definition
        self.method = p.pool
        self.check(self.levels > 0, "pyramid_height: expected more than 0")

    def setup(self, x):
        is_valid = len(x) == 4 and min(x[2:]) > 0
        self.check(is_valid, f"a bottom [num, channels, height, width] is needed, not {list(x)}")
        pools = []
        for level in range(self.levels):
            message = type(self._definition.message)()
            p = message.pooling_param
            p.pool = self.method
            for letter, size in (("h", x[2]), ("w", x[3])):
                kernel = -(-size // 2**level)
                setattr(p, f"kernel_{letter}", kernel)
                setattr(p, f"stride_{letter}", kernel)
                setattr(p, f"pad_{letter}", (kernel * 2**level - size + 1) // 2)
            pools.append(Pooling(StockDefinition(f"{self.layer_name}, level {level}", message, 1, 1, {})))
            pools[-1].setup(x)
        del self._definition
        self.pools = torch.nn.ModuleList(pools)

    def forward(self, x):
        if self.levels == 1:
            return self.pools[0](x)
        return torch.cat([pool(x).flatten(1) for pool in self.pools], 1)
