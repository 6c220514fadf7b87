"""Differentiable round: 1 where x >= 0.5, else 0; the gradient passes straight through."""

from torch import Tensor, nn

from cuffi import Layer, operator

layer = Layer(__name__)


@operator(layer)
def round_ste(bottom: Tensor) -> Tensor:
    """Round to 0 or 1 with a straight-through gradient.

    Args:
        bottom: any shape; float32, float64, float16 or bfloat16; meant for values in (0, 1).

    Returns:
        1 where bottom >= 0.5, else 0; shape, dtype and device of bottom. Its gradient is top's, unchanged
        (the straight-through estimator of Bengio et al., 2013, arXiv:1308.3432).

    Raises:
        CaffeTypeError: not a tensor, or another dtype or device.
    """
    top = layer.empty_like(bottom)
    layer.round_forward(bottom, top, bottom.numel())
    return top


@round_ste.backward(twice=True)
def _(ctx, top_diff):
    return top_diff


class Round(nn.Module):
    """`round_ste` as a module: 1 where bottom >= 0.5, else 0, for any shape. It has no parameters."""

    def forward(self, bottom: Tensor) -> Tensor:
        """See `round_ste` for shapes, dtypes, the gradient and errors."""
        return round_ste(bottom)
