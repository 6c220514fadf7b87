"""Images: Upsample, by a pooling's mask or by repetition."""

import torch.nn.functional as F

from . import KnownLayer


class ByMask(KnownLayer):
    """Moves each value to the position in the second bottom, the mask of a maximum pooling; other positions are 0.

    The size is upsample_h and upsample_w, or the bottom's times the scale, less one row or column with pad_out_h or
    pad_out_w.
    """

    types = ("Upsample",)
    source = "alexgkendall/caffe-segnet"
    bottoms = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.upsample_param
        self.size = (
            (p.upsample_h, p.upsample_w) if p.HasField("upsample_h") and p.HasField("upsample_w") else None
        )
        apart = p.HasField("scale_h") or p.HasField("scale_w")
        self.check(
            bool(self.size) or not (apart and p.HasField("scale")), "either scale or scale_h and scale_w"
        )
        self.scale = (p.scale_h, p.scale_w) if apart else (p.scale if p.HasField("scale") else 2,) * 2
        self.less = p.pad_out_h, p.pad_out_w
        for scale, less in zip(self.scale, self.less, strict=True):
            self.check(bool(self.size) or scale > 1, "a scale must be more than 1")
            self.check(bool(self.size) or not less or scale == 2, "pad_out needs scale 2")

    def agree(self, x, mask):
        self.check(len(x) == 4 and x == mask, "bottoms of {} and {}", x, mask)

    def top_shapes(self, x, mask):
        return [(*x[:2], *self.sizes(x))]

    def sizes(self, shape):
        return self.size or tuple(shape[2 + i] * self.scale[i] - int(self.less[i]) for i in range(2))

    def forward(self, x, mask):
        size = self.sizes(x.shape)
        top = x.new_zeros(*x.shape[:2], size[0] * size[1])
        return top.scatter_(2, mask.detach().flatten(2).long(), x.flatten(2)).unflatten(2, size)


class Nearest(KnownLayer):
    """Repeats each value `scale` times in both directions."""

    types = ("Upsample",)
    source = "eric612/MobileNet-YOLO"

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.upsample_param
        self.scale = p.scale if p.HasField("scale") else 1
        self.check(self.scale > 0, "scale: expected more than 0")

    def setup(self, x):
        self.check(len(x) == 4, f"a bottom [num, channels, height, width] is needed, not {list(x)}")

    def forward(self, x):
        return F.interpolate(x, scale_factor=float(self.scale), mode="nearest")
