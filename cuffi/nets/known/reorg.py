"""YOLO: Reorg, positions as channels."""

from . import KnownLayer


class Reorg(KnownLayer):
    """YOLO's darknet reorg: [N, C, H, W] to [N, C * stride², H / stride, W / stride], or back with `reverse`.

    Darknet reads the memory as a map of C / stride² channels that is stride times as high and wide, and moves each
    position of its stride x stride cells to its own channel.
    """

    types = ("Reorg",)
    source = "eric612/MobileNet-YOLO"

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.reorg_param
        self.check(p.stride > 0, "stride is needed")
        self.stride, self.reverse = p.stride, p.reverse

    def setup(self, x):
        self.check(len(x) == 4, f"a bottom [num, channels, height, width] is needed, not {list(x)}")
        self.check(x[1] % self.stride**2 == 0, f"{x[1]} channels are not a multiple of stride²")
        divides = self.reverse or not (x[2] % self.stride or x[3] % self.stride)
        self.check(divides, f"stride {self.stride} does not divide {list(x[2:])}")

    def forward(self, x):
        number, channels, height, width = x.shape
        s, few = self.stride, channels // self.stride**2
        if self.reverse:
            x = x.reshape(number, s, s, few, height, width).permute(0, 3, 4, 1, 5, 2)
            return x.reshape(number, few, height * s, width * s)
        x = x.reshape(number, few, height, s, width, s).permute(0, 3, 5, 1, 2, 4)
        return x.reshape(number, channels * s * s, height // s, width // s)
