"""Shapes: the same values cut, joined, repeated or in another shape, and items chosen.

Concat: bottoms one after the other.
Slice: a bottom cut into tops.
Split: a bottom for several readers.
Crop: a part of a map.
Tile: a bottom repeated.
Flatten: several axes as one.
Reshape: the same values in another shape.
Silence: a consumer of blobs that nobody reads.
BatchReindex: items of a batch by their indices.
Filter: the items that a selector marks.
"""

from itertools import pairwise

import torch

from . import StockLayer


class Concat(StockLayer):
    """The bottoms one after the other on `axis`, 1 by default. Their other axes are the same.

    Source: BVLC's concat_layer.cpp.
    """

    bottoms = (1, None)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.concat_param
        if p.HasField("concat_dim") and p.HasField("axis"):
            self.check(False, "concat_dim and axis: one of them is enough")
        self.dim = p.concat_dim if p.HasField("concat_dim") else p.axis

    def agree(self, *shapes):
        axis = self.axis(self.dim, len(shapes[0]))
        for shape in shapes[1:]:
            same = len(shape) == len(shapes[0]) and all(
                a == b for i, (a, b) in enumerate(zip(shape, shapes[0], strict=True)) if i != axis
            )
            self.check(same, "bottoms of {} and {} do not join along axis {}", shapes[0], shape, axis)

    def forward(self, *bottoms):
        return bottoms[0] if len(bottoms) == 1 else torch.cat(bottoms, self.dim)


class Slice(StockLayer):
    """Cuts a bottom into the tops on `axis`, 1 by default: at slice_point, or into equal parts.

    Source: BVLC's slice_layer.cpp.
    """

    tops = (1, None)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.slice_param
        both = p.HasField("axis") and p.HasField("slice_dim")
        self.check(not both, "axis and slice_dim: one of them is enough")
        self.dim, self.points = p.slice_dim if p.HasField("slice_dim") else p.axis, tuple(p.slice_point)
        points, tops = len(self.points), self.top_count
        self.check(points in (0, tops - 1), f"{points} slice points for {tops} tops")

    def setup(self, x):
        size = x[self.axis(self.dim, len(x))]
        rising = all(a < b for a, b in pairwise((0, *self.points, size)))
        self.check(rising, f"slice points {self.points} of {size}")
        divides = size % self.top_count == 0
        self.check(bool(self.points) or divides, f"{self.top_count} tops do not divide {size}")

    def forward(self, x):
        size = x.shape[self.dim]
        sizes = [size // self.top_count] * self.top_count
        if self.points:
            sizes = [b - a for a, b in pairwise((0, *self.points, size))]
        return x.split(sizes, self.dim)


class Split(StockLayer):
    """The bottom, once for each top. The gradient is the sum of theirs.

    Source: BVLC's split_layer.cpp.
    """

    tops = (1, None)

    def forward(self, x):
        return x if self.top_count == 1 else (x,) * self.top_count


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


class Flatten(StockLayer):
    """The axes from `axis` to `end_axis` as one; 1 and -1 by default: [N, C * H * W].

    Source: BVLC's flatten_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.flatten_param
        self.first_axis, self.last_axis = p.axis, p.end_axis

    def setup(self, x):
        first, last = self.axis(self.first_axis, len(x)), self.axis(self.last_axis, len(x))
        self.check(first <= last, f"axis {first} is after end_axis {last}")

    def forward(self, x):
        return x.flatten(self.first_axis, self.last_axis)


class Reshape(StockLayer):
    """The same values in another shape. 0 keeps an axis, -1 is computed from the count.

    Only the axes given by `axis` and `num_axes` are replaced; by default all axes.

    Source: BVLC's reshape_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.reshape_param
        self.dims, self.start, self.num_axes = tuple(p.shape.dim), p.axis, p.num_axes
        self.check(self.dims.count(-1) <= 1, "new shape contains more than one -1")
        self.check(all(d >= -1 for d in self.dims), f"dim: expected -1, 0 or more, got {self.dims}")
        self.check(self.num_axes >= -1, "num_axes must be >= 0, or -1 for all")

    def setup(self, x):
        shape = self._shape(torch.Size(x))
        count = torch.Size(shape).numel() if -1 not in shape else None
        rest = torch.Size(d for d in shape if d != -1).numel()
        total = torch.Size(x).numel()
        is_valid = count == total if count is not None else rest > 0 and total % rest == 0
        self.check(is_valid, f"{list(x)} cannot become {list(shape)}")

    def _shape(self, shape) -> list[int]:
        start = self.start if self.start >= 0 else len(shape) + self.start + 1
        self.check(0 <= start <= len(shape), f"axis {self.start} out of range for {len(shape)} axes")
        end = len(shape) if self.num_axes == -1 else start + self.num_axes
        self.check(end <= len(shape), f"axis + num_axes = {end} is more than the {len(shape)} axes")
        is_there = all(d != 0 or start + i < len(shape) for i, d in enumerate(self.dims))
        self.check(is_there, "dim: 0 for an axis that does not exist")
        middle = [shape[start + i] if d == 0 else d for i, d in enumerate(self.dims)]
        return [*shape[:start], *middle, *shape[end:]]

    def forward(self, x):
        return x.reshape(self._shape(x.shape))


class Silence(StockLayer):
    """Reads blobs, so that they are not outputs of the net. It has no top; the gradient is 0.

    Source: BVLC's silence_layer.cpp.
    """

    bottoms = (1, None)
    tops = (0, 0)

    def forward(self, *bottoms):
        return ()


class BatchReindex(StockLayer):
    """top[i] = bottom[index[i]]: items of the first axis by the whole parts of the second bottom, [M].

    Top: M x the bottom's other axes. The gradient of an item is the sum of its copies'.

    Source: BVLC's batch_reindex_layer.cpp.
    """

    bottoms = (2, 2)

    def agree(self, x, indices):
        self.check(len(indices) == 1, "the indices have {} axes instead of 1", len(indices))

    def top_shapes(self, x, indices):
        return [(indices[0], *x[1:])]

    def forward(self, x, indices):
        # Caffe casts to int, and refuses what is less than 0 before.
        self.check_rows(~((indices >= 0) & (indices < len(x))), "an index is not of the bottom's items")
        return x.index_select(0, indices.long())


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
