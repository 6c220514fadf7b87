"""SSD: PriorBox and PriorBoxClustered, the boxes of each cell."""

from math import sqrt

import torch

from . import KnownLayer


class PriorBox(KnownLayer):
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

    def forward(self, x, image=None):
        # In half precision a box would be wrong by a pixel. A GPU would wait for each of these small operators: it gets
        # the result. A compiler joins them.
        device = x.device
        own = device if torch.compiler.is_compiling() else "cpu"
        wide = {"dtype": torch.promote_types(x.dtype, torch.float32), "device": own}
        rows, columns = x.shape[2:]
        height, width = image.shape[2:] if 0 in self.image else self.image
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
