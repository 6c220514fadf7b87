"""The short way of a call: the extension of src/call.cpp, if it is built and this torch has what it needs."""

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .. import _edge

try:
    from . import _call
except ImportError:  # not built: every call goes the careful way
    _call = None


# Where a word of a launch comes from (src/call_plan.h).
NUMBER, ARGUMENT, ALLOCATION, STREAM = (
    getattr(_call, kind, None) for kind in ("NUMBER", "ARGUMENT", "ALLOCATION", "STREAM")
)


def of_torch() -> dict | None:
    """The parts of torch that a call needs, by the names in src/call_torch.h. None if torch has no exchange API."""
    exchange_api = getattr(Tensor, "__dlpack_c_exchange_api__", None)  # from torch 2.10 on
    if exchange_api is None:
        return None
    # Nothing here may initialise CUDA: after that a forked process could not use the GPU.
    return {
        "tensor": Tensor,
        "parameter": torch.nn.Parameter,
        "is_neg": Tensor.is_neg,
        "requires_grad": "requires_grad",
        "modes": torch._C._len_torch_dispatch_stack,
        "tracing": torch._C._is_tracing,
        "autocasting": torch._C._is_any_autocast_enabled,
        "deterministic": torch._C._get_deterministic_algorithms,
        "grad_enabled": torch.is_grad_enabled,
        "get_num_threads": torch.get_num_threads,
        "forward_ad": vars(forward_ad),
        "current_level": "_current_level",
        "is_autocast_enabled": torch.is_autocast_enabled,
        "get_autocast_dtype": torch.get_autocast_dtype,
        "to": Tensor.to,
        "float32": torch.float32,
        # DLPack's codes of the dtypes that autocast casts to.
        "dtypes": {
            torch.float32: _call.FLOAT << 8 | 32,
            torch.float16: _call.FLOAT << 8 | 16,
            torch.bfloat16: _call.BFLOAT << 8 | 16,
        },
        "exchange_device": getattr(torch._C, "_cuda_exchangeDevice", None),
        "exchange_api": exchange_api,
    }


def available() -> bool:
    """Can calls take the short way with this torch?"""
    if _call is None:
        return False
    # After git pull the extension is the old one until the next make.
    root = _edge.root()
    if root is not None and getattr(_call, "EDGE", "") != _edge.digest(root, _edge.CALL):
        return False
    known = of_torch()
    return known is not None and _call.configure(known)


AVAILABLE = available()
Plan = _call.Plan if AVAILABLE else None
record_caffe_call = _call.record_caffe_call if AVAILABLE else None


def caffe_forward(careful) -> staticmethod:
    """The forward of a Caffe call's autograd node: recorded if it can be, else `careful(ctx, call, *inputs)`."""
    return staticmethod(_call.caffe_forward(careful) if AVAILABLE else careful)


CASTS = ("promote", "lower", "float32", "none")


class Short(_call.Short if AVAILABLE else object):
    """The builtin of src/call.cpp, for a function that users can name."""

    def __repr__(self):
        return f"<{getattr(self, '__qualname__', 'short')}>"


def short(
    parameters: str, careful, plain, planning, *, defaults=(), cast=None, casts="promote", launches_only=False
):
    """A builtin that runs a call by its plan if it has one, and else by `careful`. Without a short way: `careful`.

    Args:
        parameters: a letter for each. t: a tensor; o: a tensor or None; p: anything else. T, O: a tensor that autocast
            leaves in float32.
        careful: runs any call, and explains errors.
        plain: runs a call of plain tensors that needs no gradient.
        planning: like plain, and gives a Plan to the builtin's `add`.
        defaults: of the last parameters.
        cast: returns the arguments as autocast casts them.
        casts: the argument `autocast` of `operator`.
        launches_only: it is a C function's, so gradients and autocast do not matter.
    """
    if not AVAILABLE or len(parameters) > _call.MOST_PARAMETERS:
        return careful
    return Short(
        parameters=parameters, defaults=tuple(defaults), launches_only=launches_only,
        casts=getattr(_call, f"CAST_{casts.upper()}"), careful=careful, plain=plain, planning=planning, cast=cast,
    )  # fmt: skip
