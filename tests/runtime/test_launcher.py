"""From tensors to a C function: what C accepts, what Python converts first, and what is refused."""

import gc
import inspect
import pydoc
import re
import sys
import threading
from collections.abc import Callable

import numpy
import pytest
import torch
from cuffi.depthwise_conv import depthwise_conv1d, depthwise_conv_backward
from cuffi.depthwise_conv import layer as depthwise_layer
from cuffi.sigmoid import layer as sigmoid_layer
from support import python_with_torch
from support.reading import of, reads  # noqa: F401  (a fixture)
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad

from cuffi.runtime import CaffeError, CaffeRuntimeError, CaffeTypeError, Layer
from cuffi.runtime.layer import _layers


class Subclass(torch.Tensor):
    pass


def watched(layer, function: str):
    """(the function to call, a list that grows when a call reaches Python)."""
    went = []

    class Watched(type(layer.launcher(function))):
        def careful(self, *arguments, **named):
            went.append(arguments)
            return super().careful(*arguments, **named)

    checks = of(layer, "checks").Checks(layer.name)
    return Watched(checks, layer._libraries, function, layer.any_layout).call, went


def test_a_notebook_shows_what_a_c_function_takes():
    layer = depthwise_layer
    assert {"depthwise_conv_forward", "depthwise_conv_backward_workspace", "check"} <= set(dir(layer))
    assert repr(layer) == "<layer depthwise_conv>"
    for function, first in (
        ("depthwise_conv_forward", "bottom"),
        ("depthwise_conv_backward_workspace", "like"),
    ):
        for call in (getattr(layer, function), layer.launcher(function).call):
            parameters = inspect.signature(call).parameters
            assert next(iter(parameters)) == first and {"num", "stride_h"} <= set(parameters)
            assert not {"dtype", "weight_dtype", "stream"} & set(parameters)  # they are filled in
            assert call.__name__ == function and f"layer {layer.name}" in call.__doc__
            assert call.__doc__.splitlines()[0] in pydoc.plain(pydoc.render_doc(call))


def leaky(x):
    """What tests/fixtures/kernels/vectors calls relu."""
    return torch.nn.functional.leaky_relu(x, 0.5)


def outcome(call, arguments):
    """A call's result, or the kind and text of its error."""
    try:
        return call(*arguments)
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.fixture
def loops(kernels):
    return kernels["loops"]


# ------------------------------------------------------------------------------------ the clear case


def strided_ones(device):
    """Contiguous, because a dimension of 1 may have any stride."""
    return torch.zeros(4, 6, 5, device=device)[:1, :, :].as_strided((1, 6, 5), (77, 5, 1))


TOPS = {
    "plain": lambda device: torch.zeros(3, 5, device=device),
    "parameter": lambda device: torch.nn.Parameter(torch.zeros(7, device=device), requires_grad=False),
    "no axes": lambda device: torch.zeros((), device=device),
    "offset": lambda device: torch.zeros(9, device=device)[1:],
    "any stride where there is one": strided_ones,
    "no elements": lambda device: torch.zeros(0, 3, device=device),
    "no elements, strided": lambda device: torch.zeros(3, 0, device=device).t(),
}


@pytest.mark.parametrize("top", TOPS)
def test_clear_tops(loops, device, top):
    call, went = watched(loops, "loops_fill")
    for _ in range(4):
        given = TOPS[top](device)
        assert call(given, given.numel(), 0) is None
        assert given.flatten().tolist() == list(range(1, given.numel() + 1))
    assert len(went) == bool(given.numel())  # the first call loads the library


def test_optional_tensors(loops, device):
    call = loops.loops_null
    for _ in range(3):
        bottom, bias = torch.ones(4, device=device), torch.full((4,), 2.0, device=device)
        with_bias, without, again = (torch.zeros(4, device=device) for _ in range(3))
        call(bottom, bias, with_bias, again, 4)
        call(bottom, None, without, None, 4)
        assert torch.equal(with_bias, again) and not torch.equal(with_bias, without)
        assert call(bottom, bias, None, None, 4) is None  # nothing to write


def test_null_is_for_those_of_which_the_declaration_says_so(loops, device):
    with pytest.raises(TypeError, match=r"loops: bottom: expected a tensor \(.* may be NULL\), got NoneType"):
        loops.loops_null(None, None, torch.zeros(4, device=device), None, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_each_dtype(kernels, device, dtype):
    bottom = torch.randn(1000, device=device).to(dtype)
    for _ in range(3):
        top = torch.empty_like(bottom)
        kernels["vectors"].vectors_relu(bottom, top, 1000)
        assert torch.equal(top, leaky(bottom))


def test_current_stream(kernels):
    """A call waits for an input that arrives late on a side stream."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    side, good = torch.cuda.Stream(), torch.ones(1000, device="cuda")
    call = kernels["vectors"].vectors_relu
    late, top = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
    for _ in range(3):
        call(late.copy_(good), top, 1000)  # a kernel's first launch loads it, which waits for the GPU
    late.zero_()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)  # about 30 ms
        late.copy_(good)
        call(late, top, 1000)
    side.synchronize()
    assert torch.equal(top, good)


# ------------------------------------------------------------------------------------------ in doubt


def top(change=lambda x: x, count=3, blocks=0):
    return lambda device: (change(torch.zeros(3, device=device)), count, blocks)


def fake(x):
    with FakeTensorMode() as mode:
        return mode.from_tensor(x)


def freed(x):
    x.untyped_storage().resize_(0)
    return x


# (the arguments, what the error says; None if the call is right).
DOUBTS: dict[str, tuple[Callable[..., tuple], str | None]] = {
    "subclass": (top(lambda x: x.as_subclass(Subclass)), None),
    "wrong dtype": (top(lambda x: x.double()), "top: expected float32 .*gives it.*, got .* float64"),
    "integers": (top(lambda x: x.int()), "top: expected float32 .*, got .* int32"),
    "complex": (top(lambda x: x.to(torch.complex64)), "top: expected float32 .*, got .* complex64"),
    "on no device": (top(lambda x: x.to("meta")), "top: expected a tensor on cpu or cuda"),
    "sparse": (top(lambda x: x.to_sparse()), "top: expected a dense tensor"),
    "transposed": (
        top(lambda x: torch.zeros(3, 2, device=x.device).t()),
        "top: expected a contiguous tensor",
    ),
    "every other": (top(lambda x: torch.zeros(6, device=x.device)[::2]), "top: expected a contiguous tensor"),
    "expanded": (top(lambda x: x[:1].expand(3)), "top: expected a contiguous tensor"),
    "freed": (top(freed), "top: expected a tensor that has memory"),
    "negated": (top(torch._neg_view), "top: .* not their negatives"),
    "imaginary part of a conjugate": (
        top(lambda x: torch.zeros(1, dtype=torch.complex64, device=x.device).conj().imag, count=1),
        "top: .* not their negatives",
    ),
    "leaf": (top(lambda x: x.requires_grad_()), "top: autograd does not see what loops_fill writes"),
    "of a graph": (
        top(lambda x: x.requires_grad_() * 1),
        "top: autograd does not see what loops_fill writes",
    ),
    "array": (top(lambda x: numpy.zeros(3, "float32")), "top: expected a tensor, got ndarray"),
    "number": (top(lambda x: 3), "top: expected a tensor, got int 3"),
    "None": (top(lambda x: None), "got no tensor"),
    "a float for an int": (top(count=3.0), "count: expected an int"),
    "text for an int": (top(count="3"), "count: expected an int"),
    "a tensor for an int": (top(count=torch.tensor(3.0)), "count: expected an int"),
    "too large": (top(count=2**63), "count: expected an int from"),
    "too large for an int": (top(blocks=2**31), "blocks: expected an int from"),
    "one too few": (
        lambda device: (torch.zeros(3, device=device), 3),
        r"takes 3 arguments, float \*top, int64_t count, int blocks: got 2",
    ),
    "one too many": (
        lambda device: (torch.zeros(3, device=device), 3, 0, 0),
        r"takes 3 arguments, float \*top, int64_t count, int blocks: got 4",
    ),
    "nothing": (lambda device: (), r"takes 3 arguments, float \*top, int64_t count, int blocks: got 0"),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_doubt_goes_to_python(loops, device, doubt):
    """Each doubtful call, after good ones, too."""
    make, said = DOUBTS[doubt]
    call, went = watched(loops, "loops_fill")
    for _ in range(3):
        call(torch.zeros(3, device=device), 3, 0)
    for _ in range(3):
        arguments, before = make(device), len(went)
        if said is None:
            assert call(*arguments) is None and arguments[0].tolist() == [1, 2, 3]
        else:
            with pytest.raises((TypeError, ValueError, RuntimeError), match=f"^loops: .*{said}") as caught:
                call(*arguments)
            assert isinstance(caught.value, CaffeError)
        assert all(a is b for a, b in zip(went[before], arguments, strict=True))


def test_inputs_in_doubt_are_made_fit(kernels, device):
    """Views, negated ones and subclasses work: Python converts them."""
    vectors, top = kernels["vectors"], torch.empty(3, 4, device=device)
    x = torch.randn(3, 4, device=device)
    call, went = watched(vectors, "vectors_relu")
    for bottom in (x.t().contiguous().t(), torch._neg_view(x), x.as_subclass(Subclass)):
        for _ in range(4):
            before = len(went)
            call(bottom, top, 12)
            assert len(went) > before
            assert torch.equal(top, leaky(bottom).as_subclass(torch.Tensor))
    z = torch.randn(1, dtype=torch.complex64, device=device)
    vectors.vectors_relu(z.conj().imag, top[0, :1], 1)  # contiguous, being of one element, and negated
    assert torch.equal(top[0, :1], leaky(-z.imag))


def test_mixed_dtypes_and_devices(kernels, device):
    relu, x = kernels["vectors"].vectors_relu, torch.zeros(3, device=device)
    with pytest.raises(TypeError, match=r"vectors: out: expected float32 as 'in' has, got .* float64"):
        relu(x, x.double(), 3)
    if device == "cuda":
        with pytest.raises(TypeError, match="vectors: out: expected a tensor on cuda:0 as 'in' is, got cpu"):
            relu(x, x.cpu(), 3)


def test_a_dtype_of_its_own():
    """`int weight_dtype` lets `weight` have another dtype; C refuses dtypes that it was not compiled for."""
    forward, x = depthwise_layer.depthwise_conv_forward, torch.ones(1, 1, 3, 3, dtype=torch.float16)
    top, numbers = torch.empty_like(x), (1, 1, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0)
    forward(x, torch.full((1, 1, 1, 1), 2.0), None, top, *numbers)
    assert torch.equal(top, 2 * x)
    with pytest.raises(RuntimeError, match="depthwise_conv: weights are of the call's dtype"):
        forward(x, torch.ones(1, 1, 1, 1, dtype=torch.float64), None, top, *numbers)
    with pytest.raises(TypeError, match="depthwise_conv: top: expected float16 as 'bottom' has"):
        forward(x, torch.ones(1, 1, 1, 1), None, top.float(), *numbers)


def test_a_number_that_no_workspace_takes():
    """cffi's own error would not name the argument."""
    x = torch.zeros(1, 1, 3, 3)
    with pytest.raises(ValueError, match="depthwise_conv: kernel_h: expected"):
        depthwise_layer.depthwise_conv_backward_workspace(x, 1, 1, 3, 3, 2**31, 1, 1, 1, 0, 0, 1, 1, 0)
    with pytest.raises(ValueError, match="depthwise_conv: dilation: expected less: 4 taps"):
        depthwise_conv1d(torch.zeros(1, 1, 8), torch.zeros(1, 1, 4), dilation=2**31 - 1, causal=True)


def test_a_workspace_of_nothing():
    """0 is a valid number. A negative one is an error."""
    assert (
        depthwise_layer.depthwise_conv_backward_workspace(
            torch.zeros(1), 0, 0, 3, 3, 3, 3, 1, 1, 0, 0, 1, 1, 0
        )
        == 0
    )


def test_a_workspace_for_a_dtype_that_is_none_of_the_layers():
    x, weight = torch.zeros(1, 1, 3, 3, dtype=torch.int64), torch.zeros(1, 1, 3, 3)
    said = r"depthwise_conv: depthwise_conv_backward_workspace: expected a tensor of float32.*, got cpu int64"
    with pytest.raises(TypeError, match=said):
        depthwise_conv_backward(
            torch.zeros(1, 1, 1, 1), x, weight, None, (1, 1), (0, 0), (1, 1), 0, True, True, True
        )


def test_fake_and_functorch_tensors(loops):
    call, went = watched(loops, "loops_fill")
    for _ in range(3):
        call(torch.zeros(3), 3, 0)
    assert call(fake(torch.zeros(3)), 3, 0) is None and len(went) == 2
    for transform in (torch.vmap, torch.func.grad):
        with pytest.raises(
            RuntimeError, match=r"loops: top: torch.func's transforms \(vmap, grad, ...\) cannot look"
        ):
            transform(lambda x: call(x, 3, 0) or x.sum())(torch.zeros(2, 3))


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
def test_the_first_call_may_be_in_compiled_code(monkeypatch):
    """The library is loaded then, and a later call finds it."""
    monkeypatch.setitem(_layers, sigmoid_layer.module, sigmoid_layer)  # as it is again after the test
    for _ in range(2):
        layer = Layer(sigmoid_layer.module)

        def double(x, layer=layer):
            top = torch.empty_like(x)
            layer.sigmoid_forward(x, top, x.numel())
            return 2 * top

        x = torch.rand(5)
        for call in (torch.compile(double, backend="eager"), double):
            torch.testing.assert_close(call(x), 2 * torch.sigmoid(x))


def test_autograd_is_told_what_was_written(loops, device):
    """A backward that saved the old values refuses, as after torch's own in-place operations."""
    saved, weight = torch.ones(5, device=device), torch.ones(5, device=device, requires_grad=True)
    for view in (lambda x: x, lambda x: x[1:4], lambda x: x.as_subclass(Subclass)):
        product, before = (saved * weight).sum(), saved._version
        loops.loops_fill(view(saved), 3, 0)
        assert saved._version > before
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.backward()
    with torch.no_grad():
        product, leaf = (weight * weight).sum, torch.zeros(5, device=device, requires_grad=True)
        loops.loops_fill(leaf, 5, 0)
    assert leaf.tolist() == [1, 2, 3, 4, 5] and leaf._version
    bottom, bias, top = (torch.ones(4, device=device) for _ in range(3))
    loops.loops_null(bottom, bias, top, None, 4)
    assert (bottom._version, bias._version, top._version) == (0, 0, 1)
    with torch.inference_mode():
        loops.loops_fill(torch.zeros(3, device=device), 3, 0)


# ----------------------------------------------------------------------------------- errors and counts


def test_arguments_may_have_names():
    x, y = torch.rand(3), torch.empty(3)
    for _ in range(3):
        sigmoid_layer.sigmoid_forward(x, count=3, top=y.zero_())
        torch.testing.assert_close(y, x.sigmoid())
        with pytest.raises(CaffeTypeError, match=r"^sigmoid: sigmoid_forward: no argument is called 'n'"):
            sigmoid_layer.sigmoid_forward(x, y, n=3)


def test_nothing_is_kept(kernels, device):
    """After successful, doubtful and failed calls nothing holds references to the arguments."""
    loops, failures = kernels["loops"], kernels["failures"]
    good, bad, count = torch.zeros(3, device=device), torch.zeros(3, device=device).double(), 10**12
    calls = [(loops.loops_fill, (good, 3, 0)), (loops.loops_fill, (bad, 3, 0)), (loops.loops_fill, (good, "3", 0)),
             (loops.loops_fill, (good, count * 10**12, 0)), (failures.failures_status, (good, 3))]  # fmt: skip
    for call, arguments in calls:
        outcome(call, arguments)
    gc.collect()
    rounds = 3000
    # Garbage of earlier tests may drop thousands of None meanwhile, but not each time.
    for _ in range(3):
        before = [sys.getrefcount(x) for x in (good, bad, None)]
        for _ in range(rounds):
            for call, arguments in calls:
                outcome(call, arguments)
        gc.collect()
        kept = [sys.getrefcount(x) - was for x, was in zip((good, bad, None), before, strict=True)]
        if all(abs(change) < rounds / 2 for change in kept):
            return
    raise AssertionError(kept)


def test_others_run_meanwhile(kernels):
    """A call does not hold Python's lock, because a kernel on the host may take long."""
    call, top = kernels["loops"].loops_fill, torch.zeros(1 << 24)
    ticks, done, interval = [], threading.Event(), sys.getswitchinterval()

    def tick():
        while not done.wait(0.0005):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    sys.setswitchinterval(100)  # from here on nobody is made to give way
    try:
        thread.start()
        before = len(ticks)
        for _ in range(30):
            call(top, top.numel(), 0)
        during = len(ticks) - before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        thread.join()
    assert during > 3


# ---------------------------------------------------------------------------------- torch's own table


TABLES = """
import ctypes, sys, torch
from cuffi.runtime import extension
if extension.of_torch()["exchange_api"] is None:
    sys.exit(0)
class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p),
                ("functions", ctypes.c_void_p * 5)]
new, address = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCapsule_GetPointer
new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
address.restype, address.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
known = address(torch.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
tables = [Table(2, 0, None), Table(1, 3, None), Table(2, 0, known)]
capsules = [new(ctypes.addressof(table), b"dlpack_exchange_api", None) for table in tables]
from cuffi.sigmoid import sigmoid
for table in (object(), 12345, *capsules):
    torch.Tensor.__dlpack_c_exchange_api__ = table
    extension.usable().configure(extension.of_torch())
    assert all(sigmoid(torch.zeros(3)).tolist() == [0.5] * 3 for _ in range(4))
    print(end="right ")
"""


def test_a_table_of_another_kind():
    """A newer table links to the known one, if it exists. Otherwise C reads the tensors' attributes."""
    done = python_with_torch.run([sys.executable, "-c", TABLES])
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("", "right " * 5)


def test_the_contract_by_the_attributes_of_tensors(tmp_path):
    """As under a torch before 2.10: every case of every layer once more in float, without the table.

    How a call goes asks neither for the size of the inputs, so the large ones are left out, nor for what the kernels
    make of infinities, nor on which of a Caffe layer's codes the call ends.
    """
    if getattr(torch.Tensor, "__dlpack_c_exchange_api__", None) is None:
        pytest.skip("it is what the other tests have run")
    script = """
import sys, torch
torch.Tensor.__dlpack_c_exchange_api__ = None
import pytest
files = [f"tests/layers/test_{name}.py" for name in ("values", "layouts", "refusals")]
left_out = "is_built or says_its_cases or every_operator or many or large or flownet or far or infinity or kernels"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files,
                      "-k", f"float32 and not ({left_out})"]))
"""
    done = python_with_torch.run([sys.executable, "-c", script])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert re.search(r"\d+ passed", done.stdout)


@pytest.mark.filterwarnings("ignore:.*torch.jit")  # make_dual's own
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_a_tangent_is_refused(layout):
    """C would silently drop it. Plain tensors in the same level are accepted, and where torch drops it itself, too."""
    x = torch.rand(4, 4).t() if layout == "strided" else torch.rand(16)
    call = sigmoid_layer.sigmoid_forward
    top = torch.empty(16)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        for arguments, name in (((dual, top, 16), "bottom"), ((x.clone(), dual, 16), "top")):
            with pytest.raises(
                CaffeRuntimeError, match=f"sigmoid: {name}: sigmoid_forward .* lose the tangent"
            ):
                call(*arguments)
        call(forward_ad.unpack_dual(dual).primal, top, 16)
        torch.testing.assert_close(top, torch.sigmoid(x.reshape(16)))
        with torch.inference_mode():
            call(dual, top.zero_(), 16)
    torch.testing.assert_close(top, torch.sigmoid(x.reshape(16)))
