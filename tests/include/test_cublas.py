"""cuBLAS on the host: a whole program, run and judged, compared with numpy in double."""

import numpy as np
import pytest
from conftest import ROOT

from cuffi import run
from cuffi.judge import judge

PROGRAM = ROOT / "tests" / "fixtures" / "cublas" / "program.cu"


def filled(count: int, start: int) -> np.ndarray:
    return (7 * np.arange(count) + start) % 11 - 5.0


def matrix(values: np.ndarray, ld: int, rows: int, columns: int) -> np.ndarray:
    """A view of a column-major matrix."""
    return np.lib.stride_tricks.as_strided(values, (rows, columns), (8, 8 * ld))


def lines() -> dict:
    """What the program prints, in its order."""
    m, n, k, found = 3, 4, 5, {}
    a, b, c = filled(60, 1), filled(60, 2), filled(60, 3)
    to = matrix(c, m, m, n)
    to[:] = 2 * matrix(a, m, m, k) @ matrix(b, k, k, n) + 0.5 * to
    found["nn"] = c[: m * n].copy()
    matrix(c, m + 2, m, n)[:] = matrix(a, k + 1, k, m).T @ matrix(b, k, k, n)
    found["tn"] = c[:20].copy()
    to[:] = matrix(a, m, m, k) @ matrix(b, n, n, k).T + to
    found["nt"] = c[: m * n].copy()
    products = [
        (matrix(a[i * m * k :], k, k, m).T @ matrix(b[i * n * k :], n, n, k).T).T.ravel() for i in (0, 1)
    ]
    found["batched"] = 2 * np.concatenate(products)
    ten = a[:10]
    found["results"] = [
        a[:20:2] @ b[:30:3],
        np.sqrt(ten @ ten),
        abs(ten).sum(),
        1 + np.argmax(abs(ten)),
    ]
    found["sum"] = [2 * ten @ b[9::-1]]
    b[:10:2] += 2 * a[:5]
    b[:3] *= 0.5
    found["axpy"] = b[:10].copy()
    found["gemv"] = matrix(a, m, m, n).T @ b[:m]
    found["geam"] = matrix(a, n, n, m).T.T.ravel()
    d, e, to = filled(20, 1), filled(20, 4), matrix(filled(16, 5), 4, 4, 4)
    product = matrix(d, 4, 4, 5) @ matrix(e, 5, 5, 4)
    found["double"] = (3 * to - product).T.ravel()
    found["half"] = (to + product).T.ravel()
    found["matrix"] = matrix(a[1:], 5, 2, 3).T.ravel()
    return found | {"refused": [7]}


def test_a_program_with_cublas(capfd):
    assert run.main([str(PROGRAM)]) == 0
    found = {name: [*map(float, rest)] for name, *rest in map(str.split, capfd.readouterr().out.splitlines())}
    wanted = lines()
    assert [*found] == [*wanted]
    for name, numbers in wanted.items():
        np.testing.assert_allclose(found[name], numbers, rtol=1e-5, err_msg=name)


def test_what_cublas_writes_is_set():
    found = judge([PROGRAM])
    assert found["verdict"] == "ok", found


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, x, 8, x, 8, &one, y, 8);", "bounds"),
        ("cublasStrsm(h, CUBLAS_SIDE_LEFT, 0, 0, 0, 8, 8, &one, x, 8, y, 8);", "not-built"),
    ],
)
def test_a_wrong_call_and_one_that_is_not_here(call, kind, tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(
        "#include <cublas_v2.h>\n__global__ void k(float* x) { x[threadIdx.x] = 1; }\n"
        "int main() {\n  float *x, *y, one = 1;\n  cudaMalloc(&x, 256); cudaMalloc(&y, 128);\n  k<<<1, 64>>>(x);\n"
        f"  cudaMemset(y, 0, 128);\n  cublasHandle_t h; cublasCreate(&h);\n  {call}\n}}\n"
    )
    found = judge([file])
    assert found["verdict"] == kind, found
