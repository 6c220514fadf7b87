"""Record a call's allocations and launches, and make a Plan of them, which src/edge/call.cpp repeats.

An operator's function allocates tensors and launches C functions, which depend only on its arguments: their shapes,
strides, dtypes and devices, and the parameters. If it does anything else, such as a torch operation or a write to an
argument, there is no plan, and the function runs in every call.
"""

import re
import struct
import sys
import threading
from typing import NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ..backends import BACKENDS
from ..base.errors import PLAIN
from . import extension
from .library import Library, backend_of

_ALLOCATES = {
    torch.ops.aten.empty.memory_format,
    torch.ops.aten.empty_strided.default,
    torch.ops.aten.empty_like.default,
    torch.ops.aten.new_empty.default,
    torch.ops.aten.new_empty_strided.default,
}
# Where a dispatch mode runs the call, as in the first run of compiled code, these are operations. Elsewhere torch
# returns the tensor itself, and no operation is seen.
_RETURNS_ITSELF = {
    torch.ops.aten.contiguous.default, torch.ops.aten.resolve_conj.default, torch.ops.aten.resolve_neg.default,
}  # fmt: skip
# The types that parameters may have. Their values cannot change.
_PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
_current = threading.local()
# Builtins of torch that tell its state. torch.no_grad(), torch's dispatch and our own modules ask without need.
_ASKS = re.compile(r"_*(is|are|get|current|initial)_")
_ASK_IN_VAIN = (
    "torch.autograd.grad_mode", "torch._tensor", "torch.overrides", "torch._library", "torch._ops", "torch.utils",
)  # fmt: skip
_OURS = __name__.rpartition(".")[0]
# The stream's place among the values of a launch.
STREAM_VALUE = object()


class Launched(NamedTuple):
    """One call of a C function: its values are in C's order, and tensors are still tensors."""

    library: Library
    function: str
    kinds: tuple[str, ...]
    values: tuple

    def writes_to(self, tensors) -> bool:
        """Does the launch get one of these tensors by a pointer that is not const?"""
        return any(
            value is tensor and not kind.startswith("const ")
            for kind, value in zip(self.kinds, self.values, strict=True)
            for tensor in tensors
        )


class Watcher(TorchDispatchMode):
    """Records the allocations and launches of a function."""

    def __init__(self):
        super().__init__()
        self.allocations: list[Tensor] = []
        self.aliases: list[tuple[Tensor, Tensor]] = []
        self.launches: list[Launched] = []
        self.is_plain = True

    def __enter__(self):
        self.outer, _current.watcher = getattr(_current, "watcher", None), self
        return super().__enter__()

    def __exit__(self, exc_type, exc_val, exc_tb):
        _current.watcher = self.outer
        return super().__exit__(exc_type, exc_val, exc_tb)


def _dispatch(self, func, types, args: tuple = (), kwargs=None):
    result = func(*args, **(kwargs or {}))
    if func in _ALLOCATES:
        self.allocations.append(result)
    elif func is torch.ops.aten.detach.default:  # torch detaches what a mode returns
        self.aliases.append((result, args[0]))
    elif func in _RETURNS_ITSELF and result is args[0]:
        pass
    else:
        self.is_plain = False
    return result


# Set here, because torch would wrap a method of the class's body and import torch._dynamo, which takes seconds.
Watcher.__torch_dispatch__ = _dispatch


class Reads(TorchFunctionMode):
    """Notices that a function asks torch for something that is not among a plan's properties.

    Examples are a tensor's memory, its storage_offset or requires_grad, its text, and the grad mode. No plan can repeat
    what depends on them. A Watcher does not notice such questions, because no operation answers them.
    """

    # What a plan's properties determine, and what makes an empty tensor. What else is an operation a Watcher notices.
    NAMES = frozenset({
        "shape", "size", "stride", "dim", "ndim", "ndimension", "numel", "nelement", "__len__", "is_same_size",
        "dtype", "element_size", "itemsize", "nbytes", "is_floating_point", "is_complex", "is_signed",
        "device", "get_device", "is_cpu", "is_cuda", "is_meta", "layout", "is_sparse", "is_nested", "is_quantized",
        "is_contiguous", "contiguous", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided",
        "__hash__",
    })  # fmt: skip

    def __init__(self):
        super().__init__()
        self.any = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        # The getter of an attribute is called __get__.
        named = getattr(func, "__self__", None) if getattr(func, "__name__", "") == "__get__" else func
        self.any |= getattr(named, "__name__", "") not in self.NAMES
        return func(*args, **(kwargs or {}))

    def __enter__(self):
        self._before = sys.getprofile()
        sys.setprofile(self._notice)
        return super().__enter__()

    def __exit__(self, exc_type, exc_val, exc_tb):
        sys.setprofile(self._before)
        return super().__exit__(exc_type, exc_val, exc_tb)

    def _notice(self, frame, event: str, builtin) -> None:
        """Notice a question about torch's state, such as is_grad_enabled: function modes do not see these."""
        if event != "c_call" or not _ASKS.match(builtin.__name__) or builtin.__name__ in self.NAMES:
            return
        asker = frame.f_globals.get("__name__", "")
        owner = builtin.__self__  # a module, a type, an object, or pybind11's
        owners = getattr(owner, "__name__", ""), type(owner).__module__, builtin.__module__ or ""
        of_torch = any(name.startswith("torch") for name in owners)
        self.any |= of_torch and not asker.startswith((*_ASK_IN_VAIN, _OURS))


def watcher() -> Watcher | None:
    """This thread's."""
    return getattr(_current, "watcher", None)


def run_and_plan(function, arguments: tuple) -> tuple:
    """Call the function. Returns its result and the call's Plan, or None if no plan can repeat it."""
    with Reads() as reads, Watcher() as watched:
        result = function(*arguments)
    if reads.any or not watched.is_plain or not all(map(is_constant, arguments)):
        return result, None
    return result, plan(arguments, watched.allocations, watched.launches, result, watched.aliases)


def is_constant(value) -> bool:
    """Can a plan be keyed by this value? Tensors (by their properties) and immutable values can."""
    if type(value) is tuple:
        return all(not isinstance(v, Tensor) and is_constant(v) for v in value)
    return isinstance(value, Tensor) or type(value) in _PLAIN


def plan(arguments: tuple, allocations: list[Tensor], launches: list[Launched], result=None, aliases=()):
    """A Plan, or None if no plan can describe the call.

    There is none if an address has an unknown origin, a tensor is passed twice, an allocation has unusual strides, or
    the call exceeds a plan's limits.

    Args:
        result: the call's result: allocations, or nothing.
        aliases: pairs of tensors with the same memory and shape.
    """
    c = extension.usable()
    if c is None:  # not built
        return None
    origins = {id(t): (c.ARGUMENT, i) for i, t in enumerate(arguments) if isinstance(t, Tensor)}
    if len(origins) < sum(isinstance(t, Tensor) for t in arguments):
        return None  # a tensor is passed twice, so its address does not say which argument it is
    origins |= {id(t): (c.ALLOCATION, i) for i, t in enumerate(allocations)}
    for alias, tensor in aliases:
        origins |= {id(alias): origins[id(tensor)]} if id(tensor) in origins else {}
    returned = result if isinstance(result, tuple) else () if result is None else (result,)
    places = [origins.get(id(t), (c.CONSTANT, 0)) for t in returned]
    tensors = [t for t in (*arguments, *allocations) if isinstance(t, Tensor)]
    if not launches or any(kind != c.ALLOCATION for kind, _ in places) or not tensors:
        return None
    device = tensors[0].device
    given = [t for t in arguments if isinstance(t, Tensor)]
    if any(launched.writes_to(given) for launched in launches):
        return None
    if any(t.device != device or type(t) not in PLAIN for t in tensors):
        return None
    try:
        return c.Plan(
            device_type=backend_of(device).dlpack,
            device=device.index or 0,
            allocations=tuple(map(allocation, allocations)),
            empty=sum(1 << i for i, t in enumerate(allocations) if not t.numel()),
            launches=tuple(_launch(c, launched, origins) for launched in launches),
            results=tuple(i for _, i in places),
            returns_tuple=isinstance(result, tuple),
        )
    except (KeyError, ValueError):
        return None


def allocation(tensor: Tensor) -> tuple:
    """The call that makes a tensor like this one, for src/edge/call_torch.h. ValueError if its strides are unusual.

    If torch has a quicker function, it is returned, too. It is used unless torch.use_deterministic_algorithms asks to
    fill the memory. A plan holds no tensor: one that is made while torch.compile's CUDA graphs warm up would lie in
    their memory.
    """
    quick = getattr(torch._C._dynamo.guards, f"_empty_strided_{tensor.device.type}", None)
    shape, dtype = tuple(tensor.shape), tensor.dtype
    for layout in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d):
        if tensor.is_contiguous(memory_format=layout):
            named = {"dtype": dtype, "device": tensor.device, "memory_format": layout}
            return torch.empty, (shape,), named, quick, (shape, tensor.stride(), dtype)
    raise ValueError("unusual strides")


def _launch(c, launched: Launched, origins: dict) -> tuple:
    library, function, kinds, values = launched
    words = []
    for kind, value in zip(kinds, values, strict=True):
        if value is STREAM_VALUE:
            words.append((c.CURRENT_STREAM, 0))
        elif isinstance(value, Tensor):
            words.append(origins[id(value)] if value.numel() else (c.CONSTANT, 0))
        elif kind in ("float", "double"):
            words.append((c.CONSTANT, struct.unpack("q", struct.pack("d", value))[0]))
        else:
            words.append((c.CONSTANT, (int(value) + 2**63) % 2**64 - 2**63))
    threads = library.set_num_threads if BACKENDS[library.backend].on_host else 0
    run = library.runner(function)
    return run, library.is_program, threads, lambda: library.fail(function), words
