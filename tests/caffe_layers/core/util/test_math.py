"""The core's math, called from a layer of caffe_stock, compared with torch in double."""

import math

import pytest
import torch
from support.stock import SIZES
from torch import Tensor
from torch.nn import functional as F

# ------------------------------------------------------------------------------------ element by element

UNARY = {
    "sqr": torch.square,
    "sqrt": torch.sqrt,
    "exp": torch.exp,
    "log": torch.log,
    "abs": torch.abs,
    "fabs": torch.abs,
    "sign": torch.sign,
    "sgnbit": lambda a: torch.signbit(a).double(),
    "copy": lambda a: a,
    "memcpy": lambda a: a,
    "memset": torch.zeros_like,
}
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}


@pytest.mark.parametrize("function", UNARY)
def test_unary(at, function):
    for n in SIZES:
        a = at.draw(n, positive=function in ("sqrt", "log"))
        at.close(at.math(function, a), UNARY[function](a))


def test_special_values(at):
    a = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan], dtype=torch.float64)
    at.close(at.math("sign", a), torch.tensor([0.0, 0, 1, -1, 0]))
    at.close(at.math("sgnbit", a)[:4], torch.tensor([0.0, 1, 0, 1]))
    at.close(at.math("exp", a), a.exp())


@pytest.mark.parametrize("function", BINARY)
def test_binary(at, function):
    for n in SIZES:
        a, b = at.draw(n), at.draw(n, seed=2, positive=True)
        at.close(at.math(function, a, b), BINARY[function](a, b))


def test_in_place(at):
    a, b = at.draw(1001), at.draw(1001, seed=2)
    at.close(at.math("add_in_place", a, b, start=0), a + b)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0])
def test_powx(at, power):
    a = at.draw(1000, positive=not power.is_integer())
    at.close(at.math("powx", a, v=[power]), a.pow(power), scale=10)


def test_with_scalars(at):
    for n in SIZES:
        a, b = at.draw(n), at.draw(n, seed=2)
        at.close(at.math("set", a, v=[2.5]), torch.full_like(a, 2.5))
        at.close(at.math("scale", a, v=[-1.5]), -1.5 * a)
        at.close(at.math("scal", a, v=[-1.5], start=0), -1.5 * a)
        at.close(at.math("scal_on_stream", a, v=[-1.5], start=0), -1.5 * a)
        at.close(at.math("add_scalar", a, v=[0.25], start=0), a + 0.25)
        at.close(at.math("axpy", a, b, v=[0.75], start=1), 0.75 * a + b)
        at.close(at.math("axpby", a, b, v=[0.75, -2.0], start=1), 0.75 * a - 2 * b)
        at.close(
            at.math("axpby", a, v=[0.75, 0.0]), 0.75 * a
        )  # the top is NaN before: beta 0 does not read it


# -------------------------------------------------------------------------------------- reductions, BLAS


def test_reductions(at):
    for n in SIZES:
        a, b = at.draw(n), at.draw(n, seed=2)
        scale = max(1.0, n**0.5)
        at.close(at.math("dot", a, b, shape=[1]), (a * b).sum().view(1), scale)
        at.close(at.math("asum", a, shape=[1]), a.abs().sum().view(1), scale)
    strided = at.math("strided_dot", a, b, n=[30, 3, 5], shape=[1])
    at.close(strided, (a[:90:3] * b[:150:5]).sum().view(1))


def test_hamming_distance(at):
    a, b = torch.tensor([1.0, 2, 3, 255]).double(), torch.tensor([1.0, 1, 3, 0]).double()
    at.close(at.math("hamming", a, b, shape=[1]), torch.tensor([10.0]))


def test_nextafter(at):
    one = torch.tensor(1.0, dtype=at.dtype)
    after = torch.nextafter(one, torch.tensor(math.inf, dtype=at.dtype)).double().view(1)
    assert torch.equal(at.math("nextafter", torch.zeros(1), v=[1.0], shape=[1]), after)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("trans", [(0, 0), (0, 1), (1, 0), (1, 1)], ids=["NN", "NT", "TN", "TT"])
def test_gemm(at, trans, beta):
    for m, n, k in [(1, 1, 1), (3, 5, 7), (64, 33, 20), (2, 3, 0), (1, 9, 1)]:
        a, b = at.draw(*((k, m) if trans[0] else (m, k))), at.draw(*((n, k) if trans[1] else (k, n)), seed=2)
        c = at.draw(m, n, seed=3)
        start = -1 if beta == 0 else 2  # beta 0: the top is NaN
        result = at.math("gemm", a, b, c, n=[*trans, m, n, k], v=[1.5, beta], start=start, shape=[m, n])
        product = (a.T if trans[0] else a) @ (b.T if trans[1] else b)
        at.close(result, 1.5 * product + beta * c, scale=10)


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("trans", [0, 1], ids=["N", "T"])
def test_gemv(at, trans, beta):
    for m, n in [(1, 1), (5, 7), (130, 41), (4, 0), (0, 4)]:
        rows, columns = (n, m) if trans else (m, n)
        a, x, y = at.draw(m, n), at.draw(columns, seed=2), at.draw(rows, seed=3)
        start = -1 if beta == 0 else 2
        result = at.math("gemv", a, x, y, n=[trans, m, n], v=[-0.5, beta], start=start, shape=[rows])
        at.close(result, -0.5 * ((a.T if trans else a) @ x) + beta * y, scale=10)


def test_a_call_of_cublas(at):
    a = at.draw(11)
    at.close(at.math("cublas", a, shape=[1]), 3 * a[-1:])


ROWS, COLUMNS, LEFT, RIGHT, UPPER, LOWER, PLAIN, TURNED, NON_UNIT, UNIT = (
    *(101, 102, 141, 142, 121, 122, 111, 112, 131, 132),
)


@pytest.mark.parametrize("order", [ROWS, COLUMNS])
@pytest.mark.parametrize("side", [LEFT, RIGHT])
@pytest.mark.parametrize("uplo", [UPPER, LOWER])
def test_products_and_systems_of_half_a_matrix(at, order, side, uplo):
    """The other triangle is not read."""
    m, n = 4, 3
    k = m if side == LEFT else n
    half = (
        (at.draw(k, k) + 3 * torch.eye(k)).triu()
        if uplo == UPPER
        else (at.draw(k, k) + 3 * torch.eye(k)).tril()
    )
    symmetric = half + half.T - half.diag().diag()
    b, c = at.draw(m, n, seed=2), at.draw(m, n, seed=3)
    nans = torch.full((k, k), math.nan).double()
    given = half + (nans.tril(-1).nan_to_num(1e9) if uplo == UPPER else nans.triu(1).nan_to_num(1e9))

    def stored(x):
        return x if order == ROWS else x.T.contiguous()

    def run(function, *inputs, kind=(PLAIN, NON_UNIT)):
        sizes, stored_shape = [order, side, uplo, *kind, m, n], list(stored(b).shape)
        start = len(inputs) - 1
        result = at.math(function, *map(stored, inputs), n=sizes, v=[0.5], start=start, shape=stored_shape)
        return result if order == ROWS else result.T

    product = symmetric @ b if side == LEFT else b @ symmetric
    at.close(run("symm", given, b, c), 0.5 * product + 2 * c, scale=10)
    x, y = at.draw(k, seed=4), at.draw(k, seed=5)
    sizes = [order, side, uplo, 0, 0, k, k]
    result = at.math("symv", stored(given), x, y, n=sizes, v=[0.5], start=2, shape=[k])
    at.close(result, 0.5 * symmetric @ x + 2 * y, scale=10)
    for trans, diag in ((PLAIN, NON_UNIT), (TURNED, UNIT)):
        a = half if diag == NON_UNIT else half - half.diag().diag() + torch.eye(k)
        a = a if trans == PLAIN else a.T
        wanted = 0.5 * (torch.linalg.solve(a, b) if side == LEFT else torch.linalg.solve(a.T, b.T).T)
        at.close(run("trsm", given, b, kind=(trans, diag)), wanted, scale=100)


@pytest.mark.parametrize("m, n", [(0, 3), (3, 0), (0, 0)])
def test_blas_is_not_asked_for_nothing(at, capfd, m, n):
    """BLAS would refuse a leading dimension of 0."""
    a, b, c = torch.zeros(m, 2), torch.zeros(2, n), torch.zeros(m, n)
    assert at.math("gemm", a, b, c, n=[0, 0, m, n, 2], v=[1, 0], shape=[m, n]).shape == (m, n)
    for order in (ROWS, COLUMNS):
        sizes = [order, LEFT, UPPER, PLAIN, UNIT, m, n]
        given = torch.eye(m), c
        assert at.math("trsm", *given, n=sizes, v=[1], start=1, shape=[m, n]).shape == (m, n)
    said = capfd.readouterr()
    assert said.out + said.err == ""


def test_functions_of_vectors_by_mkls_names(at):
    a = at.draw(100, positive=True)
    at.close(at.math("vsl", a, v=[1.5]), (a + a.sin()).pow(1.5), scale=10)


@pytest.mark.parametrize("order", [ROWS, COLUMNS])
def test_product_of_two_vectors_is_added(at, order):
    m, n = 4, 3
    x, y, c = at.draw(m), at.draw(n, seed=2), at.draw(m, n, seed=3)
    start = c if order == ROWS else c.T.contiguous()
    result = at.math(
        "ger", x, y, start, n=[order, LEFT, UPPER, 0, 0, m, n], v=[0.5], start=2, shape=list(start.shape)
    )
    at.close(result if order == ROWS else result.T, c + 0.5 * torch.outer(x, y))


@pytest.mark.parametrize("stepped", [0, 1])
def test_products_in_a_batch(at, stepped):
    """MKL's cblas_sgemm_batch, cuBLAS's own by addresses and by steps."""
    m, n, k, count = 3, 5, 4, 6
    a, b = at.draw(count, m, k), at.draw(count, k, n, seed=2)
    result = at.math("gemm_batch", a, b, n=[stepped, m, n, k, count], shape=[count, m, n])
    at.close(result, a @ b, scale=10)


def test_where_the_largest_and_the_smallest_are(at):
    """By absolute value, the first of several counts, from 1 as in Fortran. 0 means that there is none."""
    a = at.draw(12)
    a[3], a[7], a[5], a[8] = -9, 9, 0, 0
    for n, step in ((12, 1), (1, 1), (3, 1), (4, 3), (2, 3), (0, 1)):
        part = a[: n * step : step].to(at.dtype).abs()
        wanted = [int(part.argmax()) + 1, int(part.argmin()) + 1] if n else [0, 0]
        found = [at.math(function, a, n=[n, step], shape=[1]).item() for function in ("amax", "amin")]
        assert found == wanted, (n, step)
    for first in (9.0, 0.0):
        a[0] = first
        assert at.math("amax" if first else "amin", a, n=[12, 1], shape=[1]).item() == 1


def test_pairs_as_before_cpp_11(at):
    assert at.math("pair", at.draw(11), shape=[1]).item() == 12


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_sum_of_matrices(at, trans_a, trans_b):
    """cuBLAS's own, column-major: c = alpha op(a) + beta op(b)."""
    m, n, gap = 5, 3, 2
    a, b = (
        at.draw(*((m, n) if trans else (n, m)), seed=seed) for seed, trans in enumerate((trans_a, trans_b))
    )
    wide = [torch.nn.functional.pad(x, (0, gap)) for x in (a, b)]
    sizes = [trans_a, trans_b, m, n, wide[0].shape[1], wide[1].shape[1], m + gap]
    for alpha, beta in ((2, -0.5), (1, 0), (0, 1)):
        result = at.math("geam", *wide, n=sizes, v=[alpha, beta], shape=[n, m + gap])
        expected = alpha * (a.T if trans_a else a) + beta * (b.T if trans_b else b)
        at.close(result[:, :m], expected, scale=10)
        assert result[:, m:].isnan().all()


def dft(x: Tensor, axes: int, sign: int = -1) -> Tensor:
    """The definition, along the last axes, not normalised."""
    x = x.to(torch.complex128)
    for axis in range(-axes, 0):
        k = torch.arange(x.shape[axis], dtype=torch.float64)
        wave = torch.exp(sign * 2j * math.pi * k[:, None] * k / len(k))
        x = torch.tensordot(x.movedim(axis, -1), wave, 1).movedim(-1, axis)
    return x


@pytest.mark.parametrize("sizes", [(8,), (7,), (1,), (4, 6), (3, 2, 5)], ids=str)
def test_fourier_transforms(at, sizes):
    """cuFFT's calls, with its usual layouts."""
    batch, axes = 3, len(sizes)
    real, scale = at.draw(batch, *sizes), 100
    pairs = at.draw(batch, *sizes, 2, seed=2)
    for sign in (-1, 1):
        n = [sign, batch, 0, axes, *sizes]
        result = at.math("fft", pairs, n=n, shape=pairs.shape)
        at.close(result, torch.view_as_real(dft(torch.view_as_complex(pairs), axes, sign)), scale)
        at.close(at.math("fft", pairs, n=[sign, batch, 1, *n[3:]], start=0, shape=pairs.shape), result, scale)

    full = dft(real, axes)
    half = torch.view_as_real(full[..., : sizes[-1] // 2 + 1]).contiguous()
    n = [-1, batch, 0, axes, *sizes]
    at.close(at.math("rfft", real, n=n, shape=half.shape), half, scale)
    at.close(at.math("irfft", half, n=n, shape=real.shape), real * math.prod(sizes), scale)
    # In place, rows of real numbers are as long as those of complex ones.
    rows = half.shape[-2] * 2
    padded = torch.nn.functional.pad(real, (0, rows - sizes[-1]))
    n[2] = 1
    at.close(at.math("rfft", padded, n=n, start=0, shape=half.shape), half, scale)
    back = at.math("irfft", half, n=n, start=0, shape=padded.shape)
    at.close(back[..., : sizes[-1]], real * math.prod(sizes), scale)


def test_fourier_transforms_of_other_layouts(at):
    """One goes along the first axis of a matrix, into rows with gaps, one over a corner of a matrix."""
    n, batch, gap = 6, 4, 3
    x = at.draw(n, batch, 2)
    result = at.math("fft", x, n=[-1, batch, 0, 1, n, batch, 1, n, 1, n + gap, n], shape=[batch, n + gap, 2])
    at.close(result[:, :n], torch.view_as_real(dft(torch.view_as_complex(x).T, 1)), 100)
    assert result[:-1, n:].isnan().all()

    rows, columns = 3, 4
    x = at.draw(2, 5, 7, seed=2)
    layout = [1, 35, 5, 7, 1, 0, rows, columns // 2 + 1]
    result = at.math("rfft", x, n=[-1, 2, 0, 2, rows, columns, *layout], shape=[2, rows, columns // 2 + 1, 2])
    expected = dft(x[:, :rows, :columns], 2)[..., : columns // 2 + 1]
    at.close(result, torch.view_as_real(expected), 100)


def test_not_in_a_cuda_graph(at):
    if at.device != "cuda":
        pytest.skip("no GPU")
    module = at.module("Math", math_param={"function": "asum", "shape": [1]})
    a = at.draw(10).to("cuda", at.dtype)
    module(a)
    with pytest.raises(Exception, match="captured in a CUDA graph"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        module(a)


# --------------------------------------------------------------------------------------- random numbers


def test_random_numbers(at):
    n = 20_001
    draw = {
        "uniform": (at.math("uniform", torch.zeros(n), v=[-1, 3]), 1, 16 / 12),
        "gaussian": (at.math("gaussian", torch.zeros(n), v=[2, 0.5]), 2, 0.25),
        "bernoulli": (at.math("bernoulli", torch.zeros(n), v=[0.3]), 0.3, 0.21),
    }
    for name, (values, mean, variance) in draw.items():
        assert abs(values.mean() - mean) < 6 * (variance / n) ** 0.5, name
        assert abs(values.var() / variance - 1) < 0.1, name
    assert draw["uniform"][0].min() >= -1 and draw["uniform"][0].max() <= 3
    assert set(draw["bernoulli"][0].tolist()) == {0.0, 1.0}
    for function in ("rand", "bits"):
        assert len(at.math(function, torch.zeros(100)).unique()) > 90


def test_random_numbers_follow_torchs_seed(at):
    for function, v in [
        ("uniform", [0, 1]),
        ("gaussian", [0, 1]),
        ("bernoulli", [0.5]),
        ("rand", []),
        ("bits", []),
    ]:
        torch.manual_seed(5)
        first = at.math(function, torch.zeros(64), v=v)
        assert not torch.equal(first, at.math(function, torch.zeros(64), v=v)), function
        torch.manual_seed(5)
        assert torch.equal(first, at.math(function, torch.zeros(64), v=v)), function


# --------------------------------------------------------------------------------------------- im2col

GEOMETRIES = [  # channels, height, width, kernel, pad, stride, dilation
    (3, 7, 6, (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 9, 8, (2, 3), (0, 2), (2, 1), (1, 1)),
    (1, 11, 10, (3, 2), (2, 1), (3, 2), (2, 3)),
    (2, 5, 5, (1, 1), (0, 0), (1, 1), (1, 1)),
]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_im2col(at, geometry):
    channels, h, w, kernel, pad, stride, dilation = geometry
    sizes = dict(kernel_size=kernel, padding=pad, stride=stride, dilation=dilation)
    image = at.draw(channels, h, w)
    columns = F.unfold(image[None], **sizes)[0]
    n = [channels, h, w, *kernel, *pad, *stride, *dilation]
    at.close(at.math("im2col", image, n=n, shape=columns.shape), columns)
    back = at.draw(*columns.shape, seed=2)
    folded = F.fold(back[None], (h, w), **sizes)[0]
    at.close(at.math("col2im", back, n=n, shape=image.shape), folded)
    out = [
        (s + 2 * p - (d * (k - 1) + 1)) // t + 1
        for s, k, p, t, d in zip((h, w), kernel, pad, stride, dilation, strict=True)
    ]
    many = [2, channels, h, w, columns.shape[0], *out, *kernel, *pad, *stride, *dilation]
    at.close(at.math("im2col_nd", image, n=many, shape=columns.shape), columns)
    at.close(at.math("col2im_nd", back, n=many, shape=image.shape), folded)
    if dilation == (1, 1):
        at.close(at.math("im2col without dilation", image, n=n[:9], shape=columns.shape), columns)
