"""Stock types that use more than one value, compared with the loops of caffe_reference.py; also gradients."""

import itertools
import random

import numpy as np
import pytest
import torch
from support import caffe_reference as reference
from support.nets import draw, gradients_are_right, labels, one_layer, randomised, same

from cuffi import caffe_net
from cuffi.base import CaffeRuntimeError, CaffeValueError

# ------------------------------------------------------------------------------------------ pooling


def pooling_cases():
    """Random geometries, with padding of more than half the kernel and strides of more than the whole."""
    dice = random.Random(7)
    for _ in range(40):
        kernel = dice.randint(1, 5), dice.randint(1, 5)
        stride = dice.randint(1, 4), dice.randint(1, 4)
        pad = tuple(dice.randint(0, k - 1) for k in kernel) if dice.random() < 0.6 else (0, 0)
        size = tuple(dice.randint(max(1, k - 2 * p), 8) for k, p in zip(kernel, pad, strict=True))
        yield dice.choice(["MAX", "AVE"]), kernel, stride, pad, size, dice.choice(["CEIL", "CEIL", "FLOOR"])


@pytest.mark.parametrize("method, kernel, stride, pad, size, rounding", list(pooling_cases()))
def test_pooling(method, kernel, stride, pad, size, rounding):
    names = ("kernel", kernel), ("stride", stride), ("pad", pad)
    sizes = " ".join(f"{name}_h: {h} {name}_w: {w}" for name, (h, w) in names)
    x = draw(1, 2, *size)
    tops = 2 if method == "MAX" else 1
    text = f'type: "Pooling" pooling_param {{ pool: {method} {sizes} round_mode: {rounding} }}'
    got = one_layer(text, x.shape, tops=tops)(x)
    top, mask = reference.pooling(x.numpy(), method, kernel, stride, pad, rounding == "CEIL")
    empty = method == "AVE" and not np.isfinite(top).all()
    if method == "MAX":
        same(got["y0"], top)
        same(got["y1"], mask)
    else:
        same(torch.nan_to_num(got, nan=7.0), np.nan_to_num(top, nan=7.0))
    if not empty:
        net = one_layer(text, x.shape)
        assert gradients_are_right(net, x)


def test_pooling_makes_as_many_windows_as_caffe_and_more_than_torch():
    """Without padding Caffe keeps a window that begins past the end; torch clips it."""
    x = draw(1, 1, 6, 6)
    net = one_layer('type: "Pooling" pooling_param { pool: MAX kernel_size: 1 stride: 2 }', x.shape)
    assert net(x).shape == (1, 1, 4, 4)
    assert net(x)[0, 0, 3, 3] < -3e38
    padded = one_layer('type: "Pooling" pooling_param { pool: MAX kernel_size: 2 stride: 2 pad: 1 }', x.shape)
    assert padded(x).shape == (1, 1, 4, 4)


@pytest.mark.parametrize("rounding", ["CEIL", "FLOOR"])
def test_pooling_has_caffes_windows_for_all_small_geometries(rounding):
    for kernel, stride, beside in itertools.product(range(1, 5), range(1, 6), range(2)):
        for pad in range(kernel):
            down = f"kernel_h: {kernel} stride_h: {stride} pad_h: {pad}"
            said = f"{down} kernel_w: 2 stride_w: 3 pad_w: {beside} round_mode: {rounding}"
            net = one_layer(f'type: "Pooling" pooling_param {{ pool: MAX {said} }}', (1, 1, 9, 7))
            for size in range(max(1, kernel - 2 * pad), 10):
                axes = (size, kernel, stride, pad), (7, 2, 3, beside)
                counts = [reference.windows(*axis, pad + beside > 0, rounding == "CEIL") for axis in axes]
                got = net(torch.zeros(1, 1, size, 7)).shape[2:]
                assert list(got) == counts, f"{said}, {size} rows: {list(got)}, not {counts}"


def test_a_layer_shows_its_parameters():
    text = 'type: "Pooling" pooling_param { pool: MAX kernel_size: 3 stride: 2 }'
    said = repr(one_layer(text, (1, 1, 6, 6)).L)
    assert said.startswith("Pooling(") and "method=MAX" in said
    assert not any(word in said for word in ("_", "training", "layer_name", "{", "object at")), said


def test_global_pooling_takes_any_size():
    net = one_layer('type: "Pooling" pooling_param { pool: AVE global_pooling: true }', (1, 2, 5, 5))
    x = draw(3, 2, 4, 7)
    same(net(x), x.numpy().mean((2, 3), keepdims=True))


def test_stochastic_pooling_takes_the_weighted_mean_in_testing_and_a_value_of_the_window_in_training():
    text = 'type: "Pooling" pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }'
    x = draw(2, 2, 4, 4).abs()
    net = one_layer(text, x.shape)
    for n, c, i, j in np.ndindex(2, 2, 2, 2):
        window = x[n, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        same(net(x)[n, c, i, j], (window**2).sum() / window.sum())
    drawn = net.train()(x)
    for n, c, i, j in np.ndindex(2, 2, 2, 2):
        assert drawn[n, c, i, j] in x[n, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]


# --------------------------------------------------------------------------------- normalisations


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("region", ["ACROSS_CHANNELS", "WITHIN_CHANNEL"])
def test_lrn(size, region):
    x = draw(2, 6, 5, 4)
    net = one_layer(
        f'type: "LRN" lrn_param {{ local_size: {size} alpha: 0.7 beta: 0.6 k: 2 norm_region: {region} }}',
        x.shape,
    )
    same(net(x), reference.lrn(x.numpy(), size, 0.7, 0.6, 2.0, region == "WITHIN_CHANNEL"), 1e-6)
    assert gradients_are_right(net, x)


def test_batch_norm_keeps_decaying_sums():
    text = 'type: "BatchNorm" batch_norm_param { moving_average_fraction: 0.9 eps: 0.01 }'
    net, wanted = one_layer(text, (4, 3, 5, 6)).train(), reference.BatchNorm(3, 0.9, 0.01)
    wanted.fraction, wanted.eps = (np.float32(v).item() for v in (0.9, 0.01))
    for seed in range(3):
        x = draw(4, 3, 5, 6, seed=seed) * 2 + 5
        same(net(x), wanted(x.numpy(), True))
    same(net.L.mean, wanted.mean)
    same(net.L.variance, wanted.variance)
    same(net.L.factor, [wanted.factor])
    net.eval()
    same(net(x), wanted(x.numpy(), False))
    net.L.mean.add_(1.0)  # what is cached of the sums follows them
    wanted.mean += 1.0
    same(net(x), wanted(x.numpy(), False))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(4, 3, 2, 2), (5, 3), (1, 3)])
def test_the_gradient_of_batch_norm(shape, training):
    net = one_layer('type: "BatchNorm" batch_norm_param { moving_average_fraction: 0.5 }', shape).train()
    net(draw(*shape))
    net.train(training)
    assert gradients_are_right(net, draw(*shape, seed=3))


def test_batch_norm_that_has_seen_nothing_divides_by_the_root_of_eps():
    net = one_layer('type: "BatchNorm" batch_norm_param { use_global_stats: true }', (2, 3))
    x = draw(2, 3)
    same(net(x), x.numpy() / np.sqrt(np.float32(1e-5).astype(float)))


@pytest.mark.parametrize("shape", [(4, 3, 5, 5), (1, 3, 1, 1), (1, 3)])
def test_batch_norm_and_scale_as_one_operator_compute_what_they_compute_apart(shape):
    sizes = " ".join(f"dim: {size}" for size in shape)
    text = f"""input: "x" input_shape {{ {sizes} }}"""
    text += """
    layer { name: "bn" type: "BatchNorm" bottom: "x" top: "n" }
    layer { name: "scale" type: "Scale" bottom: "n" top: "y" scale_param { bias_term: true } }"""
    x = draw(*shape) + 2
    net, results = randomised(caffe_net(text).double()), []
    for apart in (False, True):
        with torch.no_grad():
            for statistics in (net.bn.mean, net.bn.variance, net.bn.factor):
                statistics.zero_()
        net.train().zero_grad()
        y = net(x, blobs=["n", "y"])["y"] if apart else net(x)
        y.square().sum().backward()
        results.append((y, net.scale.weight.grad.clone(), net.scale.bias.grad.clone(), net.bn.mean.clone()))
    assert (
        len(net.make_schedule(True).calls) == 1 and len(net.make_schedule(True, blobs=("n", "y")).calls) == 2
    )
    for together, alone in zip(*results, strict=True):
        same(together, alone.detach(), 1e-10)


def test_batch_norms_that_share_their_blobs_follow_one_another():
    """As in the twins of a siamese net. A net updates the statistics of all its layers together, at its end."""
    twin = """
    layer { name: "%s" type: "BatchNorm" bottom: "%s" top: "n%s"
            param { name: "m" } param { name: "v" } param { name: "f" }
            batch_norm_param { moving_average_fraction: 0.5 } }"""
    inputs = 'input: "x" input_shape { dim: 4 dim: 3 } input: "y" input_shape { dim: 4 dim: 3 }'
    net = caffe_net(inputs + twin % ("a", "x", "x") + twin % ("b", "y", "y")).double().train()
    wanted = reference.BatchNorm(3, 0.5, np.float32(1e-5).item())
    for seed in range(2):
        x, y = draw(4, 3, seed=seed), draw(4, 3, seed=seed + 9) + 2
        net(x, y)
        wanted(x.numpy(), True)
        wanted(y.numpy(), True)
    for name in ("mean", "variance"):
        same(getattr(net.b, name), getattr(wanted, name), 1e-12)
    same(net.b.factor, [wanted.factor])
    assert net.a.mean is net.b.mean


def test_batch_norm_keeps_memory_for_a_batch_but_nothing_of_the_batch():
    """Not a NaN, which no later batch would end, not a version that autograd counts, not a tensor of inference mode."""
    net = one_layer(
        'type: "BatchNorm" batch_norm_param { moving_average_fraction: 0.5 }', (4, 3, 2, 2)
    ).train()
    with torch.inference_mode():
        net(draw(4, 3, 2, 2))
    net(draw(4, 3, 2, 2) * torch.nan)
    assert net.L.mean.isnan().all()
    for blob in (net.L.mean, net.L.variance, net.L.factor):
        blob.zero_()
    wanted = reference.BatchNorm(3, 0.5, np.float32(1e-5).item())
    inputs = [draw(4, 3, 2, 2, seed=seed).requires_grad_() for seed in range(3)]
    tops = [net(x) for x in inputs]
    for x, top in zip(inputs, tops, strict=True):
        same(top, wanted(x.detach().numpy(), True))
    same(net.L.mean, wanted.mean)
    same(net.L.variance, wanted.variance)
    torch.stack(tops).square().sum().backward()
    for x in inputs:
        alone = x.detach().requires_grad_()
        torch.nn.functional.batch_norm(alone, None, None, training=True).square().sum().backward()
        same(x.grad, alone.grad, 1e-10)


def test_a_net_that_fails_leaves_its_statistics_as_they_were():
    text = """
    input: "x" input_shape { dim: 4 dim: 3 dim: 5 dim: 5 }
    layer { name: "bn" type: "BatchNorm" bottom: "x" top: "n" }
    layer { name: "fc" type: "InnerProduct" bottom: "n" top: "y" inner_product_param { num_output: 2 } }"""
    net = caffe_net(text).train()
    with pytest.raises(CaffeRuntimeError, match="layer 'fc'"):
        net(torch.randn(4, 3, 6, 6))
    assert not net.bn.factor.any() and not net.bn.mean.any()
    net.bn(torch.randn(4, 3, 6, 6))  # called by itself it does not wait
    assert net.bn.factor == 1 and net.bn.mean.all()


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("variance", [False, True])
def test_mvn(across, variance):
    x = draw(2, 3, 4, 5)
    said = f"across_channels: {int(across)} normalize_variance: {int(variance)}"
    text = f'type: "MVN" mvn_param {{ {said} }}'
    axes = (1, 2, 3) if across else (2, 3)
    wanted = x.numpy() - x.numpy().mean(axes, keepdims=True)
    if variance:
        wanted = wanted / (np.sqrt((wanted**2).mean(axes, keepdims=True)) + 1e-9)
    same(one_layer(text, x.shape)(x), wanted)


# ------------------------------------------------------------------------------ weights and maps


@pytest.mark.parametrize(
    "kernel, stride, pad, dilation, group",
    [(3, 1, 1, 1, 1), (2, 2, 0, 1, 2), (3, 2, 2, 2, 1), (1, 1, 0, 1, 4)],
)
def test_convolution(kernel, stride, pad, dilation, group):
    text = f'type: "Convolution" convolution_param {{ num_output: 4 kernel_size: {kernel} stride: {stride} pad: {pad} '
    net = randomised(one_layer(text + f"dilation: {dilation} group: {group} }}", (2, 4, 6, 5)))
    x = draw(2, 4, 6, 5)
    weight, bias = (p.detach().numpy() for p in (net.L.weight, net.L.bias))
    same(net(x), reference.convolution(x.numpy(), weight, bias, stride, pad, dilation, group))


@pytest.mark.parametrize(
    "layer, shape, said",
    [
        (
            'type: "Convolution" convolution_param { num_output: 4 group: 3 kernel_size: 1 }',
            (1, 3, 4, 4),
            "num_output",
        ),
        (
            'type: "Convolution" convolution_param { num_output: 6 group: 3 kernel_size: 1 }',
            (1, 4, 4, 4),
            "4 channels",
        ),
        ('type: "Convolution" convolution_param { kernel_size: 1 }', (1, 3, 4, 4), "num_output"),
        (
            'type: "Convolution" convolution_param { num_output: 2 kernel_size: 5 }',
            (1, 3, 4, 4),
            "nothing is left",
        ),
        ('type: "Convolution" convolution_param { num_output: 2 }', (1, 3, 4, 4), "kernel"),
        ('type: "BatchNorm"', (3,), "2 or more axes"),
        ('type: "Pooling" pooling_param { kernel_size: 2 pad: 2 }', (1, 3, 4, 4), "pad"),
        (
            'type: "Pooling" pooling_param { global_pooling: true kernel_size: 2 }',
            (1, 3, 4, 4),
            "global_pooling",
        ),
        ('type: "Pooling" pooling_param { global_pooling: true stride: 2 }', (1, 3, 4, 4), "global_pooling"),
        ('type: "Pooling" pooling_param { kernel_size: 2 stride: 0 }', (1, 3, 4, 4), "stride"),
        ('type: "Pooling" pooling_param { kernel_size: 2 }', (1, 3, 4), "4 axes"),
    ],
)
def test_what_a_stock_layer_refuses(layer, shape, said):
    with pytest.raises(CaffeValueError, match=f"(?s)'L'.*{said}"):
        one_layer(layer, shape)


@pytest.mark.parametrize("kernel, stride, pad, group", [(4, 2, 1, 1), (3, 1, 0, 2), (2, 3, 0, 4)])
def test_deconvolution(kernel, stride, pad, group):
    text = f'type: "Deconvolution" convolution_param {{ num_output: 4 kernel_size: {kernel} stride: {stride} '
    net = randomised(one_layer(text + f"pad: {pad} group: {group} }}", (2, 4, 3, 4)))
    x = draw(2, 4, 3, 4)
    weight, bias = (p.detach().numpy() for p in (net.L.weight, net.L.bias))
    same(net(x), reference.deconvolution(x.numpy(), weight, bias, stride, pad, group))


@pytest.mark.parametrize("kind", ["convolution", "deconvolution"])
@pytest.mark.parametrize(
    "shape, axis", [((2, 3, 4, 5, 6), 2), ((2, 2, 3, 4, 5), -3), ((4, 5, 6), 0), ((2, 3, 4, 6), 2)]
)
def test_convolution_of_other_axes(kind, shape, axis):
    """The axes before the channels are a batch, as in Caffe's num_."""
    axis %= len(shape)
    spatial = len(shape) - axis - 1
    net = randomised(
        one_layer(
            f'type: "{kind.capitalize()}" convolution_param {{ axis: {axis} num_output: 4 kernel_size: 3 '
            "stride: 2 pad: 1 }",
            shape,
        )
    )
    x = draw(*shape)
    weight, bias = (p.detach().numpy() for p in (net.L.weight, net.L.bias))
    batch = x.numpy().reshape(-1, *shape[axis:])
    if spatial == 1:  # the reference has two
        batch, weight = batch[..., None], np.pad(weight[..., None], [(0, 0)] * 3 + [(1, 1)])
    dilation = (1,) if kind == "convolution" else ()
    wanted = getattr(reference, kind)(batch, weight, bias, 2, 1, *dilation, 1)
    wanted = wanted[..., 0] if spatial == 1 else wanted
    assert net(x).shape == (*shape[:axis], 4, *wanted.shape[2:])
    same(net(x), wanted.reshape(net(x).shape))


def test_several_bottoms_of_a_convolution_share_its_weights():
    net = randomised(
        one_layer(
            'type: "Convolution" convolution_param { num_output: 2 kernel_size: 3 }',
            *[(1, 3, 5, 5)] * 2,
            tops=2,
        )
    )
    a, b = draw(1, 3, 5, 5), draw(1, 3, 5, 5, seed=1)
    together = net(a, b)
    same(together["y1"], net(b, a)["y0"].detach())


@pytest.mark.parametrize("axis, transpose", [(1, False), (2, True), (-1, False)])
def test_inner_product(axis, transpose):
    x = draw(3, 4, 5)
    text = f'type: "InnerProduct" inner_product_param {{ num_output: 6 axis: {axis} transpose: {int(transpose)} }}'
    net = randomised(one_layer(text, x.shape))
    rows = x.numpy().reshape(*x.shape[: axis % 3], -1)
    weight = net.L.weight.detach().numpy()
    same(net(x), rows @ (weight if transpose else weight.T) + net.L.bias.detach().numpy())


@pytest.mark.parametrize(
    "type_name, axis, num_axes",
    [("Scale", 1, 1), ("Scale", 0, 2), ("Scale", -2, 2), ("Bias", 1, -1), ("Bias", 0, 1)],
)
def test_scale_and_bias(type_name, axis, num_axes):
    x = draw(2, 3, 4, 5)
    extra = "bias_term: true" if type_name == "Scale" else ""
    name = type_name.lower()
    net = randomised(
        one_layer(
            f'type: "{type_name}" {name}_param {{ axis: {axis} num_axes: {num_axes} {extra} }}', x.shape
        )
    )
    first = axis % 4
    end = 4 if num_axes == -1 else first + num_axes
    shape = tuple(x.shape[i] if first <= i < end else 1 for i in range(4))
    weight = net.L.weight.detach().reshape(shape).numpy() if type_name == "Scale" else 1
    same(net(x), x.numpy() * weight + net.L.bias.detach().reshape(shape).numpy())


def test_scale_by_a_second_bottom():
    net = one_layer('type: "Scale" scale_param { axis: 0 }', (2, 3, 4), (2, 3))
    x, by = draw(2, 3, 4), draw(2, 3, seed=1)
    same(net(x, by), x.numpy() * by.numpy()[..., None])


def test_embed():
    net = randomised(one_layer('type: "Embed" embed_param { num_output: 3 input_dim: 7 }', (4, 2)))
    indices = labels(7, 4, 2)
    same(
        net(indices), net.L.weight.detach().numpy()[indices.numpy().astype(int)] + net.L.bias.detach().numpy()
    )


def test_prelu():
    net = randomised(one_layer('type: "PReLU"', (2, 3, 4)))
    x = draw(2, 3, 4)
    same(net(x), np.where(x > 0, x, x.numpy() * net.L.slope.detach().numpy()[None, :, None]))
