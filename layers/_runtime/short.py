"""The short way of a call, if this machine has it: the extension of src/call.cpp, told what there is of torch."""

import torch
from torch import Tensor
from torch.autograd import forward_ad

try:
    from . import _call
except ImportError:  # not built: every call goes the careful way
    _call = None


# DLPack's codes of what autocast casts to.
_DTYPES = {torch.float32: 2 << 8 | 32, torch.float16: 2 << 8 | 16, torch.bfloat16: 4 << 8 | 16}


def of_torch() -> tuple | None:
    """What src/call_torch.h knows of torch, in its order. None: this torch has no exchange API."""
    table = getattr(Tensor, "__dlpack_c_exchange_api__", None)  # from torch 2.10 on
    if table is None:
        return None
    # Nothing here may ask for a GPU: a process that did cannot fork one that uses it.
    return (
        Tensor, torch.nn.Parameter, Tensor.is_neg, "requires_grad",
        torch._C._len_torch_dispatch_stack, torch._C._is_tracing, torch._C._is_any_autocast_enabled,
        torch._C._get_deterministic_algorithms, torch.is_grad_enabled, torch.get_num_threads,
        vars(forward_ad), "_current_level", torch.is_autocast_enabled, torch.get_autocast_dtype,
        Tensor.to, torch.float32, _DTYPES,
        getattr(torch._C, "_cuda_exchangeDevice", None), table,
    )  # fmt: skip


def available() -> bool:
    """Whether there is a short way under this torch."""
    known = of_torch()
    if _call is None or known is None:
        return False
    try:
        return _call.configure(known)
    except TypeError:  # it was built from other sources: make builds it anew
        return False


AVAILABLE = available()
Plan = _call.Plan if AVAILABLE else None
CASTS = ("promote", "lower", "float32", "none")  # src/call.cpp: enum Casts
# The most parameters that a C function or an operator may have to go the short way (src/call_plan.h).
MOST_PARAMETERS = 32


def short(
    parameters: str, otherwise, plain, record, *, defaults=(), cast=None, casts="promote", launches_only=False
):
    """A builtin that does what `otherwise` does, by a plan where it has one. `otherwise` itself where there is none.

    Args:
        parameters: a letter each. t: a tensor; o: a tensor or None; p: anything else. T, O: autocast leaves float.
        otherwise: takes any call, and says what is wrong with it.
        plain: takes a call of plain tensors that wants no gradient.
        record: the same, and hands a Plan to the builtin's `add`.
        defaults: those of the last parameters.
        cast: takes the arguments and returns them as autocast wants them.
        casts: what autocast does to floating tensors, as `operator` takes it.
        launches_only: of a C function. Gradients and autocast do not concern it.
    """
    if not AVAILABLE or len(parameters) > MOST_PARAMETERS:
        return otherwise
    return _call.Short(
        parameters, tuple(defaults), launches_only, CASTS.index(casts), otherwise, plain, record, cast
    )
