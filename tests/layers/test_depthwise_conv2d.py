"""depthwise_conv2d: the division of channels and plane among blocks and threads."""

import pytest
import torch
from cuffi.depthwise_conv import DepthwiseConv2d, depthwise_conv2d, depthwise_conv_norm
from cuffi.depthwise_conv.cases import ACTIVATED
from support.points import DEVICES
from support.typed import not_none
from torch import nn
from torch.nn.functional import batch_norm, conv2d, relu6, unfold

from cuffi.runtime import CaffeValueError

TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}
# Beside the kernel's reach: planes that end within a patch of 2 x 2 or a strip of 4, and one with fewer rows than that.
PLANES = [(11, 15), (7, 6), (3, 2)]
# Fewer packs than a block has lanes, as many as lanes, a last tile of some, odd ones.
CHANNELS = [2, 5, 20, 24, 36, 64, 72, 144]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("kernel, stride", [(3, 1), (3, 2), (5, 1), (5, 2), (7, 1), (7, 2)])
@pytest.mark.parametrize("channels", CHANNELS)
def test_channels_last(device, dtype, kernel, stride, channels):
    torch.manual_seed(channels)
    for height, width in PLANES:
        x = torch.randn(2, channels, height, width, device=device, dtype=dtype)
        check(x.contiguous(memory_format=torch.channels_last), kernel, stride)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize(
    "shape, kernel", [((3, 70, 7, 7), 3), ((2, 70, 7, 7), 5), ((2, 9, 14, 14), 3), ((1, 5, 21, 21), 5)]
)
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_small_contiguous_planes(device, dtype, shape, kernel, offset):
    """One launch computes both gradients. Also for unaligned memory, because blocks copy it by 16 bytes."""
    torch.manual_seed(offset)
    memory = torch.randn(offset + torch.Size(shape).numel(), device=device, dtype=dtype)
    check(memory[offset:].view(shape), kernel, 1)


@pytest.mark.parametrize("device", [device for device in DEVICES if device != "cpu"])
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize(
    "shape, kernel", [((40, 1030, 7, 7), 3), ((20, 1030, 7, 7), 5), ((33, 300, 14, 14), 3)]
)
def test_several_images_for_each_block(device, dtype, shape, kernel):
    torch.manual_seed(0)
    check(torch.randn(shape, device=device, dtype=dtype), kernel, 1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [*TOLERANCE, torch.float64])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("activation", ["relu", "relu6", "silu", "gelu"])
def test_activations(device, dtype, layout, activation):
    """In each kernel: small planes, a patch or a strip per thread, and shapes without a fast kernel."""
    torch.manual_seed(0)
    for shape, kernel, stride in (
        ((2, 24, 7, 7), 3, 1),
        ((2, 24, 16, 16), 3, 1),
        ((2, 24, 32, 24), 3, 2),
        ((1, 8, 16, 20), 5, 1),
        ((1, 5, 17, 19), 7, 1),
        ((1, 8, 9, 8), 4, 1),
    ):
        x = 3 * torch.randn(shape, device=device, dtype=dtype)
        check(x.contiguous(memory_format=layout), kernel, stride, activation)


def test_activations_of_large_numbers():
    """An exponential that overflows, and NaN, as in torch."""
    x = torch.tensor([-torch.inf, -3e37, -200.0, -90.0, -20.0, 0.0, 20.0, 90.0, 3e37, torch.nan]).view(
        1, 1, 1, -1
    )
    one = torch.ones(1, 1, 1, 1)
    for name in ("relu", "relu6", "silu", "gelu"):
        found, wanted = depthwise_conv2d(x, one, activation=name), ACTIVATED[name](x)
        at = slice(None) if name in ("relu", "relu6") else slice(1, None)  # torch makes NaN of silu(-inf)
        torch.testing.assert_close(found[..., at], wanted[..., at], rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("bias, affine", [(False, True), (True, False)])
def test_a_norm_behind_it(device, layout, bias, affine):
    """In eval without gradients one operator computes both. Changes of the norm and the weights apply at once."""
    torch.manual_seed(0)
    depthwise_conv_norm.operator.short.clear()
    norm = nn.BatchNorm2d(6, affine=affine, dtype=torch.float64)
    layer = DepthwiseConv2d(6, 3, 2, 1, bias=bias, activation="relu6", norm=norm).to(device, torch.float64)
    x = torch.randn(2, 6, 9, 8, device=device, dtype=torch.float64).contiguous(memory_format=layout)

    def wanted():
        conv = conv2d(x, layer.weight, layer.bias, 2, 1, groups=6)
        return relu6(
            batch_norm(conv, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
        )

    layer(x).sum().backward()
    assert layer.weight.grad is not None and norm.num_batches_tracked == 1
    layer.eval()
    for change in (
        lambda: None,
        lambda: not_none(norm.running_var).mul_(3),
        lambda: layer.weight.data.neg_(),
    ):
        change()
        torch.testing.assert_close(layer(x), wanted())
        with torch.no_grad():
            calls = []
            kept = norm.register_forward_hook(lambda *_, calls=calls: calls.append(1))
            torch.testing.assert_close(layer(x), wanted())
            kept.remove()
        assert not calls
    assert depthwise_conv_norm.operator.short.plans() > 0
    with pytest.raises(CaffeValueError, match="depthwise_conv: norm: expected a BatchNorm2d of 6 channels"):
        DepthwiseConv2d(6, 3, norm=nn.BatchNorm2d(5))


def check(x, kernel: int, stride: int, activation=None) -> None:
    """Against torch in double: the top and all gradients."""
    channels, dtype = x.shape[1], x.dtype
    weight, bias = (torch.randn(channels, *s, device=x.device).to(dtype) for s in ((1, kernel, kernel), ()))
    leaves = [x.detach().requires_grad_(), weight.requires_grad_(), bias.requires_grad_()]
    top = depthwise_conv2d(*leaves, stride=stride, padding=kernel // 2, activation=activation)
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    # torch's own conv2d takes the channels one by one: three times as long.
    patches = unfold(exact[0], kernel, padding=kernel // 2, stride=stride).view(
        len(x), channels, kernel**2, -1
    )
    reference = (exact[1].view(channels, 1, -1) @ patches).view(top.shape) + exact[2].view(-1, 1, 1)
    if activation:  # its gradient is that at the sum in x's dtype, as torch's own is
        reference = ACTIVATED[activation](reference + (reference.to(dtype).double() - reference).detach())
    top_diff = torch.randn_like(top)
    found = [top, *torch.autograd.grad(top, leaves, top_diff)]
    wanted = [reference, *torch.autograd.grad(reference, exact, top_diff.double())]
    for ours, theirs in zip(found, wanted, strict=True):
        allowed = TOLERANCE.get(dtype, 1e-12) * (
            1 if activation is None else 2
        )  # its gradient is rounded once more
        assert (ours.double() - theirs).abs().max() <= allowed * theirs.abs().max()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("channels", [16, 144])
def test_a_large_plane(device, dtype, channels):
    """A plane that is too large for a patch per thread."""
    torch.manual_seed(0)
    x = torch.randn(1, channels, 262, 255 * 16 // channels + 1, device=device, dtype=dtype)
    weight = torch.randn(channels, 1, 3, 3, device=device).to(dtype)
    top = depthwise_conv2d(x.contiguous(memory_format=torch.channels_last), weight, padding=1)
    reference = conv2d(x.double(), weight.double(), padding=1, groups=channels)
    assert (top.double() - reference).abs().max() <= TOLERANCE[dtype] * reference.abs().max()
