"""BN, Interp, Upsample, DepthwiseConvolution, Axpy, Squeeze, pyramids and what undoes a Pooling."""

import numpy as np
import pytest
import torch
from support import fork_reference as reference
from support.nets import draw, gradients_are_right, labels, one_layer, randomised, same

from cuffi import caffe_net
from cuffi.base import CaffeValueError

SEGNET = 'type: "BN" bn_param { scale_filler { type: "constant" value: 1 } %s }'
PSPNET = 'type: "BN" bn_param { slope_filler { type: "constant" value: 1 } momentum: 0.5 %s }'


@pytest.mark.parametrize("phase", ["TRAIN", "TEST"])
def test_bn_of_segnet_takes_the_batchs_statistics(phase):
    x = draw(4, 3, 5, 6)
    net = randomised(one_layer(SEGNET % "", x.shape, tops=3, phase=phase))
    got = net(x)
    mean, variance = x.numpy().mean((0, 2, 3), keepdims=True), x.numpy().var((0, 2, 3), keepdims=True)
    scale, shift = net.L.scale.detach().numpy(), net.L.shift.detach().numpy()
    same(got["y0"], (x.numpy() - mean) / np.sqrt(variance + 1e-9) * scale + shift)
    same(got["y1"], mean)
    same(got["y2"], variance)
    assert gradients_are_right(randomised(one_layer(SEGNET % "", x.shape, phase=phase)), x)


def test_bn_of_segnet_with_statistics_folded_in():
    x = draw(2, 3, 5, 6)
    net = randomised(one_layer(SEGNET % "bn_mode: INFERENCE", x.shape))
    same(net(x), (x * net.L.scale + net.L.shift).detach())
    assert gradients_are_right(net, x)


def test_bn_of_pspnet_learns_running_values():
    net = randomised(one_layer(PSPNET % "", (4, 3, 5, 6)))
    mean, variance = np.zeros((1, 3, 1, 1)), np.zeros((1, 3, 1, 1))
    slope, bias = net.L.slope.detach().numpy(), net.L.bias.detach().numpy()
    net.train()
    for seed in range(3):
        x = draw(4, 3, 5, 6, seed=seed).numpy()
        own = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
        same(net(torch.from_numpy(x)), (x - own[0]) / np.sqrt(own[1] + 1e-5) * slope + bias, 1e-7)
        mean, variance = mean / 2 + own[0] / 2, variance / 2 + own[1] / 2
    same(net.L.mean, mean)
    same(net.L.variance, variance)
    x = draw(2, 3, 4, 4)
    same(net.eval()(x), (x.numpy() - mean) / np.sqrt(variance + 1e-5) * slope + bias, 1e-7)
    assert set(dict(net.named_parameters())) == {"L.slope", "L.bias"}


def test_frozen_bn_learns_nothing():
    x = draw(4, 3, 5, 6)
    net = one_layer(PSPNET % "frozen: true", x.shape).train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    same(net(x), x / np.sqrt(1 + 1e-5), 1e-7)
    assert not list(net.parameters()) and all(map(torch.equal, before.values(), net.state_dict().values()))


def test_a_bn_that_may_be_two_things_asks(tmp_path):
    """The number of blobs in the weights may decide, too."""
    x = draw(4, 3, 5, 6)
    with pytest.raises(CaffeValueError, match=r"choose=\{'BN': ...\} with 'segnet' .* or 'pspnet'"):
        one_layer('type: "BN"', x.shape)
    assert type(one_layer('type: "BN"', x.shape, choose={"BN": "segnet"}).L).__name__ == "SegNetBN"
    text = (
        'input: "x" input_shape { dim: 4 dim: 3 dim: 5 dim: 6 } layer { name: "L" bottom: "x" top: "y" %s }'
    )
    for words, name in ((SEGNET % "", "SegNetBN"), (PSPNET % "", "PSPNetBN")):
        path = tmp_path / f"{name}.caffemodel"
        caffe_net(text % words).save_caffemodel(path)
        assert type(caffe_net(text % 'type: "BN"', path).L).__name__ == name


@pytest.mark.parametrize(
    "words, cut, size",
    [
        ("zoom_factor: 8", 0, (33, 41)),
        ("shrink_factor: 2", 0, (3, 3)),
        ("zoom_factor: 3 shrink_factor: 2 pad_beg: -1", 1, (4, 7)),
        ("height: 9 width: 4", 0, (9, 4)),
        ("height: 1 width: 1", 0, (1, 1)),
    ],
)
def test_interp(words, cut, size):
    x = draw(2, 3, 5, 6)
    net = one_layer(f'type: "Interp" interp_param {{ {words} }}', x.shape)
    same(net(x), reference.interpolated(x.numpy()[:, :, cut:, cut:], size))
    assert gradients_are_right(net, x)


def test_upsample_by_a_mask():
    x = draw(2, 3, 5, 6)
    top, mask = torch.nn.functional.max_pool2d(x, 2, 2, return_indices=True, ceil_mode=True)
    wanted = torch.nn.functional.max_unpool2d(top, mask, (2, 2), (2, 2), output_size=(5, 6))
    for words in ("upsample_h: 5 upsample_w: 6", "scale: 2 pad_out_h: true"):
        net = one_layer(f'type: "Upsample" upsample_param {{ {words} }}', top.shape, mask.shape)
        same(net(top, mask.double()), wanted)
        assert gradients_are_right(lambda top, net=net: net(top, mask.double()), top)


def test_a_mask_in_half_precision_keeps_its_indices():
    """A map of 100 x 100 has indices that a half cannot represent."""
    text = """input: "x" input_shape { dim: 1 dim: 1 dim: 100 dim: 100 }
    layer { name: "p" type: "Pooling" bottom: "x" top: "p" top: "m" pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: "u" type: "Upsample" bottom: "p" bottom: "m" top: "u" upsample_param { scale: 2 } }"""
    x = draw(1, 1, 100, 100).half()
    same(caffe_net(text)(x).double(), caffe_net(text)(x.float()).double())


def test_upsample_to_the_nearest():
    x = draw(2, 3, 5, 6)
    net = one_layer('type: "Upsample" upsample_param { scale: 3 }', x.shape)
    same(net(x), x.numpy().repeat(3, 2).repeat(3, 3))
    assert gradients_are_right(net, x)


@pytest.mark.parametrize(
    "words", ["DepthwiseConvolution num_output: 4 group: 4", "ConvolutionDepthwise num_output: 4"]
)
def test_depthwise_convolution(words):
    kind, _, fields = words.partition(" ")
    x = draw(2, 4, 7, 8)
    net = one_layer(
        f'type: "{kind}" convolution_param {{ {fields} kernel_size: 3 stride: 2 pad: 1 }}', x.shape
    )
    randomised(net)
    assert net.L.weight.shape == (4, 1, 3, 3)
    same(net(x), torch.nn.functional.conv2d(x, net.L.weight, net.L.bias, 2, 1, 1, 4).detach())


def test_axpy_and_squeeze():
    a, x, y = draw(2, 3, 1, 1), draw(2, 3, 4, 5, seed=1), draw(2, 3, 4, 5, seed=2)
    net = one_layer('type: "Axpy"', a.shape, x.shape, y.shape)
    same(net(a, x, y), a * x + y)
    assert gradients_are_right(net, a, x, y)
    x = draw(1, 3, 1, 1)
    for words, shape in (("", (3,)), ("axis: 2", (1, 3, 1)), ("axis: -1 axis: 0", (3, 1))):
        assert one_layer(f'type: "Squeeze" squeeze_param {{ {words} }}', x.shape)(x).shape == shape


@pytest.mark.parametrize(
    "text, shapes, said",
    [
        (
            '"Upsample" upsample_param { scale: 2 }',
            [(1, 2, 3, 3)] * 3,
            "takes 2 bottoms, not 3; that of eric612",
        ),
        ('"Interp" interp_param { pad_beg: 1 zoom_factor: 2 }', [(1, 2, 3, 3)], "non-positive padding"),
        ('"Interp" interp_param { height: 3 }', [(1, 2, 3, 3)], "a factor, or height and width"),
        ('"Interp" interp_param { zoom_factor: 2 pad_end: -3 }', [(1, 2, 3, 3)], "should be positive"),
        ('"Axpy"', [(1, 2), (1, 3, 4, 4), (1, 3, 4, 4)], "a number for each item and channel"),
        ('"Squeeze" squeeze_param { axis: 1 }', [(1, 2)], "axis 1 of .* is not of size 1"),
        (
            '"BN" bn_param { bn_mode: INFERENCE frozen: true }',
            [(1, 2, 3, 3)],
            "that of hszhao/PSPNet has other fields",
        ),
    ],
)
def test_what_the_sources_refuse(text, shapes, said):
    with pytest.raises(CaffeValueError, match=said):
        one_layer(f"type: {text}", *shapes)


def test_pointwise():
    x = draw(2, 3, 4, 5) * 4
    same(one_layer('type: "ReLU6"', x.shape)(x), x.clamp(0, 6))
    leaky = one_layer('type: "ReLU6" relu6_param { negative_slope: 0.1 }', x.shape)
    same(leaky(x), np.minimum(np.maximum(x, 0) + 0.10000000149011612 * np.minimum(x, 0), 6))
    mish = one_layer('type: "Mish"', x.shape)
    same(mish(x), x * np.tanh(np.log1p(np.exp(x))))
    assert gradients_are_right(leaky, x) and gradients_are_right(mish, x)


def test_shuffle_channel():
    x = draw(2, 6, 4, 5)
    net = one_layer('type: "ShuffleChannel" shuffle_channel_param { group: 2 }', x.shape)
    same(net(x), x[:, [0, 3, 1, 4, 2, 5]])
    with pytest.raises(CaffeValueError, match="4 groups of"):
        one_layer('type: "ShuffleChannel" shuffle_channel_param { group: 4 }', x.shape)


@pytest.mark.parametrize(
    "bins, shape", [((1, 2, 3), (2, 3, 8, 10)), ((4, 1), (2, 3, 7, 5)), ((6,), (2, 3, 4, 5))]
)
def test_spatial_pyramid_pooling(bins, shape):
    """Windows of 10 / 4 = 2 lie five times in a row, and not four times."""
    x, rows = draw(*shape), []
    for b in bins:
        sides = [size // b if len(bins) > 1 else size for size in shape[2:]]
        counts = [-(-(size - side) // side) + 1 for size, side in zip(shape[2:], sides, strict=True)]
        grid = np.zeros((*shape[:2], *counts))
        for i, j in np.ndindex(*counts):
            window = x[:, :, i * sides[0] : (i + 1) * sides[0], j * sides[1] : (j + 1) * sides[1]]
            grid[:, :, i, j] = window.amax((2, 3))
        rows.append(grid.reshape(len(x), -1))
    words = " ".join(f"spatial_bin: {b}" for b in bins)
    net = one_layer(f'type: "SpatialPyramidPooling" spatial_pyramid_pooling_param {{ {words} }}', x.shape)
    same(net(x).flatten(1), np.concatenate(rows, 1), 0)
    assert net(x).dim() == (2 if len(bins) > 1 else 4) and gradients_are_right(net, x)


@pytest.mark.parametrize(
    "words, size", [("kernel_size: 2 stride: 2", (4, 6)), ("kernel_size: 3 stride: 2 pad: 1", (3, 5))]
)
def test_depooling(words, size):
    x, mask = draw(2, 3, 2, 3), labels(size[0] * size[1], 2, 3, 2, 3)
    wanted, count = np.zeros((2, 3, size[0] * size[1])), np.zeros((2, 3, size[0] * size[1]))
    for n, c, i, j in np.ndindex(2, 3, 2, 3):
        place = int(mask[n, c, i, j])
        wanted[n, c, place] += x[n, c, i, j].item()
        count[n, c, place] += 1
    for pool in ("pool: SWITCH ", ""):
        layer = f'type: "Depooling" pooling_param {{ {pool}{words} }}'
        got = one_layer(layer, x.shape, x.shape, tops=2)(x, mask)
        same(got["y0"], wanted.reshape(2, 3, *size), 0)
        same(got["y1"], count.reshape(2, 3, *size), 0)
    assert gradients_are_right(lambda x: one_layer(layer, x.shape, x.shape)(x, mask), x)


@pytest.mark.parametrize("fix, at", [("", (1, 1)), ("fix: 0", (0, 0)), ("fix_y: 0 fix_x: 2", (0, 2))])
def test_depooling_to_a_fixed_place(fix, at):
    x, wanted = draw(1, 2, 3, 4), np.zeros((1, 2, 5, 7))
    for i, j in np.ndindex(3, 4):
        row, column = i * 2 - 1 + at[0], j * 2 - 1 + at[1]
        if 0 <= row < 5 and 0 <= column < 7:
            wanted[0, :, row, column] += x[0, :, i, j].numpy()
    net = one_layer(
        f'type: "Depooling" pooling_param {{ pool: FIX kernel_size: 3 stride: 2 pad: 1 {fix} }}', x.shape
    )
    same(net(x), wanted, 0)
    assert gradients_are_right(net, x)
    with pytest.raises(CaffeValueError, match="only MAX, SWITCH and FIX are known, not SOFT_SWITCH"):
        one_layer('type: "Depooling" pooling_param { pool: SOFT_SWITCH kernel_size: 2 }', x.shape)
    with pytest.raises(CaffeValueError, match="there is no SWITCH"):  # Caffe's own Pooling has none
        one_layer('type: "Pooling" pooling_param { pool: SWITCH kernel_size: 2 }', x.shape)


def test_safe_inv():
    x = labels(4, 2, 3, 5) / 2
    net = one_layer('type: "SafeInv"', x.shape)
    wanted = np.divide(1, x, out=np.zeros(x.shape), where=x.numpy() != 0)
    same(net(x), wanted, 0)
    x.requires_grad_()
    net(x).sum().backward()
    same(x.grad, -(wanted**2))


def test_reorg():
    """Darknet's own index: the memory is a map of few channels, whose positions become channels."""
    x, stride = draw(2, 8, 4, 6), 2
    _, channels, height, width = x.shape
    few, flat = channels // 4, x.numpy().reshape(2, -1)
    wanted = np.zeros_like(flat)
    for c, j, i in np.ndindex(channels, height, width):
        inside = c // few
        row, column = j * stride + inside // stride, i * stride + inside % stride
        wanted[:, i + width * (j + height * c)] = flat[
            :, column + width * stride * (row + height * stride * (c % few))
        ]
    there = one_layer('type: "Reorg"', x.shape)  # stride 2, as YOLO9000's proto says
    assert there(x).shape == (2, 32, 2, 3)
    same(there(x).reshape(2, -1), wanted)
    back = one_layer('type: "Reorg" reorg_param { stride: 2 reverse: true }', x.shape)
    returned = np.zeros_like(flat)
    for c, j, i in np.ndindex(channels, height, width):
        inside = c // few
        row, column = j * stride + inside // stride, i * stride + inside % stride
        returned[:, column + width * stride * (row + height * stride * (c % few))] = flat[
            :, i + width * (j + height * c)
        ]
    same(back(x).reshape(2, -1), returned)
    assert gradients_are_right(there, x)


def test_batch_norm_of_nvcaffe():
    """Stock Caffe's type with the fork's field: a scale and a bias, and running values that are not sums."""
    x, y = draw(4, 3, 5, 6) * 2 + 1, draw(4, 3, 5, 6, seed=1)
    fields = "batch_norm_param { scale_bias: true moving_average_fraction: 0.75 }"
    net = one_layer(f'type: "BatchNorm" {fields}', x.shape).train()
    assert net.L.present_blobs() == ["mean", "variance", "factor", "scale", "bias"] and net.L.factor == 1
    randomised(net)
    scale, bias = (blob.detach().numpy()[:, None, None] for blob in (net.L.scale, net.L.bias))
    mean, variance = np.zeros(3), np.zeros(3)
    for i, batch in enumerate((x, y, x)):
        own = batch.numpy().mean((0, 2, 3)), batch.numpy().var((0, 2, 3))
        kept = 0.75 if i > 1 else 0
        mean, variance = kept * mean + (1 - kept) * own[0], kept * variance + (1 - kept) * own[1]
        normal = (batch.numpy() - own[0][:, None, None]) / np.sqrt(own[1] + 1e-5)[:, None, None]
        same(net(batch), normal * scale + bias, 1e-6)
    same(net.L.mean, mean, 1e-6)
    same(net.L.variance, variance, 1e-6)
    normal = (x.numpy() - mean[:, None, None]) / np.sqrt(variance + 1e-5)[:, None, None]
    same(net.eval()(x), normal * scale + bias, 1e-6)
    with pytest.raises(CaffeValueError, match=r"batch_norm_param\.scale_bais is a field that"):
        one_layer('type: "BatchNorm" batch_norm_param { scale_bais: true }', x.shape)
    assert not hasattr(one_layer('type: "BatchNorm"', x.shape).L, "scale")  # stock Caffe's


def test_fields_that_name_a_type_of_number_are_no_obstacle():
    net = one_layer('type: "Sigmoid" forward_type: FLOAT16 backward_type: FLOAT', (2, 3))
    same(net(torch.zeros(2, 3).double()), np.full((2, 3), 0.5))
    layer = 'layer { type: "TanH" bottom: "x" top: "y" }'
    assert caffe_net(f'default_forward_type: FLOAT16 input: "x" input_dim: [1, 1, 1, 1] {layer}').inputs == [
        "x"
    ]
