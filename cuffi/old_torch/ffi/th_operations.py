"""TH's functions (cuffi/old_torch/include/TH/TH.h) as torch operations.

C code calls them on the tensors that Python passed to it.

The same operations work on the processor and the GPU. Each changes its first tensor in place, or returns the tensor
that replaces it in C, such as a view.
"""

import torch
from torch import Tensor

from ..blas import gemm, gemv

DTYPES = {
    "Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "Long": torch.int64, "Int": torch.int32,
    "Short": torch.int16, "Char": torch.int8, "Byte": torch.uint8,
}  # fmt: skip


def _resize(tensor: Tensor, *sizes: int) -> Tensor:
    if tensor.requires_grad:  # torch refuses to resize it; in 2017 it did not
        tensor.data = tensor.data.resize_(sizes)
        return tensor
    return tensor.resize_(sizes)


def _fill_storage(tensor: Tensor, x) -> Tensor:
    """All memory that the tensor is a part of, as TH's storages have it."""
    whole = tensor.new_empty(0).set_(tensor.untyped_storage())
    whole.fill_(x)
    return tensor.fill_(x)  # this increments its version


def _cadd(tensor: Tensor, a: Tensor, x, b: Tensor) -> Tensor:
    """a + x b, which gives the tensor its size."""
    result = torch.add(a, b, alpha=x)
    return _resize(tensor, *result.shape).copy_(result)


class Services:
    """The operations of one library. gpu: the device type of THC's tensors."""

    def __init__(self, gpu: str):
        self.gpu = gpu

    def __call__(self, operation: str, *arguments):
        with torch.no_grad():
            if operation in ("new", "gemm", "gemv"):
                return getattr(self, operation)(*arguments)
            return OPERATIONS[operation](*arguments)

    def new(self, name: str, *sizes: int) -> Tensor:
        kind = name.removeprefix("TH").removesuffix("Tensor")
        device = self.gpu if kind.startswith("Cuda") else "cpu"
        return torch.empty(sizes, dtype=DTYPES[kind.removeprefix("Cuda") or "Float"], device=device)

    def _of(self, kind: str) -> tuple[torch.device, torch.dtype]:
        """Where the memory of an address is, and the type of a BLAS function's letter."""
        return torch.device(self.gpu), torch.float32 if kind == "S" else torch.float64

    def gemm(self, kind, ta, tb, *numbers) -> None:
        gemm(*self._of(kind), chr(ta), chr(tb), *numbers)

    def gemv(self, kind, t, *numbers) -> None:
        gemv(*self._of(kind), chr(t), *numbers)


OPERATIONS = {
    "resize": _resize,
    "resizeAs": lambda tensor, like: _resize(tensor, *like.shape),
    "zero": Tensor.zero_,
    "fill": Tensor.fill_,
    "fillStorage": _fill_storage,
    "copy": lambda tensor, of: tensor.copy_(of.reshape(tensor.shape)),
    "cadd": _cadd,
    "select": lambda tensor, of, dimension, index: of.select(dimension, index),
    "newContiguous": Tensor.contiguous,
}
