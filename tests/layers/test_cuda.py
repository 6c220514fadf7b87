"""Every layer's cases: streams, CUDA graphs, more than 2^31 elements, several GPUs."""

import pytest
import torch
from support.layers import (
    elementwise,
)
from support.points import (
    Point,
    differentiable,
    random_like,
    same_bits,
)
from torch import Tensor

from cuffi.runtime.cases import results


def test_side_stream(on_cuda):
    """A layer runs on torch's current stream, so it waits for inputs that arrive late on a side stream."""
    grad = on_cuda.case.gradient != "none"
    arguments = on_cuda.arguments(grad)
    wanted = on_cuda.call(*arguments)
    top_diffs = random_like(wanted)
    diffs = (
        torch.autograd.grad(differentiable(results(wanted)), differentiable(arguments), top_diffs)
        if grad
        else ()
    )
    late = [
        torch.full_like(a, float("nan")).detach() if isinstance(a, Tensor) and a.is_floating_point() else a
        for a in arguments
    ]
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)  # about 30 ms
        for to, what in zip(late, arguments, strict=True):
            if isinstance(to, Tensor) and to.is_floating_point():
                to.copy_(what.detach())
                to.requires_grad_(grad)
        result = on_cuda.call(*late)
        found = (
            torch.autograd.grad(differentiable(results(result)), differentiable(late), top_diffs)
            if grad
            else ()
        )
    stream.synchronize()
    assert same_bits(result, wanted)
    assert same_bits(found, diffs)


def test_cuda_graph(on_cuda):
    """Captured once, replayed on new data: the same bits as eager, forward and backward."""
    grad = on_cuda.case.gradient != "none"
    static = on_cuda.arguments(grad)

    def step():
        result = on_cuda.call(*static)
        diffs = (
            torch.autograd.grad(
                differentiable(results(result)),
                differentiable(static),
                [torch.ones_like(t) for t in differentiable(results(result))],
            )
            if grad
            else ()
        )
        return [*results(result), *diffs]

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    for seed in (2, 3):
        with torch.no_grad():
            for to, what in zip(static, on_cuda.arguments(seed=seed), strict=True):
                if isinstance(to, Tensor):
                    to.copy_(what)
        graph.replay()
        replayed = [t.detach().clone() for t in captured]
        assert same_bits(replayed, step())


HUGE = 2**31 + 8


@elementwise
def test_more_than_2_31_elements(on_cuda):
    """Against the reference where a 32-bit index, count or stride would wrap."""
    if torch.float16 not in on_cuda.layer_object.dtypes:
        pytest.skip("the layer has no float16")
    torch.cuda.empty_cache()
    if torch.cuda.mem_get_info()[0] < 40e9:
        pytest.skip("less than 40 GB of free GPU memory")
    given = on_cuda.arguments()
    huge = [
        torch.empty(HUGE, dtype=torch.float16, device="cuda").uniform_(-2, 2) if isinstance(a, Tensor) else a
        for a in given
    ]
    result = on_cuda.call(*huge)
    half = Point(on_cuda.layer, on_cuda.case, on_cuda.input, "cuda", torch.float16)
    for middle in (0, 2**30, 2**31, HUGE):
        part = slice(max(0, middle - 64), min(HUGE, middle + 64))
        arguments = tuple(a[part] if isinstance(a, Tensor) else a for a in huge)
        half.assert_close([t[part] for t in results(result)], half.reference(*arguments)[1])


def test_second_gpu(on_cuda):
    """A tensor on cuda:1 while cuda:0 is current."""
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU only")
    arguments = on_cuda.arguments()
    there = [a.to("cuda:1") if isinstance(a, Tensor) else a for a in arguments]
    result = on_cuda.call(*there)
    assert torch.cuda.current_device() == 0 and all(t.device.index == 1 for t in results(result))
    assert same_bits([t.cuda(0) for t in results(result)], on_cuda.call(*arguments))
