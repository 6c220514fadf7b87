"""Shapes: ShuffleChannel, channels of groups mixed (ShuffleNet)."""

from . import KnownLayer


class ShuffleChannel(KnownLayer):
    """The channels as a matrix of `group` rows, transposed."""

    types = ("ShuffleChannel",)
    source = "farmingyard/ShuffleNet"

    def __init__(self, definition):
        super().__init__(definition)
        self.group = definition.message.shuffle_channel_param.group
        self.check(self.group > 0, "group must be greater than 0")

    def setup(self, x):
        self.check(len(x) > 1 and x[1] % self.group == 0, f"{self.group} groups of {list(x)}")

    def forward(self, x):
        return x.unflatten(1, (self.group, -1)).transpose(1, 2).flatten(1, 2)
