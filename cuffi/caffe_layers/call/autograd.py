"""A Caffe layer as a node of torch's autograd."""

import contextlib

import torch
from torch import Tensor

from ...backends import DEVICES, HOST
from ...runtime import CaffeRuntimeError, apply_of, backend_of, extension, once, raw_stream
from . import services
from .instance import CPU, GPU, Instance
from .pool import Pool

try:  # torch.cuda.is_current_stream_capturing is a Python function around it
    from torch._C import _cuda_isCurrentStreamCapturing as is_capturing
except ImportError:
    from torch.cuda import is_current_stream_capturing as is_capturing


class CaffeCall:
    """One forward that may get a backward, and the instance that holds its state until then.

    Args:
        pool: the instance's pool.
        forced: the mode that the user asked for, or None.
        mode: the mode in which Forward ran: CPU or GPU.
        instance: the instance that ran it. None: it was given back.
        states: the state of each device's generator before Forward drew from it.
        tops: Forward's tops, until the node takes them.
    """

    __slots__ = ("forced", "instance", "mode", "pool", "site", "states", "tops")

    def __init__(self, pool: Pool, forced: str | None, mode: str, instance: Instance, states, tops):
        self.pool, self.forced, self.mode, self.states, self.tops = pool, forced, mode, states, tops
        self.instance: Instance | None = instance
        self.site = instance.site
        pool.lent.add(instance)

    def __del__(self):  # without a backward
        if self.instance is not None:
            self.pool.release(self.instance)

    def backward(self, bottoms, tops, blobs, top_diffs, wanted) -> list[Tensor | None]:
        instance, self.instance = self.instance, None
        if instance is None:
            instance = self._forward_again(self.mode, bottoms, blobs, wanted, tops)
        diffs = instance.backward(self.mode, self.pool.iteration, bottoms, tops, blobs, top_diffs, wanted)
        self.pool.release(instance)
        if diffs is None and self.mode == CPU and self.forced is None:
            diffs = self._by_kernels(bottoms, tops, blobs, top_diffs, wanted)
        if diffs is None:
            raise self.pool.no_code_for("Backward", self.mode, self.site)
        return diffs

    def _by_kernels(self, bottoms, tops, blobs, top_diffs, wanted) -> list[Tensor | None] | None:
        """Run Forward again and then Backward, by the kernels on the host. Later calls do the same."""
        pool = self.pool
        # Before Forward runs again, which may fail: the kernels may draw other random numbers.
        pool.run_on_host(GPU)
        instance = self._forward_again(GPU, bottoms, blobs, wanted, tops)
        diffs = instance.backward(GPU, pool.iteration, bottoms, tops, blobs, top_diffs, wanted)
        pool.release(instance)
        if diffs is None:
            pool.run_on_host(CPU)
        else:
            self.mode = GPU
        return diffs

    def _forward_again(self, mode: str, bottoms, blobs, wanted, tops) -> Instance:
        if self.pool.in_place:
            raise CaffeRuntimeError(
                f"{self.pool.name}: the backward of an in-place layer can run once, because its bottom is "
                "overwritten. Give the top a name of its own."
            )
        return self.pool.forward_again(self.site, mode, bottoms, blobs, wanted, tops, self.states)


class CaffeNode(torch.autograd.Function):
    """The autograd node of a call. The call keeps its instance until the first backward."""

    @staticmethod
    def forward(ctx, call: CaffeCall, *inputs: Tensor):
        ctx.call, tops, call.tops = call, tuple(call.tops), None
        if call.pool.in_place:
            ctx.mark_dirty(*(inputs[i] for i in call.pool.in_place.values()))
        ctx.to_save = inputs + tops  # the same as ctx.save_for_backward(*inputs, *tops), without a call
        return tops

    @staticmethod
    def jvp(ctx, *_):
        definition = ctx.call.pool.definition
        raise CaffeRuntimeError(f"{definition.name}: {definition.type} has no forward-mode derivative (jvp)")

    @staticmethod
    def backward(ctx, *top_diffs: Tensor):
        if not torch.is_grad_enabled():  # else create_graph=True: `once` refuses a second derivative
            return _backward(ctx, *top_diffs)
        definition = ctx.call.pool.definition
        return once(_backward, f"{definition.layer.module}.{definition.type}")(ctx, *top_diffs)


apply = apply_of(CaffeNode)
# Called by torch's graph. Torch's own function would look for a vjp first.
type.__setattr__(CaffeNode._backward_cls, "apply", CaffeNode.backward)


def _backward(ctx, *top_diffs: Tensor):
    call, saved, wanted = ctx.call, ctx.saved_tensors, ctx.needs_input_grad
    found = differentiate(call, saved, top_diffs, wanted)
    if found is not None:
        return None, *found
    pool = call.pool
    inputs = len(saved) - len(top_diffs)
    bottoms = inputs - len(pool.blob_shapes)
    saved = [t.contiguous().resolve_neg() for t in saved]  # a saved tensor's hook may have changed it
    diffs = []
    for i, diff in enumerate(top_diffs):
        if i in pool.in_place:
            diff = diff.clone(memory_format=torch.contiguous_format)  # it becomes the bottom's diff
        diffs.append(diff.contiguous().resolve_neg())
    device = call.site.device
    with contextlib.nullcontext() if device < 0 else torch.cuda.device(device):
        if device >= 0 and raw_stream(device) != call.site.stream:
            raise CaffeRuntimeError(f"{pool.name}: backward runs on another stream than its forward")
        found = call.backward(saved[:bottoms], saved[inputs:], saved[bottoms:inputs], diffs, wanted[1:])
        return None, *found


def _of_caffe() -> dict:
    """The parts of this package that a call needs, by the names in cuffi/caffe_layers/edge/call_caffe.cpp."""
    guards = torch._C._dynamo.guards
    return {
        "drawn": services.drawn,
        "failures": services.failures,
        "failed": services.failed,
        "make_call": CaffeCall,
        "apply": apply,
        "is_capturing": is_capturing,
        "empty": lambda site, shape: torch.empty(shape, dtype=site.dtype, device=site.torch_device),
        "empty_cpu": getattr(guards, "_empty_strided_cpu", None),
        "empty_cuda": getattr(guards, "_empty_strided_cuda", None),
        "zeros_like": torch.zeros_like,
        "set_grad_enabled": torch._C._set_grad_enabled,
        "host_name": HOST.name,
        "accelerator": backend_of(torch.device(DEVICES[-1])).name,
        "cpu": CPU,
        "gpu": GPU,
    }


def _nothing(*_) -> None:
    """Replaces the extension, if it is not built. An Instance's error says so."""


call_module = differentiate = _nothing


@extension.when_usable
def _use_extension() -> None:
    global call_module, differentiate
    c = extension.extension("caffe")
    c.configure_caffe(_of_caffe())
    call_module, differentiate = c.call_module, c.differentiate
