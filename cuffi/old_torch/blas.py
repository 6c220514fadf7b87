"""BLAS's functions on the memory of addresses, by torch: matrices by columns, as BLAS has them."""

import torch
from torch import Tensor

from ..runtime.memory import view_memory


def _columns(
    where: torch.device, dtype: torch.dtype, address: int, rows: int, columns: int, step: int
) -> Tensor:
    """The matrix whose columns start at an address, `step` elements apart."""
    flat = view_memory(address, step * (columns - 1) + rows, dtype, where)
    return flat.as_strided((rows, columns), (1, step))


def _update(c: Tensor, alpha: float, product: Tensor, beta: float) -> None:
    c.copy_(alpha * product + beta * c if beta else alpha * product)  # with beta 0 BLAS does not read c


def gemm(where, dtype, ta: str, tb: str, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) -> None:
    """c = alpha op(a) op(b) + beta c."""
    turned_a, turned_b = ta in "tTcC", tb in "tTcC"
    left = _columns(where, dtype, a, *((k, m) if turned_a else (m, k)), lda)
    right = _columns(where, dtype, b, *((n, k) if turned_b else (k, n)), ldb)
    product = (left.T if turned_a else left) @ (right.T if turned_b else right)
    _update(_columns(where, dtype, c, m, n, ldc), alpha, product, beta)


def gemv(where, dtype, turned: str, m, n, alpha, a, lda, x, step_x, beta, y, step_y) -> None:
    """y = alpha op(a) x + beta y."""
    matrix = _columns(where, dtype, a, m, n, lda)
    matrix = matrix.T if turned in "tTcC" else matrix
    vector = _columns(where, dtype, x, 1, matrix.shape[1], step_x)[0]
    _update(_columns(where, dtype, y, 1, matrix.shape[0], step_y)[0], alpha, matrix @ vector, beta)
