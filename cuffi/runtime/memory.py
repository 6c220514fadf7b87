"""Memory of C as tensors."""

import ctypes

import torch
from torch import Tensor

from ..backends import CPU, GPU


class _CudaArray:
    """Memory on a GPU, in a form that torch.as_tensor accepts."""

    def __init__(self, address: int, count: int, dtype: torch.dtype):
        signed = "i" if dtype.is_signed else "u"
        letter = "c" if dtype.is_complex else "f" if dtype.is_floating_point else signed
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (count,),
            "typestr": f"<{letter}{dtype.itemsize}",
            "version": 2,
        }


def place(device: int) -> torch.device:
    """The place that C code numbers: -1 is the processor, others are GPUs."""
    return torch.device(GPU, device) if device >= 0 else torch.device(CPU)


def view_memory(address: int, count: int, dtype: torch.dtype, where: torch.device) -> Tensor:
    """A one-dimensional tensor over memory that it does not own."""
    if not count:
        return torch.empty(0, dtype=dtype, device=where)
    if where.type == CPU:
        return torch.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(address), dtype=dtype)
    # CUDA's interface has no name for bfloat16, and none for bool that torch reads.
    named = {torch.bfloat16: torch.int16, torch.bool: torch.uint8}.get(dtype, dtype)
    return torch.as_tensor(_CudaArray(address, count, named), device=where).view(dtype)
