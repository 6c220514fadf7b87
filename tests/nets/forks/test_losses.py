"""MultiBoxLoss, CenterLoss, MarginInnerProduct, FocalLoss, DetectionEvaluate, BoxAnnotatorOHEM."""

import copy
import itertools

import numpy as np
import pytest
import torch
from support import fork_reference as reference
from support.nets import draw, gradients_are_right, one_layer, randomised, same
from support.typed import not_none

from cuffi.base import CaffeValueError

PRIORS = 40
CLASSES = 4


def priors():
    centre, size = draw(PRIORS, 2).sigmoid(), draw(PRIORS, 2, seed=1).sigmoid() / 2
    variances = torch.tensor([0.1, 0.1, 0.2, 0.2]).double().expand(PRIORS, 4)
    return torch.cat((centre - size / 2, centre + size / 2), 1), variances


def truth():
    """Item 1 has no boxes; one box belongs to no item."""
    low, size = draw(7, 2, seed=3).sigmoid() / 2, draw(7, 2, seed=4).sigmoid() / 2
    items = torch.tensor([0, 0, 0, 2, 2, 2, -1]).double()[:, None]
    labels, difficult = (
        torch.tensor([1, 2, 3, 1, 1, 2, 3]).double()[:, None],
        torch.tensor([0.0, 1] * 3 + [0]),
    )
    return torch.cat((items, labels, items * 0, low, low + size, difficult.double()[:, None]), 1)


def multi_box_loss(
    offsets, scores, rows, bipartite, difficult, mines, logistic, threshold, predicted=False, in_target=False
):
    """The loss, one prior after the other. predicted: boxes are matched with the decoded boxes, not with priors."""
    boxes, variances = (part.numpy() for part in priors())
    loc = conf = positives = 0
    for n in range(len(offsets)):
        own = [r for r in rows if r[0] == n and (difficult or not r[7])]
        overlaps = {
            (p, g): reference.overlap(
                meant(boxes[p], 1 if in_target else variances[p], offsets[n, p]) if predicted else boxes[p],
                own[g][3:7],
            )
            for p, g in itertools.product(range(PRIORS), range(len(own)))
        }
        overlaps = {pair: value for pair, value in overlaps.items() if value > 1e-6}
        match, free = {}, set(range(len(own)))
        while left := {k: v for k, v in overlaps.items() if k[0] not in match and k[1] in free}:
            p, g = max(left, key=lambda k: (left[k], -k[0], -k[1]))
            match[p] = g
            free.remove(g)
        best = {p: max((v for (q, _), v in overlaps.items() if q == p), default=0) for p in range(PRIORS)}
        for p in range(PRIORS) if not bipartite else ():
            near = [(v, -g) for (q, g), v in overlaps.items() if q == p and v >= threshold]
            if p not in match and near:
                match[p] = -max(near)[1]
        labels = [int(own[match[p]][1]) if p in match else 0 for p in range(PRIORS)]
        losses = [score_loss(scores[n, p], labels[p], logistic) for p in range(PRIORS)]
        taken = set(range(PRIORS))
        if mines:
            others = [p for p in range(PRIORS) if p not in match and best[p] < 0.5] if own else []
            others = sorted(others, key=lambda p: -losses[p])[: int(3 * len(match))]
            taken = set(match) | set(others)
        conf += sum(losses[p] for p in taken)
        positives += len(match)
        for p, g in match.items():
            given = offsets[n, p] / variances[p] if in_target else offsets[n, p]
            d = given - encoded(boxes[p], variances[p], own[g][3:7])
            loc += np.where(abs(d) < 1, d * d / 2, abs(d) - 0.5).sum()
    return (2 * loc + conf) / max(positives, 1)


def encoded(prior, variance, box):
    size = prior[2:] - prior[:2]
    shift = ((box[:2] + box[2:]) - (prior[:2] + prior[2:])) / 2 / size
    return np.concatenate((shift, np.log((box[2:] - box[:2]) / size))) / variance


def meant(prior, variance, offsets):
    """Decodes offsets from a prior: the inverse of `encoded`."""
    offsets, size = offsets * variance, prior[2:] - prior[:2]
    centre, half = (prior[:2] + prior[2:]) / 2 + offsets[:2] * size, np.exp(offsets[2:]) * size / 2
    return np.concatenate((centre - half, centre + half))


def score_loss(scores, label, logistic):
    if logistic:
        p, wanted = 1 / (1 + np.exp(-scores)), np.arange(CLASSES) == label
        return -np.where(wanted, np.log(p), np.log(1 - p)).sum()
    return np.log(np.exp(scores).sum()) - scores[label]


@pytest.mark.parametrize("bipartite, difficult, mines, logistic", [
    (False, True, True, False),
    (True, True, True, False),
    (False, False, True, False),
    (False, True, False, False),
    (False, True, True, True),
])  # fmt: skip
def test_multi_box_loss(bipartite, difficult, mines, logistic):
    offsets, scores, rows = draw(3, PRIORS, 4, seed=5), draw(3, PRIORS, CLASSES, seed=6), truth()
    words = f"num_classes: {CLASSES} code_type: CENTER_SIZE loc_weight: 2 overlap_threshold: 0.3"
    words += f" match_type: {'BIPARTITE' if bipartite else 'PER_PREDICTION'}"
    words += f" use_difficult_gt: {str(difficult).lower()} mining_type: {'MAX_NEGATIVE' if mines else 'NONE'}"
    words += f" conf_loss_type: {'LOGISTIC' if logistic else 'SOFTMAX'}"
    bottoms = (
        offsets.reshape(3, -1),
        scores.reshape(3, -1),
        torch.stack(priors()).reshape(1, 2, -1),
        rows[None, None],
    )
    net = one_layer(f'type: "MultiBoxLoss" multibox_loss_param {{ {words} }}', *(b.shape for b in bottoms))
    wanted = multi_box_loss(
        offsets.numpy(), scores.numpy(), rows.numpy(), bipartite, difficult, mines, logistic, 0.3
    )
    same(net(*bottoms), wanted)
    assert gradients_are_right(lambda a, b: net(a, b, *bottoms[2:]), *bottoms[:2])


@pytest.mark.parametrize("in_target", [False, True])
def test_multi_box_loss_matches_what_is_predicted(in_target):
    offsets, scores, rows = draw(3, PRIORS, 4, seed=5), draw(3, PRIORS, CLASSES, seed=6), truth()
    words = f"num_classes: {CLASSES} code_type: CENTER_SIZE loc_weight: 2 overlap_threshold: 0.3"
    words += f" use_prior_for_matching: false encode_variance_in_target: {str(in_target).lower()}"
    bottoms = (
        offsets.reshape(3, -1),
        scores.reshape(3, -1),
        torch.stack(priors()).reshape(1, 2, -1),
        rows[None, None],
    )
    net = one_layer(
        f'type: "MultiBoxLoss" multibox_loss_param {{ {words} mining_type: MAX_NEGATIVE }}',
        *(b.shape for b in bottoms),
    )
    given = offsets.numpy(), scores.numpy(), rows.numpy(), False, True, True, False, 0.3
    same(net(*bottoms), wanted := multi_box_loss(*given, True, in_target))
    assert abs(wanted - multi_box_loss(*given, False, in_target)) > 0.1  # other priors learn


def test_boxes_of_multi_box_loss():
    """Labels that begin at 0 are the background's, which the source refuses; a box of item -2 is of no item."""
    words = f"num_classes: {CLASSES} code_type: CENTER_SIZE"
    bottoms = [draw(3, PRIORS * 4), draw(3, PRIORS * CLASSES), torch.stack(priors()).reshape(1, 2, -1)]
    rows = truth()[None, None]
    net = one_layer(
        f'type: "MultiBoxLoss" multibox_loss_param {{ {words} }}', *(b.shape for b in (*bottoms, rows))
    )
    without, of_none, wrong = rows.clone(), rows.clone(), rows.clone()
    without[0, 0, 1, 0], of_none[0, 0, 1, 0], wrong[0, 0, 1, 1] = -1, -2, 0
    assert net(*bottoms, of_none) == net(*bottoms, without) != net(*bottoms, rows)
    with pytest.raises(CaffeValueError, match="a box has background_label_id as its label"):
        net(*bottoms, wrong)


def test_multi_box_loss_without_any_box():
    words = f"num_classes: {CLASSES} code_type: CENTER_SIZE"
    bottoms = [draw(2, PRIORS * 4), draw(2, PRIORS * CLASSES), torch.stack(priors()).reshape(1, 2, -1)]
    net = one_layer(
        f'type: "MultiBoxLoss" multibox_loss_param {{ {words} }}', *(b.shape for b in bottoms), (1, 1, 1, 8)
    )
    for rows in (torch.full((1, 1, 1, 8), -1.0).double(), torch.zeros(1, 1, 0, 8).double()):
        offsets = bottoms[0].clone().requires_grad_()
        loss = net(offsets, *bottoms[1:], rows)
        assert loss == 0
        loss.backward()
        assert not not_none(offsets.grad).count_nonzero()


@pytest.mark.parametrize("words, said", [
    ("", "must provide num_classes"),
    ("num_classes: 4 share_location: false", "share_location false is not known"),
    ("num_classes: 4 mining_type: HARD_EXAMPLE", "HARD_EXAMPLE and nms_param are not known"),
    ("num_classes: 4 mining_type: NONE conf_loss_type: LOGISTIC", "LOGISTIC with mining_type NONE"),
    ("num_classes: 3", "must match number of confidence"),
    ("num_classes: 4 map_object_to_agnostic: true", "map_object_to_agnostic is for num_classes 2"),
])  # fmt: skip
def test_what_multi_box_loss_refuses(words, said):
    shapes = (1, PRIORS * 4), (1, PRIORS * 4), (1, 2, PRIORS * 4), (1, 1, 1, 8)
    with pytest.raises(CaffeValueError, match=said):
        one_layer(f'type: "MultiBoxLoss" multibox_loss_param {{ {words} }}', *shapes)


def test_center_loss():
    """A centre's gradient is Caffe's own, without the loss weight."""
    x, labels = draw(5, 3), torch.tensor([0.0, 1, 1, 3, 1]).double()
    net = randomised(
        one_layer('type: "CenterLoss" center_loss_param { num_output: 4 }', x.shape, labels.shape)
    )
    centre = net.L.center.detach().numpy()
    distance = x.numpy() - centre[labels.long().numpy()]
    x.requires_grad_()
    loss = net(x, labels)
    same(loss, (distance**2).sum() / 10)
    (7 * loss).backward()
    same(x.grad, 7 * distance / 5)
    wanted = np.zeros((4, 3))
    for label, d in zip(labels.long().tolist(), distance, strict=True):
        wanted[label] -= d / ((labels == label).sum().item() + 1)
    same(net.L.center.grad, wanted)


@pytest.mark.parametrize("margin, kind", [*enumerate(("SINGLE", "DOUBLE", "TRIPLE", "QUADRUPLE"), 1)])
def test_margin_inner_product(margin, kind):
    """The paper's psi by the angle. The gradient of a label's score is divided by its coefficients' length."""
    x, labels = draw(40, 3).requires_grad_(), (torch.arange(40) % 4).double()
    fields = f"num_output: 4 type: {kind} base: 3 gamma: 0.5 power: 2 lambda_min: 0.625 iteration: 1"
    text = f'type: "MarginInnerProduct" margin_inner_product_param {{ {fields} }}'
    net = randomised(one_layer(text, x.shape, labels.shape, tops=2)).train()
    rows, own = torch.arange(40), labels.long()
    for number in (2, 3, 4):
        weight = net.L.weight.detach() / net.L.weight.detach().norm(dim=1, keepdim=True)
        tops = net(x, labels)
        same(net.L.weight, weight)
        share = max(0.625, 3 * (1 + 0.5 * number) ** -2)
        same(tops["y1"], [share])
        length = x.norm(dim=1)
        angle = ((x @ weight.T)[rows, own] / length).clamp(-1, 1).acos()
        k = (angle * margin / torch.pi).floor().detach()
        psi = length * ((-1) ** k * (margin * angle).cos() - 2 * k)
        wanted = (x @ weight.T).detach()
        wanted[rows, own] = (share * wanted[rows, own] + psi.detach()) / (1 + share)
        same(tops["y0"], wanted)
        (true,) = torch.autograd.grad(psi.sum(), x)
        pairs = torch.stack((weight[own], x.detach()), 2)
        parts = torch.linalg.lstsq(pairs, true[..., None]).solution  # of the weights and of x
        bent = true / parts.norm(dim=1) if margin > 1 else weight[own]
        gradient = draw(40, 4, seed=number)
        x.grad = net.L.weight.grad = None
        (tops["y0"] * gradient).sum().backward()
        same(x.grad, gradient @ weight + gradient[rows, own, None] * (bent - weight[own]) / (1 + share))
        same(net.L.weight.grad, gradient.T @ x.detach())
    net.eval()
    assert [net(x, labels)["y1"].item() for _ in range(2)] == [0.625, 0.625]


def test_a_compiled_margin_counts_its_forwards():
    fields = "num_output: 4 type: QUADRUPLE base: 5 gamma: 0.1"
    text = f'type: "MarginInnerProduct" margin_inner_product_param {{ {fields} }}'
    net = randomised(one_layer(text, (5, 3), (5,))).train()
    compiled, labels = (
        torch.compile(copy.deepcopy(net), backend="aot_eager", fullgraph=True),
        torch.arange(5) % 4,
    )
    for seed in range(3):
        xs = [draw(5, 3, seed=seed).requires_grad_() for _ in range(2)]
        tops = [call(x, labels.double()) for call, x in zip((net, compiled), xs, strict=True)]
        for top in tops:
            (top * torch.arange(20).view(5, 4)).sum().backward()
        same(tops[1], tops[0].detach())
        same(xs[1].grad, xs[0].grad)


def test_the_margin_counts_its_forwards_in_half_precision():
    """bfloat16 has no odd numbers above 256."""
    fields = "num_output: 4 type: DOUBLE base: 1024 gamma: 1 iteration: 1022"
    net = one_layer(
        f'type: "MarginInnerProduct" margin_inner_product_param {{ {fields} }}', (2, 3), (2,), tops=2
    )
    net = randomised(net).to(torch.bfloat16).train()
    x, labels = draw(2, 3).bfloat16(), torch.zeros(2).bfloat16()
    assert [net(x, labels)["y1"].item() for _ in range(1025)][::1024] == [1, 0.5]


@pytest.mark.parametrize("ignore", ["", "ignore_label: 2"])
def test_focal_loss(ignore):
    x, labels = draw(2, 4, 3, 3), torch.arange(18).reshape(2, 3, 3).double() % 4
    net = one_layer(
        f'type: "FocalLoss" focal_loss_param {{ alpha: 0.5 gamma: 1.5 }} loss_param {{ {ignore} }}',
        x.shape,
        labels.shape,
    )
    p = np.take_along_axis(x.softmax(1).numpy(), labels.long().numpy()[:, None], 1)[:, 0]
    counted = (labels.numpy() != 2) if ignore else np.ones(p.shape, bool)
    same(net(x, labels), (-0.5 * (1 - p) ** 1.5 * np.log(p))[counted].sum() / counted.sum())
    assert gradients_are_right(lambda x: net(x, labels), x)


def test_focal_loss_of_scores_that_are_far_apart():
    """The source takes the logarithm of at least FLT_MIN."""
    x, labels = torch.tensor([[0.0, 500.0]]).double(), torch.zeros(1)
    net = one_layer('type: "FocalLoss" focal_loss_param { alpha: 0.5 gamma: 1.5 }', x.shape, labels.shape)
    same(net(x, labels), -0.5 * np.log(float(np.finfo(np.float32).tiny)))


def detections():
    rows = truth()
    found = [[0, 1, 0.9, *rows[0, 3:7]], [0, 1, 0.95, *rows[0, 3:7]], [0, 2, 0.3, *rows[1, 3:7]]]
    found += [[2, 1, 0.5, *rows[4, 3:7]], [2, 1, 0.4, 0, 0, 0.01, 0.01], [1, 3, 0.8, *rows[0, 3:7]], [-1] * 7]
    return torch.tensor(found).double()[None, None], rows[None, None]


@pytest.mark.parametrize("difficult", [True, False])
def test_detections_are_judged(difficult):
    """Of two for one box the better one is true; a difficult box may not count."""
    words = f"num_classes: 4 evaluate_difficult_gt: {str(difficult).lower()}"
    found, rows = detections()
    net = one_layer(
        f'type: "DetectionEvaluate" detection_evaluate_param {{ {words} }}', found.shape, rows.shape
    )
    counts = [(1, 3), (2, 2), (3, 1)] if difficult else [(1, 2), (2, 0), (3, 1)]
    wanted: list[list[float]] = [[-1, label, count, -1, -1] for label, count in counts]
    wanted += [[0, 1, 0.95, 1, 0], [0, 1, 0.9, 0, 1], [0, 2, 0.3, *((1, 0) if difficult else (0, 0))]]
    wanted += [[1, 3, 0.8, 0, 1], [2, 1, 0.5, 1, 0], [2, 1, 0.4, 0, 1]]
    same(net(found, rows)[0, 0], np.array(wanted, float), 1e-6)


def test_detections_without_boxes_are_wrong():
    found, rows = detections()
    net = one_layer(
        'type: "DetectionEvaluate" detection_evaluate_param { num_classes: 4 }', found.shape, rows.shape
    )
    got = net(found, torch.full_like(rows, -1))[0, 0]
    assert (got[3:, 3:] == torch.tensor([0, 1])).all() and not got[:3, 2].any()


def test_items_and_labels_of_judged_rows_are_whole():
    """The source reads them as int, ends the boxes at the first of item -1, and refuses the background's label."""
    found, rows = detections()
    net = one_layer(
        'type: "DetectionEvaluate" detection_evaluate_param { num_classes: 4 }', found.shape, rows.shape
    )
    wanted = net(found, rows)
    more = torch.tensor([0.25, 0.5] + [0] * 5).double()
    kept = (found[..., :1] != -1) & (found[..., 1:2] != -1)
    rows_more = rows + torch.tensor([0.5, 0.25] + [0] * 6).double() * (rows[..., :1] != -1)
    assert torch.equal(net(found + more * kept, rows_more), wanted)
    ended = rows.clone()
    ended[0, 0, 1, 0] = -1
    assert net(found, ended)[0, 0, :3, 2].tolist() == [1, 0, 0]  # the first box alone
    for which in (0, 1):
        wrong = [found.clone(), rows.clone()]
        wrong[which][0, 0, 0, 1] = 0
        with pytest.raises(ValueError, match="a row has background_label_id as its label"):
            net(*wrong)


def test_items_of_hard_examples_are_whole():
    """As in the source, which reads them as int; a negative one it uses as an index."""
    net = one_layer(
        'type: "BoxAnnotatorOHEM" box_annotator_ohem_param { roi_per_img: 1 }',
        (4, 5),
        (4, 1),
        (4, 1),
        (4, 8),
        tops=2,
    )
    regions = torch.cat((torch.tensor([[0.0], [0.5], [1], [1.9]]), torch.ones(4, 4)), 1).double()
    losses, labels = (
        torch.tensor([[0.1], [0.2], [0.4], [0.3]]).double(),
        torch.arange(1.0, 5)[:, None].double(),
    )
    assert net(regions, losses, labels, draw(4, 8))["y0"].flatten().tolist() == [-1, 2, 3, -1]
    with pytest.raises(ValueError, match="the item of a region is negative"):
        net(regions - 1, losses, labels, draw(4, 8))


def test_hard_examples_are_the_worst_of_each_image():
    item = torch.tensor([0, 1, 1, 0, 1]).double()
    regions = torch.cat((item[:, None], draw(5, 4)), 1)
    losses, labels, weights = (
        torch.tensor([0.1, 0.5, 0.9, 0.3, 0.7]).double(),
        torch.arange(5).double(),
        draw(5, 8),
    )
    net = one_layer(
        'type: "BoxAnnotatorOHEM" box_annotator_ohem_param { roi_per_img: 2 }',
        (5, 5),
        (5, 1),
        (5, 1),
        (5, 8),
        tops=2,
    )
    got = net(regions, losses[:, None], labels[:, None], weights)
    same(got["y0"], np.array([[0.0], [-1], [2], [3], [4]]))
    kept = np.array([1, 0, 1, 1, 1])[:, None]
    same(got["y1"], weights.numpy() * kept)
