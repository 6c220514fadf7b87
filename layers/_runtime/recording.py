"""What a call does, written down while it does it: the Plan by which src/call.cpp does it again.

An operator's function allocates tensors and launches C functions, and depends on nothing but its arguments: on
their shapes, strides, dtypes and devices and on its parameters. Whatever else it does, a torch operation for one,
makes it a call that cannot be repeated that way: it then goes the careful way each time.
"""

import struct
import threading
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .._backends import BACKENDS
from . import short
from .errors import PLAIN
from .library import serving

NUMBER, ARGUMENT, ALLOCATION, STREAM = range(4)  # src/call_plan.h: where a word comes from
_ALLOCATES = {
    torch.ops.aten.empty.memory_format,
    torch.ops.aten.empty_strided.default,
    torch.ops.aten.empty_like.default,
    torch.ops.aten.new_empty.default,
    torch.ops.aten.new_empty_strided.default,
}
# What parameters may be: values that cannot change.
_PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
_current = threading.local()
STREAM_VALUE = object()  # stands for the stream among a launch's values


class Launched(NamedTuple):
    """One C call: what was called, and its arguments in C's order, tensors as they came."""

    library: object
    function: str
    kinds: tuple[str, ...]
    values: tuple


class Recorder(TorchDispatchMode):
    """Sees what a function allocates and launches."""

    def __init__(self):
        super().__init__()
        self.allocations: list[Tensor] = []
        self.aliases: list[tuple[Tensor, Tensor]] = []
        self.launches: list[Launched] = []
        self.is_plain = True

    def __enter__(self):
        self.outer, _current.recorder = getattr(_current, "recorder", None), self
        return super().__enter__()

    def __exit__(self, *error):
        _current.recorder = self.outer
        return super().__exit__(*error)


def _dispatch(self: Recorder, operation, types, args=(), kwargs=None):
    result = operation(*args, **(kwargs or {}))
    if operation in _ALLOCATES:
        self.allocations.append(result)
    elif operation is torch.ops.aten.detach.default:  # torch does it to what a mode returns
        self.aliases.append((result, args[0]))
    else:
        self.is_plain = False
    return result


# Not in the class's body: torch would wrap it there in what imports torch._dynamo, which takes seconds.
Recorder.__torch_dispatch__ = _dispatch


def note(launched: Launched) -> None:
    """Tell the recorder of this thread, if there is one, what was launched."""
    recorder = getattr(_current, "recorder", None)
    if recorder is not None:
        recorder.launches.append(launched)


def run_and_record(function, arguments: tuple) -> tuple:
    """(what the function returns, the Plan of this call, or None if it cannot be repeated by one)."""
    with Recorder() as recorder:
        result = function(*arguments)
    if not recorder.is_plain or not all(map(is_constant, arguments)):
        return result, None
    return result, plan(arguments, recorder.allocations, recorder.launches, result, recorder.aliases)


def is_constant(value) -> bool:
    """A tensor, whose likeness a plan remembers, or a value that can neither change nor hide one that does."""
    if type(value) is tuple:
        return all(not isinstance(v, Tensor) and is_constant(v) for v in value)
    return isinstance(value, Tensor) or type(value) in _PLAIN


def plan(arguments: tuple, allocations: list[Tensor], launches: list[Launched], result=None, aliases=()):
    """A Plan, or None: an address of unknown origin, one tensor twice, strides of its own, too much of anything.

    Args:
        result: what the call returns, allocations or nothing.
        aliases: pairs of tensors that are the same memory in the same shape.
    """
    origins = {id(t): (ARGUMENT, i) for i, t in enumerate(arguments) if isinstance(t, Tensor)}
    if len(origins) < sum(isinstance(t, Tensor) for t in arguments):
        return None  # one tensor given twice: nobody could tell which of the two an address was
    origins |= {id(t): (ALLOCATION, i) for i, t in enumerate(allocations)}
    for alias, tensor in aliases:
        origins |= {id(alias): origins[id(tensor)]} if id(tensor) in origins else {}
    returned = result if isinstance(result, tuple) else () if result is None else (result,)
    places = [origins.get(id(t), (NUMBER, 0)) for t in returned]
    tensors = [t for t in (*arguments, *allocations) if isinstance(t, Tensor)]
    if not launches or any(kind != ALLOCATION for kind, _ in places) or not tensors:
        return None
    device = tensors[0].device
    if any(t.device != device or type(t) not in PLAIN for t in tensors):
        return None
    try:
        made = [_launch(launched, origins) for launched in launches]
        return short.Plan(
            serving(device).dlpack,
            device.index or 0,
            [_allocation(t) for t in allocations],
            made,
            [i for _, i in places],
            isinstance(result, tuple),
        )
    except (KeyError, ValueError):
        return None


def _allocation(tensor: Tensor) -> tuple:
    """The call that makes a tensor like this one: from one of the same shape that has memory for one element.

    And a quicker one, where torch has it, for as long as torch.use_deterministic_algorithms does not ask for a fill.
    """
    quick = getattr(torch._C._dynamo.guards, f"_empty_strided_{tensor.device.type}", None)
    sizes = tuple(tensor.shape), tensor.stride(), tensor.dtype
    like = torch.empty((), dtype=tensor.dtype, device=tensor.device).expand(tensor.shape)
    for layout in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d):
        if tensor.is_contiguous(memory_format=layout):
            return torch.empty_like, (like,), {"memory_format": layout}, quick, sizes
    raise ValueError("strides of its own")


def _launch(launched: Launched, origins: dict) -> tuple:
    library, function, kinds, values = launched
    words = []
    for kind, value in zip(kinds, values, strict=True):
        if value is STREAM_VALUE:
            words.append((STREAM, 0))
        elif isinstance(value, Tensor):
            words.append(origins[id(value)] if value.numel() else (NUMBER, 0))
        elif kind in ("float", "double"):
            words.append((NUMBER, struct.unpack("q", struct.pack("d", value))[0]))
        else:
            words.append((NUMBER, (int(value) + 2**63) % 2**64 - 2**63))
    threads = library.set_num_threads if BACKENDS[library.backend].on_host else 0
    return library.runner(function), threads, lambda: library.fail(function), words
