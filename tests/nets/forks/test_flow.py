"""FlowNet's types: Correlation, FlowWarp, Resample."""

import itertools
import math

import numpy as np
import pytest
import torch
from support.fork_reference import c_round
from support.nets import draw, gradients_are_right, one_layer, same

from cuffi.base import CaffeValueError


def correlation(a, b, pad, kernel, most, stride_1, stride_2):
    a, b = (np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))) for x in (a, b))
    border, radius = most + kernel // 2, most // stride_2
    sizes = [-(-(size - 2 * border) // stride_1) for size in a.shape[2:]]
    shifts = [i * stride_2 for i in range(-radius, radius + 1)]
    top = np.zeros((len(a), len(shifts) ** 2, *sizes))
    for (c, (dy, dx)), y, x in itertools.product(
        enumerate(itertools.product(shifts, shifts)), range(sizes[0]), range(sizes[1])
    ):
        v, u = y * stride_1 + most, x * stride_1 + most
        one = a[:, :, v : v + kernel, u : u + kernel]
        two = b[:, :, v + dy : v + dy + kernel, u + dx : u + dx + kernel]
        top[:, c, y, x] = (one * two).mean((1, 2, 3))
    return top


@pytest.mark.parametrize(
    "pad, kernel, most, stride_1, stride_2",
    [(2, 1, 2, 1, 1), (4, 1, 4, 1, 2), (3, 3, 3, 2, 1), (0, 1, 2, 2, 2), (1, 1, 0, 1, 1)],
)
def test_correlation(pad, kernel, most, stride_1, stride_2):
    a, b = draw(2, 3, 6, 8), draw(2, 3, 6, 8, seed=1)
    words = (
        f"pad: {pad} kernel_size: {kernel} max_displacement: {most} stride_1: {stride_1} stride_2: {stride_2}"
    )
    net = one_layer(f'type: "Correlation" correlation_param {{ {words} }}', a.shape, b.shape)
    same(net(a, b), correlation(a.numpy(), b.numpy(), pad, kernel, most, stride_1, stride_2))
    assert gradients_are_right(net, a, b)


@pytest.mark.parametrize("fill", ["ZERO", "NOT_A_NUMBER"])
def test_flow_warp(fill):
    image, flow = draw(2, 3, 6, 7), draw(2, 2, 6, 7, seed=1) * 3
    net = one_layer(f'type: "FlowWarp" flow_warp_param {{ fill_value: {fill} }}', image.shape, flow.shape)
    wanted = np.full(image.shape, 0.0 if fill == "ZERO" else np.nan)
    for n, i, j in itertools.product(range(2), range(6), range(7)):
        x, y = j + flow[n, 0, i, j].item(), i + flow[n, 1, i, j].item()
        if 0 <= x < 7 and 0 <= y < 6:
            (u, du), (v, dv) = (int(x), x - int(x)), (int(y), y - int(y))
            at = image[n, :, [[v], [min(v + 1, 5)]], [u, min(u + 1, 6)]].numpy()
            wanted[n, :, i, j] = ([1 - dv, dv] @ at) @ [1 - du, du]
    same(net(image, flow).nan_to_num(nan=7), np.nan_to_num(wanted, nan=7))
    if fill == "ZERO":
        assert gradients_are_right(net, image, flow)


def resampled(x, size, kind, antialias):
    """The source's loop, with the factors of both axes in each position."""
    (high, wide), (fy, fx) = x.shape[2:], (have / want for have, want in zip(x.shape[2:], size, strict=True))
    narrow = antialias and max(fx, fy) > 1
    top = np.zeros((*x.shape[:2], *size))
    for i, j in itertools.product(range(size[0]), range(size[1])):
        v, u = i * fy + fx / 2 - 0.5, j * fx + fy / 2 - 0.5
        if kind == "NEAREST":
            top[:, :, i, j] = x[:, :, c_round(v), c_round(u)]
            continue
        total = 0
        for a, b in itertools.product(range(high), range(wide)):
            weight = 1
            for place, at, factor in ((v, a, fy), (u, b, fx)):
                scale = 1 / factor if narrow else 1
                reach = 2 if factor < 1 else math.ceil((4 if kind == "CUBIC" else 2) / scale)
                weight *= filter_of(kind, scale * (place - at)) if abs(c_round(place) - at) <= reach else 0
            top[:, :, i, j] += weight * x[:, :, a, b]
            total += weight
        top[:, :, i, j] = top[:, :, i, j] / total if total else 0
    return top


def filter_of(kind, d):
    d = abs(d)
    if kind == "LINEAR":
        return max(0, 1 - d)
    return d * d * (1.5 * d - 2.5) + 1 if d <= 1 else d * (d * (2.5 - 0.5 * d) - 4) + 2 if d < 2 else 0


@pytest.mark.parametrize("kind", ["NEAREST", "LINEAR", "CUBIC"])
@pytest.mark.parametrize("size", [(14, 16), (3, 4), (7, 8)])
@pytest.mark.parametrize("antialias", [True, False])
def test_resample(kind, size, antialias):
    x, like = draw(2, 3, 7, 8), draw(1, 1, *size)
    words = f"type: {kind} antialias: {str(antialias).lower()}"
    wanted = resampled(x.numpy(), size, kind, antialias)
    net = one_layer(
        f'type: "Resample" resample_param {{ {words} height: {size[0]} width: {size[1]} }}', x.shape
    )
    same(net(x), wanted)
    same(one_layer(f'type: "Resample" resample_param {{ {words} }}', x.shape, like.shape)(x, like), wanted)


@pytest.mark.parametrize(
    "text, shapes, said",
    [
        ('"Correlation" correlation_param { kernel_size: 2 }', [(1, 2, 9, 9)] * 2, "kernel_size must be odd"),
        (
            '"Correlation" correlation_param { kernel_size: 1 max_displacement: 5 }',
            [(1, 2, 9, 9)] * 2,
            "nothing is left",
        ),
        (
            '"Correlation" correlation_param { kernel_size: 1 correlation_type: SUBTRACT }',
            [(1, 2, 9, 9)] * 2,
            "SUBTRACT",
        ),
        ('"FlowWarp"', [(1, 2, 3, 3), (1, 3, 3, 3)], "an image and its flow"),
        ('"Resample" resample_param { height: 3 }', [(1, 2, 3, 3)], "height and width, or a second bottom"),
        ('"Resample" resample_param { type: AREA }', [(1, 2, 3, 3)], "only CUBIC"),
    ],
)
def test_what_the_sources_refuse(text, shapes, said):
    with pytest.raises(CaffeValueError, match=said):
        one_layer(f"type: {text}", *shapes)


def test_halves_are_finite():
    a, b = draw(1, 8, 6, 8).half(), draw(1, 8, 6, 8, seed=1).half()
    net = one_layer(
        'type: "Correlation" correlation_param { pad: 2 kernel_size: 1 max_displacement: 2 }',
        a.shape,
        b.shape,
    )
    same(net(a, b).double(), net(a.double(), b.double()), 1e-2)
    image, flow = a[:, :3], b[:, :2]
    net = one_layer('type: "FlowWarp"', image.shape, flow.shape)
    same(net(image, flow).double(), net(image.double(), flow.double()), 2e-2)
    assert torch.is_floating_point(net(image, flow))
