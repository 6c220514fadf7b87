"""depthwise_conv1d on long rows: kernels of known reach have a GPU kernel each, their gradients the mirrored one."""

import pytest
import torch
from support.points import DEVICES
from torch.nn.functional import conv1d, pad

from layers._runtime import CaffeError
from layers.depthwise_conv import depthwise_conv1d, layer

TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("before, after", [(1, 0), (2, 0), (3, 0), (4, 0), (1, 1), (2, 2), (3, 3), (2, 1)])
def test_a_long_row(device, dtype, before, after):
    """Against torch in double: the top, the gradients with and without the weight's."""
    torch.manual_seed(0)
    # Long enough that a thread computes two packs, and not a multiple of what a warp computes.
    x = torch.randn(2, 3, 4360, device=device, dtype=dtype, requires_grad=True)
    weight = torch.randn(3, 1, before + 1 + after, device=device).to(dtype).requires_grad_()
    bias = torch.randn(3, device=device).to(dtype)
    if after and before != after:
        x_in, said = pad(x, (before - after, 0)), {"padding": after}
    else:
        x_in, said = x, {"padding": after} if after else {"causal": True}
    top = depthwise_conv1d(x_in, weight, bias, **said)
    exact = [t.detach().double().requires_grad_() for t in (x, weight)]
    reference = conv1d(pad(exact[0], (before, after)), exact[1], bias.double(), groups=3)
    top_diff = torch.randn_like(top)
    x_diff, weight_diff = torch.autograd.grad(reference, exact, top_diff.double())
    frozen = depthwise_conv1d(x_in, weight.detach(), bias, **said)
    for ours, theirs in (
        (top, reference),
        (torch.autograd.grad(top, x, top_diff, retain_graph=True)[0], x_diff),
        (torch.autograd.grad(top, weight, top_diff)[0], weight_diff),
        (torch.autograd.grad(frozen, x, top_diff)[0], x_diff),
    ):
        assert (ours.double() - theirs).abs().max() <= TOLERANCE[dtype] * theirs.abs().max()


NUMBERS = {"kernel": (0, 1, 0), "stride": (2, 1, 0), "pad": (4, 0, -1), "dilation": (6, 1, 0)}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_the_c_functions_refuse(name):
    """Whoever calls them: the least that they take, and the next below it, each by itself."""
    at, least, below = NUMBERS[name]
    # Of a stride of 0 the launcher cannot say how large the top is.
    said = (
        "(kernel, stride and dilation must be at least 1 and padding|top: expected memory for .-1. elements)"
    )
    x, weight = torch.randn(2, 3, 4, 5), torch.randn(3, 1, 1, 1)
    plane, line = [1, 1, 1, 1, 0, 0, 1, 1], [1, 1, 0, 1]

    def convolved(numbers):
        top = torch.zeros(999)
        if len(numbers) == 8:
            layer.depthwise_conv_forward(x, weight, None, top, *x.shape, *numbers, 0)
            return top[: x.numel()].view_as(x)
        row = x[:, :, 0].contiguous()
        layer.depthwise_conv1d_forward(row, weight[..., 0], None, top, *row.shape, row.shape[2], *numbers)
        return torch.cat(
            [top[: row.numel()].view_as(row)[:, :, None], (x * weight.view(3, 1, 1))[:, :, 1:]], 2
        )

    for numbers, place in ((plane, at), (plane, at + 1), (line, at // 2)):
        changed = [least if i == place else number for i, number in enumerate(numbers)]
        assert torch.equal(convolved(changed), x * weight.view(3, 1, 1))
        changed[place] = below
        with pytest.raises(CaffeError, match=f"depthwise_conv: {said}"):
            convolved(changed)
