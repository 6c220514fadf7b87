"""A Caffe layer's Backward as torch's autograd wants it."""

import contextlib
from typing import NamedTuple

import torch
from torch import Tensor

from .._runtime import CaffeRuntimeError, once, raw_stream
from . import services
from .instance import CPU, GPU, Instance, Site
from .pool import Pool


def weighted(tops, weights: list[float]) -> list[Tensor]:
    """The tops times their loss_weight, by torch: neither Forward nor Backward sees it."""
    return [top if weight == 1 else top * weight for top, weight in zip(tops, weights, strict=True)]


class Plan(NamedTuple):
    """Where a call runs, and in which mode if the user says it; bottoms: how many of the inputs are no blobs."""

    pool: Pool
    site: Site
    forced: int | None
    bottoms: int


class Call:
    """One forward whose backward may come: how it runs, and the instance that holds its state.

    Args:
        plan: how. A RecordedCall is one, too.
        recorded: the recorded call that this one is like; None: it takes the careful way.
    """

    __slots__ = ("__weakref__", "instance", "mode", "plan", "recorded", "states")

    def __init__(self, plan: Plan, recorded=None):
        self.plan, self.recorded = plan, recorded
        self.instance: Instance | None = None
        # Set by forward: CPU or GPU; of the generators that it drew from, the states before, by device.
        self.mode: int
        self.states: dict[int, Tensor | None]

    def __del__(self):  # no backward came
        if self.instance is not None:
            self.plan.pool.release(self.instance)

    def forward(self, inputs: tuple[Tensor, ...], wanted: tuple[bool, ...]) -> tuple[Tensor, ...]:
        """Forward of (bottoms, blobs). wanted: of the autograd node, so that the inputs' begin at 1."""
        if self.recorded is not None:
            tops = self.recorded.differentiable(self, inputs, wanted)
            if tops is not None:
                return tops
            self.recorded = None
        pool, site, forced, count = self.plan
        bottoms, blobs = list(inputs[:count]), list(inputs[count:])
        with services.recording() as self.states:
            self.instance, self.mode, tops = pool.forward(site, forced, bottoms, blobs, wanted[1:])
        pool.lend(self.instance)
        return tuple(tops)

    def backward(self, bottoms, tops, blobs, top_diffs, wanted) -> list[Tensor | None]:
        pool, site, forced, _ = self.plan
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
        """Forward once more and Backward by the kernels on the host, as they will be from now on."""
        pool = self.plan.pool
        pool.run_on_host(GPU)  # also if this fails, as it does where random numbers are drawn another way
        instance = self._forward_again(GPU, bottoms, blobs, wanted, tops)
        diffs = instance.backward(GPU, pool.iteration, bottoms, tops, blobs, top_diffs, wanted)
        pool.release(instance)
        if diffs is None:
            pool.run_on_host(CPU)
        else:
            self.mode = GPU
        return diffs

    def _forward_again(self, mode: int, bottoms, blobs, wanted, tops) -> Instance:
        pool, site, _, _ = self.plan
        if pool.in_place:
            raise CaffeRuntimeError(
                f"{pool.name}: an in-place layer's backward can run once: its bottom, needed to run forward again, "
                "is gone. Give the top a name of its own."
            )
        return pool.forward_again(site, mode, bottoms, blobs, wanted, tops, self.states)


class CaffeNode(torch.autograd.Function):
    """Forward keeps its instance until its first backward."""

    @staticmethod
    def forward(ctx, call: Call, *inputs: Tensor):
        tops = call.forward(inputs, ctx.needs_input_grad)
        ctx.call = call
        if call.recorded is None and call.plan.pool.in_place:
            ctx.mark_dirty(*(inputs[i] for i in call.plan.pool.in_place.values()))
        ctx.save_for_backward(*inputs, *tops)
        return tops

    @staticmethod
    def jvp(ctx, *_):
        raise CaffeRuntimeError(f"{ctx.call.plan.pool.name} has no forward-mode derivative (jvp)")

    @staticmethod
    def backward(ctx, *top_diffs: Tensor):
        if not torch.is_grad_enabled():  # else create_graph=True, for which `once` has an answer
            return _backward(ctx, *top_diffs)
        definition = ctx.call.plan.pool.definition
        return once(_backward, f"{definition.layer.module}.{definition.type}")(ctx, *top_diffs)


# Function.apply's Python part looks for functorch transforms, which are excluded before.
apply = super(torch.autograd.Function, CaffeNode).apply


def _backward(ctx, *top_diffs: Tensor):
    call, saved, wanted = ctx.call, ctx.saved_tensors, ctx.needs_input_grad
    if call.recorded is not None:
        diffs = call.recorded.backward(call, saved, top_diffs, wanted)
        if diffs is not None:
            return diffs
    pool, site, _, first = call.plan
    last = len(saved) - len(top_diffs)
    bottoms, blobs, tops = (list(s) for s in (saved[:first], saved[first:last], saved[last:]))
    diffs = []
    for i, diff in enumerate(top_diffs):
        if i in pool.in_place:
            diff = diff.clone(memory_format=torch.contiguous_format)  # it becomes the bottom's
        diffs.append(diff.contiguous().resolve_neg())
    device = site.device
    with contextlib.nullcontext() if device < 0 else torch.cuda.device(device):
        if device >= 0 and raw_stream(device) != site.stream:
            raise CaffeRuntimeError(f"{pool.name}: backward runs on another stream than its forward did")
        return None, *call.backward(bottoms, tops, blobs, diffs, wanted[1:])
