"""ROIPooling and PSROIPooling."""

import itertools

import numpy as np
import pytest
import torch
from support import fork_reference as reference
from support.fork_cases import CASES
from support.fork_cases import NORM as CASE_NORM
from support.nets import draw, gradients_are_right, one_layer, same

from cuffi.nets.forks import regions as region_types


def regions(count, width, height, outside=0.0, seed=0):
    """Rows (item of two, left, top, right, bottom)."""
    size = torch.tensor([width, height]).double()
    low, more = (
        torch.rand(count, 2, generator=torch.Generator().manual_seed(seed + i)) * size for i in range(2)
    )
    item = torch.arange(count).double()[:, None] % 2
    return torch.cat((item, low - outside, low + more + outside), 1)


REGIONS = {
    "inside": regions(7, 80, 70),
    "outside": regions(7, 170, 140, outside=60),
    "tiny": regions(7, 170, 140) * torch.tensor([1, 1, 1, 0.5, 0.5]),  # some end before they begin
    "none": regions(0, 1, 1),
}


@pytest.mark.parametrize("kind", REGIONS)
@pytest.mark.parametrize("pooled", [(3, 4), (7, 7)])
def test_roi_pooling(kind, pooled):
    x, boxes = draw(2, 3, 9, 11).relu(), REGIONS[kind]  # many maxima are 0, in several places
    text = 'type: "ROIPooling" roi_pooling_param {{ pooled_h: {} pooled_w: {} spatial_scale: 0.0625 }}'
    net = one_layer(text.format(*pooled), x.shape, boxes.shape)
    top, places = reference.roi_pooling(x.numpy(), boxes.numpy(), pooled, 1 / 16)
    x.requires_grad_()
    got = net(x, boxes)
    same(got, top, 0)
    gradient = draw(*top.shape, seed=5)
    got.backward(gradient)
    wanted = np.zeros(x.shape)
    for at, place in places.items():
        wanted[place] += gradient[at].item()
    same(x.grad, wanted, 1e-12)
    assert places or kind == "none"


@pytest.mark.gpu
@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.half])
@pytest.mark.parametrize("pad", [0, 0.25])
def test_roi_pooling_on_a_gpu(monkeypatch, installed, dtype, pad):
    """torchvision's operator, where it is installed, and bags: the same as on the processor."""
    x, boxes = draw(2, 3, 9, 11).relu().to(dtype), REGIONS["outside"].float()
    text = f'type: "ROIPooling" roi_pooling_param {{ pooled_h: 3 pooled_w: 4 spatial_scale: 0.0625 pad_ratio: {pad} }}'
    net = one_layer(text, x.shape, boxes.shape)
    gradient = draw(len(boxes), 3, 3, 4, seed=5).round().to(dtype)  # whose sums are exact in any order
    tops, grads = [], []
    if installed:
        pytest.importorskip("torchvision")
    else:
        monkeypatch.setattr(region_types, "_of_torchvision", lambda: None)
    for device in ("cpu", "cuda"):
        leaf = x.to(device).requires_grad_()
        tops.append(net(leaf, boxes.to(device)))
        grads.append(torch.autograd.grad(tops[-1], leaf, gradient.to(device))[0])
    assert tops[1].dtype == dtype
    same(tops[1].detach().cpu().double(), tops[0].detach().double(), 0)
    same(grads[1].cpu().double(), grads[0].double(), 0)


@pytest.mark.parametrize("kind", REGIONS)
def test_psroi_pooling(kind):
    x, boxes = draw(2, 18, 9, 11), REGIONS[kind]
    text = 'type: "PSROIPooling" psroi_pooling_param { spatial_scale: 0.0625 output_dim: 2 group_size: 3 }'
    net = one_layer(text, x.shape, boxes.shape)
    same(net(x, boxes), reference.psroi_pooling(x.numpy(), boxes.numpy(), 2, 3, 1 / 16), 1e-12)
    if len(boxes):
        assert gradients_are_right(lambda x: net(x, boxes), x)


@pytest.mark.parametrize("layer", ["ROIPooling", "PSROIPooling"])
def test_halves_and_channels_last(layer):
    """Regions in half precision are exact as far as they say; the top has the bottom's dtype."""
    x, boxes = draw(2, 18, 9, 11), REGIONS["inside"].round()
    fields = {"ROIPooling": "pooled_h: 3 pooled_w: 3", "PSROIPooling": "output_dim: 2 group_size: 3"}[layer]
    name = {"ROIPooling": "roi_pooling_param", "PSROIPooling": "psroi_pooling_param"}[layer]
    text = f'type: "{layer}" {name} {{ {fields} spatial_scale: 0.0625 }}'
    net = one_layer(text, x.shape, boxes.shape, native={layer: True})
    for dtype in (torch.half, torch.bfloat16):
        rounded = x.to(dtype)
        got = net(rounded.to(memory_format=torch.channels_last), boxes.to(dtype).double())
        assert got.dtype == dtype
        same(got.double(), net(rounded.double(), boxes.to(dtype).double()), 1e-2)


@pytest.mark.parametrize("kind", REGIONS)
@pytest.mark.parametrize("pad", [0.0, 0.25])
def test_roi_align(kind, pad):
    x, boxes = draw(2, 3, 9, 11), REGIONS[kind]
    words = f"pooled_h: 2 pooled_w: 3 spatial_scale: 0.0625 pad_ratio: {pad}"
    net = one_layer(f'type: "ROIAlign" roi_pooling_param {{ {words} }}', x.shape, boxes.shape)
    wanted = np.zeros((len(boxes), 3, 3, 4))
    for n, (item, *ends) in enumerate(boxes.tolist()):
        margin = [(ends[i % 2 + 2] - ends[i % 2] + 1) * pad * (1 if i > 1 else -1) for i in range(4)]
        left, up, right, down = ((end + more) / 16 - 0.5 for end, more in zip(ends, margin, strict=True))
        for i, j in itertools.product(range(3), range(4)):
            y, u = up + i * (down - up) / 2, left + j * (right - left) / 3
            if down > up and right > left and -0.5 <= y <= 8.5 and -0.5 <= u <= 10.5:
                y, u = min(max(y, 0), 8), min(max(u, 0), 10)
                v, w = int(y), int(u)
                at = x[int(item), :, [[v], [min(v + 1, 8)]], [w, min(w + 1, 10)]].numpy()
                wanted[n, :, i, j] = ([1 - y + v, y - v] @ at) @ [1 - u + w, u - w]
    same(net(x, boxes), wanted)
    if len(boxes):
        assert gradients_are_right(lambda x: net(x, boxes), x)


NORM = "bbox_reg_param { " + " ".join(f"bbox_mean: {v}" for v in (0, 0, 0.1, 0))
NORM += " " + " ".join(f"bbox_std: {v}" for v in (0.1, 0.1, 0.2, 0.2)) + " }"


def moved(offsets, low, high):
    """Decodes offsets from a box, in pixels with both ends included."""
    size = high - low + 1
    d = offsets * [0.1, 0.1, 0.2, 0.2] + [0, 0, 0.1, 0]
    own = size * np.exp(d[2:])
    first = d[:2] * size + (low + high) / 2 - (own - 1) / 2
    return np.concatenate((first, first + own - 1))


def test_boxes_are_decoded():
    offsets, boxes = draw(7, 8), REGIONS["inside"]
    rows = [[b[0], *moved(o[4:], b[1:3], b[3:])] for o, b in zip(offsets.numpy(), boxes.numpy(), strict=True)]
    matched = torch.tensor([0.1, 0.99, 0.5, 0.2, 0.96, 0.3, 0.4]).double()[:, None]
    net = one_layer(f'type: "DecodeBBox" {NORM}', offsets.shape, boxes.shape, matched.shape)
    same(net.train()(offsets, boxes, matched)[..., 0, 0], np.array(rows)[[0, 2, 3, 5, 6]], 1e-6)
    net = one_layer(f'type: "DecodeBBox" {NORM}', offsets.shape, boxes.shape)
    same(net(offsets, boxes)[..., 0, 0], np.array(rows), 1e-6)


def pixel_overlap(a, b):
    width, height = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in range(2))
    if width < 0 or height <= 0:
        return 0
    area = [(c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b)]
    return (width + 1) * (height + 1) / (sum(area) - (width + 1) * (height + 1))


@pytest.mark.parametrize("least, before, after", [(0, 0, 0), (0.4, 20, 6), (0.99999, 0, 0)])
def test_proposals_of_several_maps(least, before, after):
    maps: list[tuple] = [((30, 60), (30, 80), 16, draw(4, 2, 4, 5).softmax(1), draw(4, 4, 4, 5, seed=1))]
    maps += [((64,), (50,), 32, draw(2, 2, 2, 3, seed=2).softmax(1), draw(2, 4, 2, 3, seed=3))]
    words = f"fg_thr: {least} max_nms_num: {before} max_post_nms_num: {after} "
    found = {0: [], 1: []}
    for widths, heights, stride, chances, offsets in maps:
        words += "box_group_param { " + " ".join(
            f"field_w: {w} field_h: {h}" for w, h in zip(widths, heights, strict=True)
        )
        words += f" stride: {stride} }} "
        rows, columns = chances.shape[2:]
        for n, i, j in itertools.product(range(len(chances)), range(rows), range(columns)):
            field = np.array([widths[n % len(widths)], heights[n % len(widths)]])
            d = offsets[n, :, i, j].numpy() * [0.1, 0.1, 0.2, 0.2] + [0, 0, 0.1, 0]
            d = np.concatenate((d[:2].clip(-0.5, 0.5), d[2:].clip(-np.log(2), np.log(2))))
            size, centre = field * np.exp(d[2:]), d[:2] * field + (np.array([j, i]) + 0.5) * stride
            low, high = centre - size / 2, centre + size / 2 - 1
            box = [*low.clip(0), *np.minimum(high, [columns * stride, rows * stride])]
            score = 1 - chances[n, 0, i, j].item()
            if score >= least and box[2] - box[0] + 1 >= 15 and box[3] - box[1] + 1 >= 15:
                found[n // len(widths)].append((score, box))
    wanted = []
    for n, own in found.items():
        own, kept = sorted(own, key=lambda f: -f[0])[: before or None], []
        for score, box in own:
            if all(pixel_overlap(box, other) <= 0.5 for _, other in kept):
                kept.append((score, box))
        wanted += [[n, *box, score] for score, box in kept[: after or None]]
    wanted = np.array(wanted or [[0, 1, 1, 10, 10, 0]], float)
    bottoms = [part for *_, chances, offsets in maps for part in (chances, offsets)]
    text = f'type: "BoxGroupOutput" box_group_output_param {{ {words} }} {NORM}'
    got = one_layer(text, *(b.shape for b in bottoms), tops=2)(*bottoms)
    same(got["y0"][..., 0, 0], wanted[:, :5], 1e-6)
    same(got["y1"][..., 0, 0], wanted if wanted[0, 4] != 10 else wanted * 0, 1e-6)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if CASE_NORM in case.layer])
def test_without_a_norm_offsets_have_mean_0_and_deviation_1(name):
    case, tops = CASES[name], []
    for norm in ("", "bbox_reg_param { bbox_mean: [0, 0, 0, 0] bbox_std: [1, 1, 1, 1] }"):
        torch.manual_seed(3)  # some draw
        net = one_layer(case.text.replace(CASE_NORM, norm), *[b.shape for b in case.bottoms], tops=case.tops)
        made = net.train(case.train)(*case.bottoms)
        tops.append([made] if case.tops == 1 else list(made.values()))
    for without, given in zip(*tops, strict=True):
        torch.testing.assert_close(without, given, rtol=0, atol=0)
