"""TH's operations with torch."""

import pytest
import torch

from cuffi.old_torch.ffi.th_operations import Services

do = Services("cpu")
A, B = torch.rand(3, 4).double(), torch.rand(3, 4).double()


def test_operations():
    out = torch.empty(0).double()
    assert do("cadd", out, A, 2.0, B) is out
    torch.testing.assert_close(out, A + 2 * B)
    assert do("resizeAs", torch.empty(0).double(), A).shape == A.shape
    torch.testing.assert_close(do("copy", torch.empty(12).double(), A.t()), A.t().reshape(-1))
    row = do("select", torch.empty(0), A, 0, 1)  # a view, which takes the place of the first tensor
    assert row.data_ptr() == A[1].data_ptr() and row.shape == (4,)
    assert do("newContiguous", A.t()).is_contiguous()
    made = [do("new", name, 2, 3) for name in ("THCudaTensor", "THByteTensor", "THCudaHalfTensor")]
    assert [t.dtype for t in made] == [torch.float32, torch.uint8, torch.half]
    assert all(t.shape == (2, 3) for t in made)


@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_gemm_by_columns(turned, beta):
    m, n, k = 2, 3, 4
    a, b, c = (torch.rand(s).double() for s in ((k, m), (n, k), (n, m)))  # rows here are columns there
    a, b = (a.t().contiguous() if turned[0] else a), (b.t().contiguous() if turned[1] else b)
    if beta == 0:
        c.fill_(float("nan"))  # BLAS does not read it
    op_a, op_b = (a if turned[0] else a.t()), (b if turned[1] else b.t())
    expected = 2 * op_a @ op_b + (beta * c.t() if beta else 0)
    letters = [ord("t" if t else "n") for t in turned]
    do(
        "gemm",
        "D",
        *letters,
        m,
        n,
        k,
        2.0,
        a.data_ptr(),
        a.shape[1],
        b.data_ptr(),
        b.shape[1],
        beta,
        c.data_ptr(),
        m,
    )
    torch.testing.assert_close(c.t(), expected)


@pytest.mark.parametrize("turned", [0, 1])
def test_gemv_with_steps(turned):
    a, x, y = torch.rand(3, 2).double(), torch.rand(3, 2).double(), torch.rand(3, 3).double()
    matrix = a if turned else a.t()
    n, m = matrix.shape[1], matrix.shape[0]
    expected = y[:m, 0].clone() + matrix @ x[:n, 0]
    do(
        "gemv",
        "D",
        ord("t" if turned else "n"),
        2,
        3,
        1.0,
        a.data_ptr(),
        2,
        x.data_ptr(),
        2,
        1.0,
        y.data_ptr(),
        3,
    )
    torch.testing.assert_close(y[:m, 0], expected)
