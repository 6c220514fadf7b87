"""Special cases of the core's stock layers: a single gradient, in place, defaults, large values."""

import pytest
import torch
from support.stock import compare
from support.typed import not_none
from torch.nn import functional as F

from cuffi import CaffeRuntimeError

GAUSSIAN = {"type": "gaussian"}
CONV = {"num_output": 4, "kernel_size": [2], "weight_filler": GAUSSIAN, "bias_filler": GAUSSIAN}
PRODUCT = {"num_output": 6, "weight_filler": GAUSSIAN, "bias_filler": GAUSSIAN}
BOTH = {"filler": GAUSSIAN, "bias_term": True, "bias_filler": GAUSSIAN}


def channels(v):
    return v[:, None, None]


def products(x, w, b):
    return F.linear(x.flatten(1), w, b)


SEVERAL = {  # the layer, its parameters, how many bottoms, the reference
    "conv": ("Convolution", {"convolution_param": CONV}, 1, F.conv2d),
    "conv twice": (
        "Convolution",
        {"convolution_param": CONV, "top": ["a", "b"]},
        2,
        lambda x, y, w, b: (F.conv2d(x, w, b), F.conv2d(y, w, b)),
    ),
    "no bias": (
        "Convolution",
        {"convolution_param": {k: v for k, v in CONV.items() if k != "bias_filler"} | {"bias_term": False}},
        1,
        F.conv2d,
    ),
    "product": ("InnerProduct", {"inner_product_param": PRODUCT}, 1, products),
    "product alone": (
        "InnerProduct",
        {"inner_product_param": PRODUCT | {"bias_term": False, "axis": -1}},
        1,
        F.linear,
    ),
    "bias": ("Bias", {"bias_param": {"filler": GAUSSIAN}}, 1, lambda x, b: x + channels(b)),
    "scale": ("Scale", {"scale_param": {"filler": GAUSSIAN}}, 1, lambda x, s: x * channels(s)),
    "scale and bias": (
        "Scale",
        {"scale_param": BOTH},
        1,
        lambda x, s, b: x * channels(s) + channels(b),
    ),
    "sum": ("Eltwise", {"eltwise_param": {"coeff": [2, -3]}}, 2, lambda x, y: 2 * x - 3 * y),
    "product of two": ("Eltwise", {"eltwise_param": {"operation": "PROD"}}, 2, torch.mul),
    "largest": ("Eltwise", {"eltwise_param": {"operation": "MAX"}}, 3, lambda x, y, z: x.maximum(y).maximum(z)),
    "concat": ("Concat", {"concat_param": {"axis": 2}}, 3, lambda *x: torch.cat(x, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_each_gradient_alone(at, name):
    """Only one bottom or one parameter needs its gradient. The others' are not computed."""
    layer, parameters, count, reference = SEVERAL[name]
    module = at.module(layer, **parameters)
    given = [at.draw(2, 3, 4, 5, seed=seed) for seed in range(count)]
    with torch.no_grad():
        module(*(x.to(at.device, at.dtype) for x in given))  # which makes the blobs
    blobs = [p for _, p in sorted(module.named_parameters())]
    values = [*given, *(p.detach().double().cpu() for p in blobs)]
    for wanted in range(len(values)):
        bottoms = [x.to(at.device, at.dtype).clone().requires_grad_(i == wanted) for i, x in enumerate(given)]
        for i, blob in enumerate(blobs):
            blob.requires_grad_(count + i == wanted)
            blob.grad = None
        theirs = [x.clone().requires_grad_(i == wanted) for i, x in enumerate(values)]
        tops, expected = module(*bottoms), reference(*theirs)
        tops, expected = (t if isinstance(t, tuple) else (t,) for t in (tops, expected))
        parts = [(top, e) for top, e in zip(tops, expected, strict=True) if e.requires_grad]
        diffs = [at.draw(*e.shape, seed=9) for _, e in parts]
        torch.autograd.backward([t for t, _ in parts], [d.to(at.device, at.dtype) for d in diffs])
        torch.autograd.backward([e for _, e in parts], diffs)
        for i, (own, other) in enumerate(zip([*bottoms, *blobs], theirs, strict=True)):
            assert (own.grad is None) == (i != wanted)
            if i == wanted:
                at.close(own.grad.double().cpu(), other.grad, 100)


@pytest.mark.parametrize(
    "layer, parameters, function",
    [
        ("ReLU", {}, F.relu),
        ("ReLU", {"relu_param": {"negative_slope": 0.5}}, lambda x: F.leaky_relu(x, 0.5)),
        ("Sigmoid", {}, torch.sigmoid),
        ("TanH", {}, torch.tanh),
        ("Softmax", {}, lambda x: x.softmax(1)),
        ("Bias", {"bias_param": {"filler": GAUSSIAN}}, lambda x, b: x + channels(b)),
        ("Scale", {"scale_param": {"filler": GAUSSIAN}}, lambda x, s: x * channels(s)),
        ("Scale", {"scale_param": BOTH}, lambda x, s, b: x * channels(s) + channels(b)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_in_place(at, layer, parameters, function):
    module = at.module(layer, **parameters, bottom="x", top="x")
    compare(at, InPlace(module), function, at.draw(2, 3, 4, 5))


class InPlace:
    """The module on a copy of what it is given, for `compare`."""

    def __init__(self, module):
        self.module, self.named_parameters = module, module.named_parameters

    def __call__(self, x):
        copy = x.clone()
        top = self.module(copy)
        assert top.data_ptr() == copy.data_ptr()
        return top


def test_defaults(at):
    """Without a filler a scale is 1, a bias and weights are 0."""
    x = at.draw(2, 3, 4, 5)
    given = x.to(at.device, at.dtype)
    zeros = torch.zeros(2, 4, 3, 4)
    with torch.no_grad():
        at.close(at.module("Scale")(given).double().cpu(), x, 0)
        at.close(at.module("Scale", scale_param={"bias_term": True})(given).double().cpu(), x, 0)
        at.close(at.module("Bias")(given).double().cpu(), x, 0)
        for layer, said in ("Convolution", {"kernel_size": [2]}), ("InnerProduct", {"axis": 3}):
            param = {"Convolution": "convolution_param", "InnerProduct": "inner_product_param"}[layer]
            top = at.module(layer, **{param: {"num_output": 4, **said}})(given)
            at.close(top.double().cpu(), zeros if layer == "Convolution" else torch.zeros(2, 3, 4, 4), 0)


def test_a_scale_by_a_bottom_with_a_learnt_bias(at):
    x, v = at.draw(2, 3, 4, 5), at.draw(3, 4, seed=2)
    module = at.module("Scale", scale_param={"bias_term": True, "bias_filler": GAUSSIAN})
    compare(at, module, lambda x, v, b: x * v[..., None] + b[..., None], x, v)


def test_one_number_scales_all(at):
    x, v = at.draw(2, 3, 4, 5), torch.tensor(1.5, dtype=torch.float64)
    compare(at, at.module("Scale", scale_param={"axis": 3}), lambda x, v: x * v, x, v)
    compare(at, at.module("Bias", bias_param={"axis": 3}), lambda x, v: x + v, x, v)


@pytest.mark.parametrize(
    "said, function",
    [
        ({"power": 0, "shift": 3}, lambda x: (3 + 0 * x) ** 0),
        ({"power": 3, "scale": 0, "shift": 2}, lambda x: (2 + 0 * x) ** 3),
        ({"power": 2}, lambda x: x**2),
        ({"power": 3, "scale": -2}, lambda x: (-2 * x) ** 3),
        ({"power": 1, "scale": -2}, lambda x: -2 * x),
        ({"power": -1, "shift": 9}, lambda x: 1 / (9 + x)),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_powers(at, said, function):
    compare(at, at.module("Power", power_param=said), function, at.draw(2, 3, 4, 5), scale=1000)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_of_large_numbers(at, axis):
    """The exponential of 1000 overflows. Equal channels have equal shares."""
    x = at.draw(3, 4, 5) * 20
    for shift in (1000.0, -1000.0):
        module = at.module("Softmax", softmax_param={"axis": axis})
        moved = (x + shift).to(at.dtype).double()
        compare(at, module, lambda x: x.softmax(axis), moved)
    same = torch.full((3, 4, 5), 1000.0, dtype=torch.float64)
    compare(at, at.module("Softmax", softmax_param={"axis": axis}), lambda x: x.softmax(axis), same)


@pytest.mark.parametrize("tops", [1, 2])
def test_the_largest_and_where_it_is(at, tops):
    """The gradient goes there by the mask that is a top, as by the layer's own; none from a window behind the image."""
    module = at.module("Pooling", top=["y", "mask"][:tops], pooling_param={"kernel_size": 2, "stride": 2})
    for x in (at.draw(2, 3, 6, 4), torch.ones(1, 2, 4, 4), torch.full((1, 1, 2, 2), -3e38)):
        x = x.to(at.dtype).double()
        given, theirs = (x.to(at.device, d).clone().requires_grad_() for d in (at.dtype, torch.float64))
        tops_of = module(given)
        y, wanted = tops_of[0] if tops == 2 else tops_of, F.max_pool2d(theirs, 2, 2)
        at.close(y.detach().double().cpu(), wanted.detach().cpu(), 0)
        diff = at.draw(*y.shape, seed=9).to(at.device)
        y.backward(diff.to(at.dtype))
        wanted.backward(diff)
        at.close(not_none(given.grad).double().cpu(), not_none(theirs.grad).cpu(), 0)
    # Of 4 pixels by steps of 5, the second window begins behind the image: Caffe says -FLT_MAX, and no place.
    wide = at.module("Pooling", top=["y", "mask"][:tops], pooling_param={"kernel_size": 2, "stride": 5})
    x = at.draw(1, 2, 4, 7).to(at.device, at.dtype).requires_grad_()
    found = wide(x)
    y, mask = found if tops == 2 else (found, None)
    assert y.shape == (1, 2, 2, 2)
    assert (y[:, :, 1] == torch.finfo(torch.float32).min).all()
    assert mask is None or ((mask[:, :, 1] == -1).all() and (mask[:, :, 0] >= 0).all())
    y.sum().backward()
    wanted = torch.zeros(1, 2, 4, 7, dtype=torch.float64)
    flat, values = wanted.view(2, 28), x.detach().double().cpu().view(2, 4, 7)
    for plane in range(2):
        for column in (0, 5):
            window = values[plane, :2, column : column + 2]
            at_row, at_column = divmod(int(window.argmax()), 2)
            flat[plane, at_row * 7 + column + at_column] = 1
    at.close(x.grad.double().cpu(), wanted, 0)


def test_a_stochastic_window_of_zeros(at):
    if at.mode == "cpu":
        pytest.skip("not implemented in Caffe")
    module = at.module("Pooling", pooling_param={"pool": "STOCHASTIC", "kernel_size": 2, "stride": 2})
    zeros = torch.zeros(1, 1, 4, 4, device=at.device, dtype=at.dtype)
    assert (module.eval()(zeros) == 0).all() and (module.train()(zeros) == 0).all()


def on_axis(axis: int, axes: int, value: int, otherwise: int) -> list[int]:
    return [value if i == axis else otherwise for i in range(axes)]


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("word, value", [("kernel_size", 3), ("stride", 2), ("pad", 1), ("dilation", 2)])
@pytest.mark.parametrize("axis, axes", [(0, 2), (1, 2), (0, 1), (0, 3), (1, 3), (2, 3)])
def test_a_convolution_that_is_its_own_way_on_one_axis(at, axis, axes, word, value, size):
    """On the other axes it is unchanged. For a size of 1 it is a matrix product."""
    words = {"kernel_size": [size] * axes, "stride": [1] * axes, "pad": [0] * axes, "dilation": [1] * axes}
    words[word] = on_axis(axis, axes, value, words[word][0])
    module = at.module("Convolution", convolution_param=CONV | words)
    function = (F.conv1d, F.conv2d, F.conv3d)[axes - 1]
    options = {"stride": words["stride"], "padding": words["pad"], "dilation": words["dilation"]}
    compare(at, module, lambda x, w, b: function(x, w, b, **options), at.draw(2, 3, *(5, 6, 4)[:axes]))


@pytest.mark.parametrize("axis, axes", [(0, 2), (1, 2), (0, 3), (1, 3), (2, 3)])
@pytest.mark.parametrize(
    "word, wrong, otherwise, message",
    [
        ("kernel_size", 0, 1, "Filter dimensions must be nonzero"),
        ("stride", 0, 1, "Stride dimensions must be nonzero"),
        ("dilation", 0, 1, "Dilation must be nonzero"),
        ("pad", 2**32 - 1, 0, "pad is too large"),
    ],
)
def test_a_convolution_that_is_wrong_on_one_axis(stock, axis, axes, word, wrong, otherwise, message):
    words = CONV | {word: on_axis(axis, axes, wrong, otherwise)}
    with pytest.raises(CaffeRuntimeError, match=message):
        stock.Convolution(convolution_param=words)(torch.zeros(2, 3, *(5, 6, 4)[:axes]))


@pytest.mark.parametrize("side", ["h", "w"])
def test_a_pooling_that_is_wrong_on_one_axis(stock, side):
    words = {"kernel_size": 2, "pad_h": 0, "pad_w": 0, f"pad_{side}": 2**32 - 1}
    with pytest.raises(CaffeRuntimeError, match="pad is too large"):
        stock.Pooling(pooling_param=words)(torch.zeros(2, 3, 5, 6))
