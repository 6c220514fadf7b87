"""Stock types that compute value by value, or over time, compared with the loops of caffe_reference.py."""

import itertools
import math

import numpy as np
import pytest
import torch
from support import caffe_reference as reference
from support.nets import draw, gradients_are_right, labels, one_layer, randomised, same

from cuffi import caffe_net
from cuffi.base import CaffeValueError

# ------------------------------------------------------------------------------------- elementwise


@pytest.mark.parametrize(
    "layer, formula",
    [
        ("ReLU", lambda x: np.maximum(x, 0)),
        ('ReLU" relu_param { negative_slope: 0.25 } name: "L', lambda x: np.where(x > 0, x, 0.25 * x)),
        ("Sigmoid", reference.sigmoid),
        ("TanH", np.tanh),
        ("AbsVal", np.abs),
        ("BNLL", lambda x: np.log(1 + np.exp(x))),
        ("ELU", lambda x: np.where(x > 0, x, np.exp(x) - 1)),
        ("Swish", lambda x: x * reference.sigmoid(x)),
        ("Exp", np.exp),
        ("Threshold", lambda x: (x > 0).astype(float)),
        ("Split", lambda x: x),
        ("Softmax", lambda x: reference.softmax(x, 1)),
        ("Flatten", lambda x: x.reshape(2, -1)),
        ("Dropout", lambda x: x),
    ],
)
def test_elementwise(layer, formula):
    x = draw(2, 3, 4, 5)
    layer = layer.removesuffix(' name: "L') if "{" in layer else layer + '"'
    same(one_layer(f'type: "{layer}', x.shape)(x), formula(x.numpy()))


@pytest.mark.parametrize(
    "param, formula",
    [
        ("Power power_param { power: 2 scale: 0.5 shift: 3 }", lambda x: (3 + 0.5 * x) ** 2),
        ("Exp exp_param { base: 2 scale: 0.5 shift: 1.5 }", lambda x: 2 ** (1.5 + 0.5 * x)),
        ("Log log_param { base: 10 scale: 0.5 shift: 8 }", lambda x: np.log10(8 + 0.5 * x)),
        ("Clip clip_param { min: -0.5 max: 0.25 }", lambda x: np.clip(x, -0.5, 0.25)),
        ("Tile tile_param { axis: 2 tiles: 3 }", lambda x: np.tile(x, (1, 1, 3, 1))),
        (
            "Reduction reduction_param { operation: ASUM axis: 1 coeff: 2 }",
            lambda x: 2 * np.abs(x).sum((1, 2, 3)),
        ),
        ("Reduction reduction_param { operation: SUMSQ axis: -1 }", lambda x: (x**2).sum(-1)),
        ("Reduction reduction_param { operation: MEAN }", lambda x: x.mean()),
        ("ArgMax argmax_param { axis: 1 }", lambda x: x.argmax(1, keepdims=True)),
        ("Reshape reshape_param { shape { dim: 0 dim: -1 dim: 5 } }", lambda x: x.reshape(2, 12, 5)),
        ("Reshape reshape_param { shape { dim: 12 } axis: 1 num_axes: 2 }", lambda x: x.reshape(2, 12, 5)),
        ("Softmax softmax_param { axis: -1 }", lambda x: reference.softmax(x, 3)),
        ("Flatten flatten_param { axis: 0 end_axis: 1 }", lambda x: x.reshape(6, 4, 5)),
    ],
)
def test_parameters(param, formula):
    x = draw(2, 3, 4, 5)
    name, _, rest = param.partition(" ")
    same(
        one_layer(f'type: "{name}" {rest}', x.shape)(x).double(),
        np.asarray(formula(x.numpy()), dtype=float),
        1e-7,
    )


FACTORS = 0.5, 1, 2
SUMMANDS = 0, 1, 1.5


@pytest.mark.parametrize("power", [0, 0.5, 1, 2, 3])
def test_power_at_the_numbers_that_say_nothing_and_beside_them(power):
    x = draw(2, 3).abs()
    for scale, shift in itertools.product(FACTORS, SUMMANDS):
        said = f"power: {power} scale: {scale} shift: {shift}"
        same(
            one_layer(f'type: "Power" power_param {{ {said} }}', x.shape)(x),
            (shift + scale * x.numpy()) ** power,
        )


@pytest.mark.parametrize("base", [-1, 0.5, 1, 2])
def test_exponentials_and_logarithms_at_the_numbers_that_say_nothing_and_beside_them(base):
    x, real = draw(2, 3).abs(), math.e if base == -1 else base
    for scale, shift in itertools.product(FACTORS, SUMMANDS):
        said = f"base: {base} scale: {scale} shift: {shift}"
        same(
            one_layer(f'type: "Exp" exp_param {{ {said} }}', x.shape)(x), real ** (shift + scale * x.numpy())
        )
        if base != 1:
            wanted = np.log(shift + scale * x.numpy()) / np.log(real)
            same(one_layer(f'type: "Log" log_param {{ {said} }}', x.shape)(x), wanted)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5)])
@pytest.mark.parametrize("top_k", [1, 2])
def test_arg_max_over_all_of_an_item(shape, top_k):
    x = draw(*shape)
    order = np.argsort(-x.numpy().reshape(2, -1), 1)[:, :top_k]
    tail = (1,) * max(0, len(shape) - 3)
    plain = one_layer(f'type: "ArgMax" argmax_param {{ top_k: {top_k} }}', shape)(x)
    same(plain, order.astype(float).reshape(2, 1, top_k, *tail))
    both = one_layer(f'type: "ArgMax" argmax_param {{ top_k: {top_k} out_max_val: true }}', shape)(x)
    values = np.take_along_axis(x.numpy().reshape(2, -1), order, 1)
    same(both, np.stack([order.astype(float), values], 1).reshape(2, 2, top_k, *tail))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arg_max_along_an_axis(axis):
    x = draw(2, 3, 4)
    text = f'type: "ArgMax" argmax_param {{ axis: {axis} top_k: 2'
    order = np.argsort(-x.numpy(), axis).take([0, 1], axis)
    same(one_layer(text + " }", x.shape)(x), order.astype(float))
    same(one_layer(text + " out_max_val: true }", x.shape)(x), np.take_along_axis(x.numpy(), order, axis))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("operation", ["SUM", "ASUM", "SUMSQ", "MEAN"])
def test_reductions(operation, axis):
    x = draw(2, 3, 4)
    rows = x.numpy().reshape(*x.shape[: axis % 3], -1)
    sums = {
        "SUM": rows.sum(-1),
        "ASUM": np.abs(rows).sum(-1),
        "SUMSQ": (rows**2).sum(-1),
        "MEAN": rows.mean(-1),
    }
    for coeff in FACTORS:
        said = f"operation: {operation} axis: {axis} coeff: {coeff}"
        same(
            one_layer(f'type: "Reduction" reduction_param {{ {said} }}', x.shape)(x), coeff * sums[operation]
        )


def test_eltwise_sums_with_coefficients():
    a, b, c = (draw(2, 3, seed=i) for i in range(3))
    net = one_layer(
        'type: "Eltwise" eltwise_param { operation: SUM coeff: 2 coeff: -1 coeff: 0.5 }', *[(2, 3)] * 3
    )
    same(net(a, b, c), 2 * a - b + 0.5 * c)


@pytest.mark.parametrize(
    "operation, wanted", [("PROD", lambda *x: np.prod(x, 0)), ("MAX", lambda *x: np.max(x, 0))]
)
def test_eltwise_of_three(operation, wanted):
    bottoms = [draw(2, 3, seed=i) for i in range(3)]
    net = one_layer(f'type: "Eltwise" eltwise_param {{ operation: {operation} }}', *[(2, 3)] * 3)
    same(net(*bottoms), wanted(*(x.numpy() for x in bottoms)))
    assert gradients_are_right(net, *bottoms)


def test_eltwise_of_one_bottom_scales_it():
    a = draw(2, 3)
    same(one_layer('type: "Eltwise" eltwise_param { operation: SUM coeff: 0.25 }', (2, 3))(a), a / 4)


def test_the_gradient_of_a_maximum_goes_to_one_bottom():
    """The second of two or three equal bottoms gets it, as in Caffe. torch.maximum would split it."""
    x = torch.ones(3, dtype=torch.float64)
    tensors = [x.clone().requires_grad_() for _ in range(3)]
    one_layer('type: "Eltwise" eltwise_param { operation: MAX }', *[(3,)] * 3)(*tensors).sum().backward()
    assert [t.grad.sum().item() if t.grad is not None else 0 for t in tensors] == [0, 3, 0]


def test_concat_and_slice():
    a, b = draw(2, 3, 4), draw(2, 1, 4, seed=1)
    same(one_layer('type: "Concat"', a.shape, b.shape)(a, b), np.concatenate([a, b], 1))
    net = one_layer('type: "Slice" slice_param { axis: 2 slice_point: 1 }', (2, 3, 4), tops=2)
    parts = net(a)
    same(parts["y0"], a[:, :, :1])
    same(parts["y1"], a[:, :, 1:])


def test_crop_cuts_from_the_offset_on():
    x, like = draw(2, 3, 6, 7), draw(2, 3, 2, 3, seed=1)
    net = one_layer('type: "Crop" crop_param { axis: 2 offset: 1 offset: 3 }', x.shape, like.shape)
    same(net(x, like), x[:, :, 1:3, 3:6])


# ---------------------------------------------------------------------------------------- recurrent


def test_lstm_has_its_gates_in_caffes_order_and_is_cut_by_markers():
    text = 'type: "LSTM" recurrent_param { num_output: 5 expose_hidden: true }'
    net = randomised(one_layer(text, (5, 3, 6), (5, 3), (1, 3, 5), (1, 3, 5), tops=3))
    x, cont = draw(5, 3, 6), labels(2, 5, 3)
    cell, hidden = draw(1, 3, 5, seed=1), draw(1, 3, 5, seed=2)
    got = net(x, cont, hidden, cell)
    weights = (p.detach().numpy() for p in (net.L.weight_x, net.L.bias, net.L.weight_h))
    output, cell, hidden = reference.lstm(
        x.numpy(), cont.numpy(), *weights, cell[0].numpy(), hidden[0].numpy()
    )
    same(got["y0"], output)
    same(got["y1"], hidden[None])
    same(got["y2"], cell[None])


def test_rnn_begins_where_the_last_call_ended_unless_a_marker_says_otherwise():
    net = randomised(one_layer('type: "RNN" recurrent_param { num_output: 4 }', (5, 3, 6), (5, 3)))
    x, cont = draw(5, 3, 6), torch.ones(5, 3)
    p = [
        getattr(net.L, n).detach().numpy()
        for n in ("weight_x", "bias", "weight_h", "weight_output", "bias_output")
    ]
    first, hidden = reference.rnn(x.numpy(), cont.numpy(), *p, np.zeros((3, 4)))
    second, _ = reference.rnn(x.numpy(), cont.numpy(), *p, hidden)
    same(net(x, cont), first)
    same(net(x, cont), second)
    net.L.reset()
    same(net(x, cont), first)


def test_training_and_evaluation_have_a_state_each():
    """Caffe's solver trains one net and tests another, so a test does not continue training's last sequence."""
    net = randomised(one_layer('type: "LSTM" recurrent_param { num_output: 4 }', (5, 3, 6), (5, 3)))
    x, cont = draw(5, 3, 6), torch.ones(5, 3)
    first, second, third = (net.train()(x, cont).detach() for _ in range(3))
    net.L.reset()
    assert not torch.equal(second, first) and not torch.equal(third, second)
    for training, wanted in ((True, first), (False, first), (True, second), (False, second), (True, third)):
        same(net.train(training)(x, cont), wanted)


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
@pytest.mark.filterwarnings("ignore:.*torch.jit.trace")
def test_an_exported_program_begins_at_zero_and_says_so(kind):
    """Otherwise a graph would contain the net's current state as a constant."""
    net = randomised(one_layer(f'type: "{kind}" recurrent_param {{ num_output: 4 }}', (5, 3, 6), (5, 3)))
    x, cont = draw(5, 3, 6), torch.ones(5, 3)
    first = net(x, cont).detach()
    second = net(x, cont).detach()
    exports = (
        lambda: torch.export.export(net, (x, cont)).module(),
        lambda: torch.jit.trace(net, (x, cont), check_trace=False),
    )
    for export in exports:
        with pytest.warns(UserWarning, match=f"{kind}: in the exported program each call starts .* zero"):
            program = export()
        same(program(x, cont), first)
        same(program(x, cont), first)
    net.L.reset()
    same(net(x, cont), first)
    same(net(x, cont), second)


def test_one_step_of_an_lstm():
    cell, gates = draw(1, 3, 5), draw(1, 3, 20, seed=1)
    cont = torch.tensor([[1.0, 0.0, 1.0]]).double()
    net = one_layer('type: "LSTMUnit"', cell.shape, gates.shape, cont.shape, tops=2)
    i, f, o, g = gates.unflatten(2, (4, 5)).unbind(2)
    wanted = cont[..., None] * f.sigmoid() * cell + i.sigmoid() * g.tanh()
    got = net(cell, gates, cont)
    same(got["y0"], wanted)
    same(got["y1"], o.sigmoid() * wanted.tanh())
    for shapes in (
        ((2, 3, 5), (1, 3, 20), (1, 3)),
        ((1, 3, 5), (1, 3, 15), (1, 3)),
        ((1, 3, 5), (1, 3, 20), (1, 4)),
    ):
        with pytest.raises(CaffeValueError, match="bottoms of"):
            one_layer('type: "LSTMUnit"', *shapes, tops=2)


def test_a_blob_to_learn_as_a_top():
    net = caffe_net(
        'layer { name: "p" type: "Parameter" top: "p" parameter_param { shape { dim: 2 dim: 3 } } }'
        'layer { name: "s" type: "Power" bottom: "p" top: "y" power_param { scale: 5 } }'
    )
    assert torch.equal(net.p.value, torch.zeros(2, 3)) and net.inputs == []
    net(blobs=["y"])["y"].sum().backward()
    assert net.p.value.grad.tolist() == [[5] * 3] * 2


def test_what_is_silenced_is_no_output():
    net = caffe_net(
        'input: "x" input_shape { dim: 2 dim: 3 }'
        'layer { name: "s" type: "Slice" bottom: "x" top: "a" top: "b" top: "c" }'
        'layer { name: "q" type: "Silence" bottom: "a" bottom: "c" }'
    )
    x = draw(2, 3)
    assert net.outputs == ["b"] and torch.equal(net(x), x[:, 1:2])


@pytest.mark.parametrize("wanted", [[0, 2], [], [0, 1, 2]])
def test_filter_keeps_the_items_that_are_chosen(wanted):
    a, b, chosen = draw(3, 2), draw(3, 4, 5, seed=1), torch.zeros(3, 1).double()
    chosen[wanted] = 0.5
    got = one_layer('type: "Filter"', a.shape, b.shape, chosen.shape, tops=2)(a, b, chosen)
    assert torch.equal(got["y0"], a[wanted]) and torch.equal(got["y1"], b[wanted])
    assert torch.equal(one_layer('type: "Filter"', a.shape, chosen.shape)(a, chosen), a[wanted])


@pytest.mark.parametrize("method", ["AVE", "MAX", "STOCHASTIC"])
def test_global_pooling(method):
    x = draw(2, 3, 4, 5).abs()
    text = f'type: "Pooling" pooling_param {{ global_pooling: true pool: {method} }}'
    flat = x.flatten(2)
    wanted = {"AVE": flat.mean(2), "MAX": flat.amax(2), "STOCHASTIC": (flat**2).sum(2) / flat.sum(2)}[method]
    same(one_layer(text, x.shape).eval()(x), wanted[..., None, None])
    if method == "MAX":
        got = one_layer(text, x.shape, tops=2)(x)
        same(got["y0"], wanted[..., None, None])
        same(got["y1"], flat.argmax(2)[..., None, None].double())


def test_spatial_pyramid_pooling():
    x = draw(2, 3, 9, 12)
    net = one_layer('type: "SPP" spp_param { pyramid_height: 2 pool: MAX }', x.shape)
    whole, _ = reference.pooling(x.numpy(), "MAX", (9, 12), (9, 12), (0, 0))
    quarters, _ = reference.pooling(x.numpy(), "MAX", (5, 6), (5, 6), (1, 0))
    same(net(x), np.concatenate([whole.reshape(2, -1), quarters.reshape(2, -1)], 1))


# ------------------------------------------------------------------------------------------ dropout


def test_dropout_of_nothing():
    """Caffe checks the ratio only in debug builds. A release build drops nothing."""
    x = draw(5)
    net = one_layer('type: "Dropout" dropout_param { dropout_ratio: 0 }', (5,))
    assert torch.equal(net(x), x) and torch.equal(net.train()(x), x)


def test_dropout_drops_and_scales_in_training():
    torch.manual_seed(0)
    y = one_layer('type: "Dropout" dropout_param { dropout_ratio: 0.25 }', (1000,)).train()(torch.ones(1000))
    assert 150 < (y == 0).sum() < 350
    same(y[y != 0].double(), np.full(int((y != 0).sum()), 1 / 0.75), 1e-6)
