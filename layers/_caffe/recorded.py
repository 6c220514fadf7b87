"""Recorded calls: C repeats a call of a Caffe layer with other tensors (src/edge/call_caffe.h)."""

import functools

import torch

from .._backends import BACKENDS
from .._runtime import extension
from . import services
from .autograd import CaffeCall, Placement, answered, apply
from .instance import Instance

try:  # torch.cuda.is_current_stream_capturing is a Python function around it
    from torch._C import _cuda_isCurrentStreamCapturing as is_capturing
except ImportError:
    from torch.cuda import is_current_stream_capturing as is_capturing


class RecordedCall:
    """A call that went the careful way, and that C can repeat with other tensors.

    Attributes:
        forward: takes (recorded, module, bottoms): this object, and what was called. Returns what the module does, or
            None if the call must go the careful way.
        backward: the first backward of a call. It returns None, too, if the call must go the careful way.
    """

    __slots__ = ("backward", "forward", "placement")

    def __init__(self, placement: Placement, instance: Instance, bottoms, tops, training: bool):
        self.placement = placement
        pool, site, definition = placement.pool, placement.site, instance.definition
        library = instance.library
        several_devices = torch.cuda.device_count() > 1
        # struct RecordedCall in src/edge/call_caffe.h reads these values by their names. None may refer to this object.
        values = {
            "pool": pool,
            "free_instances": pool.free[site],
            "lent": pool.lent,
            "changes": pool.changes,
            "drawn": services.drawn,
            "failures": services.failures,
            "failed": services.failed,
            "take_failure": services.take_failure,
            "training": bool(training),
            "device_type": BACKENDS[site.backend].dlpack,
            "bits": 8 * site.dtype.itemsize,
            "current_device": torch.cuda.current_device if several_devices else None,
            "is_capturing": is_capturing,
            # What makes the tops, the gradients of bottoms, and those of blobs.
            "tops": tuple(map(allocation, tops)),
            "bottom_diffs": tuple(map(allocation, bottoms)),
            "zeros_like": torch.zeros_like,
            "blob_names": tuple(f"blob{i}" for i in range(len(pool.blob_shapes))),
            # Raises the library's error.
            "fail": functools.partial(definition.fail, library, "forward"),
            # Finds the tensor of a top that is not in its allocated memory.
            "top_elsewhere": functools.partial(definition.result, site),
            "weighted": functools.partial(answered, weights=pool.weights) if pool.weighs else None,
            "apply": apply,
            "make_call": CaffeCall,
            "placement": placement,
            "mode": instance.mode,
            "run_forward": library.runner("caffe_layer_forward"),
            "run_backward": library.runner("caffe_layer_backward"),
            "set_num_threads": library.set_num_threads,
            "record": instance.pattern(bottoms, tops, pool.blob_shapes, pool.iteration),
        }
        self.forward, self.backward = extension._call.record_caffe_call(values)


def allocation(tensor):
    """The call that makes a tensor like this one, for struct Allocation of src/edge/call_torch.h."""
    quick = getattr(torch._C._dynamo.guards, f"_empty_strided_{tensor.device.type}", None)
    sizes = tuple(tensor.shape), tensor.stride(), tensor.dtype
    like = torch.empty((), dtype=tensor.dtype, device=tensor.device).expand(tensor.shape)
    return torch.empty_like, (like,), {"memory_format": torch.contiguous_format}, quick, sizes


def record(placement: Placement, instance: Instance, bottoms, tops, training: bool) -> RecordedCall | None:
    """The recorded call, or None.

    There is none for a layer in place, for tops that share memory with bottoms, and for empty tensors.
    """
    own = {b.data_ptr() for b in bottoms}.isdisjoint(t.data_ptr() for t in tops)
    some = bottoms and tops and all(t.numel() for t in (*bottoms, *tops))
    if extension.UNUSABLE or placement.pool.in_place or placement.site.capture or not own or not some:
        return None
    return RecordedCall(placement, instance, bottoms, tops, training)
