"""Activations: functions of each value, but for Softmax.

AbsVal: the absolute value.
BNLL: the softplus.
Clip: values between two limits.
Dropout: random zeros in training.
ELU: exponential below 0.
Exp: a power of a base.
Log: the logarithm to a base.
Power: a power of a linear function.
PReLU: with a learnable slope below 0.
ReLU: with a fixed slope below 0.
Sigmoid.
Softmax: over one axis.
Swish: x times its sigmoid.
TanH.
Threshold: 1 above a limit.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ..net.fillers import constant
from . import Sloped, StockLayer


class AbsVal(StockLayer):
    """|x|, for any shape. The gradient at 0 is 0. Source: BVLC's absval_layer.cpp."""

    def forward(self, x):
        return x.abs()


class BNLL(StockLayer):
    """log(1 + exp(x)), for any shape, without overflow. Source: BVLC's bnll_layer.cpp."""

    def forward(self, x):
        return F.softplus(x, threshold=50)


class Clip(StockLayer):
    """min(max(x, min), max), for any shape. The gradient is 0 outside of [min, max].

    Source: BVLC's clip_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        self.least, self.most = definition.message.clip_param.min, definition.message.clip_param.max

    def forward(self, x):
        # Not clamp: from torch 2.15 on its gradient is 0 at the limits themselves, where Caffe's is 1.
        x = torch.where(x > self.most, self.most, x)
        return torch.where(x < self.least, self.least, x)


class Dropout(StockLayer):
    """In training, each value is 0 with probability dropout_ratio, and the others are divided by 1 - dropout_ratio.

    For any shape. In testing it is the identity.

    Source: BVLC's dropout_layer.cpp.
    """

    understands = ("dropout_param.scale_train", "dropout_param.sample_weights_test")

    def __init__(self, definition):
        super().__init__(definition)
        self.ratio = definition.message.dropout_param.dropout_ratio
        self.scale_train = definition.flag("dropout_param.scale_train", True)
        # Bayesian SegNet also draws in testing.
        self.always = definition.flag("dropout_param.sample_weights_test", False)

    def top_shapes(self, x):
        return [x]

    def forward(self, x):
        if self.training or self.always:
            # Caffe's release build tests the ratio only by what it computes: 0 / 0 for 1.
            said = "dropout_ratio: expected 0 or more, and less than 1 in training, got {}"
            self.check(0 <= self.ratio < 1, said, self.ratio)
            top = F.dropout(x, self.ratio, True)
            return top if self.scale_train else top * (1 - self.ratio)
        return x if self.scale_train else x * (1 - self.ratio)


class ELU(StockLayer):
    """x where x > 0, else alpha (exp(x) - 1), for any shape. Source: BVLC's elu_layer.cpp."""

    def __init__(self, definition):
        super().__init__(definition)
        self.alpha = definition.message.elu_param.alpha

    def forward(self, x):
        return F.elu(x, self.alpha)


class Exp(StockLayer):
    """base ^ (shift + scale * x), for any shape; base -1 means e. Source: BVLC's exp_layer.cpp."""

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.exp_param
        self.check(p.base == -1 or p.base > 0, "base must be strictly positive")
        log_base = 1.0 if p.base == -1 else math.log(p.base)
        self.inner = log_base * p.scale
        self.outer = (math.e if p.base == -1 else p.base) ** p.shift if p.shift else 1.0

    def forward(self, x):
        top = (x * self.inner).exp()
        return top if self.outer == 1 else top * self.outer


class Log(StockLayer):
    """log of (shift + scale * x) to `base`, for any shape; base -1 means e.

    Source: BVLC's log_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.log_param
        self.check(p.base == -1 or (p.base > 0 and p.base != 1), "base must be strictly positive, and not 1")
        self.factor = 1.0 if p.base == -1 else 1 / math.log(p.base)
        self.scale, self.shift = p.scale, p.shift

    def forward(self, x):
        x = x if self.scale == 1 and self.shift == 0 else self.shift + self.scale * x
        return x.log() * self.factor


class Power(StockLayer):
    """(shift + scale * x) ^ power, for any shape.

    The gradient is the source's power * scale * top / (shift + scale * x): no number where that is 0 / 0. For power 0,
    1 and 2 it has other formulas.

    Source: BVLC's power_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.power_param
        self.power, self.scale, self.shift = p.power, p.scale, p.shift
        self.constant = None  # of every x, as in the source
        if self.power * self.scale == 0:
            self.constant = torch.tensor(p.shift, dtype=torch.float64).pow(p.power).item()

    def forward(self, x):
        if self.constant is not None:
            top = torch.full_like(x, self.constant)
            return (
                Sloped.apply(x, top, torch.zeros_like(x))
                if x.requires_grad and torch.is_grad_enabled()
                else top
            )
        if self.scale != 1:
            x = x * self.scale
        if self.shift != 0:
            x = x + self.shift
        if self.power == 1:
            return x
        top = x.pow(self.power)
        if self.power == 2 or not (x.requires_grad and torch.is_grad_enabled()):
            return top
        fixed = top.detach()
        return Sloped.apply(x, fixed, self.power * fixed / x.detach())


class PReLU(StockLayer):
    """max(x, 0) + slope_c min(x, 0). Blob: the slope, one number for each channel [C], or one for all.

    Source: BVLC's prelu_layer.cpp.
    """

    blobs = ("slope",)
    slope: Tensor

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.prelu_param
        self.channel_shared = p.channel_shared
        self._filler = p.filler if p.HasField("filler") else constant(0.25)

    def setup(self, x):
        self.check(len(x) >= 2, f"a bottom of 2 or more axes is needed, not {list(x)}")
        self.blob("slope", () if self.channel_shared else (x[1],), self._filler)
        del self._filler

    def forward(self, x):
        return F.prelu(x, self.slope.reshape(1) if self.channel_shared else self.slope)


class ReLU(StockLayer):
    """max(x, 0) + negative_slope * min(x, 0), for any shape. The gradient at 0 is negative_slope.

    Source: BVLC's relu_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        self.negative_slope = definition.message.relu_param.negative_slope

    def top_shapes(self, x):
        return [x]

    def forward(self, x, in_place=False):
        """in_place: may the top overwrite the bottom?"""
        if self.negative_slope:
            return F.leaky_relu(x, self.negative_slope)
        return torch.relu_(x) if in_place else torch.relu(x)


class Sigmoid(StockLayer):
    """1 / (1 + exp(-x)), for any shape. Source: BVLC's sigmoid_layer.cpp."""

    def forward(self, x):
        return x.sigmoid()


class Softmax(StockLayer):
    """exp(x) / sum of exp(x) over `axis`, 1 by default; the bottom's shape.

    Source: BVLC's softmax_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        self.dim = definition.message.softmax_param.axis

    def setup(self, x):
        self.axis(self.dim, len(x))

    def forward(self, x):
        return x.softmax(self.dim)


class Swish(StockLayer):
    """x * sigmoid(beta * x), for any shape. Source: BVLC's swish_layer.cpp."""

    def __init__(self, definition):
        super().__init__(definition)
        self.beta = definition.message.swish_param.beta

    def forward(self, x):
        return x * (x * self.beta).sigmoid()


class TanH(StockLayer):
    """tanh(x), for any shape. Source: BVLC's tanh_layer.cpp."""

    def forward(self, x):
        return x.tanh()


class Threshold(StockLayer):
    """1 where the bottom is greater than the threshold, else 0, for any shape. No gradient.

    Source: BVLC's threshold_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        self.threshold = definition.message.threshold_param.threshold

    @torch.no_grad()
    def forward(self, x):
        return (x > self.threshold).to(x.dtype)
