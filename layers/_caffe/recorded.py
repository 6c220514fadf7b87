"""Recorded calls: C repeats a call of a Caffe layer with other tensors (src/call_caffe.h)."""

import functools

import torch

from .._backends import BACKENDS
from .._runtime import CaffeRuntimeError, short
from .._runtime.recording import allocation
from . import services
from .autograd import Call, Placement, apply
from .instance import Instance

try:  # torch.cuda.is_current_stream_capturing is a Python function around it
    from torch._C import _cuda_isCurrentStreamCapturing as is_capturing
except ImportError:
    from torch.cuda import is_current_stream_capturing as is_capturing


class RecordedCall:
    """A call that went the careful way, and that C can repeat with other tensors.

    Attributes:
        forward: takes (recorded, module, bottoms): this object, and what was called. Returns the tops, or None if the
            call must go the careful way.
        differentiable, backward: the forward and backward of the autograd node (CaffeNode and Call). They return
            None, too, if the call must go the careful way.
    """

    __slots__ = ("backward", "differentiable", "forward", "placement")

    def __init__(self, placement: Placement, instance: Instance, bottoms, tops, training: bool):
        self.placement = placement
        parts = self._arguments(instance, bottoms, tops, training)
        try:
            self.forward, self.differentiable, self.backward = short.record_caffe_call(parts)
        except TypeError as error:
            name = placement.pool.definition.layer.name
            raise CaffeRuntimeError(
                f"{name}: {short.path()} was built by another version of the toolkit ({error}): "
                "build it again with make"
            ) from error

    def _arguments(self, instance: Instance, bottoms, tops, training: bool) -> tuple:
        """In the order of record_caffe_call in src/call_caffe.h. None of them may refer to this object."""
        pool, site, definition = self.placement.pool, self.placement.site, instance.definition
        library = instance.library
        one_device = torch.cuda.device_count() <= 1
        return (
            pool,
            pool.free[site],
            pool.lent,
            services.thread,
            services.failures,
            services.failed,
            services.take_failure,
            functools.partial(definition.fail, library, "forward"),
            functools.partial(definition.result, site),
            tuple(map(allocation, bottoms)),
            tuple(map(allocation, tops)),
            tuple(f"blob{i}" for i in range(len(pool.blob_shapes))),
            None if one_device else torch.cuda.current_device,
            is_capturing,
            torch.zeros_like,
            self.placement,
            Call,
            apply,
            BACKENDS[site.backend].dlpack,
            8 * site.dtype.itemsize,
            bool(training),
            pool.changes,
            library.runner("caffe_layer_forward"),
            library.runner("caffe_layer_backward"),
            library.set_num_threads,
            instance.pattern(bottoms, tops, pool.blob_shapes, pool.iteration),
        )


def record(placement: Placement, instance: Instance, bottoms, tops, training: bool) -> RecordedCall | None:
    """The recorded call, or None.

    There is none for a layer in place, for tops that share memory with bottoms, and for empty tensors.
    """
    own = {b.data_ptr() for b in bottoms}.isdisjoint(t.data_ptr() for t in tops)
    some = bottoms and tops and all(t.numel() for t in (*bottoms, *tops))
    if not short.AVAILABLE or placement.pool.in_place or placement.site.capture or not own or not some:
        return None
    return RecordedCall(placement, instance, bottoms, tops, training)
