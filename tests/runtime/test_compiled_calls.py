"""Calls of an operator in torch.ops, as compiled code makes them: they run plans, and hide nothing from torch."""

import sys
from pathlib import Path

import pytest
import torch
from cuffi.depthwise_conv import depthwise_conv, depthwise_conv2d
from cuffi.sigmoid import sigmoid
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import cuffi
from cuffi.runtime import extension

SIGMOID = sigmoid.operator.torch_op
FOLDER = str(Path(cuffi.__file__).parent)


def frames_of(function, *arguments) -> list[str]:
    """The functions of the toolkit that Python enters in a call."""
    entered = []

    def notice(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(FOLDER):
            entered.append(frame.f_code.co_qualname)

    sys.setprofile(notice)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return entered


def convolved(x):
    return depthwise_conv2d(x, torch.ones(4, 1, 3, 3), torch.ones(4), stride=(2, 1), padding=1)


@pytest.mark.skipif(extension.usable() is None, reason="needs the extension")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_a_compiled_call_runs_a_plan(backend, guard):
    """No function of the toolkit is entered: neither in a forward, nor in a backward.

    An operator's second call makes its plan. Here that is in the first run of compiled code, where torch looks on.
    """
    torch.compiler.reset()
    sigmoid.operator.short.clear()
    depthwise_conv.operator.short.clear()

    def chain(x):
        for _ in range(3):
            x = convolved(sigmoid(x))
        return x

    step = torch.compile(chain, backend=backend, fullgraph=True)
    x = torch.rand(1, 4, 6, 6)

    def call():
        y = step(x)
        if y.requires_grad:
            y.sum().backward()
        return y

    with guard():
        x.requires_grad_(torch.is_grad_enabled())
        for _ in range(4):
            call()
        assert frames_of(call) == []
        assert call().requires_grad == torch.is_grad_enabled()
    torch.testing.assert_close(step(x), chain(x))


def test_a_call_in_torch_ops_runs_a_plan():
    """Also by the dispatcher alone, which the packet, C++ and AOTInductor use."""
    x, w = torch.rand(1, 4, 6, 6), torch.rand(4, 1, 3, 3)
    packet = torch.ops.cuffi_sigmoid.sigmoid
    convolve = depthwise_conv.operator.torch_op
    given = depthwise_conv.operator.bound(
        (x, w, None), {"dilation": (1, 1), "padding": (1, 1), "stride": (2, 1)}
    )
    listed = [list(a) if isinstance(a, tuple) else a for a in given]
    with torch.no_grad():
        for call in (lambda: packet(x), lambda: SIGMOID(x), lambda: convolve(*listed)):
            for _ in range(3):
                call()
            assert frames_of(call) == []
        torch.testing.assert_close(packet(x), torch.sigmoid(x))
        conv = torch.nn.functional.conv2d(x, w, stride=(2, 1), padding=1, groups=4)
        torch.testing.assert_close(convolve(*listed), conv)


def planned():
    x = torch.rand(5)
    for _ in range(3):
        SIGMOID(x)
    return x


class Seen(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


class Dispatched(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Seen, Dispatched])
def test_a_mode_sees_the_operator(mode):
    x = planned()
    with mode() as seen:
        found = SIGMOID(x)
    assert seen.names == ["cuffi_sigmoid.sigmoid.default"]
    torch.testing.assert_close(found, torch.sigmoid(x))


def test_a_profiler_sees_the_operator():
    x = planned()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        SIGMOID(x)
    assert "cuffi_sigmoid::sigmoid" in {event.key for event in profiler.key_averages()}
    with torch.autograd.profiler.profile() as profiler:
        SIGMOID(x)
    assert "cuffi_sigmoid::sigmoid" in {event.key for event in profiler.key_averages()}


def test_tracers_see_the_operator():
    x = planned()
    assert "cuffi_sigmoid::sigmoid" in str(torch.jit.trace(lambda x: SIGMOID(x), (x,)).graph)
    for pre_dispatch in (False, True):
        assert "cuffi_sigmoid.sigmoid" in make_fx(SIGMOID, pre_dispatch=pre_dispatch)(x).code


@pytest.mark.parametrize("call", [sigmoid, SIGMOID, lambda x: SIGMOID(bottom=x)])
def test_memory_that_is_hidden(call):
    """Functionalization's tensors, negative views, ZeroTensors, and tensors of no elements."""
    x = planned() - 0.5
    wanted = torch.sigmoid(x)
    torch.testing.assert_close(torch.func.functionalize(call)(x), wanted)
    torch.testing.assert_close(torch.func.functionalize(lambda x: call(x.add_(1).sub_(1)))(x.clone()), wanted)
    torch.testing.assert_close(call(torch._neg_view(x)), torch.sigmoid(-x))
    assert call(torch.rand(0, 3)).shape == (0, 3)
    assert torch.func.functionalize(call)(torch.rand(0, 3)).shape == (0, 3)
    try:
        found = call(torch._efficientzerotensor(5))
    except TypeError as refused:
        assert call is sigmoid and "has memory" in str(refused)
    else:
        assert found.tolist() == [0.5] * 5


def test_functionalization_of_a_call_that_needs_a_gradient():
    x = planned().requires_grad_()
    for call in (sigmoid, SIGMOID):
        (found,) = torch.autograd.grad(torch.func.functionalize(call)(x).sum(), x)
        torch.testing.assert_close(found, torch.sigmoid(x) * (1 - torch.sigmoid(x)))


def test_forward_mode_is_refused():
    with forward_ad.dual_level(), pytest.raises(RuntimeError):
        SIGMOID(forward_ad.make_dual(planned(), torch.ones(5)))


def test_a_subclass_goes_torchs_way():
    class Own(torch.Tensor):
        pass

    found = SIGMOID(planned().as_subclass(Own))
    assert type(found) is Own


def test_torch_ops_has_the_derivative():
    x = planned().requires_grad_()
    wanted = torch.sigmoid(x) * (1 - torch.sigmoid(x))
    for call in (
        SIGMOID,
        torch.ops.cuffi_sigmoid.sigmoid,
        lambda x: checkpoint(SIGMOID, x, use_reentrant=False),
        torch.compile(lambda x: checkpoint(sigmoid, x, use_reentrant=False), backend="aot_eager"),
    ):
        for _ in range(3):
            (found,) = torch.autograd.grad(call(x).sum(), x)
            torch.testing.assert_close(found, wanted)


def test_transforms():
    x = planned()
    batch = torch.rand(3, 5)
    torch.testing.assert_close(torch.func.vmap(lambda _: SIGMOID(x))(batch), torch.sigmoid(x).expand(3, 5))
    torch.testing.assert_close(torch.func.grad(lambda y: (SIGMOID(x) * y).sum())(batch[0]), torch.sigmoid(x))


def test_a_default_device_and_deterministic_mode():
    x = planned()
    with torch.device("cpu"):
        torch.testing.assert_close(SIGMOID(x), torch.sigmoid(x))
    torch.use_deterministic_algorithms(True)
    try:
        torch.testing.assert_close(SIGMOID(x), torch.sigmoid(x))
    finally:
        torch.use_deterministic_algorithms(False)


def test_wrong_calls_are_torchs_own_errors():
    planned()
    with pytest.raises(RuntimeError, match="missing value for argument 'bottom'"):
        SIGMOID()
    with pytest.raises(RuntimeError, match="expected at most 1 argument"):
        SIGMOID(torch.rand(3), 1)
    with pytest.raises(TypeError, match=r"^sigmoid: bottom: expected"):
        SIGMOID(torch.zeros(3, dtype=torch.int32))
    assert SIGMOID in {SIGMOID: 1} and hash(SIGMOID) == hash(sigmoid.operator.torch_op)


def test_a_batch_that_varies_is_compiled_once():
    from torch._dynamo.testing import CompileCounter  # here: the import takes long

    torch.compiler.reset()
    count = CompileCounter()
    step = torch.compile(lambda x: sigmoid(x) + 1, backend=count, fullgraph=True, dynamic=True)
    for size in (3, 4, 7, 3):
        x = torch.rand(size, 2)
        torch.testing.assert_close(step(x), 1 + torch.sigmoid(x))
    assert count.frame_count == 1
