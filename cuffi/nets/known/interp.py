"""Images: Interp, bilinear with aligned corners (DeepLab, PSPNet)."""

import torch.nn.functional as F

from . import KnownLayer


class Interp(KnownLayer):
    """Bilinear interpolation with aligned corners. Negative pads first crop the bottom.

    The size: shrink_factor, zoom_factor, height and width, or shrink and then zoom.
    """

    types = ("Interp",)
    source = "hszhao/PSPNet, and DeepLab"

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.interp_param
        self.pads = p.pad_beg, p.pad_end
        self.check(max(self.pads) <= 0, "only supports non-positive padding (cropping)")
        self.shrink, self.zoom = p.shrink_factor, p.zoom_factor  # 0: not in the file
        self.size = (p.height, p.width) if p.HasField("height") and p.HasField("width") else None
        for name in ("shrink_factor", "zoom_factor"):
            self.check(not p.HasField(name) or getattr(p, name) >= 1, f"{name} must be positive")
        if self.shrink and self.zoom and self.size:
            self.shrink = self.zoom = 0
        self.check(bool(self.shrink or self.zoom or self.size), "a factor, or height and width, are needed")

    def sizes(self, shape) -> list[int]:
        sizes = []
        for i in range(2):
            size = int(shape[2 + i]) + sum(self.pads)
            self.check(size > 0, f"height and width should be positive: {list(shape)} and pads {self.pads}")
            if self.shrink:
                size = (size - 1) // self.shrink + 1
            if self.zoom:
                size = (size - 1) * self.zoom + 1
            sizes.append(size if self.shrink or self.zoom else self.size[i])
        return sizes

    def setup(self, x):
        self.check(len(x) == 4, f"a bottom [num, channels, height, width] is needed, not {list(x)}")
        self.check(min(self.sizes(x)) > 0, f"height and width should be positive, not {self.sizes(x)}")

    def forward(self, x):
        size = self.sizes(x.shape)
        if any(self.pads):
            x = F.pad(x, self.pads * 2)
        return F.interpolate(x, size, mode="bilinear", align_corners=True)
