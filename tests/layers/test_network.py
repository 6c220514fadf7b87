"""The layers together, as a network: a MobileNet-like block, compiled whole and captured in a CUDA graph."""

import copy

import pytest
import torch
from cuffi.depthwise_conv import DepthwiseConv2d
from cuffi.elementwise_mult import elementwise_mult
from cuffi.sigmoid import sigmoid
from torch import nn


class Block(nn.Module):
    """Expand, filter each channel, gate (x * sigmoid(x)), project, and add what came in."""

    def __init__(self, channels: int = 8, inner: int = 16):
        super().__init__()
        self.expand = nn.Conv2d(channels, inner, 1)
        self.filter = DepthwiseConv2d(inner, 3, padding=1, bias=True)
        self.project = nn.Conv2d(inner, channels, 1)

    def forward(self, x):
        y = self.filter(self.expand(x))
        return x + self.project(elementwise_mult(y, sigmoid(y)))


class PlainBlock(Block):
    """The same with torch's own operators."""

    def forward(self, x):
        y = self.expand(x)
        y = nn.functional.conv2d(y, self.filter.weight, self.filter.bias, padding=1, groups=y.shape[1])
        return x + self.project(y * torch.sigmoid(y))


@pytest.fixture(
    params=[
        "cpu",
        pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
    ]
)
def device(request):
    return request.param


@pytest.fixture
def blocks(device):
    """(block, plain twin with the same parameters, input), in double, so that rounding hides no difference."""
    torch.manual_seed(1701)
    block = Block().to(device, torch.float64)
    plain = PlainBlock().to(device, torch.float64)
    plain.load_state_dict(block.state_dict())
    return block, plain, torch.randn(2, 8, 9, 11, device=device, dtype=torch.float64)


def gradients(module, call, x):
    module.zero_grad()
    x = x.clone().requires_grad_()
    top = call(x)
    top.square().sum().backward()
    return [top.detach(), x.grad] + [p.grad for p in module.parameters()]


def assert_all_close(one, other):
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_block(blocks):
    block, plain, x = blocks
    assert_all_close(gradients(block, block, x), gradients(plain, plain, x))


def test_block_compiled_without_a_break(blocks, device):
    block, plain, x = blocks
    compiled = torch.compile(block, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")
    assert_all_close(gradients(block, compiled, x), gradients(plain, plain, x))


def test_block_channels_last_stays_so(blocks):
    block, plain, x = blocks
    x = x.contiguous(memory_format=torch.channels_last)
    top = block.to(memory_format=torch.channels_last)(x)
    assert top.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(top, plain(x), rtol=1e-9, atol=1e-9)


def test_block_trains_in_a_cuda_graph(blocks, device):
    """Forward, backward and step, captured once and replayed on new data, against eager training."""
    if device == "cpu":
        pytest.skip("CUDA graphs need a GPU")
    block, _, x = blocks
    eager = copy.deepcopy(block)
    data = [torch.randn_like(x) for _ in range(4)]

    def step(module, optimizer, batch):
        optimizer.zero_grad(set_to_none=True)
        loss = module(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    side, static = torch.cuda.Stream(), data[0].clone()
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
    with torch.cuda.stream(side):  # a warm-up step on the stream that captures
        step(block, optimizer, static)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            loss = step(block, optimizer, static)
    torch.cuda.synchronize()
    reference = torch.optim.SGD(eager.parameters(), lr=0.1)
    step(eager, reference, data[0])
    for batch in data[1:]:
        static.copy_(batch)
        graph.replay()
        wanted = step(eager, reference, batch)
        torch.testing.assert_close(loss, wanted, rtol=1e-9, atol=1e-12)
    assert_all_close(list(block.parameters()), list(eager.parameters()))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 2e-2)], ids=str)
@pytest.mark.parametrize(
    "size, kernel, stride",
    [
        ((16, 96, 112, 112), 3, 2),
        ((64, 96, 112, 112), 3, 1),
        ((64, 96, 56, 56), 5, 1),
        ((64, 96, 56, 56), 5, 2),
    ],
)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_gradients_of_a_networks_batch(size, kernel, stride, layout, dtype, tolerance):
    """With so many images that a thread handles several in turn, which no case does."""
    filter = DepthwiseConv2d(size[1], kernel, stride=stride, padding=kernel // 2).to("cuda", dtype)
    x = torch.randn(*size, device="cuda", dtype=dtype).to(memory_format=layout).requires_grad_()
    leaves = [x, filter.weight]
    top = filter(x)
    top_diff = torch.randn_like(top)
    found = torch.autograd.grad(top, leaves, top_diff)
    in_double = [leaf.detach().double().requires_grad_() for leaf in leaves]
    top = nn.functional.conv2d(*in_double, stride=stride, padding=kernel // 2, groups=size[1])
    wanted = torch.autograd.grad(top, in_double, top_diff.double())
    for one, other in zip(found, wanted, strict=True):
        assert (one.double() - other).abs().max() < tolerance * other.abs().max()
