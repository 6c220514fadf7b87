"""depthwise_conv1d on long rows: each kernel size with its own GPU kernel, and the gradients."""

import pytest
import torch
from cuffi.depthwise_conv import depthwise_conv1d, layer
from cuffi.depthwise_conv.cases import reference1d
from cuffi.depthwise_conv.conv1d import conv1d, sequence_starts
from support.points import DEVICES
from torch.nn.functional import conv1d as torch_conv1d
from torch.nn.functional import pad

from cuffi.runtime import CaffeError

TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("before, after", [(1, 0), (2, 0), (3, 0), (4, 0), (1, 1), (2, 2), (3, 3), (2, 1)])
def test_a_long_row(device, dtype, before, after):
    """Compared with torch in double: the top, and the gradients with and without the weight's."""
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
    reference = torch_conv1d(pad(exact[0], (before, after)), exact[1], bias.double(), groups=3)
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


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [*TOLERANCE, torch.float64])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("activation", [None, "silu"])
def test_packed_sequences(device, dtype, kernel, activation):
    """Aligned and unaligned rows; sequences shorter than the kernel."""
    torch.manual_seed(0)
    for num, length in ((1, 1024), (3, 1031), (2, 263), (2, 5)):
        ends = torch.cat(
            [torch.randint(0, length + 1, (length // 100 + 2,)), torch.tensor([1, 2, length])]
        ).sort()[0]
        index = torch.bucketize(torch.arange(length), ends, right=True).to(device, torch.int32)
        x, weight, bias = (
            torch.randn(shape, device=device).to(dtype).requires_grad_()
            for shape in ((num, 5, length), (5, 1, kernel), (5,))
        )
        given = {"seq_idx": index.expand(num, length)} if num > 1 else {"cu_seqlens": ends.to(device)}
        top = depthwise_conv1d(x, weight, bias, causal=True, activation=activation, **given)
        exact = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
        reference = reference1d(*exact, activation=activation, seq_idx=index.expand(num, length))
        top_diff = torch.randn_like(top)
        found = [top, *torch.autograd.grad(top, (x, weight, bias), top_diff)]
        wanted = [reference, *torch.autograd.grad(reference, exact, top_diff.double())]
        for ours, theirs in zip(found, wanted, strict=True):
            allowed = TOLERANCE.get(dtype, 1e-12) * (1 if activation is None else 3)
            assert (ours.double() - theirs).abs().max() <= allowed * theirs.abs().max()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("kernel", [2, 3, 4])
@pytest.mark.parametrize("offset", [0, 1])
def test_rows_that_begin_anywhere(device, dtype, kernel, offset):
    """Lengths that are not a multiple of a pack, and unaligned memory. Nothing beside x is read."""
    torch.manual_seed(0)
    memory = torch.full((2 * 3 * 1003 + 8,), torch.nan, device=device, dtype=dtype)
    x = memory[offset : offset + 2 * 3 * 1003].view(2, 3, 1003).normal_().detach().requires_grad_()
    weight, bias = (
        torch.randn(shape, device=device).to(dtype).requires_grad_() for shape in ((3, 1, kernel), (3,))
    )
    top = depthwise_conv1d(x, weight, bias, causal=True)
    exact = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
    reference = reference1d(*exact, causal=True)
    top_diff = torch.randn_like(top)
    found = [top, *torch.autograd.grad(top, (x, weight, bias), top_diff)]
    wanted = [reference, *torch.autograd.grad(reference, exact, top_diff.double())]
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours.double() - theirs).abs().max() <= TOLERANCE[dtype] * theirs.abs().max()


@pytest.mark.parametrize("ends", [[5, 3, 90, -7, 2**31 - 1], [], [200] * 40])
def test_wrong_sequences_touch_no_memory_beside(ends):
    """Their values are not checked, because a check would wait for the GPU."""
    x, weight = torch.randn(1, 3, 64), torch.randn(3, 1, 4)
    top = depthwise_conv1d(x, weight, causal=True, cu_seqlens=torch.tensor(ends, dtype=torch.int32))
    assert top.shape == x.shape


@pytest.mark.parametrize("device", DEVICES)
def test_packed_sequences_in_graphs(device):
    """torch's own check of both operators, torch.compile, a CUDA graph, and no second derivative."""
    ends = torch.tensor([0, 5, 6, 64], dtype=torch.int32, device=device)
    x, weight = (torch.randn(shape, device=device, requires_grad=True) for shape in ((1, 3, 64), (3, 1, 4)))
    torch.library.opcheck(sequence_starts.operator.torch_op, (ends, 1, 64, False))
    starts = sequence_starts(ends, 1, 64, False)
    torch.library.opcheck(conv1d.operator.torch_op, (x, weight, None, starts, 1, 0, 1, True, 3))

    def call(x, weight, ends):
        return depthwise_conv1d(x, weight, causal=True, activation="swish", cu_seqlens=ends)

    top = call(x, weight, ends)
    torch._dynamo.reset()
    backend = "inductor" if device == "cuda" else "aot_eager"
    torch.testing.assert_close(torch.compile(call, fullgraph=True, backend=backend)(x, weight, ends), top)
    (diff,) = torch.autograd.grad(top.square().sum(), x, create_graph=True)
    with pytest.raises(CaffeError, match="depthwise_conv"):
        diff.sum().backward()
    if device == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            captured = call(x, weight, ends)
        ends[1] = 20
        graph.replay()
        torch.testing.assert_close(captured, call(x, weight, ends))


NUMBERS = {"kernel": (0, 1, 0), "stride": (2, 1, 0), "pad": (4, 0, -1), "dilation": (6, 1, 0)}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_the_c_functions_refuse(name):
    """For each number: the least that is accepted, and the next one below."""
    at, least, below = NUMBERS[name]
    # Of a stride of 0 the launcher cannot say how large the top is.
    said = "(kernel, stride and dilation must be at least 1 and padding|top: expected memory for .*-1.* elements)"
    x, weight = torch.randn(2, 3, 4, 5), torch.randn(3, 1, 1, 1)
    plane, line = [1, 1, 1, 1, 0, 0, 1, 1], [1, 1, 0, 1]

    def convolved(numbers):
        top = torch.zeros(999)
        if len(numbers) == 8:
            layer.depthwise_conv_forward(x, weight, None, top, *x.shape, *numbers, 0, 0)
            return top[: x.numel()].view_as(x)
        row = x[:, :, 0].contiguous()
        layer.depthwise_conv1d_forward(
            row, weight[..., 0], None, None, top, *row.shape, row.shape[2], *numbers, 0
        )
        return torch.cat(
            [top[: row.numel()].view_as(row)[:, :, None], (x * weight.view(3, 1, 1))[:, :, 1:]], 2
        )

    for numbers, place in ((plane, at), (plane, at + 1), (line, at // 2)):
        changed = [least if i == place else number for i, number in enumerate(numbers)]
        assert torch.equal(convolved(changed), x * weight.view(3, 1, 1))
        changed[place] = below
        with pytest.raises(CaffeError, match=f"depthwise_conv: {said}"):
            convolved(changed)
