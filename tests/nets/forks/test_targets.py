"""Training types of Cascade R-CNN and MS-CNN: ProposalTarget, BboxAccuracy, DetectionGroupLoss and -Accuracy."""

import itertools

import numpy as np
import pytest
import torch
from support.nets import draw, labels, one_layer, same

from cuffi.base import CaffeValueError

MEAN, STD = [0, 0.1, 0, 0], [0.1, 0.2, 0.2, 0.3]
NORM = "bbox_reg_param { bbox_mean: [0, 0.1, 0, 0] bbox_std: [0.1, 0.2, 0.2, 0.3] %s}"
FIELDS = [(30, 40), (60, 50)]
SIZES = "field_w: [30, 60] field_h: [40, 50] stride: 16"


def rows_of(count, items=2, seed=0):
    """Rows (item, left, top, right, bottom)."""
    generator = torch.Generator().manual_seed(seed)
    item = torch.arange(count).double()[:, None] % items
    low, more = (torch.rand(count, 2, generator=generator).double() * s for s in (80, 60))
    return torch.cat((item, low, low + more + 3), 1)


def overlap(a, b, thin=False):
    """Of boxes (left, top, right, bottom), ends included."""
    sides = [min(a[i + 2], b[i + 2]) - max(a[i], b[i]) + 1 for i in (0, 1)]
    if min(sides) < (1e-12 if thin else 1):
        return 0.0
    areas = [(c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b)]
    return sides[0] * sides[1] / (sum(areas) - sides[0] * sides[1])


def offsets_of(row, box):
    size, own = (np.array([c[2] - c[0] + 1, c[3] - c[1] + 1]) for c in (row, box))
    apart = (np.array(box[:2]) + own / 2 - np.array(row[:2]) - size / 2) / size
    return (np.concatenate((apart, np.log(own / size))) - MEAN) / STD


def scene(columns):
    """Regions, most of them near boxes, and boxes; one box is ignored, and there may be none."""
    boxes = rows_of(6)
    near = boxes[torch.arange(18) % 6].clone()
    near[:, 1:] += 3 * draw(18, 4, seed=1)
    rest = torch.cat((labels(3, 6, 1) + 1, torch.zeros(6, columns - 6)), 1).double()
    rest[1, 1] = 1
    given = torch.cat((boxes, rest), 1)
    if columns == 8:
        given[4, 0] = -1
    return torch.cat((rows_of(8, seed=7), near)), given


def targets(regions, given, thin, aware, least=0.1):
    """The tops, if all regions are taken: objects at 0.5, background from `least` to 0.4."""
    given = given[given[:, 0] != -1]
    regions = np.concatenate((regions, given[:, :5]))
    objects, backgrounds = [], []
    for row in regions:
        near = [(overlap(row[1:], b[1:5], thin), b) for b in given if b[0] == row[0]]
        most, box = max(near, key=lambda n: n[0])
        if most >= 0.5 and not box[6]:
            objects.append((row, box, most))
        elif most < 0.5 and least <= most < 0.4:
            backgrounds.append((row, box, most))
    slots, taken = 4 if aware else 2, objects + backgrounds
    tops = [np.zeros((len(taken), width)) for width in (5, 1, slots * 4, slots * 4, slots * 4, 6, 1)]
    for i, (row, box, most) in enumerate(taken):
        tops[0][i] = row
        share = (0.25, len(objects)) if i < len(objects) else (0.75, len(backgrounds))
        tops[6][i] = share[0] * len(taken) / share[1]
        if i < len(objects):
            label = int(box[5])
            slot = slice(4 * (label if aware else 1), None)
            tops[1][i] = label
            tops[2][i, slot][:4] = offsets_of(row[1:], box[1:5])
            tops[3][i, slot][:4] = tops[4][i, slot][:4] = most >= 0.6
            tops[5][i] = [label, *box[1:5], most]
    return tops


WORDS = "cls_num: 4 num_img_per_batch: 2 img_width: 100 img_height: 90 bg_thr_hg: 0.4 "


@pytest.mark.parametrize("columns, aware", [(7, True), (8, True), (8, False)])
def test_proposal_target(columns, aware):
    regions, given = scene(columns)
    text = f'type: "ProposalTarget" proposal_target_param {{ {WORDS} batch_size: -1 bbox_thr_lw: 0.6 }} '
    text += NORM % f"cls_aware: {str(aware).lower()} "
    net = one_layer(text, regions.shape, given.shape, tops=7)
    wanted = targets(regions.numpy(), given.numpy(), columns == 7, aware)
    for name, top in zip((f"y{i}" for i in range(7)), wanted, strict=True):
        same(net(regions, given)[name][..., 0, 0], top, 1e-6)
    assert 2 < (wanted[1] > 0).sum() < len(wanted[1]) - 2


def test_regions_are_drawn():
    """Objects at random, at most a quarter; the rest of the batch is background, and then other regions."""
    regions, given = scene(8)
    whole = targets(regions.numpy(), given.numpy(), False, True)
    count, every = int((whole[1] > 0).sum()), {tuple(row) for row in whole[0]}
    text = f'type: "ProposalTarget" proposal_target_param {{ {WORDS} batch_size: 12 }} {NORM % ""}'
    net = one_layer(text, regions.shape, given.shape, tops=6)
    seen = set()
    for _ in range(30):
        got = net(regions, given)
        rows, label = got["y0"][..., 0, 0], got["y1"].flatten()
        assert len(rows) == 12 and (label > 0).sum() == 3 < count and (label[:3] > 0).all()
        seen |= {tuple(row) for row in rows[:3].tolist()}
    assert len(seen) == count and seen <= every
    text = f'type: "ProposalTarget" proposal_target_param {{ {WORDS} batch_size: 90 }} {NORM % ""}'
    rows = one_layer(text, regions.shape, given.shape, tops=6)(regions, given)["y0"]
    assert len(rows) > len(every)  # with those that are neither object nor background


def test_a_batch_is_filled():
    """MS-CNN fills the batch with random regions; Cascade R-CNN makes one if there is none."""
    for columns, batch in ((7, 90), (8, 1)):
        regions, given = scene(columns)
        regions, given = regions[:3], given * 0 - 1 if columns == 8 else given
        words = WORDS + f"batch_size: {90} append_gtbox: false pickup_discard: false bg_thr_lw: 0.3"
        net = one_layer(
            f'type: "ProposalTarget" proposal_target_param {{ {words} }}', (3, 5), given.shape, tops=6
        )
        rows = net(regions, given)["y0"][..., 0, 0]
        assert len(rows) == batch
        made = rows[-40 if columns == 7 else 0 :]
        assert (made[:, 3] <= 100 + 32).all() and (made[:, 1:] >= 0).all()
        assert ((made[:, 3:] - made[:, 1:3] + 1) >= 32).all()
        for row in made.tolist() if columns == 7 else []:
            assert all(overlap(row[1:], box[1:5]) < 0.5 for box in given.tolist() if box[0] == row[0])
    with pytest.raises(CaffeValueError, match="img_width and img_height must be more than 32"):
        net = one_layer('type: "ProposalTarget" proposal_target_param { cls_num: 2 }', (3, 5), (6, 7), tops=6)
        net(regions, scene(7)[1])


@pytest.mark.parametrize("aware", [True, False])
def test_bbox_accuracy(aware):
    regions = rows_of(9)
    boxes = torch.cat((labels(4, 9, 1), regions[:, 1:] + 2 * draw(9, 4), torch.rand(9, 1).double() * 0.9), 1)
    boxes[0, 5] = 0.99
    offsets = draw(9, 16 if aware else 8, seed=2) / 2
    wanted = [], []
    for row, box, own in zip(regions.numpy(), boxes.numpy(), offsets.numpy(), strict=True):
        if box[0] > 0 and box[5] <= 0.975:
            d = own[4 * (int(box[0]) if aware else 1) :][:4] * STD + MEAN
            size = row[3:] - row[1:3] + 1
            length = size * np.exp(d[2:])
            low = d[:2] * size + row[1:3] + size / 2 - length / 2
            wanted[0].append(overlap([*low, *(low + length - 1)], box[1:5]))
            wanted[1].append(overlap(row[1:], box[1:5]))
    text = 'type: "BboxAccuracy" ' + NORM % ("" if aware else "cls_aware: false ")
    net = one_layer(text, offsets.shape, regions.shape, boxes.shape, tops=2)
    got = net(offsets, regions, boxes)
    for name, values in zip(("y0", "y1"), wanted, strict=True):
        same(got[name].flatten(), np.array([np.mean(values)]), 1e-6)
    same(net(offsets, regions, boxes * 0)["y0"].flatten(), np.array([-1.0]))


def maps(classes, seed=0):
    """Scores and offsets of two items and two fields, and their targets."""
    label = labels(classes, 4, 1, 3, 5, seed=seed) * (labels(3, 4, 1, 3, 5, seed=seed + 1) == 0)
    generator = torch.Generator().manual_seed(seed)
    rest = (
        torch.rand(4, 5, 3, 5, generator=generator).double()
        * torch.tensor([80, 50, 80, 80, 1.0])[:, None, None]
    )
    return draw(4, classes, 3, 5), draw(4, 4, 3, 5, seed=2), torch.cat((label, rest), 1)


def group_loss(scores, offsets, wanted, *, ranking, multiple, batch, smooth, balanced, bound):
    scores, offsets, wanted = (x.numpy() for x in (scores, offsets, wanted))
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    label, kept = wanted[:, 0].astype(int), set()
    for n in range(2):
        cells = list(itertools.product((2 * n, 2 * n + 1), range(3), range(5)))
        objects = [c for c in cells if label[c]]
        others = [c for c in cells if not label[c] and wanted[c[0], 5, c[1], c[2]] < 0.5]
        count = max(multiple * len(objects), 5) if batch < 0 else batch - len(objects)

        def hard(c):
            log = logs[c[0], 0, c[1], c[2]]
            return 1 - np.exp(log) if ranking == "conf_prob" else -log

        kept |= {*objects, *sorted(others, key=lambda c: -hard(c))[:count]}
    objects = sum(label[c] > 0 for c in kept)
    share = 1 / (1 + multiple)
    terms, places = [], []
    for n, i, j in kept:
        is_object = label[n, i, j] > 0
        weight = (
            (share / objects if is_object else (1 - share) / (len(kept) - objects)) * len(kept)
            if balanced
            else 1
        )
        terms.append(-logs[n, label[n, i, j], i, j] * weight)
        if is_object:
            field, box = FIELDS[n % 2], wanted[n, 1:5, i, j]
            target = [(box[k] - ((j, i)[k] + 0.5) * 16) / field[k] for k in (0, 1)]
            target += [np.log(max(box[2 + k], 2) / field[k]) for k in (0, 1)]
            own = offsets[n, :, i, j]
            if bound:
                reach = np.array([0.25] * 2 + [np.log(1.5)] * 2)
                middle = np.array([0.05] * 2 + [0] * 2)
                scale = np.array([0.02**0.5] * 2 + [0.06**0.5] * 2)
                own = own.clip((-reach - middle) / scale, (reach - middle) / scale)
            d = own - (np.array(target) - MEAN) / STD
            places += list(np.where((abs(d) < 1) | (not smooth), d * d / 2, abs(d) - 0.5))
    return np.mean(terms), np.mean(places)


@pytest.mark.parametrize(
    "ranking, multiple, batch, smooth", [("conf_loss", 1, -1, True), ("conf_prob", 2, 45, False)]
)
@pytest.mark.parametrize("other", [False, True])
def test_detection_group_loss(ranking, multiple, batch, smooth, other):
    bottoms = maps(3)
    words = f'cls_num: 3 {SIZES} neg_mining_type: "bootstrap" neg_ranking_type: "{ranking}" bg_multiple: {multiple} '
    words += f"lambda: 2 batch_size: {batch} pos_neg_weighted: {str(other).lower()} "
    words += "" if smooth else 'bbox_loss_type: "Euclidean_L2" '
    words += "field_xyr: 4 field_whr: 1.5" if other else ""
    text = f'type: "DetectionGroupLoss" detection_group_loss_param {{ {words} }} {NORM % ""}'
    net = one_layer(text, *(b.shape for b in bottoms))
    options = {"ranking": ranking, "multiple": multiple, "batch": batch, "smooth": smooth}
    parts = group_loss(*bottoms, **options, balanced=other, bound=other)
    same(net(*bottoms), np.array([parts[0] + 2 * parts[1], 2 * parts[1]]).reshape(1, 1, 1, 2), 1e-6)
    if not other:
        scores, offsets = (b.clone().requires_grad_() for b in bottoms[:2])
        got = torch.autograd.grad(net(scores, offsets, bottoms[2]).sum(), (scores, offsets))
        steps = [draw(*b.shape, seed=5) * 1e-6 for b in bottoms[:2]]
        ends = [
            net(*(b + s * step for b, step in zip(bottoms, steps, strict=False)), bottoms[2]) for s in (1, -1)
        ]
        moved = (ends[0] - ends[1])[0, 0, 0, 0]
        same(2 * sum((g * step).sum() for g, step in zip(got, steps, strict=True)), moved, 1e-10)


@pytest.mark.parametrize("mode", ["random", "mixture"])
def test_cells_are_drawn(mode):
    scores, offsets, wanted = maps(3)
    words = f'cls_num: 3 {SIZES} neg_mining_type: "{mode}" batch_size: 9 bg_multiple: 2 bg_threshold: 2'
    text = f'type: "DetectionGroupLoss" detection_group_loss_param {{ {words} }}'
    net = one_layer(text, scores.shape, offsets.shape, wanted.shape)
    label, _, negative = net.L.labels_of(wanted)
    kept = torch.stack([net.L.sampled(scores[:, 0], label > 0, negative) for _ in range(300)])
    by_item = [part.unflatten(1, (2, 2)).flatten(2) for part in (kept, kept & (label > 0))]
    assert (by_item[0].sum(2) == 9).all() and (by_item[1].sum(2) == 3).all()
    often = kept.double().mean(0)[label == 0]
    assert (often == 1).sum() == (6 if mode == "mixture" else 0) and (often > 0).all()


def test_detection_group_accuracy():
    scores, offsets, wanted = maps(3, seed=4)
    words = f"cls_num: 3 {SIZES} field_whr: 1.5"
    text = f'type: "DetectionGroupAccuracy" detection_group_accuracy_param {{ {words} }} {NORM % ""}'
    net = one_layer(text, scores.shape, offsets.shape, wanted.shape, tops=2)
    hits, overlaps = {True: [], False: []}, []
    for n, i, j in itertools.product(range(4), range(3), range(5)):
        label, box = int(wanted[n, 0, i, j]), wanted[n, 1:5, i, j].numpy()
        if label or wanted[n, 5, i, j] < 0.5:
            hits[label > 0].append(int(scores[n, :, i, j].argmax()) == label)
        if label:
            d = offsets[n, :, i, j].numpy() * STD + MEAN
            centre = d[:2].clip(-0.25, 0.25) * FIELDS[n % 2] + (np.array([j, i]) + 0.5) * 16
            size = np.array(FIELDS[n % 2]) * np.exp(d[2:].clip(-np.log(1.5), np.log(1.5)))
            found = [[*(c - s / 2), *(c + s / 2 - 1)] for c, s in ((centre, size), (box[:2], box[2:]))]
            overlaps.append(overlap(*found))
    got = net(scores, offsets, wanted)
    same(got["y0"].flatten(), np.array([np.mean(hits[True] + hits[False]), np.mean(hits[True])]))
    same(got["y1"].flatten(), np.array([np.mean(overlaps)]), 1e-6)


@pytest.mark.parametrize(
    "text, shapes, said",
    [
        (
            '"ProposalTarget" proposal_target_param { batch_size: 0 }',
            [(3, 5), (2, 7)],
            "batch_size must be -1 or",
        ),
        (
            '"ProposalTarget" proposal_target_param { fg_thr: 0.3 }',
            [(3, 5), (2, 7)],
            "must not be less than bg_thr_hg",
        ),
        ('"ProposalTarget"', [(3, 5), (2, 6)], "boxes of 7 or 8 values are needed"),
        (
            '"BboxAccuracy" bbox_reg_param { cls_aware: false }',
            [(3, 12), (3, 5), (3, 6)],
            r"\(or 8\), 5 and 6 values",
        ),
        ('"DetectionGroupLoss"', [(2, 2, 3, 3)] * 3, "as many field_w as field_h are needed"),
        (
            f'"DetectionGroupLoss" detection_group_loss_param {{ {SIZES} neg_mining_type: "all" }}',
            [(2, 2, 3, 3)] * 3,
            "neg_mining_type 'all': one of random, bootstrap, mixture",
        ),
        (
            f'"DetectionGroupAccuracy" detection_group_accuracy_param {{ {SIZES} cls_num: 2 }}',
            [(3, 2, 3, 3)] * 3,
            "maps of 2, 4 and 6 values, 2 each, are needed",
        ),
    ],
)
def test_what_is_refused(text, shapes, said):
    tops = 6 if "ProposalTarget" in text else 1
    with pytest.raises(CaffeValueError, match=said):
        one_layer(f"type: {text}", *shapes, tops=tops)
