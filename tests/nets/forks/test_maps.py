"""MS-CNN's and Cascade R-CNN's types: losses of maps of boxes, and their outputs."""

import itertools

import numpy as np
import pytest
import torch
from support import fork_reference as reference
from support.fork_cases import CASES
from support.nets import draw, labels, one_layer, same

from cuffi.base import CaffeValueError

FIELD, STRIDE = (40, 50), 16
MEAN, STD = [0, 0.1, 0, 0], [0.1, 0.2, 0.2, 0.3]
NORM = "bbox_reg_param { bbox_mean: [0, 0.1, 0, 0] bbox_std: [0.1, 0.2, 0.2, 0.3] }"
SIZES = f"field_w: {FIELD[0]} field_h: {FIELD[1]} downsample_rate: {STRIDE}"


def wanted_of(classes, seed=0, rows=4, columns=5):
    """The targets: (label, x, y, width, height, overlap) of each cell; two thirds have label 0."""
    label = labels(classes, 2, 1, rows, columns, seed=seed) * (
        labels(3, 2, 1, rows, columns, seed=seed + 1) == 0
    )
    generator = torch.Generator().manual_seed(seed)
    rest = torch.rand(2, 5, rows, columns, generator=generator, dtype=torch.float64)
    return torch.cat((label, rest * torch.tensor([100, 90, 80, 80, 1.0])[:, None, None]), 1)


def log_softmax(x):
    return x - np.log(np.exp(x).sum(0))


def loss_of(x, wanted, *, classes, mode, multiple, least, smooth, iou, balanced, objectness, bounds):
    x, wanted = x.numpy(), wanted.numpy()
    cells = list(itertools.product(range(len(x)), range(x.shape[2]), range(x.shape[3])))
    label = {c: int(wanted[c[0], 0, c[1], c[2]]) for c in cells}
    own = {c: min(label[c], 1) if objectness else label[c] for c in cells}
    negative = [c for c in cells if label[c] == 0 and wanted[c[0], 5, c[1], c[2]] < least]
    kept = set(negative) if mode == "all" else set()
    for n, k in itertools.product(range(len(x)), range(1, classes)):
        count = max(4, multiple * sum(own[c] == k for c in cells if c[0] == n))
        ranked = sorted((c for c in negative if c[0] == n), key=lambda c: -x[n, k, c[1], c[2]])
        kept |= set(ranked[:count]) if mode == "bootstrap" else set()
    weight = {c: wanted[c[0], 5, c[1], c[2]] if iou and label[c] else 1.0 for c in cells}
    if balanced:
        positive = [c for c in cells if label[c]]
        count, share = len(positive) + len(kept), 1 / (1 + multiple)
        sums = sum(weight[c] for c in positive), sum(weight[c] for c in kept)
        for c in cells:
            weight[c] *= share * count / sums[0] if label[c] else (1 - share) * count / sums[1]
    terms, places = [], []
    for n, i, j in cells:
        if own[n, i, j] or (n, i, j) in kept:
            terms.append(-log_softmax(x[n, :classes, i, j])[own[n, i, j]] * weight[n, i, j])
        if label[n, i, j]:
            box = wanted[n, 1:5, i, j]
            target = [(box[k] - ((j, i)[k] + 0.5) * STRIDE) / FIELD[k] for k in (0, 1)]
            target += [np.log(max(box[2 + k], 2) / FIELD[k]) for k in (0, 1)]
            target = (np.array(target) - MEAN) / STD
            reach = np.array([1 / bounds[1]] * 2 + [np.log(bounds[0])] * 2)
            middle = np.array([(MEAN[0] + MEAN[1]) / 2] * 2 + [(MEAN[2] + MEAN[3]) / 2] * 2)
            scale = np.array([(STD[0] * STD[1]) ** 0.5] * 2 + [(STD[2] * STD[3]) ** 0.5] * 2)
            d = x[n, classes:, i, j].clip((-reach - middle) / scale, (reach - middle) / scale) - target
            places += list(np.where((abs(d) < 1) | (not smooth), d * d / 2, abs(d) - 0.5))
    return sum(terms) / len(terms), sum(places) / len(places)


@pytest.mark.parametrize("mode", ["bootstrap", "all"])
@pytest.mark.parametrize(
    "smooth, iou, balanced, objectness", [(True, False, False, False), (False, True, True, True)]
)
def test_detection_loss(mode, smooth, iou, balanced, objectness):
    classes = 2 if objectness else 3
    x, wanted = draw(2, classes + 4, 4, 5), wanted_of(4 if objectness else 3)
    flags = {"bb_smooth": smooth, "iou_weighted": iou, "pos_neg_weighted": balanced, "objectness": objectness}
    words = " ".join(f"{name}: {str(flag).lower()}" for name, flag in flags.items())
    words += f" cls_num: {classes} {SIZES} bg_multiple: 2 bg_threshold: 0.6 lambda: 3 field_xyr: 1"
    words += f' sample_mode: "{mode}"'
    net = one_layer(f'type: "DetectionLoss" detection_loss_param {{ {words} }} {NORM}', x.shape, wanted.shape)
    options = {"smooth": smooth, "iou": iou, "balanced": balanced, "objectness": objectness}
    parts = loss_of(x, wanted, classes=classes, mode=mode, multiple=2, least=0.6, bounds=(2, 1), **options)
    same(net(x, wanted), np.array([parts[0] + 3 * parts[1], 3 * parts[1]]).reshape(1, 1, 1, 2), 1e-6)


def test_detection_loss_has_the_gradient_of_its_sum():
    x, wanted = draw(2, 7, 4, 5), wanted_of(3)
    words = f'cls_num: 3 {SIZES} sample_mode: "all" field_whr: 1000000 field_xyr: 0.001'  # nothing is cut
    net = one_layer(f'type: "DetectionLoss" detection_loss_param {{ {words} }}', x.shape, wanted.shape)
    x.requires_grad_()
    (got,) = torch.autograd.grad(net(x, wanted).sum(), x)
    step = draw(*x.shape, seed=3) * 1e-6
    with torch.no_grad():
        change = (net(x + step, wanted) - net(x - step, wanted))[0, 0, 0, 0]
    same(2 * (got * step).sum(), change, 1e-11)


@pytest.mark.parametrize("mode", ["random", "mixture"])
def test_negatives_are_drawn(mode):
    x, wanted = draw(1, 7, 4, 5), wanted_of(3)[:1]
    words = f'cls_num: 3 {SIZES} sample_mode: "{mode}" bg_multiple: 1 bg_threshold: 2'
    net = one_layer(f'type: "DetectionLoss" detection_loss_param {{ {words} }}', x.shape, wanted.shape)
    _, _, _, label, own, negative = net.L.split(x, wanted)
    kept = torch.stack([net.L.sampled(x[:, :3], own, negative) for _ in range(400)])
    assert not kept[:, label != 0].any()
    # Each draw is of one of 20 cells; "mixture" also takes the best of each class.
    draws = max(int((label != 0).sum() * (0.5 if mode == "mixture" else 1)), 8)
    often = kept.double().mean(0)[label == 0]
    drawn = often[often < 1] if mode == "mixture" else often
    assert abs(drawn.mean() - (1 - 0.95**draws)) < 0.03
    assert (often == 1).sum() == (0 if mode == "random" else len(best_of(x, label)))


def best_of(x, label):
    cells = [c for c in itertools.product(range(4), range(5)) if label[0, c[0], c[1]] == 0]
    return {c for k in (1, 2) for c in sorted(cells, key=lambda c: -x[0, k, c[0], c[1]])[:4]}


@pytest.mark.parametrize("top_k, ignored", [(1, None), (2, 2)])
def test_detection_accuracy(top_k, ignored):
    x, wanted = draw(2, 7, 4, 5), wanted_of(3, seed=4)
    words = f"cls_num: 3 {SIZES} top_k: {top_k} field_whr: 1.5"
    text = f'type: "DetectionAccuracy" detection_accuracy_param {{ {words} }} {NORM}'
    text += f" loss_param {{ ignore_label: {ignored} }}" if ignored else ""
    hits, overlaps = {True: [], False: []}, []
    for n, i, j in itertools.product(range(2), range(4), range(5)):
        label, (centre, size) = (
            int(wanted[n, 0, i, j]),
            (wanted[n, 1:3, i, j].numpy(), wanted[n, 3:5, i, j].numpy()),
        )
        if label == ignored or (label == 0 and wanted[n, 5, i, j] >= 0.5):
            continue
        hits[label > 0].append(label in np.argsort(-x[n, :3, i, j].numpy())[:top_k])
        if label:
            d = x[n, 3:, i, j].numpy() * STD + MEAN
            middle = d[:2].clip(-0.25, 0.25) * FIELD + (np.array([j, i]) + 0.5) * STRIDE
            half = np.array(FIELD) * np.exp(d[2:].clip(-np.log(1.5), np.log(1.5))) / 2
            box = [*(middle - half), *(middle + half)]
            overlaps.append(reference.overlap(box, [*(centre - size / 2), *(centre + size / 2)]))
    got = one_layer(text, x.shape, wanted.shape, tops=2)(x, wanted)
    same(got["y0"].flatten(), np.array([np.mean(hits[True] + hits[False]), np.mean(hits[True])]))
    same(got["y1"].flatten(), np.array([np.mean(overlaps)]), 1e-6)
    nothing = wanted * torch.tensor([0, 1, 1, 1, 1, 1e9])[:, None, None]
    same(one_layer(text, x.shape, wanted.shape)(x, nothing).flatten(), np.array([-1.0, -1]))


@pytest.mark.parametrize("least, before, after", [(-5, 0, 0), (0.5, 20, 6), (100, 0, 0)])
def test_boxes_of_several_maps(least, before, after):
    maps = [(FIELD, 16, draw(2, 7, 4, 5)), ((80, 100), 32, draw(2, 7, 2, 3, seed=1))]
    fields = " ".join(f"field_w: {f[0]} field_h: {f[1]} downsample_rate: {s}" for f, s, _ in maps)
    text = f'type: "BoxOutput" box_output_param {{ {fields} fg_thr: {least} max_nms_num: {before} '
    text += f"max_post_nms_num: {after} min_size: 20 }} {NORM}"
    rows = []
    for n in range(2):
        own = []
        for field, stride, x in maps:
            for i, j in itertools.product(range(x.shape[2]), range(x.shape[3])):
                value = x[n, :, i, j].numpy()
                d = value[3:] * STD + MEAN
                size = np.array(field) * np.exp(d[2:].clip(-np.log(2), np.log(2)))
                low = d[:2].clip(-0.5, 0.5) * field + (np.array([j, i]) + 0.5) * stride - size / 2
                low = low.clip(0)
                size = np.minimum(size, np.array([x.shape[3], x.shape[2]]) * stride - low)
                score = max(value[1:3]) - value[0]
                if score >= least and min(size) >= 20:
                    own.append((score, [*low, *(low + size)]))
        kept = []
        for score, box in sorted(own, key=lambda f: -f[0])[: before or None]:
            if all(reference.overlap(box, other) <= 0.5 for _, other in kept):
                kept.append((score, box))
        rows += [[n, *box, score] for score, box in kept[: after or None]]
    rows = np.array(rows or [[0, 1, 1, 10, 10, 0]], float)
    got = one_layer(text, *(x.shape for *_, x in maps), tops=2)(*(x for *_, x in maps))
    same(got["y0"][..., 0, 0], rows[:, :5], 1e-6)
    same(got["y1"][..., 0, 0], rows if least < 100 else rows * 0, 1e-6)


def pixels(a, b):
    sides = [min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1)]
    if sides[0] < 0 or sides[1] <= 0 or min(a[2] - a[0], a[3] - a[1], b[2] - b[0], b[3] - b[1]) < 0:
        return 0
    common = (sides[0] + 1) * (sides[1] + 1)
    return common / (sum((c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b)) - common)


def regions_of(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    low, more = (torch.rand(count, 2, generator=generator, dtype=torch.float64) * s for s in (80, 40))
    return torch.cat((torch.zeros(count, 1), low, low + more + 1), 1)


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("least, most", [(0.1, 0), (0.2, 5), (2, 0)])
def test_frcnn_output(aware, least, most):
    chances, offsets = draw(12, 3).softmax(1), draw(12, 12 if aware else 8, seed=1)
    regions, size = regions_of(12), torch.tensor([[100.0, 90.0]]).double()
    found = []
    for c in (1, 2):
        kept = []
        for k in np.argsort(-chances[:, c].numpy(), kind="stable"):
            if chances[k, c] >= least:
                d = offsets[k, 4 * (c if aware else 1) :][:4].numpy() * STD + MEAN
                low, high = regions[k, 1:3].numpy(), regions[k, 3:].numpy()
                own = (high - low + 1) * np.exp(d[2:])
                first = d[:2] * (high - low + 1) + (low + high) / 2 - (own - 1) / 2
                box = [*first.clip(0), *np.minimum(first + own - 1, [90, 100])]
                if all(pixels(box, other) <= 0.3 for other, _ in kept):
                    kept.append((box, chances[k, c].item()))
        found += [[0, *box, c, score] for box, score in kept]
    if most:
        found = sorted(sorted(found, key=lambda f: -f[-1])[:most], key=lambda f: (f[5], -f[6]))
    cls_aware = f"cls_aware: {str(aware).lower()} }}"
    text = f'type: "FrcnnOutput" frcnn_output_param {{ conf_thr: {least} iou_thr: 0.3 max_det_num: {most} }} '
    net = one_layer(text + NORM[:-1] + cls_aware, chances.shape, offsets.shape, regions.shape, size.shape)
    same(net(chances, offsets, regions, size)[..., 0, 0], np.array([[0, *[-1] * 6], *found], float), 1e-6)


def test_what_proposal_target_refuses_by_values():
    """As the source's CHECKs do."""
    case = CASES["ProposalTarget"]
    net = one_layer(case.text, *(bottom.shape for bottom in case.bottoms), tops=case.tops)
    regions, boxes = case.bottoms
    labelled, far = boxes.clone(), regions.clone()
    labelled[:, 5], far[0, 0] = 0, 2
    with pytest.raises(ValueError, match="the label of an object's box is not above 0"):
        net(regions, labelled)
    with pytest.raises(ValueError, match="item is not below num_img_per_batch"):
        net(far, boxes)


def test_cascade_rcnn_finds_in_one_image():
    """The source's CHECK ends the program; without it detections of two images were mixed."""
    words = 'type: "FrcnnOutput" frcnn_output_param { conf_thr: 0.1 iou_thr: 0.3 } ' + NORM
    net = one_layer(words, (3, 2), (3, 8), (3, 5), (1, 2))
    regions = regions_of(3)
    regions[1, 0] = 1
    with pytest.raises(ValueError, match="a region is of another image than the first"):
        net(draw(3, 2).softmax(1), draw(3, 8), regions, torch.tensor([[100.0, 90.0]]).double())


@pytest.mark.parametrize("low, high", [(20, 30), (None, 25), (500, None), (None, None), (300, 400)])
def test_scale_route(low, high):
    regions, x = regions_of(9)[..., None, None], draw(9, 2, 3)
    words = f"low_scale: {low} " * bool(low) + f"high_scale: {high}" * bool(high)
    size = [((r[3] - r[1] + 1) * (r[4] - r[2] + 1)) ** 0.5 for r in regions[..., 0, 0].numpy()]
    rows = [i for i, s in enumerate(size) if (low or 0) <= s < (high or np.inf)]
    rows = rows or [int(np.argmax(size))]  # the nearest to what is larger than all
    net = one_layer(f'type: "ScaleRoute" scale_route_param {{ {words} }}', regions.shape, x.shape, tops=2)
    got = net(regions, x)
    same(got["y0"], regions[rows])
    same(got["y1"], x[rows])


def test_detections_of_cascade_rcnn_are_judged_as_those_of_ssd():
    """The ends of boxes belong to them, and rows have another order of columns."""
    boxes = regions_of(6)[:, 1:]
    item, label = torch.zeros(6, 1), labels(2, 6, 1) + 1
    found = torch.cat((item, boxes + 2 * draw(6, 4), label, torch.rand(6, 1)), 1).double()
    given = torch.cat((item, boxes, label, item, (labels(2, 6, 1, seed=3))), 1)
    words = "detection_evaluate_param { num_classes: 3 evaluate_difficult_gt: false overlap_threshold: 0.7 }"
    net = one_layer(f'type: "DetectionEvaluate" {words}', (6, 7), (6, 8), (1, 2))
    assert net.L.variant == "cascade"
    got = net(found, given, torch.ones(1, 2).double())[..., 0, 0]
    ends = torch.tensor([0, 0, 0, 0, 0, 1.0, 1.0])
    ssd = one_layer(f'type: "DetectionEvaluate" {words}', (1, 1, 6, 7), (1, 1, 6, 8))
    found_of_ssd = found[:, [0, 5, 6, 1, 2, 3, 4]] + ends
    given_of_ssd = given[:, [0, 5, 6, 1, 2, 3, 4, 7]] + torch.cat((ends, torch.zeros(1)))
    same(got, ssd(found_of_ssd, given_of_ssd)[0, 0], 0)
    assert set(got[2:, 3].tolist()) == {0, 1}


@pytest.mark.parametrize(
    "text, shapes, said",
    [
        (
            '"DetectionLoss" detection_loss_param { cls_num: 2 }',
            [(1, 6, 2, 2)] * 2,
            "field_w and field_h are needed",
        ),
        (
            f'"DetectionLoss" detection_loss_param {{ cls_num: 3 {SIZES} }}',
            [(1, 6, 2, 2)] * 2,
            "3 classes and 6 values",
        ),
        (f'"BoxOutput" box_output_param {{ {SIZES} }}', [(1, 6, 2, 2)] * 2, "1 field_w for 2 bottoms"),
        (
            '"ScaleRoute" scale_route_param { low_scale: 2 high_scale: 1 }',
            [(3, 5)],
            "must not be less than low_scale",
        ),
        ('"ScaleRoute"', [(3, 4)], "regions of 5 values are needed"),
        ('"FrcnnOutput"', [(3, 2), (3, 4), (3, 5), (1, 2)], "8 offsets for each probability"),
        (
            '"FrcnnOutput" frcnn_output_param { nms_type: "IOMU" }',
            [(3, 2), (3, 8), (3, 5), (1, 2)],
            "IOMU is not known",
        ),
    ],
)
def test_what_is_refused(text, shapes, said):
    with pytest.raises(CaffeValueError, match=said):
        one_layer(f"type: {text}", *shapes)
