"""Items: Filter, the items that a selector marks."""

from . import StockLayer


class Filter(StockLayer):
    """The items whose value in the last bottom, the selector [N], is not 0.

    A top for each other bottom: [items, ...]. The number of items depends on the data. The others have gradient 0.

    Source: BVLC's filter_layer.cpp.
    """

    bottoms = (2, None)
    tops = (1, None)

    def agree(self, *shapes):
        self.check(
            len(shapes) == self.top_count + 1, "as many tops as bottoms without the selector are needed"
        )
        selector = shapes[-1]
        self.check(all(size == 1 for size in selector[1:]), "a selector of {}: one number an item", selector)
        for shape in shapes[:-1]:
            self.check(shape[:1] == selector[:1], "selectors of {} for items of {}", selector, shape)

    def top_shapes(self, *shapes):
        return list(shapes[:-1])

    def forward(self, *bottoms):
        chosen = bottoms[-1].reshape(-1).nonzero().reshape(-1)
        tops = tuple(x.index_select(0, chosen) for x in bottoms[:-1])
        return tops[0] if len(tops) == 1 else tops
