"""SSD: what its nets run, from the features to the found boxes.

Normalize: by the length of a vector (SSD).
Permute: axes in another order (SSD).
Squeeze: without axes of size 1.
PriorBox and PriorBoxClustered: the boxes of each cell.
DetectionOutput: the found boxes.
"""

import math
from math import sqrt

import torch
import torch.nn.functional as F
from torch import Tensor

from ..net.fillers import constant
from . import ForkLayer, Placement
from ._boxes import CORNER, best_first, decode, priors_of, suppressed

# ---------------------------------------------------------------------------------------------- Normalize


class Normalize(ForkLayer):
    """scale * x / sqrt(sum of x² + eps), over the channels of each position, or over the whole item (across_spatial).

    scale: a number for each channel, or one (channel_shared).
    """

    types = ("Normalize",)
    source = "weiliu89/caffe, ssd"
    native = "normalize"
    blobs = ("scale",)
    scale: Tensor

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
        inverse = (length.square() + self.eps).rsqrt()  # 1e5 at zeros, which float16 does not have
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
        return _product(x, inverse, x.dtype) * scale

    @staticmethod
    def backward(ctx, *gradients):
        (gradient,), (x, inverse, scale) = gradients, ctx.saved_tensors
        unit = x * inverse
        of_x = of_scale = None
        product = unit * gradient
        if ctx.needs_input_grad[0]:
            along = product.sum(ctx.axes, keepdim=True)
            of_x = _product(gradient - unit * along, inverse * scale, x.dtype)
        if ctx.needs_input_grad[2]:
            of_scale = product.sum_to_size(scale.shape).to(scale.dtype)
        return of_x, None, of_scale, None


def _product(x: Tensor, factor: Tensor, dtype: torch.dtype) -> Tensor:
    """x * factor in another dtype. On a GPU one kernel rounds, too, where nobody asks for its derivative."""
    by_torch = not x.is_cuda or torch.compiler.is_compiling() or torch.is_grad_enabled()
    if by_torch or dtype == torch.promote_types(x.dtype, factor.dtype):
        return (x * factor).to(dtype)
    return torch.mul(x, factor, out=torch.empty_like(x, dtype=dtype))


# ------------------------------------------------------------------------------------------------ Permute


class Permute(ForkLayer):
    """The axes in another order: those that `order` names first, then the others.

    The top is a copy, because other layers and users expect contiguous memory.
    """

    types = ("Permute",)
    source = "weiliu89/caffe, ssd"

    def __init__(self, definition):
        super().__init__(definition)
        self.order = tuple(definition.message.permute_param.order)
        self.check(
            len(set(self.order)) == len(self.order), f"order: there are duplicate orders: {self.order}"
        )

    def setup(self, x):
        self.check(all(i < len(x) for i in self.order), f"order {self.order} of a bottom of {len(x)} axes")
        self.order += tuple(i for i in range(len(x)) if i not in self.order)

    def forward(self, x):
        return x.permute(self.order).contiguous()


# ------------------------------------------------------------------------------------------------ Squeeze


class Squeeze(ForkLayer):
    """Without the axes of size 1 that `axis` names, or without all of them."""

    types = ("Squeeze",)
    source = "forks of SSD"

    def __init__(self, definition):
        super().__init__(definition)
        self.axes = tuple(definition.message.squeeze_param.axis)

    def setup(self, x):
        self.axes = tuple(self.axis(axis, len(x)) for axis in self.axes)
        for axis in self.axes:
            self.check(x[axis] == 1, f"axis {axis} of {list(x)} is not of size 1")

    def forward(self, x):
        return x.squeeze(self.axes) if self.axes else x.squeeze()


# ------------------------------------------------------------------------- PriorBox and PriorBoxClustered


class PriorBox(ForkLayer):
    """Boxes around the centre of each cell of the first bottom, in fractions of the image: [1, 2, cells * boxes * 4].

    The first row has (left, top, right, bottom) of each box, the second one its variances. Per cell and min_size: a
    square of min_size, one of sqrt(min_size * max_size), and a box for each other aspect ratio. Sizes are truncated to
    whole pixels. The image's size is that of the second bottom, or img_size. Only the shapes of the bottoms are used.
    """

    types = ("PriorBox",)
    source = "weiliu89/caffe, ssd"
    bottoms = (1, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.prior_box_param
        self.check_sizes(p)
        self.sizes = tuple(self.sizes_of(p))
        self.check(len(p.variance) in (0, 1, 4), f"{len(p.variance)} variances: 1 or 4 are needed")
        self.check(all(v > 0 for v in p.variance), "variance must be positive")
        self.variance = tuple(p.variance) if len(p.variance) == 4 else tuple(p.variance or [0.1]) * 4
        self.image = self.pair(p, "img_h", "img_w", "img_size")
        self.step = self.pair(p, "step_h", "step_w", "step")
        self.clip, self.offset = p.clip, p.offset
        self.check(definition.bottoms == 2 or 0 not in self.image, "a second bottom, the image, or img_size")

    def check_sizes(self, p):
        self.check(not (p.width or p.height), "width and height are fields of PriorBoxClustered")
        self.check(len(p.min_size) > 0, "must provide min_size")
        self.check(min(p.min_size) > 0, "min_size must be positive")
        self.check(len(p.max_size) in (0, len(p.min_size)), "as many max_size as min_size are needed")
        larger = all(high > low for high, low in zip(p.max_size, p.min_size, strict=False))
        self.check(larger, "max_size must be greater than min_size")

    def sizes_of(self, p):
        """(width, height) of a cell's boxes, in pixels."""
        ratios = [1.0]
        for ratio in p.aspect_ratio:
            if all(abs(ratio - other) >= 1e-6 for other in ratios):
                ratios += [ratio, 1 / ratio] if p.flip else [ratio]
        for i, low in enumerate(map(int, p.min_size)):
            yield float(low), float(low)
            if p.max_size:
                mean = sqrt(low * int(p.max_size[i]))
                yield mean, mean
            for ratio in ratios[1:]:
                yield low * sqrt(ratio), low / sqrt(ratio)

    def pair(self, p, first: str, second: str, both: str):
        """Height and width; 0 if the file does not give them."""
        apart = p.HasField(first) or p.HasField(second)
        self.check(not (apart and p.HasField(both)), f"either {both} or {first} and {second}")
        values = (getattr(p, first), getattr(p, second)) if apart else (getattr(p, both),) * 2
        self.check(min(values) > 0 or not (apart or p.HasField(both)), f"{both} should be larger than 0")
        return values

    def agree(self, *shapes):
        for shape in shapes:
            self.check(len(shape) == 4, "a bottom [num, channels, height, width] is needed, not {}", shape)

    def top_shapes(self, x, *image):
        return [(1, 2, x[2] * x[3] * len(self.sizes) * 4)]

    def forward(self, x, *image):
        # In half precision a box would be wrong by a pixel. A GPU would wait for each of these small operators: it gets
        # the result. A compiler joins them.
        device = x.device
        own = device if torch.compiler.is_compiling() else "cpu"
        wide: Placement = {"dtype": torch.promote_types(x.dtype, torch.float32), "device": own}
        rows, columns = x.shape[2:]
        height, width = image[0].shape[2:] if 0 in self.image else self.image
        down, across = self.step if 0 not in self.step else (height / rows, width / columns)
        y = ((torch.arange(rows, **wide) + self.offset) * (down / height)).reshape(-1, 1, 1)
        x = ((torch.arange(columns, **wide) + self.offset) * (across / width)).reshape(1, -1, 1)
        half = torch.tensor(self.sizes, **wide) / torch.tensor((2.0 * width, 2.0 * height), **wide)
        left, top = half.unbind(1)
        corners = torch.broadcast_tensors(x - left, y - top, x + left, y + top)
        boxes = torch.stack(corners, -1).reshape(-1, 4)
        boxes = boxes.clamp(0, 1) if self.clip else boxes
        variances = torch.tensor(self.variance, **wide).expand_as(boxes)
        return torch.stack((boxes, variances)).reshape(1, 2, -1).to(device)


class PriorBoxClustered(PriorBox):
    """The same, with a box of each `width` and `height`, in pixels, around the centre of each cell."""

    types = ("PriorBoxClustered",)
    source = "opencv/training_toolbox_caffe"

    def check_sizes(self, p):
        self.check(len(p.width) > 0, "must provide width")
        self.check(len(p.width) == len(p.height), f"{len(p.height)} height for {len(p.width)} width")
        self.check(min(*p.width, *p.height) > 0, "width and height must be positive")

    def sizes_of(self, p):
        return zip(p.width, p.height, strict=True)


# ---------------------------------------------------------------------------------------- DetectionOutput


class DetectionOutput(ForkLayer):
    """The found boxes: [1, 1, boxes, 7], rows (item, label, score, left, top, right, bottom).

    Bottoms: offsets [N, priors * classes * 4], scores [N, priors * classes] and PriorBox's top. For each class but the
    background: the top_k boxes above confidence_threshold, after non-maximum suppression. Of each item the keep_top_k
    best are kept. If nothing is found, each item has a row of -1. No gradient. Files are not written:
    save_output_param and visualize have no effect. OpenCV's field `clip` first clips boxes at the image's edge.
    """

    types = ("DetectionOutput",)
    source = "weiliu89/caffe, ssd"
    bottoms = (3, 4)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.detection_output_param
        self.check(p.HasField("num_classes"), "must specify num_classes")
        self.classes, self.background, self.code = p.num_classes, p.background_label_id, p.code_type
        self.box_classes = 1 if p.share_location else p.num_classes
        self.variance_in_target, self.keep_top_k, self.clip = (
            p.variance_encoded_in_target,
            p.keep_top_k,
            p.clip,
        )
        self.least = (
            p.confidence_threshold if p.HasField("confidence_threshold") else -torch.finfo(torch.float).max
        )
        nms = p.nms_param
        self.threshold, self.eta, self.top_k = (
            nms.nms_threshold,
            nms.eta,
            nms.top_k if nms.HasField("top_k") else -1,
        )
        self.check(self.threshold >= 0, "nms_threshold must be non negative")
        self.check(0 < self.eta <= 1, "eta: expected more than 0 and at most 1")

    def agree(self, offsets, scores, priors, *image):
        count = math.prod(priors) // 8
        sizes = math.prod(offsets[1:]), math.prod(scores[1:])
        self.check(offsets[:1] == scores[:1], "offsets of {} and scores of {}", offsets, scores)
        self.check(count * self.box_classes * 4 == sizes[0], "number of priors must match number of offsets")
        self.check(count * self.classes == sizes[1], "number of priors must match number of scores")

    def top_shapes(self, *bottoms):
        return [(1, 1, 1, 7)]  # as in the layer's Reshape, before the number of boxes is known

    @torch.no_grad()
    def forward(self, offsets, scores, priors, image=None):
        number, (priors, variances) = offsets.shape[0], priors_of(priors)
        if self.code != CORNER:
            empty = (priors[:, 2:] <= priors[:, :2]).any(1)
            self.check_rows(empty, "a prior has no width or no height")
        wide = torch.promote_types(offsets.dtype, priors.dtype)
        scores = self.foreground(scores.to(wide).reshape(number, -1, self.classes).transpose(1, 2))
        count = self.most(scores)
        if count == 0:
            return self.nothing(scores)[None, None]
        best, order = best_first(scores, count)
        offsets = offsets.to(wide).reshape(number, -1, self.box_classes, 4).transpose(1, 2)
        if self.box_classes > 1:
            offsets = self.foreground(offsets)
        index = order[..., None].expand(*order.shape, 4)
        boxes = decode(
            self.code,
            priors[order],
            1 if self.variance_in_target else variances[order],
            offsets.expand(-1, order.shape[1], -1, -1).gather(2, index),
        )
        boxes = boxes.clamp(0, 1) if self.clip else boxes
        kept = suppressed(boxes, best > self.least, self.threshold, self.eta)
        return self.rows(self.best_of(kept, best), best, boxes)

    def foreground(self, x):
        """All classes but the background; classes are axis 1."""
        if not 0 <= self.background < self.classes:
            return x
        before, behind = x[:, : self.background], x[:, self.background + 1 :]
        return torch.cat((before, behind), 1) if self.background else behind

    def most(self, scores) -> int:
        """The most candidates of an item and class. A graph may not ask for it."""
        count = scores.shape[2] if self.top_k < 0 else min(self.top_k, scores.shape[2])
        if torch.compiler.is_compiling():
            return count
        return min(count, int((scores > self.least).sum(2).max())) if scores.numel() else 0

    def best_of(self, kept, scores):
        """The keep_top_k best of each item's boxes."""
        if self.keep_top_k < 0 or kept[0].numel() <= self.keep_top_k:
            return kept
        flat = torch.where(kept, scores, -torch.inf).flatten(1)
        chosen = best_first(flat, self.keep_top_k)[1]
        return kept & torch.zeros_like(kept).flatten(1).scatter(1, chosen, True).reshape(kept.shape)

    def rows(self, kept, scores, boxes):
        """The top: a row for each kept box, or rows of -1."""
        nothing = self.nothing(boxes)
        labels = torch.arange(kept.shape[1], device=kept.device)
        if 0 <= self.background < self.classes:
            labels = labels + (labels >= self.background)
        named = (nothing[:, :1, None], labels.to(boxes.dtype)[:, None], scores)
        table = torch.cat((*(column.expand(kept.shape)[..., None] for column in named), boxes), 3)
        is_nothing = (~kept.any()).expand(len(nothing))
        table, is_row = torch.cat((table.reshape(-1, 7), nothing)), torch.cat((kept.reshape(-1), is_nothing))
        return table[is_row][None, None]

    def nothing(self, like):
        """A row of -1 for each item."""
        items = torch.arange(like.shape[0], device=like.device, dtype=like.dtype)
        return F.pad(items[:, None], (0, 6), value=-1.0)
