"""A plan alone: when there is none, which GPU is current while it runs, what the table of plans keeps alive."""

import ctypes
import weakref

import numpy as np
import pytest
import torch
from cuffi.sigmoid import layer as sigmoid_layer
from support.workshop import Fork
from torch import Tensor

from cuffi.runtime import extension, operator

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
    extension._call.configure(extension.of_torch() | changed)
    yield asked
    extension._call.configure(extension.of_torch())


@pytest.fixture
def planned():
    @operator(sigmoid_layer)
    def planned(x: Tensor) -> Tensor:
        top = sigmoid_layer.empty_like(x)
        sigmoid_layer.sigmoid_forward(x, top, x.numel())
        return top

    return planned


def empty_plan(device_type: int, device: int, allocations: tuple = ()):
    return extension._call.Plan(
        device_type=device_type,
        device=device,
        allocations=allocations,
        empty=0,
        launches=(),
        results=(),
        returns_tuple=False,
    )


@pytest.mark.parametrize(
    "device_type, device, wanted", [(CUDA, 1, [0, 1, 0]), (CUDA, 0, [0, 0]), (CPU, 0, [0]), (CPU, 1, [0])]
)
def test_a_plans_gpu_is_current_while_it_runs(exchanged, planned, device_type, device, wanted):
    """After it, the one before is current again. The plan is empty, so it needs no GPU."""
    if device_type == CUDA and torch.version.cuda and not torch.cuda.is_available():
        pytest.skip("a torch with CUDA asks for a GPU's stream")
    x = torch.rand(3)
    planned.operator.short.add((x,), empty_plan(device_type, device))
    assert planned(x) is None
    assert exchanged == wanted


def test_what_goes_wrong_in_a_plan_of_another_gpu_is_said(exchanged, planned):
    def full():
        raise MemoryError("no more of it")

    x = torch.rand(3)
    allocations = ((full, (), {}, None, ()),)
    planned.operator.short.add((x,), empty_plan(CUDA, 1, allocations))
    with pytest.raises(MemoryError, match="no more of it"):
        planned(x)
    assert exchanged == [0, 1, 0]


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
