"""Sigmoid, forward and backward in one kernel each."""

from torch import Tensor, nn

from cuffi import Layer, operator

layer = Layer(__name__)


@operator(layer)
def sigmoid(bottom: Tensor) -> Tensor:
    """1 / (1 + e^-bottom), for any shape; large values of either sign give 0 and 1.

    Args:
        bottom: any shape; float32, float64, float16 or bfloat16.

    Returns:
        Shape, dtype and device of bottom; the half types are computed in float32. Differentiable once.

    Raises:
        CaffeTypeError: not a tensor, or another dtype or device.
    """
    top = layer.empty_like(bottom)
    layer.sigmoid_forward(bottom, top, bottom.numel())
    return top


@operator(layer)
def sigmoid_backward(top_diff: Tensor, top: Tensor) -> Tensor:
    """top_diff * top * (1 - top): the gradient of `sigmoid` by its bottom, from its top.

    Args:
        top_diff, top: the same shape, dtype and device; float32, float64, float16 or bfloat16.

    Returns:
        Shape, dtype and device of top.

    Raises:
        CaffeTypeError: not a tensor, or another dtype or device.
        CaffeValueError: the shapes differ.
    """
    layer.check(top_diff.shape == top.shape, "top_diff", f"the shape of top, {list(top.shape)}", top_diff)
    bottom_diff = layer.empty_like(top)
    layer.sigmoid_backward(top_diff, top, bottom_diff, top.numel())
    return bottom_diff


@sigmoid.backward(save=lambda ctx, inputs, top: ctx.save_for_backward(top))
def _(ctx, top_diff):
    return sigmoid_backward(top_diff, *ctx.saved_tensors)


@operator(layer)
def d_sigmoid(y: Tensor) -> Tensor:
    """The sigmoid's derivative where its value is y: y * (1 - y).

    Args:
        y: any shape; float32, float64, float16 or bfloat16.

    Returns:
        Shape, dtype and device of y.

    Raises:
        CaffeTypeError: not a tensor, or another dtype or device.
    """
    bottom_diff = layer.empty_like(y)
    layer.sigmoid_backward(y.new_ones(()).expand_as(y), y, bottom_diff, y.numel())
    return bottom_diff


class Sigmoid(nn.Module):
    """`sigmoid` as a module: 1 / (1 + e^-bottom), for any shape. It has no parameters."""

    def forward(self, bottom: Tensor) -> Tensor:
        """See `sigmoid` for shapes, dtypes and errors."""
        return sigmoid(bottom)
