"""Memory of C as tensors."""

import torch
from torch import Tensor

from ..backends import GPU


class _CudaArray:
    """Memory on a GPU, in a form that torch.as_tensor accepts."""

    def __init__(self, address: int, count: int, dtype: torch.dtype):
        letter = "c" if dtype.is_complex else "f" if dtype.is_floating_point else "i"
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (count,),
            "typestr": f"<{letter}{dtype.itemsize}",
            "version": 2,
        }


def view_memory(ffi, address: int, count: int, dtype: torch.dtype, device: int = -1) -> Tensor:
    """A tensor over memory that it does not own.

    Args:
        ffi: cffi's.
        device: the number of the GPU that has the memory; -1 is the processor.
    """
    if device >= 0:
        return torch.as_tensor(_CudaArray(address, count, dtype), device=torch.device(GPU, device))
    if not count:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer(ffi.buffer(ffi.cast("char *", address), count * dtype.itemsize), dtype=dtype)
