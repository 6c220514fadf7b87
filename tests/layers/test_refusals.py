"""Every layer's cases: arguments that must be refused, and the errors."""

import inspect

import pytest
import torch
from support.layers import (
    dtype_of,
    of_operators,
    operator_calls,
)
from support.points import (
    LAYERS,
    Point,
    cases_of,
    differentiable,
    layer_object,
    same_bits,
)
from torch import Tensor

from cuffi.runtime.cases import Bad, Case, Draw, cast


def tensor_places(case: Case, arguments) -> list[int]:
    """The parameters that must be tensors, not None."""
    parameters = list(inspect.signature(case.function).parameters.values())
    return [
        i
        for i, a in enumerate(arguments)
        if isinstance(a, Tensor)
        and parameters[i].default is not None
        and not is_blob(case, parameters[i].name)
    ]


def is_blob(case: Case, name: str) -> bool:
    """A parameter of a Caffe layer's module: torch.nn looks after these."""
    return case.has_modes and name.startswith("blob")


def refused(point: Point, runtime, change, kind="CaffeTypeError"):
    """Each tensor in turn is made wrong: an error that names the layer, and the next good call works."""
    arguments = point.arguments()
    before = point.call(*arguments)
    for place in tensor_places(point.case, arguments):
        wrong = list(arguments)
        wrong[place] = change(arguments[place])
        with pytest.raises(getattr(runtime, kind)) as caught:
            point.call(*wrong)
        assert str(caught.value).startswith(f"{point.layer}: "), caught.value
        assert "expected" in str(caught.value) and "got" in str(caught.value)
        assert same_bits(point.call(*arguments), before)


def test_complex(each_device, runtime):
    refused(each_device, runtime, lambda x: x.to(torch.complex64))


@of_operators
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool], ids=str)
def test_integers(each_device, runtime, dtype):
    """A Caffe layer accepts them, as labels, and computes in a floating type."""
    refused(each_device, runtime, lambda x: x.to(dtype))


@pytest.mark.only(lambda case: len(differentiable(next(iter(case.inputs.values()))(Draw()))) > 1)
def test_mixed_dtypes(each_device, runtime):
    other = torch.float64 if each_device.dtype != torch.float64 else torch.float32
    refused(each_device, runtime, lambda x: x.to(other))


def test_dtypes_the_layer_has_not(each_device, runtime):
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        if dtype not in each_device.layer_object.dtypes:
            refused(each_device, runtime, lambda x, dtype=dtype: x.to(dtype))


@pytest.mark.parametrize(
    "value", [3, 0.5, [1.0, 2.0], "text", None, torch.zeros(2).numpy()], ids=lambda v: type(v).__name__
)
def test_not_a_tensor(each_device, runtime, value):
    refused(each_device, runtime, lambda _: value)


@pytest.mark.parametrize("grad", [False, True], ids=["", "grad"])
def test_sparse(each_device, runtime, grad):
    refused(each_device, runtime, lambda x: x.to_sparse().requires_grad_(grad))


def test_meta(each_device, runtime):
    refused(each_device, runtime, lambda x: x.to("meta"))


@of_operators
def test_none_through_torch_ops(each_device, runtime):
    """torch's schema accepts None for any tensor, also of a backward operator; without a tensor there is no device."""
    calls = {op: args for op, args in operator_calls(each_device)}
    assert calls
    for op, args in calls.items():
        if sum(isinstance(a, Tensor) for a in args) < 2:
            continue
        for place, argument in enumerate(op._schema.arguments):
            if str(argument.type) == "Tensor":
                wrong = [None if i == place else a for i, a in enumerate(args)]
                message = rf"^{each_device.layer}: {argument.name}: expected a tensor, got NoneType"
                with pytest.raises(runtime.CaffeTypeError, match=message):
                    op(*wrong)


def test_without_memory(on_cpu, runtime):
    """Tensors whose address is NULL although they have elements: C would dereference it."""
    refused(on_cpu, runtime, lambda x: torch._efficientzerotensor(x.shape, dtype=x.dtype))


@pytest.mark.only(lambda case: len(differentiable(next(iter(case.inputs.values()))(Draw()))) > 1)
def test_two_devices(on_cuda, runtime):
    refused(on_cuda, runtime, lambda x: x.cpu())


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "layer, case, name",
    [pytest.param(n, c, b, id=f"{n}-{c.name}-{b}") for n in LAYERS for c in cases_of(n) for b in c.bad],
)
def test_bad_arguments(layer, case, name, device):
    """A case lists its bad arguments."""
    from conftest import skip_if_missing

    skip_if_missing(device, layer_object(layer))
    bad: Bad = case.bad[name]
    good = Point(layer, case, next(iter(case.inputs)), device, dtype_of(layer))
    before = good.call(*good.arguments())
    with pytest.raises(bad.error) as caught:
        case.function(*cast(bad.arguments(Draw()), good.dtype, device))
    assert bad.message in str(caught.value)
    assert same_bits(good.call(*good.arguments()), before)
