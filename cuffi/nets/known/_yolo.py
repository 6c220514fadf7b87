"""YOLO's maps of boxes by anchors."""

from __future__ import annotations

import torch
from torch import Tensor


def overlap_by_centre(first: Tensor, second: Tensor) -> Tensor:
    """Intersection over union of boxes (x, y, width, height), x and y the centre: [..., a, b]."""
    a, b = first[..., :, None, :], second[..., None, :, :]
    high = torch.minimum(a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2)
    low = torch.maximum(a[..., :2] - a[..., 2:] / 2, b[..., :2] - b[..., 2:] / 2)
    sides = high - low
    common = torch.where((sides < 0).any(-1), 0, sides.prod(-1))
    return common / (a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - common)


class Anchors:
    """The anchors of one map: `mask` selects the map's own sizes. A cell is `scale` units long."""

    def __init__(self, layer, biases, mask, scale: int, is_square: bool = False):
        sizes = list(zip(biases[::2], biases[1::2], strict=False))
        layer.check(all(i < len(sizes) for i in mask), f"mask {list(mask)} of {len(sizes)} biases")
        self.layer, self.scale, self.mask, self.is_square = layer.check, scale, tuple(mask), is_square
        self.every = tuple(sizes)
        self.own = tuple(sizes[i] for i in mask)

    def check(self, shape, classes: int) -> None:
        channels = len(self.own) * (5 + classes)
        is_map = len(shape) == 4 and shape[1] == channels
        self.layer(
            not (is_map and self.is_square) or shape[2] == shape[3],
            "a square map is needed, not {}",
            shape,
        )
        self.layer(is_map, "a map of {} channels is needed, not {}", channels, shape)

    def cells(self, x: Tensor, classes: int) -> Tensor:
        """[N, h, w, anchors, 5 + classes]"""
        return x.unflatten(1, (len(self.own), 5 + classes)).permute(0, 3, 4, 1, 2)

    def boxes(self, cells: Tensor) -> Tensor:
        """The boxes [N, h, w, anchors, 4] as centre and size, in fractions of the image."""
        down, across = cells.shape[1:3]
        where = {"device": cells.device, "dtype": cells.dtype}
        y, x = torch.arange(down, **where)[:, None, None], torch.arange(across, **where)[:, None]
        size = cells.new_tensor((across, down))
        corner = torch.stack(torch.broadcast_tensors(x, y), -1)
        centre = (corner + cells[..., :2].sigmoid()) / size
        return torch.cat(
            (centre, cells[..., 2:4].exp() * cells.new_tensor(self.own) / (size * self.scale)), -1
        )
