"""The short way of a call: the extension of src/call.cpp, if it is built and this torch has what it needs."""

import torch
from torch import Tensor
from torch.autograd import forward_ad

try:
    from . import _call
except ImportError:  # not built: every call goes the careful way
    _call = None


# DLPack's codes of the dtypes that autocast casts to.
_DTYPES = {torch.float32: 2 << 8 | 32, torch.float16: 2 << 8 | 16, torch.bfloat16: 4 << 8 | 16}
# Py_TPFLAGS_BASETYPE: other types may derive from this one.
_IS_A_BASE = 1 << 10


def of_torch() -> tuple | None:
    """The parts of torch that src/call_torch.h uses, in its order. None if this torch has no exchange API."""
    table = getattr(Tensor, "__dlpack_c_exchange_api__", None)  # from torch 2.10 on
    if table is None:
        return None
    # Nothing here may initialise CUDA: after that a forked process could not use the GPU.
    return (
        Tensor, torch.nn.Parameter, Tensor.is_neg, "requires_grad",
        torch._C._len_torch_dispatch_stack, torch._C._is_tracing, torch._C._is_any_autocast_enabled,
        torch._C._get_deterministic_algorithms, torch.is_grad_enabled, torch.get_num_threads,
        vars(forward_ad), "_current_level", torch.is_autocast_enabled, torch.get_autocast_dtype,
        Tensor.to, torch.float32, _DTYPES,
        getattr(torch._C, "_cuda_exchangeDevice", None), table,
    )  # fmt: skip


def available() -> bool:
    """Can calls take the short way with this torch?"""
    known = of_torch()
    if _call is None or known is None:
        return False
    # Built from older sources, until the next make: it lacks a function, or its type cannot be a base.
    if not hasattr(_call, "record_caffe_call") or not _call.Short.__flags__ & _IS_A_BASE:
        return False
    try:
        return _call.configure(known)
    except TypeError:  # older sources, too
        return False


def path() -> str:
    """The path of the extension."""
    return _call.__file__


AVAILABLE = available()
Plan = _call.Plan if AVAILABLE else None
record_caffe_call = _call.record_caffe_call if AVAILABLE else None
CASTS = ("promote", "lower", "float32", "none")  # src/call.cpp: enum Casts
# The most parameters that a C function or an operator may have to go the short way (src/call_plan.h).
MOST_PARAMETERS = 32


class Short(_call.Short if AVAILABLE else object):
    """The builtin of src/call.cpp, for a function that users can name."""

    def __repr__(self):
        return f"<{getattr(self, '__qualname__', 'short')}>"


def short(
    parameters: str, careful, plain, record, *, defaults=(), cast=None, casts="promote", launches_only=False
):
    """A builtin that runs a call by its plan if it has one, and else by `careful`. Without a short way: `careful`.

    Args:
        parameters: a letter for each. t: a tensor; o: a tensor or None; p: anything else. T, O: a tensor that autocast
            leaves in float32.
        careful: runs any call, and explains errors.
        plain: runs a call of plain tensors that needs no gradient.
        record: like plain, and gives a Plan to the builtin's `add`.
        defaults: of the last parameters.
        cast: returns the arguments as autocast casts them.
        casts: the argument `autocast` of `operator`.
        launches_only: it is a C function's, so gradients and autocast do not matter.
    """
    if not AVAILABLE or len(parameters) > MOST_PARAMETERS:
        return careful
    return Short(parameters, tuple(defaults), launches_only, CASTS.index(casts), careful, plain, record, cast)
