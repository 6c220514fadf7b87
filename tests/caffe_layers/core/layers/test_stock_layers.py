"""The core's stock layers, compared with torch in double."""

import itertools

import pytest
import torch
from support.caffe_reference import windows
from support.stock import compare
from support.zoo import raises
from torch.nn import functional as F

from cuffi import CaffeRuntimeError


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
        ("Split", {"top": ["a", "b"]}, lambda x: (x + 0, x + 0)),
        ("Split", {"top": ["a"]}, lambda x: x + 0),
        # One of one shares its memory.
        ("Slice", {"top": ["a"]}, lambda x: x + 0),
        ("Concat", {}, lambda x: x + 0),
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


def reshaped(*dim, **more) -> dict:
    return {"reshape_param": {"shape": {"dim": dim}, **more}}


@pytest.mark.parametrize(
    "layer, parameters, function",
    [
        ("Reshape", reshaped(3, 8, 5), lambda x: x.reshape(3, 8, 5)),
        ("Reshape", reshaped(0, 0, -1), lambda x: x.reshape(2, 3, 20)),
        ("Reshape", reshaped(0, 4, -1, axis=1), lambda x: x.reshape(2, 3, 4, 5)),
        ("Reshape", reshaped(-1, axis=2), lambda x: x.reshape(2, 3, 20)),
        ("Reshape", reshaped(1, axis=-1), lambda x: x[..., None]),
        ("Reshape", reshaped(1, axis=4), lambda x: x[..., None]),
        ("Reshape", reshaped(1, 1, axis=-5, num_axes=0), lambda x: x[None, None]),
        ("Reshape", reshaped(1, axis=1, num_axes=0), lambda x: x[:, None]),
        ("Reshape", reshaped(12, axis=-4, num_axes=2), lambda x: x.reshape(2, 12, 5)),
        ("Reshape", reshaped(-1, 2, axis=-3, num_axes=1), lambda x: x.reshape(2, 3, 2, 2, 5)),
        ("Flatten", {"flatten_param": {"axis": 0}}, lambda x: x.flatten()),
        ("Flatten", {"flatten_param": {"axis": -3, "end_axis": -2}}, lambda x: x.flatten(1, 2)),
        ("Flatten", {"flatten_param": {"axis": 2, "end_axis": 2}}, lambda x: x + 0),
        ("Slice", {"top": ["a", "b"], "slice_param": {"axis": -2}}, lambda x: x.split(2, 2)),
        ("Slice", {"top": ["a", "b"], "slice_param": {"slice_dim": 2}}, lambda x: x.split(2, 2)),
        (
            "Slice",
            {"top": ["a", "b", "c"], "slice_param": {"axis": -1, "slice_point": [1, 3]}},
            lambda x: x.split([1, 2, 2], 3),
        ),
        ("Softmax", {"softmax_param": {"axis": -3}}, lambda x: x.softmax(1)),
        ("Reduction", {"reduction_param": {"axis": -3}}, lambda x: x.sum((1, 2, 3))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_axes(at, layer, parameters, function):
    """They count from the front and from the end: the first one, the last one and none at all."""
    compare(at, at.module(layer, **parameters), function, at.draw(2, 3, 4, 5))


def test_axes_of_another_count(at):
    with raises(CaffeRuntimeError, "output count must match input count"):
        at.module("Reshape", **reshaped(2, 0, axis=-3, num_axes=2))(at.draw(2, 3, 4, 5))


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
        ("Concat", {"concat_param": {"axis": -2}}, lambda *x: torch.cat(x, 2)),
        ("Concat", {"concat_param": {"concat_dim": 3}}, lambda *x: torch.cat(x, 3)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_three_bottoms(at, layer, parameters, function):
    compare(at, at.module(layer, **parameters), function, *(at.draw(2, 3, 4, 5, seed=s) for s in (1, 2, 3)))


def test_the_largest_of_equals_is_the_second(at):
    """Caffe takes the second of the first two, unless the first is larger. A third must be larger."""
    a, b, c = (at.draw(4).new_tensor(x) for x in ([1.0, 1, 2, 0], [1.0, 1, 1, 0], [0.0, 1, 2, 0]))
    inputs = [x.to(at.device, at.dtype).requires_grad_() for x in (a, b, c)]
    at.module("Eltwise", eltwise_param={"operation": "MAX"})(*inputs).sum().backward()
    taken = [x.grad.tolist() for x in inputs]
    assert taken == [[0, 0, 1, 0], [1, 1, 0, 1], [0, 0, 0, 0]]


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
        ({"kernel_size": [1], "stride": [2]}, {"stride": 2}),
        ({"kernel_size": [1], "pad": [1]}, {"padding": 1}),
        ({"kernel_h": 1, "kernel_w": 2}, {}),
    ],
    ids=["plain", "group", "h_w", "nd", "1x1", "1x1 by steps", "1x1 padded", "1x2"],
)
def test_convolution(at, options, expected):
    module = at.module("Convolution", convolution_param={"num_output": 6, **FILLERS, **options})
    compare(at, module, lambda x, *blobs: F.conv2d(x, *blobs, **expected), at.draw(3, 4, 7, 8))


@pytest.mark.parametrize(
    "layer, param", [("Convolution", "convolution_param"), ("InnerProduct", "inner_product_param")]
)
def test_weights_and_biases_are_filled_each_by_its_own_filler(at, layer, param):
    said: dict[str, object] = {"num_output": 2, "weight_filler": {"type": "constant", "value": 3}}
    said |= {"kernel_size": [2]} if param == "convolution_param" else {}
    module = at.module(layer, **{param: said | {"bias_filler": {"type": "constant", "value": 5}}})
    module(at.draw(1, 3, 4, 4))
    assert (module.blob0 == 3).all() and (module.blob1 == 5).all()


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
@pytest.mark.parametrize(
    "kernel, stride, pad", [(2, 2, 0), (3, 2, 1), (3, 1, 0), (3, 2, 0), (2, 2, 1), (3, 3, 1), (4, 3, 2)]
)
def test_pooling(at, method, kernel, stride, pad):
    """Caffe's average counts the padding within pad of the image, as torch's does with ceil_mode.

    On images of 7 to 9 pixels: for some of these the last window would lie in the padding, and there is none.
    """
    module = at.module(
        "Pooling", pooling_param={"pool": method, "kernel_size": kernel, "stride": stride, "pad": pad}
    )
    function = F.max_pool2d if method == "MAX" else F.avg_pool2d
    for size in ((8, 7), (7, 9), (9, 8)):
        compare(at, module, lambda x: function(x, kernel, stride, pad, ceil_mode=True), at.draw(2, 3, *size))


@pytest.mark.parametrize("rounding", ["CEIL", "FLOOR"])
def test_pooling_has_caffes_windows_for_all_small_geometries(stock, rounding):
    for kernel, stride, beside in itertools.product(range(1, 5), range(1, 6), range(2)):
        for pad in range(kernel):
            down = {"kernel_h": kernel, "stride_h": stride, "pad_h": pad}
            across = {"kernel_w": 2, "stride_w": 3, "pad_w": beside}
            module = stock.Pooling(pooling_param=down | across | {"round_mode": rounding})
            for size in range(max(1, kernel - 2 * pad), 10):
                axes = (size, kernel, stride, pad), (7, 2, 3, beside)
                counts = [windows(*axis, pad + beside > 0, rounding == "CEIL") for axis in axes]
                got = module(torch.zeros(1, 1, size, 7)).shape[2:]
                assert list(got) == counts, f"{down}, {across}, {size} rows: {list(got)}, not {counts}"


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


STOCHASTIC = {"pooling_param": {"pool": "STOCHASTIC", "kernel_size": 2, "stride": 2}}


def test_stochastic_pooling_has_no_cpu_code(stock):
    module = stock.Pooling(**STOCHASTIC)
    module.mode = "cpu"
    with raises(CaffeRuntimeError, "Pooling's own Forward_cpu is NOT_IMPLEMENTED"):
        module(torch.ones(2, 3, 6, 4))


def test_stochastic_pooling(at):
    if at.mode == "cpu":
        pytest.skip("it has no CPU code")
    module = at.module("Pooling", **STOCHASTIC)
    x = at.draw(2, 3, 6, 4, positive=True)
    windows = F.unfold(x.view(6, 1, 6, 4), 2, stride=2)
    given = x.to(at.device, at.dtype).requires_grad_()
    y = module(given)
    drawn = (windows - y.detach().double().cpu().view(6, 1, 6)).abs().min(1).values
    assert drawn.max() < 1e-6
    y.sum().backward()
    assert given.grad.sum() == y.numel() and set(given.grad.unique().tolist()) <= {0.0, 1.0}
    # In proportion to the values: of 1, 3, 1, 3 a 3 in three of four windows, 0.01 being a deviation of 2000 draws.
    many = torch.tensor([1.0, 3.0], device=at.device, dtype=at.dtype).repeat(4000).view(1, 1, 40, 200)
    assert abs((module(many) == 3).double().mean().item() - 0.75) < 0.05
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
    """No images: every layer accepts them."""
    empty = torch.zeros(0, 3, 4, 4, device=at.device, dtype=at.dtype)
    for layer in ("ReLU", "Softmax", "Power", "Split", "Sigmoid"):
        assert at.module(layer)(empty).shape == empty.shape
    assert at.module("Eltwise")(empty, empty).shape == empty.shape
    conv = at.module("Convolution", convolution_param={"num_output": 2, "kernel_size": [3]})
    assert conv(empty).shape == (0, 2, 2, 2)
    assert at.module("InnerProduct", inner_product_param={"num_output": 5})(empty).shape == (0, 5)


def blob(*shape, first=1.0):
    count = torch.Size(shape).numel()
    return {"shape": {"dim": list(shape)}, "data": [first + i for i in range(count)]}


W, B = blob(2, 3, 1, 1), blob(2, first=20)


def test_blobs_that_the_prototxt_brings(at):
    """They replace what the fillers would make. Scale's last one is the bias."""
    x = at.draw(2, 3, 4, 5)
    w, b = (torch.tensor(given["data"]).double() for given in (W, B))
    conv = {"convolution_param": {"num_output": 2, "kernel_size": [1]}}
    wanted = F.conv2d(x, w.reshape(2, 3, 1, 1), b)
    three = blob(3, first=7)
    t = torch.tensor(three["data"]).double().reshape(3, 1, 1)
    both = [blob(3, first=2), three]
    for layer, parameters, expected in (
        ("Convolution", conv | {"blobs": [W, B]}, wanted),
        ("Bias", {"blobs": [three]}, x + t),
        ("Scale", {"blobs": [three]}, x * t),
        ("Scale", {"scale_param": {"bias_term": True}, "blobs": both}, x * (t - 5) + t),
        ("InnerProduct", {"inner_product_param": {"num_output": 2, "axis": 3}, "blobs": [blob(2, 5), B]},
         x @ torch.arange(1, 11).double().reshape(2, 5).T + b),
    ):  # fmt: skip
        with torch.no_grad():
            at.close(at.module(layer, **parameters)(x.to(at.device, at.dtype)).double().cpu(), expected, 100)
    for given, said in (
        ([W], "Incorrect number of weight blobs"),
        (
            [blob(3, 2, 1, 1), B],
            "Incorrect weight shape: expected shape 2 3 1 1 .*instead, shape was 3 2 1 1",
        ),
        ([W, blob(3)], "Incorrect bias shape: expected shape 2 .*instead, shape was 3"),
    ):
        with pytest.raises(CaffeRuntimeError, match=said):
            at.module("Convolution", **conv, blobs=given)(x.to(at.device, at.dtype))


def test_bottoms_of_a_convolution_have_one_shape(at):
    module = at.module("Convolution", convolution_param={"num_output": 4, "kernel_size": [3]}, top=["a", "b"])
    x = at.draw(2, 3, 4, 5).to(at.device, at.dtype)
    assert [tuple(y.shape) for y in module(x, x)] == [(2, 4, 2, 3)] * 2
    with pytest.raises(CaffeRuntimeError, match=r"bottom\[0\]: 2 3 4 5 \(120\) vs. bottom\[1\]: 2 3 5 5"):
        module(x, at.draw(2, 3, 5, 5).to(at.device, at.dtype))
