from . import StockLayer


class BatchReindex(StockLayer):
    """top[i] = bottom[index[i]]: items of the first axis by the indices of the second bottom, [M].

    Top: M x the bottom's other axes. The gradient of an item is the sum of its copies'.

    Source: BVLC's batch_reindex_layer.cpp.
    """

    bottoms = (2, 2)

    def setup(self, x, indices):
        self.check(len(indices) == 1, f"the indices have {len(indices)} axes instead of 1")

    def forward(self, x, indices):
        return x.index_select(0, indices.long())
