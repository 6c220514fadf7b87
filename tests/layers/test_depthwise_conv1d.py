"""depthwise_conv1d on long rows: kernels of known reach have a GPU kernel each, their gradients the mirrored one."""

import pytest
import torch
from support.points import DEVICES
from torch.nn.functional import conv1d, pad

from layers.depthwise_conv import depthwise_conv1d

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
