"""A Caffe layer as a node of torch's autograd."""

import contextlib
from typing import NamedTuple

import torch
from torch import Tensor

from .._runtime import CaffeRuntimeError, extension, once, raw_stream
from . import services
from .instance import CPU, GPU, Instance, Site
from .pool import Pool


def answered(tops, weights: list[float] | None):
    """What a module returns: the only top, or a tuple of all, times their loss_weights.

    Torch multiplies, so Forward and Backward do not know the weights. None: all are 1.
    """
    if weights is not None:
        tops = [top if weight == 1 else top * weight for top, weight in zip(tops, weights, strict=True)]
    return tops[0] if len(tops) == 1 else tuple(tops)


class Placement(NamedTuple):
    """What the forward and the backward of one call have in common.

    Attributes:
        pool: lends the instance.
        site: where it runs.
        forced: the mode that the user asked for, or None.
        bottoms: the number of bottoms; the other inputs are blobs.
    """

    pool: Pool
    site: Site
    forced: str | None
    bottoms: int


class CaffeCall:
    """One forward that may get a backward, and the instance that holds its state until then.

    It has no __init__, because src/edge/call_caffe.h makes one for each call.

    Attributes:
        placement: where it runs.
        recorded: the recorded call that it repeats; None for the careful way.
        mode: CPU or GPU. Forward sets it.
        states: for each device the state of its generator before forward drew from it.
    """

    placement: Placement
    recorded = None
    instance: Instance | None = None
    mode: str
    states: dict[int, Tensor | None]

    def __del__(self):  # without a backward
        if self.instance is not None:
            self.placement.pool.release(self.instance)

    def forward(self, inputs: tuple[Tensor, ...], wanted: tuple[bool, ...]) -> tuple[Tensor, ...]:
        """Run Forward on inputs (bottoms, then blobs). wanted: the node's, so wanted[1] is that of the first input."""
        pool, site, forced, count = self.placement
        bottoms, blobs = list(inputs[:count]), list(inputs[count:])
        with services.watched_draws() as self.states:
            self.instance, self.mode, tops = pool.forward(site, forced, bottoms, blobs, wanted[1:])
        pool.lend(self.instance)
        return tuple(tops)

    def backward(self, bottoms, tops, blobs, top_diffs, wanted) -> list[Tensor | None]:
        pool, site, forced, _ = self.placement
        instance, self.instance = self.instance, None
        if instance is None:
            instance = self._forward_again(self.mode, bottoms, blobs, wanted, tops)
        diffs = instance.backward(self.mode, pool.iteration, bottoms, tops, blobs, top_diffs, wanted)
        pool.release(instance)
        if diffs is None and self.mode == CPU and forced is None:
            diffs = self._by_kernels(bottoms, tops, blobs, top_diffs, wanted)
        if diffs is None:
            raise pool.no_code_for("Backward", self.mode, site)
        return diffs

    def _by_kernels(self, bottoms, tops, blobs, top_diffs, wanted) -> list[Tensor | None] | None:
        """Run Forward again and then Backward, by the kernels on the host. Later calls do the same."""
        pool = self.placement.pool
        # Before forward runs again, because that may fail: the kernels may draw other random numbers.
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
        pool, site, _, _ = self.placement
        if pool.in_place:
            raise CaffeRuntimeError(
                f"{pool.name}: the backward of an in-place layer can run once, because its bottom is overwritten. "
                "Give the top a name of its own."
            )
        return pool.forward_again(site, mode, bottoms, blobs, wanted, tops, self.states)


def _forward(careful) -> staticmethod:
    """The forward of a Caffe call's autograd node: recorded if it can be, else `careful(ctx, call, *inputs)`."""
    return staticmethod(careful if extension.UNUSABLE else extension._call.caffe_forward(careful))


class CaffeNode(torch.autograd.Function):
    """The autograd node of a call. The call keeps its instance until the first backward."""

    @_forward
    def forward(ctx, call: CaffeCall, *inputs: Tensor):
        tops = call.forward(inputs, ctx.needs_input_grad)
        ctx.call = call
        if call.placement.pool.in_place:
            ctx.mark_dirty(*(inputs[i] for i in call.placement.pool.in_place.values()))
        # What ctx.save_for_backward(*inputs, *tops) does, without a call.
        ctx.to_save = (*inputs, *tops)
        return tops

    @staticmethod
    def jvp(ctx, *_):
        definition = ctx.call.placement.pool.definition
        raise CaffeRuntimeError(f"{definition.name}: {definition.type} has no forward-mode derivative (jvp)")

    @staticmethod
    def backward(ctx, *top_diffs: Tensor):
        if not torch.is_grad_enabled():  # else create_graph=True: `once` refuses a second derivative
            return _backward(ctx, *top_diffs)
        definition = ctx.call.placement.pool.definition
        return once(_backward, f"{definition.layer.module}.{definition.type}")(ctx, *top_diffs)


# Skip the Python part of Function.apply: it looks for functorch transforms, which recorded calls do not have.
apply = super(torch.autograd.Function, CaffeNode).apply
# What torch's graph calls. Torch's own function looks for a vjp first.
CaffeNode._backward_cls.apply = CaffeNode.backward


def _backward(ctx, *top_diffs: Tensor):
    call, saved, wanted = ctx.call, ctx.saved_tensors, ctx.needs_input_grad
    if call.recorded is not None:
        diffs = call.recorded.backward(call, saved, top_diffs, wanted)
        if diffs is not None:
            return diffs
    pool, site, _, first = call.placement
    last = len(saved) - len(top_diffs)
    bottoms, blobs, tops = (list(s) for s in (saved[:first], saved[first:last], saved[last:]))
    diffs = []
    for i, diff in enumerate(top_diffs):
        if i in pool.in_place:
            diff = diff.clone(memory_format=torch.contiguous_format)  # it becomes the bottom's diff
        diffs.append(diff.contiguous().resolve_neg())
    device = site.device
    with contextlib.nullcontext() if device < 0 else torch.cuda.device(device):
        if device >= 0 and raw_stream(device) != site.stream:
            raise CaffeRuntimeError(f"{pool.name}: backward runs on another stream than its forward did")
        return None, *call.backward(bottoms, tops, blobs, diffs, wanted[1:])
