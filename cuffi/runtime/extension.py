"""The extension of src/edge/call.cpp, which makes all calls, and the parts of torch that it needs."""

import contextlib
import ctypes
import functools
from collections.abc import Callable
from types import ModuleType
from typing import ClassVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .. import edge as _edge
from ..backends import BACKENDS
from ..base.errors import CaffeRuntimeError
from .places import autograd_place, version_counter

try:  # 0.1 us; torch.cuda.current_stream(device).cuda_stream is the public way, at 4 us
    from torch._C import _cuda_getCurrentRawStream as raw_stream
except ImportError:

    def raw_stream(device: int) -> int:
        return torch.cuda.current_stream(device).cuda_stream


# DLPack's codes of element types, and the dtypes by code << 8 | bits.
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
DTYPES = {
    torch.float32: _FLOAT << 8 | 32,
    torch.float64: _FLOAT << 8 | 64,
    torch.float16: _FLOAT << 8 | 16,
    torch.bfloat16: _BFLOAT << 8 | 16,
    torch.complex64: _COMPLEX << 8 | 64,
    torch.complex128: _COMPLEX << 8 | 128,
    torch.bool: _BOOL << 8 | 8,
    **{getattr(torch, f"int{bits}"): _INT << 8 | bits for bits in (8, 16, 32, 64)},
    **{getattr(torch, f"uint{bits}"): _UINT << 8 | bits for bits in (8, 16, 32, 64)},
}


class _Devices(dict):
    """DLPack's type << 32 | index of each device; KeyError for a device that no backend has."""

    def __missing__(self, device: torch.device) -> int:
        kinds = [b.dlpack for b in BACKENDS.values() if b.device == device.type]
        if not kinds:
            raise KeyError(device)
        self[device] = kinds[0] << 32 | (device.index or 0)
        return self[device]


@functools.cache
def _increment_version():
    """A function that tells autograd that tensors were written to. It takes a tuple."""
    one = torch._C._increment_version
    with contextlib.suppress(TypeError):
        one((torch.empty(0),))
        return one
    return lambda tensors: [one(tensor) for tensor in tensors]  # an older torch takes one


def _place(found: list[tuple[int, int]], most: int) -> int | None:
    """The offset at which each address has its word. Words are read up to there, and `most` bytes at most."""
    for at in range(0, most, 8):
        if all(ctypes.c_uint64.from_address(address + at).value == word for address, word in found):
            return at
    return None


@functools.cache
def lazy_keys() -> tuple[int, int, int, int] | None:
    """Where C finds a tensor's dispatch keys, so that it need not ask torch: (the offset of the TensorImpl's address in
    the Python object, the offset of the keys in the TensorImpl, the key of negative views, that of conjugate ones).

    torch says both (`_cdata`, `_dispatch_keys`), and these words must lie at one place in tensors of several kinds.
    Else None, and C asks torch.
    """
    real, cplx = torch.empty(2, device="cpu"), torch.empty(2, dtype=torch.complex64, device="cpu")
    kinds = [real, cplx, torch._neg_view(real), cplx.conj(), cplx.conj().imag, real.int(), real[1:]]
    kinds += [torch.nn.Parameter(real.double()), torch.empty(3, 4, device="meta"), real[:0].bool()]
    try:
        keys = [torch._C._dispatch_keys(one).raw_repr() for one in kinds]
        implementations = [one._cdata for one in kinds]
        size = torch._C.TensorBase.__basicsize__
    except (AttributeError, RuntimeError, TypeError):  # another torch
        return None
    pointer = _place(list(zip(map(id, kinds), implementations, strict=True)), size)
    at = _place(list(zip(implementations, keys, strict=True)), 176)  # the size of a TensorImpl in torch 2.13
    negative, conjugate = keys[2] & ~keys[0], keys[3] & ~keys[1]
    said = all(
        (bool(key & negative), bool(key & conjugate)) == (one.is_neg(), one.is_conj())
        for key, one in zip(keys, kinds, strict=True)
    )
    if pointer is None or at is None or not said or {negative.bit_count(), conjugate.bit_count()} != {1}:
        return None
    return pointer, at, negative, conjugate


def of_torch() -> dict:
    """The parts of torch that a call needs, by the names in src/edge/call_torch.h."""
    # Nothing here may initialise CUDA: after that a forked process could not use the GPU.
    some = torch.empty(0, device="cpu")
    return {
        "tensor": Tensor,
        "parameter": torch.nn.Parameter,
        "is_neg": some.is_neg,
        "is_conj": some.is_conj,
        "lazy_keys": lazy_keys(),
        "version_counter": version_counter(),
        "autograd_place": autograd_place(),
        "requires_grad": "requires_grad",
        "modes": torch._C._len_torch_dispatch_stack,
        "tracing": torch._C._is_tracing,
        "autocasting": torch._C._is_any_autocast_enabled,
        "profiling": torch.autograd._profiler_enabled,
        "function_modes": torch._C._len_torch_function_stack,
        "is_included": torch._C._dispatch_tls_is_dispatch_key_included,
        "pre_dispatch": torch._C.DispatchKey.PreDispatch,
        "transforms": torch._C._are_functorch_transforms_active,
        "deterministic": torch._C._get_deterministic_algorithms,
        "grad_enabled": torch.is_grad_enabled,
        "get_num_threads": torch.get_num_threads,
        "forward_ad": vars(forward_ad),
        "current_level": "_current_level",
        "is_autocast_enabled": torch.is_autocast_enabled,
        "get_autocast_dtype": torch.get_autocast_dtype,
        "to": Tensor.to,
        "float32": torch.float32,
        "dtypes": DTYPES,
        "devices": _Devices(),
        "exchange_device": getattr(torch._C, "_cuda_exchangeDevice", None),
        "device_count": torch.cuda.device_count,
        "raw_stream": raw_stream,
        "increment_version": _increment_version(),
        # From torch 2.10 on. Without it C reads the attributes of tensors.
        "exchange_api": getattr(Tensor, "__dlpack_c_exchange_api__", None),
    }


class _State:
    """The extension, and what waits for it."""

    call: ModuleType | None = None
    why = "is not built"
    waiting: ClassVar[list[Callable[[], None]]] = []


def use(module: ModuleType) -> bool:
    """Make calls by this module, if it was built from the toolkit's sources as they are. False if it was not."""
    # After git pull the extension is the old one until the next make.
    root = _edge.root()
    if root is not None and getattr(module, "EDGE", "") != _edge.digest(root, _edge.call_files()):
        _State.why = "was built by another version of the toolkit"
        return False
    module.configure(of_torch())
    _State.call, _State.why = module, ""
    while _State.waiting:
        _State.waiting.pop(0)()
    return True


def when_usable(function: Callable[[], None]) -> None:
    """Call the function now, or else as soon as there is an extension."""
    if _State.call is None:
        _State.waiting.append(function)
    else:
        function()


def usable() -> ModuleType | None:
    """The extension; None if there is none, or it is another version's."""
    return _State.call


def extension(layer: str) -> ModuleType:
    """The extension. If it cannot be used, the error names the command that builds it."""
    if _State.call is None:
        raise CaffeRuntimeError(
            f"{layer}: cuffi/runtime/_call.abi3.so {_State.why}. Type `make` in the toolkit's folder."
        )
    return _State.call


with contextlib.suppress(ImportError):  # not built
    from . import _call

    use(_call)
