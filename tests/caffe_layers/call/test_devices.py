"""Caffe layers as torch modules: host and GPU, streams, graphs. On layers of caffe_zoo."""

import copy
import gc

import pytest
import torch
from support.zoo import FILLER, grads, raises

from cuffi.runtime import CaffeRuntimeError, CaffeTypeError


def test_a_diff_that_nobody_writes_is_zero(zoo, place):
    """It must not have the memory's old values."""
    m = place(zoo.Stopping())
    x = place.draw(1000, grad=True)
    for _ in range(3):
        y = m(x)
        diff = torch.ones_like(y)
        used = [torch.full_like(y, torch.nan) for _ in range(4)]
        del used  # the next allocations of this size
        assert torch.equal(torch.autograd.grad(y, x, diff)[0], torch.zeros_like(x))
        assert torch.equal(y, x)


def test_a_failed_setup_is_not_taken_down(zoo):
    """The destructor would free memory that LayerSetUp has not allocated."""
    with raises(CaffeRuntimeError, "a table needs channels"):
        zoo.Mirrored()(torch.randn(3))
    gc.collect()


@pytest.mark.parametrize("function", ["Forward", "Backward"])
def test_a_launch_that_was_refused_is_an_error_though_the_layer_does_not_look(zoo, place, function):
    if place.mode == "cpu":
        pytest.skip("launches nothing")
    m = place(zoo.Ramp(zoo_param={"memory": function}))
    x = place.draw(5, grad=True)
    for _ in range(
        3
    ):  # the call, and those like it; an H200 says InvalidValue, the host InvalidConfiguration
        with raises(CaffeRuntimeError, f"zoo: {function.lower()}", "cudaErrorInvalid"):
            m(x).sum().backward()
    assert torch.equal(place(zoo.Ramp())(x), x.relu())


def test_a_setup_that_fails_between_its_blobs(zoo):
    """The layer has made room for two parameter blobs, but created neither."""
    m = zoo.Affine(zoo_param=FILLER)
    for _ in range(2):
        with raises(CaffeRuntimeError, "zoo: setup", "axis 1 out of range"):
            m(torch.ones(3))
    assert m(torch.ones(2, 3)).shape == (2, 3)


@pytest.mark.parametrize("mode", ["cpu", "gpu"])
def test_products_are_rounded_on_the_host(zoo, mode):
    """A product is not fused with the sum, as in Caffe. So the bits are those of two steps."""
    m = zoo.Affine(zoo_param=FILLER).setup((2, 3, 1000))
    m.mode, x = mode, torch.randn(2, 3, 1000)
    with torch.no_grad():
        m.blob0.normal_(), m.blob1.normal_()
        product = x * m.blob0.view(3, 1)
        assert torch.equal(m(x), product + m.blob1.view(3, 1))


def test_kernels_on_host_mirrors(zoo, place):
    """They are page-locked, so that a GPU can read them."""
    m = place(zoo.Mirrored())
    m.mode = None  # it has no CPU code
    x = place.draw(2, 3, 4, 5, grad=True)
    for _ in range(2):
        y = m(x)
        table = torch.arange(1.0, 4.0).to(x).view(3, 1, 1)
        torch.testing.assert_close(y, x * table)
        torch.testing.assert_close(grads(y, x), grads(x * table, x))


def test_devices_are_not_mixed(zoo, gpu):
    with raises(CaffeTypeError, "bottom 1", "cuda:0 as bottom 0 is"):
        zoo.Pair()(gpu.draw(3), torch.randn(3))
    m = zoo.Ramp()
    m.mode = "cpu"
    with raises(CaffeTypeError, "mode 'cpu' is for CPU tensors"):
        m(gpu.draw(3))


def test_streams(zoo, gpu):
    """One stream may overtake the other, so each has its own instances."""
    m = zoo.Noise().cuda()
    streams = [torch.cuda.Stream() for _ in range(2)]
    # Without zeros, which randn may make: a top is 0 where the layer's mask is, and there alone.
    x = (torch.rand(1 << 20, device="cuda") + 0.5).requires_grad_()
    torch.cuda.synchronize()
    tops = []
    for _ in range(10):
        for stream in streams:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(100000)
                tops.append((stream, m(x)))
    for stream, y in tops:
        with torch.cuda.stream(stream):
            (diff,) = torch.autograd.grad(y.sum(), x)
        stream.synchronize()
        assert (diff != (y != 0)).sum() == 0


def test_copies_of_two_axes(zoo):
    x = torch.randn(3, 4, 6)
    left, right = zoo.Halves()(x)
    assert torch.equal(left, x[..., :3]) and torch.equal(right, -x[..., 3:])


def test_copies_of_two_axes_wait_for_the_stream(zoo, gpu):
    """The legacy default stream, which CUDA's own functions use, would not wait for the bottom's values."""
    m, x = zoo.Halves().cuda(), torch.zeros(3, 400, 600, device="cuda")
    values = torch.randn_like(x)
    torch.cuda.synchronize()
    for _ in range(3):
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(20_000_000)
            x.copy_(values)
            left, right = m(x)
            assert torch.equal(left, values[..., :300]) and torch.equal(right, -values[..., 300:])
            x.zero_()
            torch.cuda.current_stream().synchronize()


def test_cuda_graph(zoo, gpu):
    m = zoo.Ramp(zoo_param={"slope": 0.5}).cuda()
    x = torch.randn(1000, device="cuda")
    m(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = m(x)
    for _ in range(3):
        x.normal_()
        graph.replay()
        torch.testing.assert_close(y, torch.nn.functional.leaky_relu(x, 0.5))
    positive = zoo.Positive()
    positive(x)
    with raises(CaffeRuntimeError, "CUDA graph"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        positive(x)
    scheduled = zoo.Scheduled()
    scheduled.iteration = 1
    scheduled(x)
    with raises(CaffeRuntimeError, "iteration", "CUDA graph"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        scheduled(x)


@pytest.mark.parametrize("grad", [False, True])
def test_cuda_graph_on_the_stream_of_earlier_calls(zoo, gpu, grad):
    """A graph needs an instance that no later call uses, so Python makes this call instead of C."""
    m, stream = zoo.Ramp(zoo_param={"slope": 0.5}).cuda(), torch.cuda.Stream()
    x = torch.randn(1000, device="cuda", requires_grad=grad)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            m(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        y = m(x)
    for _ in range(3):
        with torch.no_grad():
            x.normal_()
        graph.replay()
        torch.testing.assert_close(y.detach(), torch.nn.functional.leaky_relu(x.detach(), 0.5))
    del y
    assert len(m._pool.captured) == 1


def test_graphed_callable(zoo, gpu):
    m = zoo.Affine(zoo_param=FILLER).setup((4, 3), device="cuda")
    graphed = torch.cuda.make_graphed_callables(
        copy.deepcopy(m), (torch.randn(4, 3, device="cuda", requires_grad=True),)
    )
    for seed in range(3):
        x = gpu.draw(4, 3, dtype=torch.float32, grad=True, seed=seed)
        torch.testing.assert_close(graphed(x), m(x))
        torch.testing.assert_close(grads(graphed(x), x), grads(m(x), x))


def test_data_parallel(zoo, gpu):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    m = zoo.Affine(zoo_param=FILLER)
    x = gpu.draw(8, 3, dtype=torch.float32, grad=True)
    with raises(CaffeRuntimeError, "setup"):
        torch.nn.DataParallel(m)(x)
    m.setup((4, 3), device="cuda")
    parallel = torch.nn.DataParallel(m)
    torch.testing.assert_close(parallel(x), m(x))
    inputs = (x, m.blob0, m.blob1)
    torch.testing.assert_close(grads(parallel(x), inputs), grads(m(x), inputs))


def test_call_in_a_cycle(zoo, place):
    """If the garbage collector frees a call in a cycle, its instance comes back intact."""
    m = place(zoo.Ramp(zoo_param={"slope": 0.5}))
    x = place.draw(3, 4, grad=True)
    wanted = m(x)
    for _ in range(3):
        cycle = [m(x).grad_fn]
        cycle.append(cycle)
        del cycle
        gc.collect()
        torch.testing.assert_close(m(x), wanted)
        torch.testing.assert_close(m(x.detach()), wanted)


def test_negative_view_of_a_diff(zoo, place):
    m = place(zoo.Ramp(zoo_param={"slope": 0.5}))
    x = place.draw(3, 4, grad=True)
    diff = place.draw(3, 4, seed=2)
    (wanted,) = torch.autograd.grad(m(x), x, diff)
    (found,) = torch.autograd.grad(m(x), x, torch._neg_view(-diff))
    torch.testing.assert_close(found, wanted)
