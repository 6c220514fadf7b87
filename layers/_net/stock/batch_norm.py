import torch
import torch.nn.functional as F

from ..fillers import constant
from . import StockLayer


class BatchNorm(StockLayer):
    """Normalisation over all axes but 1, without an affine part, which a Scale layer adds.

    `mean` and `variance` are decaying sums, divided by `factor` where they are used. Evaluation uses them, training
    the batch, unless use_global_stats says otherwise.
    """

    blobs = ("mean", "variance", "factor")
    statistics = blobs

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.batch_norm_param
        self.use_global_stats = p.use_global_stats if p.HasField("use_global_stats") else None
        self.fraction, self.eps = p.moving_average_fraction, p.eps
        self._normalised = None  # (what it was made from, mean, variance)

    def setup(self, x):
        self.check(len(x) > 1, f"a bottom of 2 or more axes is needed, not {list(x)}")
        for name, size in (("mean", x[1]), ("variance", x[1]), ("factor", 1)):
            self.blob(name, (size,), constant(0))

    def top_shapes(self, x):
        self.check(
            x[1:2] == tuple(self.mean.shape), f"{len(self.mean)} channels are known, not those of {list(x)}"
        )
        return [x]

    def forward(self, x, weight=None, bias=None):
        """weight, bias: of a Scale layer that follows."""
        if not (self.training if self.use_global_stats is None else not self.use_global_stats):
            mean, variance = self._statistics()
            top = F.batch_norm(x, mean, variance, weight, bias, False, 0.0, self.eps)
        elif x.numel() // x.shape[1] == 1:  # torch refuses it; Caffe divides zero by sqrt(eps)
            zero = x * 0
            top = zero if weight is None else zero * _along(weight, zero)
            top = top if bias is None else top + _along(bias, top)
            self._update(x.detach().reshape(-1), torch.zeros_like(self.variance))
        else:
            # With momentum 1 the running statistics are the batch's: its mean, and its variance times m / (m - 1).
            mean, variance = self.mean.new_zeros(2, x.shape[1]).unbind()
            top = F.batch_norm(x, mean, variance, weight, bias, True, 1.0, self.eps)
            self._update(mean, variance)
        return top

    def _update(self, mean, variance):
        for total, batch in ((self.mean, mean), (self.variance, variance)):
            torch.add(batch, total, alpha=self.fraction, out=total)
        self.factor.mul_(self.fraction).add_(1)

    def _statistics(self):
        if torch.compiler.is_compiling():
            return self._divided()
        mean, variance, factor = self.mean, self.variance, self.factor
        made_from = (id(mean), mean._version, id(variance), variance._version, id(factor), factor._version)
        known = self._normalised
        if known is None or known[0] != made_from or known[1].is_inference():
            known = self._normalised = (made_from, *self._divided())
        return known[1:]

    def _divided(self):
        scale = torch.where(self.factor == 0, 0, 1 / self.factor)
        return (self.mean * scale).detach(), (self.variance * scale).detach()

    def reset(self):
        self._normalised = None

    def __getstate__(self):
        return self.__dict__ | {"_normalised": None}


def _along(vector, x):
    return vector.reshape((1, -1) + (1,) * (x.dim() - 2))
