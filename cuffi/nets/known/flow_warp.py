"""Flow: FlowWarp, a map sampled along a flow (FlowNet 2)."""

import torch

from . import KnownLayer


class FlowWarp(KnownLayer):
    """The first bottom, sampled bilinearly at the positions given by the second one, a flow (x, y) in pixels.

    Positions outside of the image are 0, or NaN (fill_value).
    """

    types = ("FlowWarp", "Warp")
    source = "lmb-freiburg/flownet2"
    bottoms = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.flow_warp_param
        self.outside = float("nan") if p.fill_value == p.NOT_A_NUMBER else 0.0

    def agree(self, image, flow):
        is_valid = len(image) == 4 and flow == (image[0], 2, *image[2:])
        self.check(is_valid, "an image and its flow are needed, not {} and {}", image, flow)

    def forward(self, image, flow):
        height, width = image.shape[2:]
        wide = torch.promote_types(flow.dtype, torch.float32)
        x = flow[:, 0].to(wide) + torch.arange(width, device=flow.device, dtype=wide)
        y = flow[:, 1].to(wide) + torch.arange(height, device=flow.device, dtype=wide)[:, None]
        inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
        x, y = torch.where(inside, x, 0), torch.where(inside, y, 0)
        left, up = x.detach().long(), y.detach().long()
        right, down = (left + 1).clamp(max=width - 1), (up + 1).clamp(max=height - 1)
        across, below = (x - left).to(image.dtype)[:, None], (y - up).to(image.dtype)[:, None]
        flat = image.flatten(2)

        def at(row, column):
            index = (row * width + column).flatten(1)[:, None].expand(-1, image.shape[1], -1)
            return flat.gather(2, index).reshape(image.shape)

        above = at(up, left) * (1 - across) + at(up, right) * across
        beneath = at(down, left) * (1 - across) + at(down, right) * across
        return torch.where(inside[:, None], above * (1 - below) + beneath * below, self.outside)
