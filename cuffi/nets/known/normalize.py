"""Normalisation: Normalize, by the length of a vector (SSD)."""

import torch

from ..net.fillers import constant
from . import KnownLayer


class Normalize(KnownLayer):
    """scale * x / sqrt(sum of x² + eps), over the channels of each position, or over the whole item (across_spatial).

    scale: a number for each channel, or one (channel_shared).
    """

    types = ("Normalize",)
    source = "weiliu89/caffe, ssd"
    native = "normalize"
    blobs = ("scale",)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.norm_param
        self.across_spatial, self.channel_shared, self.eps = p.across_spatial, p.channel_shared, p.eps
        self._filler = p.scale_filler if p.HasField("scale_filler") else constant(1)

    def setup(self, x):
        self.check(len(x) >= 2, f"number of axes of the bottom must be >= 2, not {list(x)}")
        self.blob("scale", () if self.channel_shared else (x[1],), self._filler)
        del self._filler

    def forward(self, x):
        axes = tuple(range(1, x.dim())) if self.across_spatial else (1,)
        # In half precision a sum of squares overflows easily.
        wide = torch.promote_types(x.dtype, torch.float32)
        length = torch.linalg.vector_norm(x.detach(), dim=axes, keepdim=True, dtype=wide)
        inverse = (length.square() + self.eps).rsqrt().to(x.dtype)
        fits = self.channel_shared or x.shape[1:2] == self.scale.shape
        self.check(fits, "{} channels are known, not those of {}", self.scale.numel(), x.shape)
        scale = self.scale.to(x.dtype).reshape((1, -1) + (1,) * (x.dim() - 2))
        return _Scaled.apply(x, inverse, scale, axes)


class _Scaled(torch.autograd.Function):
    """x * inverse * scale, with the source's gradient.

    The source scales after subtracting the component along x. If the channels' scales differ, the true gradient also
    has them inside that component.
    """

    @staticmethod
    def forward(ctx, x, inverse, scale, axes):
        ctx.save_for_backward(x, inverse, scale)
        ctx.axes = axes
        return x * inverse * scale

    @staticmethod
    def backward(ctx, gradient):
        x, inverse, scale = ctx.saved_tensors
        unit = x * inverse
        of_x = of_scale = None
        if ctx.needs_input_grad[0]:
            along = (unit * gradient).sum(ctx.axes, keepdim=True)
            of_x = (gradient - unit * along) * (inverse * scale)
        if ctx.needs_input_grad[2]:
            of_scale = (unit * gradient).sum_to_size(scale.shape)
        return of_x, None, of_scale, None
