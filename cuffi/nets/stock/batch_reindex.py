"""Items: BatchReindex, items of a batch by their indices."""

from . import StockLayer


class BatchReindex(StockLayer):
    """top[i] = bottom[index[i]]: items of the first axis by the whole parts of the second bottom, [M].

    Top: M x the bottom's other axes. The gradient of an item is the sum of its copies'.

    Source: BVLC's batch_reindex_layer.cpp.
    """

    bottoms = (2, 2)

    def agree(self, x, indices):
        self.check(len(indices) == 1, "the indices have {} axes instead of 1", len(indices))

    def forward(self, x, indices):
        # Caffe casts to int, and refuses what is less than 0 before.
        return x.index_select(0, indices.floor().long())
