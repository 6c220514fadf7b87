"""Normalisation: MVN, by the mean and variance of each image."""

from . import StockLayer, root


class MVN(StockLayer):
    """(x - mean) / (sqrt(variance) + eps), for each channel of each image, or for each image with across_channels.

    The gradient is the source's, which divides by the root plus eps where the exact one has the root: no 0 / 0 for a
    constant channel. normalize_variance: false leaves out the division. Top: the bottom's count with four axes, as the
    source has it.

    Source: BVLC's mvn_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.mvn_param
        self.normalize_variance, self.across_channels = p.normalize_variance, p.across_channels
        self.eps = p.eps

    def setup(self, x):
        self.check(2 <= len(x) <= 4, f"a bottom of 2 to 4 axes is needed, not {list(x)}")

    def forward(self, x):
        rows = x.flatten(1)[:, None] if self.across_channels else x.reshape(x.shape[0], x.shape[1], -1)
        centred = rows - rows.mean(-1, keepdim=True)
        if self.normalize_variance:
            variance = centred.square().mean(-1, keepdim=True)
            centred = centred / (root(variance, self.eps) + self.eps)
        return centred.reshape(x.shape + (1,) * (4 - x.dim()))
