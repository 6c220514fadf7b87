"""The engine's math, called from a layer of caffe_stock, against torch in double; and the stock layers.

Each on the host's CPU functions, on the kernels run on the host, and on a GPU.
"""

import importlib
import math
import shutil

import pytest
import torch
from conftest import ROOT, make
from torch import Tensor
from torch.nn import functional as F

from layers._cases import load_package

DTYPES = [torch.float32, torch.float64]
SIZES = [0, 1, 7, 1000, 100_003]
PLACES = {"cpu": ("cpu", "cpu"), "kernels": ("gpu", "cpu"), "cuda": (None, "cuda")}


@pytest.fixture(scope="session")
def stock(tmp_path_factory):
    """The layers of caffe_stock, built outside of the tree. The engine's objects are kept in build/tests."""
    folder = tmp_path_factory.mktemp("caffe") / "layers"
    shutil.copytree(ROOT / "tests" / "caffe_stock", folder / "stock")
    settings = ["ARCH=native"] if torch.cuda.is_available() else ["NVCC="]
    build = f"BUILD={ROOT / 'build' / 'tests'}"
    done = make(f"LAYERS_DIR={folder}", build, *settings, "-j4", "libraries", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return importlib.import_module(f"{load_package(folder, 'caffe_stock')}.stock")


class Place:
    """Where a layer runs, and with what dtype."""

    def __init__(self, stock, name: str, dtype: torch.dtype):
        self.stock, self.name, self.dtype = stock, name, dtype
        self.mode, self.device = PLACES[name]

    def module(self, layer: str, **parameters):
        module = getattr(self.stock, layer)(**parameters)
        module.mode = self.mode
        return module.to(self.device)

    def math(self, function: str, *bottoms, **parameters):
        """What the function makes of tensors in double; it gets them in this place's dtype."""
        module = self.module("Math", math_param={"function": function, **parameters})
        with torch.no_grad():
            return module(*(b.to(self.device, self.dtype) for b in bottoms)).double().cpu()

    def draw(self, *shape, seed=1, positive=False):
        """Numbers in double that the dtype can hold exactly."""
        values = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double()
        return values.abs() + 0.01 if positive else values

    def close(self, result, expected, scale=1.0):
        tolerance = (1e-5 if self.dtype == torch.float32 else 1e-12) * scale
        torch.testing.assert_close(result, expected.double(), rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.fixture(params=DTYPES, ids=["float", "double"])
def dtype(request):
    return request.param


@pytest.fixture(params=PLACES)
def at(request, stock, dtype):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    return Place(stock, request.param, dtype)


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
    """Along the first axis of a matrix, into rows with gaps; and a corner of a matrix."""
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


# ---------------------------------------------------------------------------------------- stock layers


def compare(at, module, reference, *inputs, scale=100.0):
    """Forward and backward of the module, and autograd's through the reference with the module's blobs."""
    ours = [x.to(at.device, at.dtype).requires_grad_() for x in inputs]
    tops = module(*ours)
    blobs = [p for _, p in sorted(module.named_parameters())]
    theirs = [x.clone().requires_grad_() for x in inputs]
    copies = [p.detach().double().cpu().requires_grad_() for p in blobs]
    expected = reference(*theirs, *copies)
    tops, expected = (t if isinstance(t, tuple) else (t,) for t in (tops, expected))
    assert len(tops) == len(expected)
    diffs = [
        torch.randn(e.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
        for e in expected
    ]
    for top, e in zip(tops, expected, strict=True):
        assert top.shape == e.shape
        at.close(top.detach().double().cpu(), e.detach(), scale)
    grads = torch.autograd.grad(tops, ours + blobs, [d.to(at.device, at.dtype) for d in diffs])
    for grad, e in zip(grads, torch.autograd.grad(expected, theirs + copies, diffs), strict=True):
        at.close(grad.double().cpu(), e, scale)


@pytest.mark.parametrize(
    "layer, parameters, function",
    [
        ("ReLU", {}, F.relu),
        ("ReLU", {"relu_param": {"negative_slope": 0.125}}, lambda x: F.leaky_relu(x, 0.125)),
        ("Sigmoid", {}, torch.sigmoid),
        ("TanH", {}, torch.tanh),
        ("Power", {"power_param": {"power": 2, "scale": 0.5, "shift": 3}}, lambda x: (3 + 0.5 * x) ** 2),
        (
            "Power",
            {"power_param": {"power": -0.5, "scale": 0.5, "shift": 9}},
            lambda x: (9 + 0.5 * x) ** -0.5,
        ),
        ("Power", {"power_param": {"scale": 0.5, "shift": 3}}, lambda x: 3 + 0.5 * x),
        ("Power", {"power_param": {"power": 0}}, lambda x: x**0),
        ("Softmax", {}, lambda x: x.softmax(1)),
        ("Softmax", {"softmax_param": {"axis": -1}}, lambda x: x.softmax(-1)),
        ("Softmax", {"softmax_param": {"axis": 0}}, lambda x: x.softmax(0)),
        ("Flatten", {}, lambda x: x.flatten(1)),
        ("Flatten", {"flatten_param": {"axis": 1, "end_axis": 2}}, lambda x: x.flatten(1, 2)),
        ("Reshape", {"reshape_param": {"shape": {"dim": [0, -1]}}}, lambda x: x.reshape(2, -1)),
        (
            "Reshape",
            {"reshape_param": {"axis": 1, "num_axes": 1, "shape": {"dim": [1, 3]}}},
            lambda x: x.reshape(2, 1, 3, 4, 5),
        ),
        ("Reduction", {}, lambda x: x.sum()),
        ("Reduction", {"reduction_param": {"operation": "MEAN", "axis": 2}}, lambda x: x.mean((2, 3))),
        (
            "Reduction",
            {"reduction_param": {"operation": "ASUM", "axis": 1, "coeff": 0.5}},
            lambda x: 0.5 * x.abs().sum((1, 2, 3)),
        ),
        (
            "Reduction",
            {"reduction_param": {"operation": "SUMSQ", "axis": -1, "coeff": 2}},
            lambda x: 2 * (x**2).sum(-1),
        ),
        ("Split", {"top": ["a", "b", "c"]}, lambda x: (x + 0, x + 0, x + 0)),
        ("Slice", {"top": ["a", "b", "c"]}, lambda x: x.split(1, 1)),
        (
            "Slice",
            {"top": ["a", "b"], "slice_param": {"axis": 2, "slice_point": [1]}},
            lambda x: x.split([1, 3], 2),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_bottom(at, layer, parameters, function):
    compare(at, at.module(layer, **parameters), function, at.draw(2, 3, 4, 5))


@pytest.mark.parametrize(
    "layer, parameters, function",
    [
        ("Eltwise", {}, lambda a, b, c: a + b + c),
        (
            "Eltwise",
            {"eltwise_param": {"operation": "SUM", "coeff": [1, -2, 0.5]}},
            lambda a, b, c: a - 2 * b + 0.5 * c,
        ),
        ("Eltwise", {"eltwise_param": {"operation": "PROD"}}, lambda a, b, c: a * b * c),
        (
            "Eltwise",
            {"eltwise_param": {"operation": "PROD", "stable_prod_grad": False}},
            lambda a, b, c: a * b * c,
        ),
        ("Eltwise", {"eltwise_param": {"operation": "MAX"}}, lambda a, b, c: a.maximum(b).maximum(c)),
        ("Concat", {}, lambda *x: torch.cat(x, 1)),
        ("Concat", {"concat_param": {"axis": 0}}, lambda *x: torch.cat(x, 0)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_three_bottoms(at, layer, parameters, function):
    compare(at, at.module(layer, **parameters), function, *(at.draw(2, 3, 4, 5, seed=s) for s in (1, 2, 3)))


FILLERS = {"weight_filler": {"type": "gaussian", "std": 0.3}, "bias_filler": {"type": "uniform"}}


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"kernel_size": [3]}, {}),
        (
            {"kernel_size": [3], "pad": [1], "stride": [2], "group": 2},
            {"padding": 1, "stride": 2, "groups": 2},
        ),
        ({"kernel_h": 3, "kernel_w": 2, "pad_h": 2, "pad_w": 0}, {"padding": (2, 0)}),
        ({"kernel_size": [3], "dilation": [2], "force_nd_im2col": True}, {"dilation": 2}),
        ({"kernel_size": [1], "bias_term": False}, {}),
    ],
    ids=["plain", "group", "h_w", "nd", "1x1"],
)
def test_convolution(at, options, expected):
    module = at.module("Convolution", convolution_param={"num_output": 6, **FILLERS, **options})
    compare(at, module, lambda x, *blobs: F.conv2d(x, *blobs, **expected), at.draw(3, 4, 7, 8))


def test_convolution_of_volumes(at):
    module = at.module(
        "Convolution", convolution_param={"num_output": 2, "kernel_size": [2], "pad": [1], **FILLERS}
    )
    compare(at, module, lambda x, *blobs: F.conv3d(x, *blobs, padding=1), at.draw(2, 3, 4, 5, 3))


@pytest.mark.parametrize("transpose", [False, True])
def test_inner_product(at, transpose):
    module = at.module(
        "InnerProduct", inner_product_param={"num_output": 6, "transpose": transpose, **FILLERS}
    )
    compare(
        at,
        module,
        lambda x, w, b: F.linear(x.flatten(1), w.T if transpose else w, b),
        at.draw(5, 3, 2, 4),
    )


@pytest.mark.parametrize("method", ["MAX", "AVE"])
@pytest.mark.parametrize("kernel, stride, pad", [(2, 2, 0), (3, 2, 1), (3, 1, 0), (3, 2, 0)])
def test_pooling(at, method, kernel, stride, pad):
    """Caffe's average counts the padding within pad of the image, as torch's does with ceil_mode."""
    module = at.module(
        "Pooling", pooling_param={"pool": method, "kernel_size": kernel, "stride": stride, "pad": pad}
    )
    function = F.max_pool2d if method == "MAX" else F.avg_pool2d
    compare(at, module, lambda x: function(x, kernel, stride, pad, ceil_mode=True), at.draw(2, 3, 8, 7))


def test_global_and_floor_pooling(at):
    module = at.module("Pooling", pooling_param={"pool": "AVE", "global_pooling": True})
    compare(at, module, lambda x: x.mean((2, 3), keepdim=True), at.draw(2, 3, 4, 5))
    module = at.module("Pooling", pooling_param={"kernel_size": 3, "stride": 2, "round_mode": "FLOOR"})
    compare(at, module, lambda x: F.max_pool2d(x, 3, 2), at.draw(2, 3, 8, 8))


def test_pooling_reports_where(at):
    module = at.module("Pooling", top=["y", "mask"], pooling_param={"kernel_size": 2, "stride": 2})
    x = at.draw(2, 3, 6, 4)
    with torch.no_grad():
        y, mask = module(x.to(at.device, at.dtype))
    expected = F.max_pool2d(x, 2, 2, return_indices=True)
    at.close(y.double().cpu(), expected[0])
    at.close(mask.double().cpu(), expected[1])


def test_stochastic_pooling(at):
    module = at.module("Pooling", pooling_param={"pool": "STOCHASTIC", "kernel_size": 2, "stride": 2})
    x = at.draw(2, 3, 6, 4, positive=True)
    if at.mode == "cpu":
        with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
            module(x.to(at.dtype))
        return
    windows = F.unfold(x.view(6, 1, 6, 4), 2, stride=2)
    given = x.to(at.device, at.dtype).requires_grad_()
    y = module(given)
    drawn = (windows - y.detach().double().cpu().view(6, 1, 6)).abs().min(1).values
    assert drawn.max() < 1e-6
    y.sum().backward()
    assert given.grad.sum() == y.numel() and set(given.grad.unique().tolist()) <= {0.0, 1.0}
    module.eval()
    mean = (windows**2).sum(1) / windows.sum(1)
    with torch.no_grad():
        at.close(module(given).double().cpu().view(6, 6), mean)


def by_axis(blob, axis, x):
    return blob.reshape([1] * axis + list(blob.shape) + [1] * (x.dim() - axis - blob.dim()))


@pytest.mark.parametrize("axis, num_axes", [(1, 1), (0, 2), (2, -1), (1, 0)])
def test_bias_and_scale(at, axis, num_axes):
    x = at.draw(2, 3, 4, 5)
    span = {"axis": axis, "num_axes": num_axes}
    filler = {"filler": {"type": "gaussian"}}
    at_axis = 0 if num_axes == 0 else axis
    bias = at.module("Bias", bias_param={**span, **filler})
    compare(at, bias, lambda x, b: x + by_axis(b, at_axis, x), x)
    scale = at.module("Scale", scale_param={**span, **filler})
    compare(at, scale, lambda x, s: x * by_axis(s, at_axis, x), x)
    both = at.module(
        "Scale", scale_param={**span, **filler, "bias_term": True, "bias_filler": {"type": "gaussian"}}
    )
    compare(at, both, lambda x, s, b: x * by_axis(s, at_axis, x) + by_axis(b, at_axis, x), x)


def test_bias_and_scale_by_a_bottom(at):
    x, v = at.draw(2, 3, 4, 5), at.draw(3, 4, seed=2)
    compare(at, at.module("Bias"), lambda x, v: x + v[..., None], x, v)
    compare(at, at.module("Scale"), lambda x, v: x * v[..., None], x, v)


def test_empty(at):
    """No images: every layer leaves it alone."""
    empty = torch.zeros(0, 3, 4, 4, device=at.device, dtype=at.dtype)
    for layer in ("ReLU", "Softmax", "Power", "Split", "Sigmoid"):
        assert at.module(layer)(empty).shape == empty.shape
    assert at.module("Eltwise")(empty, empty).shape == empty.shape
    conv = at.module("Convolution", convolution_param={"num_output": 2, "kernel_size": [3]})
    assert conv(empty).shape == (0, 2, 2, 2)
    assert at.module("InnerProduct", inner_product_param={"num_output": 5})(empty).shape == (0, 5)


@pytest.mark.parametrize(
    "layer, parameters, message",
    [
        ("Pooling", {"pooling_param": {"stride": 2}}, "Filter size is kernel_size OR"),
        (
            "Convolution",
            {"convolution_param": {"num_output": 5, "kernel_size": [3], "group": 3}},
            "multiples of group",
        ),
        ("Concat", {"concat_param": {"axis": 7}}, "axis 7 out of range"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [7, -1]}}}, "must be divisible"),
        ("Slice", {"top": ["a", "b"]}, "evenly divide"),
    ],
)
def test_refused(stock, layer, parameters, message):
    with pytest.raises(Exception, match=message):
        getattr(stock, layer)(**parameters)(torch.zeros(2, 3, 4, 5))
