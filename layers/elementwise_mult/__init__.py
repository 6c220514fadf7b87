"""The product of two tensors of one shape, differentiable any number of times."""

from torch import Tensor, nn

from cuffi import Layer, operator

layer = Layer(__name__)


@operator(layer)
def elementwise_mult(a: Tensor, b: Tensor) -> Tensor:
    """a * b.

    Args:
        a, b: the same shape, dtype (float32, float64, float16, bfloat16) and device; nothing is broadcast.

    Returns:
        A tensor like a. The gradients are top_diff * b and top_diff * a, each computed only if needed.

    Raises:
        CaffeTypeError: not a tensor, or another dtype or device.
        CaffeValueError: b has another shape than a.
    """
    layer.check(a.shape == b.shape, "b", f"the shape of a, {list(a.shape)}", b)
    top = layer.empty_like(a)
    layer.elementwise_mult_forward(a, b, top, a.numel())
    return top


@elementwise_mult.backward(save=lambda ctx, inputs, top: ctx.save_for_backward(*inputs), twice=True)
def _(ctx, top_diff):
    a, b = ctx.saved_tensors
    a_wanted, b_wanted = ctx.needs_input_grad
    return elementwise_mult(top_diff, b) if a_wanted else None, elementwise_mult(
        top_diff, a
    ) if b_wanted else None


class ElementwiseMult(nn.Module):
    """`elementwise_mult` as a module: a * b for two tensors of one shape. It has no parameters."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """See `elementwise_mult` for shapes, dtypes and errors."""
        return elementwise_mult(a, b)
