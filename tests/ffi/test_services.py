"""TH's operations, by torch."""

import pytest
import torch

from layers._ffi.services import Services

do = Services("cpu")
A, B = torch.rand(3, 4).double(), torch.rand(3, 4).double()


@pytest.mark.parametrize(
    ("operation", "arguments", "expected"),
    [
        ("add", (A, 2.0, B), A + 2 * B),
        ("add", (A, 2.0), A + 2),
        ("sub", (A, 2.0, B), A - 2 * B),
        ("mul", (A, B), A * B),
        ("div", (A, B), A / B),
        ("sum", (A, 1, 1), A.sum(1, True)),
        ("sum", (A, 0, 0), A.sum(0)),
        ("addmm", (0.5, torch.ones(3, 3).double(), 2.0, A, B.t()), 0.5 + 2 * A @ B.t()),
        ("addmv", (1.0, torch.ones(3).double(), 3.0, A, B[0]), 1 + 3 * A @ B[0]),
        ("addr", (1.0, torch.zeros(4, 4).double(), 2.0, A[0], B[0]), 2 * torch.outer(A[0], B[0])),
        ("resizeAs", (A,), None),
        ("copy", (A.t(),), None),
    ],
)
def test_the_result_goes_to_the_first_tensor(operation, arguments, expected):
    out = torch.empty(12 if operation == "copy" else 0).double()
    assert do(operation, out, *arguments) is out
    if expected is not None:
        torch.testing.assert_close(out, expected)
    elif operation == "copy":
        torch.testing.assert_close(out, A.t().reshape(-1))
    else:
        assert out.shape == A.shape


def test_integers_are_divided_as_c_does():
    out = torch.empty(0, dtype=torch.int64)
    do("div", out, torch.tensor([-7, 7]), 2)
    assert out.tolist() == [-3, 3]


def test_views_take_the_place_of_the_first_tensor():
    for operation, arguments, expected in (
        ("select", (0, 1), A[1]), ("narrow", (1, 1, 2), A[:, 1:3]), ("transpose", (0, 1), A.t()), ("set", (), A),
    ):  # fmt: skip
        view = do(operation, torch.empty(0), A, *arguments)
        assert view.data_ptr() == expected.data_ptr() and view.shape == expected.shape


def test_numbers_and_new_tensors():
    assert do("sumall", A) == A.sum().item() and do("amax", A) == A.max().item()
    assert do("dot", A, B) == pytest.approx((A * B).sum().item()) and do("get", A, 1, 2) == A[1, 2].item()
    assert do("norm", A, 2.0) == pytest.approx(A.norm().item())
    for name, dtype in (
        ("THCudaTensor", torch.float32),
        ("THByteTensor", torch.uint8),
        ("THCudaHalfTensor", torch.half),
    ):
        made = do("new", name, 2, 3)
        assert made.dtype == dtype and made.shape == (2, 3)


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
def test_gemv_and_dot_with_steps(turned):
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
    assert do("dotMemory", "D", 3, x.data_ptr(), 2, y.data_ptr(), 3) == pytest.approx(
        (x[:, 0] * y[:, 0]).sum().item()
    )
