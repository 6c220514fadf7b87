"""A plan alone: when there is none, which GPU is current while it runs, what the table of plans keeps alive."""

import ctypes
import sys
import weakref

import numpy as np
import pytest
import torch
from cuffi.sigmoid import layer as sigmoid_layer
from cuffi.sigmoid import sigmoid
from support.typed import not_none
from support.workshop import Fork
from torch import Tensor

from cuffi.runtime import extension, operator
from cuffi.runtime.planning import allocation

CPU, CUDA = 1, 2  # DLPack's


@pytest.fixture
def exchanged(monkeypatch):
    """The GPUs that were made current, in order. GPU 0 is current at first."""
    asked = [0]

    def exchange(device: int) -> int:
        asked.append(device)
        return asked[-2]

    # As if there were two.
    changed = {"exchange_device": exchange, "device_count": lambda: 2}
    call = not_none(extension.usable())
    call.configure(extension.of_torch() | changed)
    yield asked
    call.configure(extension.of_torch())


@pytest.fixture
def planned():
    @operator(sigmoid_layer)
    def planned(x: Tensor) -> Tensor:
        top = sigmoid_layer.empty_like(x)
        sigmoid_layer.sigmoid_forward(x, top, x.numel())
        return top

    return planned


def empty_plan(device_type: int, device: int, allocations: tuple = (), results: tuple = ()):
    return not_none(extension.usable()).Plan(
        device_type=device_type,
        device=device,
        allocations=allocations,
        empty=0,
        launches=(),
        results=results,
        returns_tuple=False,
    )


@pytest.mark.parametrize(
    "device_type, device, wanted", [(CUDA, 1, [0, 1, 0]), (CUDA, 0, [0, 0]), (CPU, 0, [0]), (CPU, 1, [0])]
)
def test_a_plans_gpu_is_current_while_it_runs(exchanged, planned, device_type, device, wanted):
    """After it, the one before is current again. The plan is empty, so it needs no GPU."""
    if device_type == CUDA and torch.version.cuda and torch.cuda.device_count() <= device:
        pytest.skip("a torch with CUDA asks for that GPU's stream")
    x = torch.rand(3)
    planned.operator.short.add((x,), empty_plan(device_type, device))
    assert planned(x) is None
    assert exchanged == wanted


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_plans_allocation_holds_no_memory(layout):
    """Else memory of torch's CUDA graphs, if the plan is made while these warm up."""
    like = torch.empty(2, 3, 4, 5, dtype=torch.float16).contiguous(memory_format=layout)
    make, arguments, named, quick, quick_arguments = allocation(like)
    assert not any(isinstance(v, Tensor) for v in (*arguments, *named.values(), *quick_arguments))
    for made in (make(*arguments, **named), quick(*quick_arguments)):
        assert (made.shape, made.stride(), made.dtype) == (like.shape, like.stride(), like.dtype)


def test_what_goes_wrong_in_a_plan_of_another_gpu_is_said(exchanged, planned):
    def full():
        raise MemoryError("no more of it")

    x = torch.rand(3)
    allocations = ((full, (), {}, None, ()),)
    planned.operator.short.add((x,), empty_plan(CUDA, 1, allocations))
    with pytest.raises(MemoryError, match="no more of it"):
        planned(x)
    assert exchanged == [0, 1, 0]


@pytest.mark.parametrize("results", [(0,), (0, 1), (2, 0), (-1,)])
def test_a_plan_returns_only_its_own_allocations(results):
    """Else a run would return memory behind them."""
    allocations = (allocation(torch.empty(3)),) * (len(results) - 1)
    with pytest.raises((ValueError, OverflowError), match=r"no such allocation|negative"):
        empty_plan(CPU, 0, allocations, results)


def test_an_argument_without_a_hash_is_not_held():
    class Numbers(list):
        """A list that can be weakly referenced."""

    @operator(sigmoid_layer)
    def of_numbers(x: Tensor, numbers: list[int]) -> Tensor:
        top = sigmoid_layer.empty_like(x)
        sigmoid_layer.sigmoid_forward(x, top, x.numel())
        return top

    x, numbers = torch.rand(3), Numbers([1])
    there = weakref.ref(numbers)
    for _ in range(4):
        of_numbers(x, numbers)
    assert len(of_numbers.operator.short) == 0
    del numbers
    assert there() is None


def first_at(address: int) -> float:
    return ctypes.c_float.from_address(address).value


@pytest.mark.parametrize(
    "first",
    [
        lambda x: x.tolist()[0],
        lambda x: x.numpy()[0],
        lambda x: np.asarray(x)[0],
        lambda x: np.from_dlpack(x)[0],
        lambda x: first_at(x.data_ptr()),
        lambda x: first_at(x.untyped_storage().data_ptr()),
    ],
    ids=["tolist", "numpy", "array", "dlpack", "address", "storage"],
)
def test_there_is_none_if_memory_is_read_past_torchs_dispatcher(first):
    """On the processor, what such a function launches may depend on values."""

    @operator(sigmoid_layer)
    def reads(x: Tensor) -> Tensor:
        top = x.new_empty(x.shape)
        sigmoid_layer.sigmoid_forward(x, top, int(first(x)))
        return top

    for count in (1, 3, 2, 3):
        x = torch.tensor([count, 0.5, -1.0])
        assert torch.equal(reads(x)[:count], torch.sigmoid(x)[:count])
    assert reads.operator.short.plans() == 0


DETERMINED = {
    "shape": lambda x: len(x.shape) + len(x) + x.stride(0) + x.ndim + x.size(0) + x.numel(),
    "kind": lambda x: x.dtype is x.device or x.is_cuda or x.element_size() or torch.is_floating_point(x),
    "layout": lambda x: x.is_contiguous() and x.layout and x.contiguous(),
}
UNDETERMINED = {
    "storage_offset": lambda x: x.storage_offset(),
    "_version": lambda x: x._version,
    "requires_grad": lambda x: x.requires_grad,
    "is_leaf": lambda x: x.is_leaf,
    "grad": lambda x: x.grad,
    "name": lambda x: x.name,
    "is_inference": lambda x: x.is_inference(),
    "is_neg": lambda x: x.is_neg(),
    "is_pinned": lambda x: x.is_pinned(),
    "is_shared": lambda x: x.is_shared(),
    "f-string": lambda x: f"{x}",
    "%s": lambda x: "%s" % x,  # noqa: UP031
    "repr": repr,
    "bool": lambda x: bool(x[0]),
    "grad mode": lambda _: torch.is_grad_enabled(),
    "inference mode": lambda _: torch.is_inference_mode_enabled(),
    "autocast": lambda _: torch.is_autocast_enabled("cpu"),
    "default dtype": lambda _: torch.get_default_dtype(),
    "deterministic": lambda _: torch.are_deterministic_algorithms_enabled(),
    "threads": lambda _: torch.get_num_threads(),
    "seed": lambda _: torch.initial_seed(),
    "state": lambda _: torch.get_rng_state(),
    "tracing": lambda _: torch.jit.is_tracing(),
}


@pytest.mark.parametrize("question", [*DETERMINED, *UNDETERMINED])
def test_there_is_none_if_the_function_asks_for_what_no_plan_is_keyed_by(question):
    @operator(sigmoid_layer)
    def asks(x: Tensor) -> Tensor:
        (DETERMINED | UNDETERMINED)[question](x)
        top = sigmoid_layer.empty_like(x)
        sigmoid_layer.sigmoid_forward(x, top, x.numel())
        return top

    for _ in range(4):
        asks(torch.rand(3))
    assert asks.operator.short.plans() == (question in DETERMINED)


def test_an_operator_that_depends_on_the_grad_mode():
    """And on the offset: each call is right, also after calls of the same kind."""

    @operator(sigmoid_layer)
    def depends(x: Tensor) -> Tensor:
        top = sigmoid_layer.empty_like(x)
        source = x if torch.is_grad_enabled() and x.storage_offset() == 0 else x.new_zeros(x.shape)
        sigmoid_layer.sigmoid_forward(source, top, x.numel())
        return top

    memory = torch.rand(6)
    for _ in range(4):
        for x in (memory[:3], memory[3:]):
            for enabled in (True, False):
                with torch.set_grad_enabled(enabled):
                    wanted = x if enabled and x.storage_offset() == 0 else torch.zeros(3)
                    torch.testing.assert_close(depends(x), torch.sigmoid(wanted))


def test_calls_within_a_call_with_a_gradient():
    """A hook of saved tensors calls the operator before the call around it has ended; a node is called by itself."""
    bottom, inner = torch.randn(5, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    found = []

    def pack(tensor):
        with torch.enable_grad():
            if tensor.shape == bottom.shape:
                found.extend((sigmoid(inner), sigmoid.operator.apply(inner)))
        return tensor

    for _ in range(4):  # the last ones by plans
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            top = sigmoid(bottom)
        found.append(sigmoid.operator.apply(inner))
        for result, given in ((top, bottom), *((one, inner) for one in found)):
            wanted = torch.sigmoid(given)
            torch.testing.assert_close(result, wanted)
            torch.testing.assert_close(
                *(torch.autograd.grad(one.sum(), given, retain_graph=True)[0] for one in (result, wanted))
            )
    assert len(found) >= 12


def test_a_profiler_of_python_goes_on():
    events = []

    @operator(sigmoid_layer)
    def profiled(x: Tensor) -> Tensor:
        top = sigmoid_layer.empty_like(x)
        sigmoid_layer.sigmoid_forward(x, top, x.numel())
        return top

    def notice(frame, event, of):
        events.append(event)

    sys.setprofile(notice)
    try:
        for _ in range(3):
            profiled(torch.rand(3))
        assert sys.getprofile() is notice
    finally:
        sys.setprofile(None)
    assert events


def test_no_memory_for_a_call_is_an_error():
    """Each of Python's allocations fails once."""
    pytest.importorskip("_testcapi")
    script = """
import _testcapi
from cuffi.runtime.extension import _call
def function(): pass
functions = dict.fromkeys(("careful", "plain", "planning", "cast"), function)
launched = {"parameters": (), "codes": (), "any_layout": 0, "returns_number": 0, "careful": function, "fail": function}
made = {
    "Launcher": launched,
    "Short": {"parameters": "t", "defaults": (), "casts": 0, **functions},
    "Plan": {
        "device_type": 1, "device": 0, "allocations": (), "empty": 0, "launches": (), "results": (), "returns_tuple": 0
    },
}
for name, values in made.items():
    kind, said = getattr(_call, name), []
    for at in range(20):
        _testcapi.set_nomemory(at, at + 1)
        try:
            one = kind(**values)
            said.append("made")
        except MemoryError:
            said.append("no memory")
        finally:
            _testcapi.remove_mem_hooks()
    print(name, *sorted(set(said)))
"""
    output, errors = Fork(script).communicate()
    assert output == "Launcher made no memory\nShort made no memory\nPlan made no memory\n", output + errors
