"""depthwise_conv2d: how a block divides the channels and the plane decides who computes what."""

import pytest
import torch
from support.points import DEVICES
from torch.nn.functional import conv2d, unfold

from layers.depthwise_conv import depthwise_conv2d

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
    """One launch computes both gradients. Memory that begins anywhere, for blocks copy it by 16 bytes."""
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


def check(x, kernel: int, stride: int) -> None:
    """Against torch in double: the top and all gradients."""
    channels, dtype = x.shape[1], x.dtype
    weight, bias = (torch.randn(channels, *s, device=x.device).to(dtype) for s in ((1, kernel, kernel), ()))
    leaves = [x.detach().requires_grad_(), weight.requires_grad_(), bias.requires_grad_()]
    top = depthwise_conv2d(*leaves, stride=stride, padding=kernel // 2)
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    # torch's own conv2d takes the channels one by one: three times as long.
    patches = unfold(exact[0], kernel, padding=kernel // 2, stride=stride).view(
        len(x), channels, kernel**2, -1
    )
    reference = (exact[1].view(channels, 1, -1) @ patches).view(top.shape) + exact[2].view(-1, 1, 1)
    top_diff = torch.randn_like(top)
    found = [top, *torch.autograd.grad(top, leaves, top_diff)]
    wanted = [reference, *torch.autograd.grad(reference, exact, top_diff.double())]
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours.double() - theirs).abs().max() <= TOLERANCE[dtype] * theirs.abs().max()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("channels", [16, 144])
def test_a_large_plane(device, dtype, channels):
    """What is too large for a patch a thread."""
    torch.manual_seed(0)
    x = torch.randn(1, channels, 262, 255 * 16 // channels + 1, device=device, dtype=dtype)
    weight = torch.randn(channels, 1, 3, 3, device=device).to(dtype)
    top = depthwise_conv2d(x.contiguous(memory_format=torch.channels_last), weight, padding=1)
    reference = conv2d(x.double(), weight.double(), padding=1, groups=channels)
    assert (top.double() - reference).abs().max() <= TOLERANCE[dtype] * reference.abs().max()
