"""A Caffe layer's Backward as torch's autograd wants it."""

import torch
from torch import Tensor

from . import _caffe_services as services
from ._caffe_engine import CPU, GPU, Engine, Instance, Site, device_guard
from ._ops import _once
from ._runtime import CaffeRuntimeError, _raw_stream


def weighted(tops: list[Tensor], weights: list[float]) -> list[Tensor]:
    return [top if weight == 1 else top * weight for top, weight in zip(tops, weights, strict=True)]


class Call:
    """One forward whose backward may come: where it ran, and the instance that holds its state.

    Args:
        ahead, back: the short ways of both (_caffe_shortcut.py), which return None where they do not lead.
    """

    def __init__(self, engine: Engine, site: Site, forced: int | None, bottoms: int, ahead=None, back=None):
        self.engine, self.site, self.forced, self.bottoms = engine, site, forced, bottoms
        self.ahead, self.back = ahead, back
        self.mode = CPU
        self.instance: Instance | None = None
        self.states: dict[
            int, Tensor | None
        ] = {}  # of the generators that forward drew from, as they were before

    def __del__(self):  # no backward came
        if self.instance is not None:
            self.engine.release(self.instance)
            self.engine.lent.discard(self.instance)

    def forward(self, bottoms: list[Tensor], blobs: list[Tensor], wanted: tuple[bool, ...]) -> list[Tensor]:
        with services.recording() as self.states:
            self.instance, self.mode, tops = self.engine.forward(
                self.site, self.forced, bottoms, blobs, wanted
            )
        self.engine.lent.add(self.instance)
        return tops

    def backward(self, bottoms, tops, blobs, top_diffs, wanted) -> list[Tensor | None]:
        engine = self.engine
        instance, self.instance = self.instance, None
        self.engine.lent.discard(instance)
        if instance is None:
            instance = engine.forward_again(self.site, self.mode, bottoms, blobs, wanted, tops, self.states)
        diffs = instance.backward(self.mode, bottoms, tops, blobs, top_diffs, wanted)
        engine.release(instance)
        if diffs is None and self.mode == CPU and self.forced is None:
            diffs = self._by_kernels(bottoms, tops, blobs, top_diffs, wanted)
        if diffs is None:
            raise engine.no_code_for("Backward", self.mode, self.site)
        return diffs

    def _by_kernels(self, bottoms, tops, blobs, top_diffs, wanted) -> list[Tensor | None] | None:
        """Forward once more and Backward by the kernels on the host, as they will be from now on."""
        engine = self.engine
        engine.run_on_host(GPU)  # also if this fails, as it does where random numbers are drawn another way
        instance = engine.forward_again(self.site, GPU, bottoms, blobs, wanted, tops, self.states)
        diffs = instance.backward(GPU, bottoms, tops, blobs, top_diffs, wanted)
        engine.release(instance)
        if diffs is None:
            engine.run_on_host(CPU)
        else:
            self.mode = GPU
        return diffs


class CaffeFunction(torch.autograd.Function):
    """Forward keeps its instance until its first backward."""

    @staticmethod
    def forward(ctx, call: Call, *tensors: Tensor):
        count = call.bottoms
        wanted = ctx.needs_input_grad[1:]
        ctx.call = call
        if call.ahead is not None and (results := call.ahead(call, tensors, wanted)):
            tops, weighted_tops = results
            ctx.save_for_backward(*tensors, *tops)
            return weighted_tops
        tops = call.forward(list(tensors[:count]), list(tensors[count:]), wanted)
        in_place = call.engine.in_place
        if in_place:
            ctx.mark_dirty(*(tensors[i] for i in in_place.values()))
        ctx.save_for_backward(*tensors, *tops)
        return tuple(weighted(tops, call.engine.weights))

    @staticmethod
    def backward(ctx, *top_diffs: Tensor):
        if not torch.is_grad_enabled():  # else create_graph=True, for which _once has an answer
            return _backward(ctx, *top_diffs)
        return _once(_backward, f"{ctx.call.engine.layer.module}.{ctx.call.engine.type}")(ctx, *top_diffs)


def _backward(ctx, *top_diffs: Tensor):
    call, saved = ctx.call, ctx.saved_tensors
    wanted = ctx.needs_input_grad[1:]
    if call.back is not None and (gradients := call.back(call, saved, top_diffs, wanted)):
        return None, *gradients
    engine = call.engine
    count = len(saved) - len(engine.weights)
    bottoms, blobs, tops = (
        list(s) for s in (saved[: call.bottoms], saved[call.bottoms : count], saved[count:])
    )
    diffs = []
    for i, (diff, weight) in enumerate(zip(top_diffs, engine.weights, strict=True)):
        if weight != 1:
            diff = diff * weight
        elif i in engine.in_place:
            diff = diff.clone(memory_format=torch.contiguous_format)  # it becomes the bottom's
        diffs.append(diff.contiguous().resolve_neg())
    site = call.site
    with device_guard(site.device):
        if site.device >= 0 and _raw_stream(site.device) != site.stream:
            raise CaffeRuntimeError(f"{engine.name}: backward runs on another stream than its forward did")
        return None, *call.backward(bottoms, tops, blobs, diffs, wanted)
