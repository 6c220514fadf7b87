"""Every layer's cases: torch.library, torch.compile, torch.func."""

import pytest
import torch
from support.layers import (
    differentiated,
    module_and_call,
    of_module,
    of_operators,
    operator_calls,
)
from support.points import (
    differentiable,
    random_like,
    same_bits,
)
from torch import Tensor
from torch.autograd import forward_ad

from cuffi.runtime.cases import results


@of_operators
def test_opcheck(each_device):
    """torch's own check of each operator: schema, shape function, autograd registration, AOT dispatch."""
    calls = {op: args for op, args in operator_calls(each_device)}
    assert calls, "the function reaches none of the layer's operators"
    for op, args in calls.items():
        grad = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "Autograd")
        fresh = [
            a.detach().clone().requires_grad_(grad and a.is_floating_point()) if isinstance(a, Tensor) else a
            for a in args
        ]
        torch.library.opcheck(op, tuple(fresh))


def compiled(function, device: str):
    torch._dynamo.reset()
    # inductor compiles C++ for the cpu, which takes seconds and tests nothing of ours
    return torch.compile(function, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")


@of_operators
def test_compile(each_device):
    """One graph, with a torch operation on either side; forward and backward equal eager."""
    case = each_device.case
    grad = case.gradient != "none"

    def around(*arguments):
        tops = results(case.function(*(a * 1 if isinstance(a, Tensor) else a for a in arguments)))
        return tuple(top * 2 for top in tops)

    eager, traced = each_device.arguments(grad), each_device.arguments(grad)
    wanted, found = around(*eager), compiled(around, each_device.device)(*traced)
    assert same_bits(found, wanted)
    if grad:
        top_diffs = random_like(wanted)
        wanted = torch.autograd.grad(differentiable(wanted), differentiable(eager), top_diffs)
        found = torch.autograd.grad(differentiable(found), differentiable(traced), top_diffs)
        each_device.assert_close(found, wanted)


@of_operators
def test_cuda_graphs_of_compiled_code(on_cuda):
    """torch's warm-up, its recording, and a replay. Torch refuses an operator that keeps memory from one of them."""
    given = on_cuda.arguments(False)

    def around(*arguments):
        tops = results(on_cuda.case.function(*(a * 1 if isinstance(a, Tensor) else a for a in arguments)))
        return tuple(top * 2 for top in tops)

    torch._dynamo.reset()
    graphed = torch.compile(around, fullgraph=True, mode="reduce-overhead")
    with torch.no_grad():
        wanted = around(*given)
        for _ in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            assert same_bits(graphed(*given), wanted)


@of_module
@of_operators
def test_compile_module(on_cpu):
    module, given = module_and_call(on_cpu)
    assert same_bits(compiled(module, "cpu")(*given), module(*given))


@of_operators
def test_subclass(on_cpu):
    """A tensor subclass goes through torch.library and comes back as one."""

    class Labelled(Tensor):
        pass

    arguments = on_cpu.arguments()
    labelled = [a.as_subclass(Labelled) if isinstance(a, Tensor) else a for a in arguments]
    result = on_cpu.call(*labelled)
    assert all(isinstance(t, Labelled) for t in results(result))
    assert same_bits([t.as_subclass(Tensor) for t in results(result)], on_cpu.call(*arguments))


@pytest.mark.filterwarnings("ignore:.*performance drop.*")
def test_vmap(on_cpu):
    """Right for native layers; a Caffe layer refuses it."""
    first, second = on_cpu.arguments(seed=1), on_cpu.arguments(seed=2)
    stacked = [
        torch.stack([a, b]) if isinstance(a, Tensor) else a for a, b in zip(first, second, strict=True)
    ]
    places = tuple(0 if isinstance(a, Tensor) else None for a in stacked)
    if on_cpu.case.has_modes:
        with pytest.raises(RuntimeError, match=r"torch\.func"):
            torch.vmap(on_cpu.call, in_dims=places)(*stacked)
        return
    found = torch.vmap(on_cpu.call, in_dims=places)(*stacked)
    wanted = zip(results(on_cpu.call(*first)), results(on_cpu.call(*second)), strict=True)
    assert same_bits(found, [torch.stack(pair) for pair in wanted])


def reference_tangents(point, arguments, tangents):
    tensors = tuple(a.detach() for a in differentiable(arguments))

    def function(*given):
        given = iter(given)
        return point.case.reference(
            *(next(given) if isinstance(a, Tensor) and a.is_floating_point() else a for a in arguments)
        )

    return torch.autograd.functional.jvp(function, tensors, tangents)[1]


def is_floating(argument) -> bool:
    return isinstance(argument, Tensor) and argument.is_floating_point()


def tangents_by(way, function, arguments, tangents):
    """The tangents of a call, by one of torch's two ways."""
    if way == "make_dual":
        with forward_ad.dual_level():
            given = iter(tangents)
            dual = [forward_ad.make_dual(a, next(given)) if is_floating(a) else a for a in arguments]
            return [forward_ad.unpack_dual(t).tangent for t in results(function(*dual))]

    def of_tensors(*tensors):
        tensors = iter(tensors)
        return function(*(next(tensors) if is_floating(a) else a for a in arguments))

    return results(torch.func.jvp(of_tensors, tuple(differentiable(arguments)), tangents)[1])


@pytest.mark.parametrize("way", ["make_dual", "func.jvp"])
def test_forward_mode(on_cpu, way):
    """Right if cases.py says so; otherwise refused, because a tangent of 0 would be wrong."""
    arguments = on_cpu.arguments()
    tangents = tuple(random_like(differentiable(arguments)))
    if on_cpu.case.transforms:
        found = tangents_by(way, on_cpu.call, arguments, tangents)
        on_cpu.assert_close(found, reference_tangents(on_cpu, arguments, tangents))
        return
    words = r"\w+ has no forward-mode derivative \(jvp\)"
    if way == "func.jvp" and on_cpu.case.has_modes:
        words = r"torch\.func's transforms cannot look into a Caffe layer"
    with pytest.raises(RuntimeError, match=f"^{on_cpu.layer}: {words}"):
        tangents_by(way, on_cpu.call, arguments, tangents)


@differentiated
def test_func_grad(on_cpu):
    """torch.func's gradient: right if cases.py says so; otherwise refused."""
    arguments = on_cpu.arguments()
    places = tuple(i for i, a in enumerate(arguments) if is_floating(a))

    def gradient(function, arguments):
        def total(*given):
            return sum(t.sum() for t in differentiable(results(function(*given))))

        return torch.func.grad(total, argnums=places)(*arguments)

    if on_cpu.case.transforms:
        doubled, _ = on_cpu.reference(*arguments)
        on_cpu.assert_close(gradient(on_cpu.call, arguments), gradient(on_cpu.case.reference, doubled))
        return
    kind = "transforms" if on_cpu.case.has_modes else "grad, vjp and jacrev"
    with pytest.raises(RuntimeError, match=rf"^{on_cpu.layer}: torch\.func's {kind} cannot look into"):
        gradient(on_cpu.call, arguments)
