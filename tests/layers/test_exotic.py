"""Every layer's cases under exporters, tracers and modes."""

import inspect

import pytest
import torch
from support.layers import differentiated, of_operators
from support.points import differentiable, layer_object, random_like, same_bits
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode

from cuffi.runtime.cases import results


class AsModule(torch.nn.Module):
    """A call of a case in which only the tensors are arguments, as exporters need it."""

    def __init__(self, point):
        super().__init__()
        self.given = [None if isinstance(a, Tensor) else a for a in point.arguments()]
        self.places = [i for i, a in enumerate(point.arguments()) if isinstance(a, Tensor)]
        self.function = point.case.function

    def forward(self, *tensors):
        given = list(self.given)
        for place, tensor in zip(self.places, tensors, strict=True):
            given[place] = tensor
        return self.function(*given)


def module_and_tensors(point, **options):
    return AsModule(point), tuple(a for a in point.arguments(**options) if isinstance(a, Tensor))


@of_operators
def test_export(on_cpu):
    module, tensors = module_and_tensors(on_cpu)
    program = torch.export.export(module, tensors)
    assert same_bits(program.module()(*tensors), module(*tensors))


@of_operators
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_trace(on_cpu):
    """torch.jit.trace records the operator: another input gives that input's result."""
    module, tensors = module_and_tensors(on_cpu)
    traced = torch.jit.trace(module, tensors, check_trace=False)
    assert layer_object(on_cpu.layer).module.replace(".", "_") + "::" in str(traced.inlined_graph)
    other = module_and_tensors(on_cpu, seed=2)[1]
    assert same_bits(traced(*other), module(*other))


@pytest.mark.only(lambda case: case.has_modes)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_a_caffe_layer_is_traced(on_cpu):
    """A layer that was set up records its operator, never only the allocation of a top; others refuse."""
    bottoms, _ = on_cpu.case.function.bottoms_and_blobs(on_cpu.arguments())
    module = on_cpu.case.function.make()
    before = module(*bottoms)
    traced = torch.jit.trace(module, bottoms, check_trace=False)
    assert f"{module.layer.name}::" in str(traced.graph)
    assert same_bits(traced(*bottoms), before)
    assert same_bits(module(*bottoms), before)


@of_operators
def test_make_fx(on_cpu):
    module, tensors = module_and_tensors(on_cpu)
    graph = make_fx(module)(*tensors)
    other = module_and_tensors(on_cpu, seed=2)[1]
    assert same_bits(graph(*other), module(*other))


@of_operators
def test_fake_tensors(on_cpu):
    module, tensors = module_and_tensors(on_cpu)
    with FakeTensorMode() as mode:
        found = results(module(*map(mode.from_tensor, tensors)))
    wanted = results(module(*tensors))
    assert [(f.shape, f.stride(), f.dtype) for f in found] == [(w.shape, w.stride(), w.dtype) for w in wanted]


@of_operators
def test_counting_flops(on_cpu):
    """The counter gets the call, like any dispatch mode, and the result is the same."""
    module, tensors = module_and_tensors(on_cpu)
    with FlopCounterMode(display=False):
        found = module(*tensors)
    assert same_bits(found, module(*tensors))


@of_operators
@differentiated
@pytest.mark.parametrize("policy", [CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_RECOMPUTE], ids=str)
def test_checkpoint_policies(on_cpu, policy):
    """Activation checkpointing that asks at each operator whether to keep its result."""
    module, _ = module_and_tensors(on_cpu)

    def gradients(call):
        tensors = module_and_tensors(on_cpu, grad=True)[1]
        tops = differentiable(results(call(*tensors)))
        return torch.autograd.grad(tops, differentiable(tensors), random_like(tops))

    def contexts():
        return create_selective_checkpoint_contexts(lambda *_, **__: policy)

    found = gradients(lambda *t: checkpoint(module, *t, use_reentrant=False, context_fn=contexts))
    assert same_bits(found, gradients(module))


def test_nested(on_cpu, runtime):
    wrong_tensors(on_cpu, runtime, lambda x: torch.nested.nested_tensor([x, x], layout=torch.strided))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_quantized(on_cpu, runtime):
    wrong_tensors(on_cpu, runtime, lambda x: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.quint8))


def test_one_on_meta(on_cpu, runtime):
    wrong_tensors(on_cpu, runtime, lambda x: x.to("meta"))


def wrong_tensors(point, runtime, change):
    """Each tensor in turn is made wrong: the error names the layer, and nothing else changes."""
    arguments = point.arguments()
    before = point.call(*arguments)
    for place, name in enumerate(inspect.signature(point.case.function).parameters):
        of_module = point.case.has_modes and name.startswith("blob")
        if place >= len(arguments) or not isinstance(arguments[place], Tensor) or of_module:
            continue
        wrong = list(arguments)
        wrong[place] = change(arguments[place])
        with pytest.raises(runtime.CaffeError, match=rf"^{point.layer}: .*expected .*got "):
            point.call(*wrong)
    assert same_bits(point.call(*arguments), before)
