"""The short way of a call that is like the one before, in C: src/caffe/caffe_layer_call.h."""

import ctypes
import functools

import torch

from .._backends import BACKENDS
from .._runtime import CaffeRuntimeError
from .._runtime.short import of_torch
from . import services
from .autograd import Plan
from .instance import Instance

_TORCH = of_torch()


class RecordedCall:
    """A call that has just gone the careful way, to be repeated with other tensors.

    Attributes:
        forward: of (module, bottoms): the tops; or a list of the inputs, if a gradient is wanted; or None: go the
            careful way.
        differentiable, backward: the halves of a call's autograd node; None: go the careful way.
    """

    __slots__ = ("backward", "differentiable", "forward", "plan")

    def __init__(self, plan: Plan, instance: Instance, bottoms, tops, training: bool):
        self.plan = plan
        bind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(instance.lib.caffe_record_call_address())
        try:
            calls = bind(self._handed_over(instance, bottoms, tops, training))
        except TypeError as error:
            name = plan.pool.definition.layer.name
            raise CaffeRuntimeError(
                f"{name}: its library is of another version of the toolkit ({error}): build it again with make"
            ) from error
        self.forward, self.differentiable, self.backward = calls

    def _handed_over(self, instance: Instance, bottoms, tops, training: bool) -> tuple:
        """By the order of RecordedCall in src/caffe/caffe_layer_call.h. Nothing here leads back to this object."""
        pool, site, definition = self.plan.pool, self.plan.site, instance.definition
        one_device = torch.cuda.device_count() <= 1
        make = functools.partial(torch.empty, dtype=site.dtype, device=site.torch_device)
        makers = tuple(
            None if top.shape == bottoms[0].shape else functools.partial(make, top.shape) for top in tops
        )
        return (
            pool,
            pool.free[site],
            pool.lent,
            services.thread,
            services.failures,
            services.failed,
            services.take_failure,
            functools.partial(definition.fail, instance.library, "forward"),
            functools.partial(definition.result, site),
            makers,
            tuple(f"blob{i}" for i in range(len(pool.blob_shapes))),
            None if one_device else torch.cuda.current_device,
            torch.cuda.is_current_stream_capturing,
            torch.empty_like,
            torch.zeros_like,
            BACKENDS[site.backend].dlpack,
            8 * site.dtype.itemsize,
            bool(training),
            pool.changes,
            _TORCH,
            instance.pattern(bottoms, tops, pool.blob_shapes, pool.iteration),
        )


def record(plan: Plan, instance: Instance, bottoms, tops, training: bool) -> RecordedCall | None:
    """The recorded call; None where each call needs care: in place, tops that share memory, nothing to compute."""
    own = {b.data_ptr() for b in bottoms}.isdisjoint(t.data_ptr() for t in tops)
    some = bottoms and tops and all(t.numel() for t in (*bottoms, *tops))
    if _TORCH is None or plan.pool.in_place or plan.site.capture or not own or not some:
        return None
    return RecordedCall(plan, instance, bottoms, tops, training)
