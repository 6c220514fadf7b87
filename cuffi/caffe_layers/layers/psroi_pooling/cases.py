"""What psroi_pooling computes: the mean of each bin, in plain torch."""

import math

import torch

from cuffi import CaffeRuntimeError
from cuffi.caffe_layers.cases import Bad, caffe_case

from . import PSROIPooling

# A bin's sum, in the tensors' own type.
TOLERANCE = {torch.float32: (1e-5, 1e-6)}


def away_from_zero(x: float) -> int:
    """C's round."""
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1)


def edges(low: float, high: float, scale: float, bins: int, size: int) -> list[tuple[int, int]]:
    low, high = away_from_zero(low) * scale, (away_from_zero(high) + 1) * scale
    length = max(high - low, 0.1)
    return [
        (
            min(max(math.floor(low + b * length / bins), 0), size),
            min(max(math.ceil(low + (b + 1) * length / bins), 0), size),
        )
        for b in range(bins)
    ]


def inside(regions: list[list[tuple[int, int]]], bins: int, size: int, device) -> torch.Tensor:
    """Of each region's bins, which places along an axis they have: [region, bin, place]."""
    low, high = torch.tensor(regions, device=device).view(len(regions), bins, 2, 1).unbind(2)
    places = torch.arange(size, device=device)
    return (low <= places) & (places < high)


def reference(output_dim, group, scale):
    scale = torch.tensor(scale, dtype=torch.float32).item()  # a message holds it as float

    def psroi_pooling(scores, regions):
        height, width = scores.shape[2:]
        images, rows, columns = [], [], []
        for image, x1, y1, x2, y2 in regions.tolist():
            images.append(away_from_zero(image))
            rows.append(edges(y1, y2, scale, group, height))
            columns.append(edges(x1, x2, scale, group, width))
        shape = len(images), output_dim, group, group, height, width
        rows = inside(rows, group, height, scores.device)[:, None, :, None, :, None]
        columns = inside(columns, group, width, scores.device)[:, None, None, :, None, :]
        # Not a product with 0 and 1: an infinity outside of a bin is none of its.
        sums = scores[images].view(shape).where(rows & columns, 0).sum((4, 5))
        found = sums / (rows & columns).sum((4, 5)).clamp(min=1)
        # Corners are rounded: their gradient is 0, where autograd would find none. So is that of scores in no bin.
        return found + sum(x.flatten()[:0].sum() for x in (scores, regions))

    return psroi_pooling


def regions(draw, count, images, height, width):
    """Some of them reach out of the image, some are smaller than a bin."""
    x = draw.uniform(count, 2, low=-0.1 * width, high=1.1 * width).sort(1).values
    y = draw.uniform(count, 2, low=-0.1 * height, high=1.1 * height).sort(1).values
    image = (draw.uniform(count) * images).floor().clamp(max=images - 1)
    # Halves lie at a corner's rounding; finite differences and the other dtypes must stay on one side of it.
    corners = torch.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], 1).round()
    return torch.cat([image[:, None], corners], 1)


def given(images, output_dim, group, height, width, count, scale):
    return lambda draw: (
        draw.normal(images, output_dim * group * group, height, width),
        regions(draw, count, images, height / scale, width / scale),
    )


def case(name, output_dim, group, scale, shapes, **options):
    return caffe_case(
        name,
        lambda: PSROIPooling(
            psroi_pooling_param={"output_dim": output_dim, "group_size": group, "spatial_scale": scale}
        ),
        reference(output_dim, group, scale),
        {
            label: given(n, output_dim, group, h, w, count, scale)
            for label, (n, h, w, count) in shapes.items()
        },
        empty=lambda draw: (draw.normal(2, output_dim * group * group, 4, 5), draw.normal(0, 5)),
        tolerance=TOLERANCE,
        **options,
    )


CASES = [
    case(
        "psroi_pooling",
        2,
        3,
        0.5,
        {
            "small": (2, 5, 6, 4),
            "more regions than threads": (2, 4, 5, 600),
            "several tiles": (1, 70, 67, 7),
        },
        bad={
            "channels": Bad(
                lambda draw: (draw.normal(1, 17, 4, 4), draw.normal(1, 5)), CaffeRuntimeError, "(17 vs. 18)"
            ),
            "regions": Bad(
                lambda draw: (draw.normal(1, 18, 4, 4), draw.normal(1, 4)), CaffeRuntimeError, "5 numbers"
            ),
        },
    ),
    case("psroi_pooling_r_fcn", 4, 7, 0.0625, {"feature map": (2, 8, 11, 11)}),
]
