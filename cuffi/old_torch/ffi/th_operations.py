"""TH's functions (cuffi/old_torch/include/TH/TH.h) as torch operations.

C code calls them on the tensors that Python passed to it.

The same operations work on the processor and the GPU. Each changes its first tensor in place, or returns the tensor
that replaces it in C, such as a view.
"""

import torch
from torch import Tensor

from ...backends import GPU
from ...runtime.memory import view_memory

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


def _columns(kind: str, address: int, rows: int, columns: int, step: int, device: int) -> Tensor:
    """The matrix whose columns start at an address, `step` elements apart."""
    from cffi import FFI

    dtype = torch.float32 if kind == "S" else torch.float64
    flat = view_memory(FFI(), address, step * (columns - 1) + rows, dtype, device)
    return flat.as_strided((rows, columns), (1, step))


def _update(c: Tensor, alpha: float, product: Tensor, beta: float) -> None:
    c.copy_(alpha * product + beta * c if beta else alpha * product)  # with beta 0 BLAS does not read c


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

    @property
    def device(self) -> int:
        """Where the memory of an address is, as view_memory has it."""
        return torch.cuda.current_device() if self.gpu == GPU else -1

    def gemm(self, kind, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) -> None:
        """c = alpha op(a) op(b) + beta c, by columns."""
        turned_a, turned_b = (chr(t) in "tTcC" for t in (ta, tb))
        left = _columns(kind, a, *((k, m) if turned_a else (m, k)), lda, self.device)
        right = _columns(kind, b, *((n, k) if turned_b else (k, n)), ldb, self.device)
        product = (left.T if turned_a else left) @ (right.T if turned_b else right)
        _update(_columns(kind, c, m, n, ldc, self.device), alpha, product, beta)

    def gemv(self, kind, t, m, n, alpha, a, lda, x, step_x, beta, y, step_y) -> None:
        """y = alpha op(a) x + beta y."""
        matrix = _columns(kind, a, m, n, lda, self.device)
        matrix = matrix.T if chr(t) in "tTcC" else matrix
        vector = _columns(kind, x, 1, matrix.shape[1], step_x, self.device)[0]
        _update(_columns(kind, y, 1, matrix.shape[0], step_y, self.device)[0], alpha, matrix @ vector, beta)


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
