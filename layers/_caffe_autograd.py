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
    """One forward whose backward may come: where it ran, and the instance that holds its state."""

    def __init__(self, engine: Engine, site: Site, forced: int | None, bottoms: int):
        self.engine, self.site, self.forced, self.bottoms = engine, site, forced, bottoms
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
        engine.host_mode = (
            GPU  # also if this one fails, as it does where random numbers are drawn another way
        )
        instance = engine.forward_again(self.site, GPU, bottoms, blobs, wanted, tops, self.states)
        diffs = instance.backward(GPU, bottoms, tops, blobs, top_diffs, wanted)
        engine.release(instance)
        if diffs is None:
            engine.host_mode = CPU
        else:
            self.mode = GPU
        return diffs


class CaffeFunction(torch.autograd.Function):
    """Forward keeps its instance until its first backward."""

    @staticmethod
    def forward(ctx, call: Call, *tensors: Tensor):
        count = call.bottoms
        bottoms, blobs = list(tensors[:count]), list(tensors[count:])
        wanted = ctx.needs_input_grad[1:]
        tops = call.forward(bottoms, blobs, wanted)
        in_place = call.engine.in_place
        if in_place:
            ctx.mark_dirty(*(bottoms[i] for i in in_place.values()))
        ctx.call, ctx.tops = call, len(tops)
        ctx.name = f"{call.engine.layer.module}.{call.engine.type}"
        ctx.save_for_backward(*bottoms, *blobs, *tops)
        return tuple(weighted(tops, call.engine.weights))

    @staticmethod
    def backward(ctx, *top_diffs: Tensor):
        return _once(_backward, ctx.name)(ctx, *top_diffs)


def _backward(ctx, *top_diffs: Tensor):
    call, saved = ctx.call, list(ctx.saved_tensors)
    engine = call.engine
    bottoms, blobs = saved[: call.bottoms], saved[call.bottoms : len(saved) - ctx.tops]
    tops = saved[len(saved) - ctx.tops :]
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
        return None, *call.backward(bottoms, tops, blobs, diffs, ctx.needs_input_grad[1:])
