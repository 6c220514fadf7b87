"""Flow: Correlation, two maps compared at displacements (FlowNet)."""

import torch
import torch.nn.functional as F

from . import KnownLayer


class Correlation(KnownLayer):
    """FlowNet's correlation of two maps: a channel of the top for each displacement.

    Displacements are multiples of stride_2 up to max_displacement, rows first. The value is the mean of the product
    over channels and over a window of kernel_size. stride_1 is the step in the first map.

    For a row of the first map and one of the second, the products of all pairs of positions are one matrix product; the
    displacements are its diagonals.
    """

    types = ("Correlation",)
    source = "lmb-freiburg/flownet2"
    native = "correlation"
    bottoms = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.correlation_param
        self.check(p.kernel_size % 2 == 1, "kernel_size must be odd")
        self.check(
            p.correlation_type == p.MULTIPLY, "correlation_type SUBTRACT is not known here: port your fork's"
        )
        self.pad, self.kernel, self.displacement = p.pad, p.kernel_size, p.max_displacement
        self.stride_1, self.stride_2 = p.stride_1, p.stride_2
        self.check(min(p.stride_1, p.stride_2) > 0, "stride_1 and stride_2: expected more than 0")
        self.radius = p.max_displacement // p.stride_2

    def agree(self, first, second):
        self.check(len(first) == 4 and first == second, "bottoms of {} and {}", first, second)
        sizes = [self.size(first[2 + i]) for i in range(2)]
        self.check(min(sizes) > 0, "nothing is left of {}", first)

    def size(self, size: int) -> int:
        border = self.displacement + (self.kernel - 1) // 2
        return -(-(size + 2 * self.pad - 2 * border) // self.stride_1)

    def forward(self, first, second):
        number, channels = first.shape[:2]
        sizes = [self.size(int(size)) for size in first.shape[2:]]
        # All positions that the windows cover.
        height, width = ((size - 1) * self.stride_1 + self.kernel for size in sizes)
        begin, reach = self.displacement, self.radius * self.stride_2
        first, second = (F.pad(x, (self.pad,) * 4).permute(0, 2, 3, 1) for x in (first, second))
        first = first[:, begin : begin + height, begin : begin + width].reshape(-1, width, channels)
        columns = slice(begin - reach, begin + reach + width)
        side, rows = 2 * self.radius + 1, []
        for i in range(side):
            top = begin - reach + i * self.stride_2
            part = second[:, top : top + height, columns].reshape(-1, width + 2 * reach, channels)
            products = torch.bmm(first, part.transpose(1, 2)).contiguous()
            _, line, _ = products.stride()
            diagonals = products.as_strided(
                (len(products), width, side), (products.stride(0), line + 1, self.stride_2)
            )
            rows.append(diagonals.reshape(number, height, width, side))
        top = torch.stack(rows, 3).flatten(3).permute(0, 3, 1, 2) / channels
        if self.kernel == self.stride_1 == 1:
            return top
        return F.avg_pool2d(top, self.kernel, self.stride_1)
