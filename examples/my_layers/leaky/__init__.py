"""Leaky ReLU, a layer in a folder of your own."""

from torch import Tensor

from cuffi import Layer, operator

layer = Layer(__name__)


@operator(layer)
def leaky(bottom: Tensor, slope: float = 0.01) -> Tensor:
    """bottom where it is positive, else slope * bottom; any shape, any floating dtype. Differentiable once."""
    top = layer.empty_like(bottom)
    layer.leaky_forward(bottom, top, bottom.numel(), slope)
    return top


@operator(layer)
def leaky_backward(bottom: Tensor, top_diff: Tensor, slope: float) -> Tensor:
    """The gradient of `leaky` by its bottom; bottom and top_diff have one shape."""
    wanted = f"the shape of bottom, {list(bottom.shape)}"
    layer.check(top_diff.shape == bottom.shape, "top_diff", wanted, top_diff)
    bottom_diff = layer.empty_like(bottom)
    layer.leaky_backward(bottom, top_diff, bottom_diff, bottom.numel(), slope)
    return bottom_diff


def _save(ctx, inputs, top):
    bottom, ctx.slope = inputs
    ctx.save_for_backward(bottom)


@leaky.backward(save=_save)
def _(ctx, top_diff):
    return leaky_backward(*ctx.saved_tensors, top_diff, ctx.slope), None
