"""SSD's types: Permute, Normalize, PriorBox, DetectionOutput, SmoothL1Loss."""

import itertools
import warnings

import numpy as np
import pytest
import torch
from support import fork_reference as reference
from support.nets import draw, gradients_are_right, one_layer, same
from support.typed import not_none

from cuffi.base import CaffeValueError
from cuffi.nets.forks._boxes import best_first, decode, encode, overlap, suppressed


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (1,), (3, 1), ()])
def test_permute(order):
    words = " ".join(f"order: {i}" for i in order)
    x = draw(2, 3, 4, 5)
    net = one_layer(f'type: "Permute" permute_param {{ {words} }}', x.shape)
    rest = [i for i in range(4) if i not in order]
    same(net(x), x.numpy().transpose([*order, *rest]))
    assert net(x).is_contiguous() and gradients_are_right(net, x)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_normalize(across, shared):
    words = f"across_spatial: {str(across).lower()} channel_shared: {str(shared).lower()}"
    x, g = draw(2, 3, 4, 5), draw(2, 3, 4, 5, seed=1)
    net = one_layer(f'type: "Normalize" norm_param {{ {words} eps: 0.1 }}', x.shape)
    scale = torch.tensor(1.5) if shared else torch.tensor([1.5, 0.5, 2.0])
    with torch.no_grad():
        net.L.scale.copy_(scale)
    norm = ((x**2).sum((1, 2, 3) if across else 1, keepdim=True) + 0.1).sqrt()
    scale = scale.double().reshape(1, -1, 1, 1)
    same(net(x), x / norm * scale, 1e-7)
    x.requires_grad_()
    (got,) = torch.autograd.grad(net(x), x, g)
    # The source takes the part along x away before it multiplies by the scale.
    along = (x * g).sum((1, 2, 3) if across else 1, keepdim=True)
    same(got, ((g - x * along / norm**2) / norm * scale).detach(), 1e-7)
    if shared:
        assert gradients_are_right(net, draw(2, 3, 4, 5))


@pytest.mark.parametrize("across_spatial", ["true", "false"])
def test_normalize_of_zeros_in_half_precision(across_spatial):
    """At zeros the layer multiplies by 1e5, which float16 does not have."""
    x = torch.stack((torch.zeros(3, 2, 2), draw(3, 2, 2).float())).half().requires_grad_()
    net = one_layer(f'type: "Normalize" norm_param {{ across_spatial: {across_spatial} }}', x.shape).float()
    exact = x.detach().float().requires_grad_()
    for each in (x, exact):
        (net(each) * 1e-2).sum().backward()
    torch.testing.assert_close(net(x), net(exact).half())
    torch.testing.assert_close(x.grad, not_none(exact.grad).half(), rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize(
    "words, low, high, ratios, flip, clip, step, offset",
    [
        (
            "min_size: 30.5 max_size: 60 aspect_ratio: 2 aspect_ratio: 3",
            [30],
            [60],
            [2, 3],
            True,
            False,
            0,
            0.5,
        ),
        ("min_size: 30 aspect_ratio: 2 flip: false clip: true", [30], [], [2], False, True, 0, 0.5),
        ("min_size: 30 min_size: 44 step: 16 offset: 0.25", [30, 44], [], [], True, False, 16, 0.25),
        ("min_size: 9 aspect_ratio: 1 aspect_ratio: 2 aspect_ratio: 2", [9], [], [2], True, False, 0, 0.5),
    ],
)
def test_prior_box(words, low, high, ratios, flip, clip, step, offset):
    text = f'type: "PriorBox" prior_box_param {{ {words} variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.3 }}'
    x, image = draw(2, 3, 5, 7), draw(2, 3, 100, 120)
    variance = [0.1, 0.1, 0.2, 0.3]
    wanted = reference.prior_box((5, 7), (100, 120), low, high, ratios, flip, clip, variance, step, offset)
    net = one_layer(text, x.shape, image.shape)
    same(net(x, image), wanted, 1e-7)
    assert net.shapes["y0"] == wanted.shape
    # In half precision the boxes stay exact.
    assert net(x.half(), image.half()).dtype == torch.float32
    given = one_layer(text.replace("min_size", "img_h: 100 img_w: 120 min_size", 1), x.shape)
    same(given(x), wanted, 1e-7)


@pytest.mark.parametrize("clip", [False, True])
def test_prior_box_clustered(clip):
    words = f"width: 30 width: 44.5 height: 80 height: 12 clip: {str(clip).lower()} offset: 0.25"
    net = one_layer(f'type: "PriorBoxClustered" prior_box_param {{ {words} }}', (1, 2, 3, 4), (1, 3, 60, 100))
    boxes = []
    for i, j in itertools.product(range(3), range(4)):
        x, y = (j + 0.25) * 25, (i + 0.25) * 20
        boxes += [
            [(x - w / 2) / 100, (y - h / 2) / 60, (x + w / 2) / 100, (y + h / 2) / 60]
            for w, h in ((30, 80), (44.5, 12))
        ]
    boxes = np.clip(boxes, 0, 1) if clip else np.array(boxes)
    got = net(draw(1, 2, 3, 4), draw(1, 3, 60, 100))
    same(got, np.stack((boxes, np.full_like(boxes, 0.1))).reshape(1, 2, -1), 1e-6)


DETECTIONS = [
    # code, shared, top_k, keep_top_k, confidence_threshold, nms_threshold, eta
    ("CENTER_SIZE", True, 30, -1, None, 0.45, 1.0),
    ("CENTER_SIZE", False, -1, 9, 0.3, 0.3, 1.0),
    ("CORNER", True, 40, 20, None, 0.7, 0.9),
    ("CORNER_SIZE", True, -1, 1000, 0.2, 0.0, 1.0),
    ("CENTER_SIZE", True, 10, 5, 0.999, 0.45, 1.0),  # finds nothing
]


def detection_output(words, offsets, scores, priors, variances):
    """A net of the layer, and its bottoms."""
    bottoms = (
        offsets.reshape(2, -1),
        scores.reshape(2, -1),
        torch.stack((priors, variances)).reshape(1, 2, -1),
    )
    text = f'type: "DetectionOutput" detection_output_param {{ {words} }}'
    return one_layer(text, *(b.shape for b in bottoms)), bottoms


@pytest.mark.parametrize("code, shared, top_k, keep, least, threshold, eta", DETECTIONS)
def test_detection_output(code, shared, top_k, keep, least, threshold, eta):
    centre, size = draw(60, 2).sigmoid(), draw(60, 2, seed=1).sigmoid() / 3
    priors = torch.cat((centre - size / 2, centre + size / 2), 1)
    variances = torch.tensor([0.1, 0.1, 0.2, 0.2]).double().expand(60, 4)
    offsets, scores = draw(2, 60, 1 if shared else 4, 4, seed=2), draw(2, 60, 4, seed=3).softmax(2)
    words = f"num_classes: 4 share_location: {str(shared).lower()} code_type: {code} keep_top_k: {keep}"
    words += f" nms_param {{ nms_threshold: {threshold} eta: {eta} top_k: {top_k} }}"
    words += "" if least is None else f" confidence_threshold: {least}"
    net, bottoms = detection_output(words, offsets, scores, priors, variances)
    arrays = (t.numpy() for t in (offsets, scores, priors, variances))
    least = -1e38 if least is None else least
    wanted = reference.detection_output(*arrays, code, shared, top_k, keep, least, threshold, eta)
    same(net(*bottoms), wanted, 1e-6)
    if top_k in (30, 40):  # without and with eta
        torch._dynamo.reset()  # torch 2.5 cannot compile the loop for any number of boxes
        same(torch.compile(net, backend="aot_eager")(*bottoms), wanted, 1e-6)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("background", [0, 1, 3, -1])
def test_another_background(background, shared):
    """Any class may be the background, or none: then the reference has one more class before the others."""
    corner = draw(20, 2).sigmoid()
    priors, variances = torch.cat((corner, corner + 0.3), 1), torch.full((20, 4), 0.1).double()
    offsets, scores = draw(2, 20, 1 if shared else 4, 4, seed=2), draw(2, 20, 4, seed=3).softmax(2)
    words = f"num_classes: 4 share_location: {str(shared).lower()} background_label_id: {background}"
    words += " confidence_threshold: 0.3 nms_param { nms_threshold: 0.5 }"
    net, bottoms = detection_output(words, offsets, scores, priors, variances)
    labels = [max(background, 0), *(c for c in range(4) if c != background)]
    offsets = offsets if shared else offsets[:, :, labels]
    arrays = (t.numpy() for t in (offsets, scores[:, :, labels], priors, variances))
    wanted = reference.detection_output(*arrays, "CORNER", shared, -1, -1, 0.3, 0.5, 1.0)
    wanted[..., 1] = np.array(labels)[wanted[..., 1].astype(int)]
    same(net(*bottoms), wanted, 1e-6)


def test_boxes_are_suppressed_as_one_after_the_other_would_be(monkeypatch):
    """Long chains, in which each box decides about the next, and several blocks."""
    monkeypatch.setattr("cuffi.nets.forks._boxes._BLOCK", 16)
    x = torch.arange(50).double()
    chain = torch.stack((x, x * 0, x + 3, x * 0 + 1), 1)
    corner, size = draw(3, 50, 2).abs() * 3, draw(3, 50, 2, seed=1).abs() * 4
    for boxes in (chain[None], torch.cat((corner, corner + size), 2)):
        valid = draw(*boxes.shape[:2], seed=2) > -1.5
        for threshold, eta in ((0.3, 1.0), (0.9, 0.8), (0.0, 1.0)):
            got = suppressed(boxes, valid, threshold, eta)
            for own, is_valid, kept in zip(boxes, valid, got, strict=True):
                order = is_valid.nonzero()[:, 0].tolist()
                wanted = reference.suppressed(own.tolist(), order, threshold, eta)
                assert kept.nonzero()[:, 0].tolist() == wanted


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_one_by_one_is_as_in_rounds(monkeypatch, kind):
    """The two ways of the processor agree to the bit, for boxes without area, ends before beginnings, NaN, infinity."""
    corner, size = draw(4, 60, 2).abs() * 3, draw(4, 60, 2, seed=1) * 3
    boxes = torch.cat((corner, corner + size), 2).to(kind)
    boxes[1, ::7, 2], boxes[2, ::5, 1], boxes[3, ::6, 3] = torch.nan, torch.inf, -torch.inf
    boxes[0, 10:20] = boxes[0, 9]
    valid = draw(4, 60, seed=2) > -1
    for threshold in (0.0, 0.3, 0.45, 1.0):
        got = suppressed(boxes, valid, threshold)
        with monkeypatch.context() as patch:
            patch.setattr("cuffi.nets.forks._boxes.is_plain", lambda x: False)
            assert torch.equal(got, suppressed(boxes, valid, threshold))
    assert suppressed(boxes[:, :0], valid[:, :0], 0.3).shape == (4, 0)


def test_suppression_is_traced():
    """A tracer's program computes for other boxes."""
    boxes, others = (torch.cat((c, c + 1), 2) for c in (draw(2, 9, 2).abs(), draw(2, 9, 2, seed=5).abs() * 3))
    valid = torch.ones(2, 9, dtype=torch.bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(
            lambda b: suppressed(b, valid, 0.2), (boxes,), check_trace=False, strict=False
        )
    assert not torch.equal(suppressed(boxes, valid, 0.2), suppressed(others, valid, 0.2))
    assert torch.equal(traced(boxes), suppressed(boxes, valid, 0.2))
    assert not torch.equal(traced(others), traced(boxes))


@pytest.mark.parametrize("count", [1, 7, 30, 40])
def test_the_best_come_first(count):
    """As by a stable sort: of equal ones the first; NaN is the greatest."""
    scores = (draw(3, 2, 40) * 3).round().transpose(0, 1)
    scores[1, 1, ::9] = torch.nan
    best, order = best_first(scores, count)
    wanted = scores.sort(dim=-1, descending=True, stable=True)
    assert torch.equal(order, wanted[1][..., :count])
    assert torch.allclose(best, wanted[0][..., :count], equal_nan=True)


def test_boxes_without_an_area_overlap_with_nothing():
    boxes = torch.tensor([[0.0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 2, 1]])
    same(overlap(boxes, boxes), np.diag([0, 1, 0, 1]).astype(np.float32))


@pytest.mark.parametrize("code", [1, 2, 3])
def test_what_is_encoded_is_decoded(code):
    corner, size = draw(9, 2), draw(9, 2, seed=1).abs() + 0.1
    boxes = torch.cat((corner, corner + size), 1)
    priors, variances = boxes.flip(0) * 1.5, draw(9, 4, seed=2).abs() + 0.1
    same(decode(code, priors, variances, encode(code, priors, variances, boxes)), boxes)


@pytest.mark.parametrize("sigma", [1.0, 3.0])
@pytest.mark.parametrize("bottoms", [2, 4])
def test_smooth_l1_loss(sigma, bottoms):
    x, y, inside, outside = (draw(3, 4, 2, 2, seed=i) for i in range(4))
    net = one_layer(f'type: "SmoothL1Loss" smooth_l1_loss_param {{ sigma: {sigma} }}', *[x.shape] * bottoms)
    w, v = (inside.abs(), outside.abs()) if bottoms == 4 else (torch.ones_like(x),) * 2
    d = (w * (x - y)).numpy()
    terms = np.where(abs(d) < 1 / sigma**2, d * d * sigma**2 / 2, abs(d) - 0.5 / sigma**2)
    given = (x, y, w, v)[:bottoms]
    same(net(*given), (terms * v.numpy()).sum() / 3)
    assert gradients_are_right(lambda x, y: net(x, y, *given[2:]), x, y)


def test_smooth_l1_loss_takes_faster_r_cnn_s_targets_of_four_axes():
    x, y, inside, outside = (draw(3, 8, seed=i) for i in range(4))
    two = one_layer('type: "SmoothL1Loss"', *[x.shape] * 4)
    four = one_layer('type: "SmoothL1Loss"', x.shape, *[(3, 8, 1, 1)] * 3)
    targets = [other[..., None, None] for other in (y, inside, outside)]
    torch.testing.assert_close(four(x, *targets), two(x, y, inside, outside))
    with pytest.raises(CaffeValueError, match="bottoms of"):
        one_layer('type: "SmoothL1Loss"', x.shape, (3, 8, 1, 2))


@pytest.mark.parametrize(
    "words, divisor", [("", 12), ("normalization: BATCH_SIZE", 3), ("normalize: true", 12)]
)
def test_smooth_l1_loss_of_r_fcn(words, divisor):
    """Three bottoms: the gradient lacks the weights, 0 and 1; two tops: the loss of each position."""
    x, y, w = draw(3, 4, 2, 2), draw(3, 4, 2, 2, seed=1), (draw(3, 4, 2, 2, seed=2) > 0).double()
    net = one_layer(f'type: "SmoothL1Loss" loss_param {{ {words} }}', *[x.shape] * 3, tops=2)
    d = (w * (x - y)).numpy()
    terms = np.where(abs(d) < 1, d * d / 2, abs(d) - 0.5)
    got = net(x, y, w)
    same(got["y0"], terms.sum() / divisor)
    same(got["y1"], terms.sum(1, keepdims=True))
    assert gradients_are_right(lambda x, y: net(x, y, w)["y0"], x, y)


@pytest.mark.parametrize(
    "text, shapes, said",
    [
        ('"Permute" permute_param { order: 1 order: 1 }', [(1, 2)], "duplicate orders"),
        ('"Permute" permute_param { order: 2 }', [(1, 2)], r"order \(2,\) of a bottom of 2 axes"),
        ('"PriorBox" prior_box_param { }', [(1, 2, 3, 3)] * 2, "must provide min_size"),
        (
            '"PriorBox" prior_box_param { min_size: 3 max_size: 2 }',
            [(1, 2, 3, 3)] * 2,
            "greater than min_size",
        ),
        (
            '"PriorBox" prior_box_param { min_size: 3 }',
            [(1, 2, 3, 3)],
            "a second bottom, the image, or img_size",
        ),
        (
            '"PriorBox" prior_box_param { min_size: 3 step: 2 step_h: 2 }',
            [(1, 2, 3, 3)] * 2,
            "either step or",
        ),
        (
            '"PriorBox" prior_box_param { min_size: 3 width: 2 height: 2 }',
            [(1, 2, 3, 3)] * 2,
            "width and height are fields of PriorBoxClustered",
        ),
        ('"PriorBoxClustered" prior_box_param { width: 2 }', [(1, 2, 3, 3)] * 2, "0 height for 1 width"),
        ('"DetectionOutput"', [(1, 8), (1, 4), (1, 2, 8)], "must specify num_classes"),
        (
            '"DetectionOutput" detection_output_param { num_classes: 2 }',
            [(1, 8), (1, 5), (1, 2, 8)],
            "of scores",
        ),
        (
            '"DetectionOutput" detection_output_param { num_classes: 2 }',
            [(1, 9), (1, 4), (1, 2, 8)],
            "of offsets",
        ),
        ('"SmoothL1Loss"', [(2, 3), (2, 4)], r"bottoms of \[2, 3\] and \[2, 4\]"),
        ('"Permute" permute_param { odrer: 1 }', [(1, 2)], "permute_param.odrer is a field that"),
    ],
)
def test_what_the_sources_refuse(text, shapes, said):
    with pytest.raises(CaffeValueError, match=said):
        one_layer(f"type: {text}", *shapes)
