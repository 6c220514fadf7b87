"""YOLO's types: Yolov3, RegionLoss, Yolov3DetectionOutput, YoloDetectionOutput."""

import itertools

import numpy as np
import pytest
import torch
from support.nets import draw, one_layer, same

from cuffi import caffe_net
from cuffi.base import CaffeValueError

SIZES = [(20, 37), (49, 94), (73, 201), (143, 65)]
CELLS = [(1.3, 1.7), (3.2, 4.0), (5.1, 8.1), (9.5, 4.8), (11.2, 10.0)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def near(a, b):
    """Intersection over union of boxes (x, y, width, height)."""
    sides = [
        min(a[i] + a[i + 2] / 2, b[i] + b[i + 2] / 2) - max(a[i] - a[i + 2] / 2, b[i] - b[i + 2] / 2)
        for i in (0, 1)
    ]
    common = sides[0] * sides[1] if min(sides) >= 0 else 0.0
    return common / (a[2] * a[3] + b[2] * b[3] - common)


def words(name, values):
    return " ".join(f"{name}: {v}" for v in values)


def boxes(count, classes, seed=0):
    """Rows (class, x, y, width, height) of two items, the rest of 300 are zeros."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.zeros(2, 300, 5, dtype=torch.float64)
    rows[:, :count, 0] = torch.randint(0, classes, (2, count), generator=generator).double()
    rows[:, :count, 1:3] = torch.rand(2, count, 2, generator=generator).double()
    rows[:, :count, 3:] = torch.rand(2, count, 2, generator=generator).double() * 0.6 + 0.05
    return rows


class Map:
    """A map of one item, as in the source."""

    def __init__(self, x, sizes, scale):
        self.count, self.rows, self.columns = len(sizes), *x.shape[1:]
        self.x, self.sizes, self.scale = x.reshape(self.count, -1, self.rows, self.columns), sizes, scale

    def places(self):
        return itertools.product(range(self.count), range(self.rows), range(self.columns))

    def box(self, n, i, j):
        x, y, width, height = self.x[n, :4, i, j]
        size = self.columns * self.scale, self.rows * self.scale
        centre = (j + sigmoid(x)) / self.columns, (i + sigmoid(y)) / self.rows
        return (
            *centre,
            np.exp(width) * self.sizes[n][0] / size[0],
            np.exp(height) * self.sizes[n][1] / size[1],
        )

    def target(self, n, i, j, box):
        size = self.columns * self.scale, self.rows * self.scale
        logs = [np.log(box[2 + k] * size[k] / self.sizes[n][k]) for k in (0, 1)]
        return np.array([box[0] * self.columns - j, box[1] * self.rows - i, *logs])

    def overlaps(self, n, i, j, rows):
        return max((near(self.box(n, i, j), row[1:]) for row in rows), default=0)

    def cell(self, row):
        return int(row[2] * self.rows), int(row[1] * self.columns)

    def alike(self, sizes, row):
        size = self.columns * self.scale, self.rows * self.scale
        return [near((0, 0, w / size[0], h / size[1]), (0, 0, *row[3:])) for w, h in sizes]


def yolov3(
    x, rows, mask, *, classes=3, thresh=0.2, iou_thresh=0.5, coord=5.0, smooth=0.1, slope=False, objects=1.0
):
    """The error of each value of one item, and the gradient."""
    here = Map(x, [SIZES[i] for i in mask], 32)
    values = sigmoid(here.x)
    values[:, 2:4] = here.x[:, 2:4]
    lacks = np.zeros_like(values)
    for n, i, j in here.places():
        lacks[n, 4, i, j] = 0 if here.overlaps(n, i, j, rows) > thresh else values[n, 4, i, j]
    owned = {}
    for row in rows:
        (i, j), alike = here.cell(row), here.alike(SIZES, row)
        best = int(np.argmax(alike))
        chosen = [mask.index(best)] if best in mask else []
        skipped = chosen[0] if chosen else best
        chosen += [k for k, n in enumerate(mask) if n != skipped and alike[n] > iou_thresh]
        for n in chosen:
            owned.setdefault((n, i, j), set()).add(int(row[0]))
            lacks[n, :4, i, j] = (
                coord * (2 - row[3] * row[4]) * (values[n, :4, i, j] - here.target(n, i, j, row[1:]))
            )
            lacks[n, 4, i, j] = objects * (values[n, 4, i, j] - 1)
            wanted = [(c in owned[n, i, j]) * (1 - smooth) + smooth / 2 for c in range(classes)]
            lacks[n, 5:, i, j] = values[n, 5:, i, j] - wanted
    slopes = values * (1 - values)
    slopes[:, 2:4] = 1
    return lacks, lacks * (slopes if slope else 1)


@pytest.mark.parametrize(
    "mask, more, fields",
    [
        ([2, 3], {}, ""),
        ([0, 1], {"slope": True, "objects": 3.0}, "use_logic_gradient: true object_scale: 3"),
        (
            [1, 2],
            {"iou_thresh": 0.1, "thresh": 0.5, "coord": 1.0},
            "iou_thresh: 0.1 thresh: 0.5 coord_scale: 1",
        ),
        ([1, 2, 3], {"iou_thresh": 1.0, "smooth": 0.0}, "iou_thresh: 1 label_smooth_eps: 0"),
    ],
)
@pytest.mark.parametrize("count", [40, 0])
def test_yolov3(mask, more, fields, count):
    x, given = draw(2, 8 * len(mask), 4, 5, seed=len(fields)), boxes(count, 3)
    text = f"num_class: 3 num: {len(mask)} anchors_scale: 32 {words('mask', mask)} {fields} "
    text += words("biases", np.array(SIZES).flatten())
    net = one_layer(f'type: "Yolov3" yolov3_param {{ {text} }}', x.shape, given.shape)
    assert net.loss({"y0": torch.tensor(2.0)}) == 2  # its weight is 1
    wanted = [yolov3(x[n].numpy(), given[n, :count].numpy(), mask, **more) for n in range(2)]
    x.requires_grad_()
    top = net(x, given)
    same(top, sum((lacks**2).sum() for lacks, _ in wanted) / 2, 1e-6)
    (got,) = torch.autograd.grad(top * 3, x)
    same(got, 3 * np.stack([slope.reshape(x.shape[1:]) for _, slope in wanted]) / 2, 1e-6)


def region(x, rows, *, seen=None, rescore=True, thresh=0.2, others=0.5, objects=1.0, coord=5.0):
    here = Map(x, CELLS, 1)
    lacks = np.zeros_like(here.x)
    for n, i, j in here.places():
        o, most = sigmoid(here.x[n, 4, i, j]), here.overlaps(n, i, j, rows if seen is None else seen)
        lacks[n, 4, i, j] = 0 if most > thresh else others * o * o * (1 - o)
    for row in rows:
        i, j = here.cell(row)
        n = int(np.argmax(here.alike(CELLS, row)))
        value = here.x[n, :, i, j]
        xy, o = sigmoid(value[:2]), sigmoid(value[4])
        apart = np.concatenate((xy, value[2:4])) - here.target(n, i, j, row[1:])
        scale = coord * (1 if rescore else 2 - row[3] * row[4])
        lacks[n, :4, i, j] = scale * apart * np.concatenate((xy * (1 - xy), [1, 1]))
        wanted = near(here.box(n, i, j), row[1:]) if rescore else 1
        lacks[n, 4, i, j] = objects * (o - wanted) * o * (1 - o)
        chances = np.exp(value[5:]) / np.exp(value[5:]).sum()
        lacks[n, 5:, i, j] = chances - np.eye(len(chances))[int(row[0])]
    return lacks


@pytest.mark.parametrize(
    "more, fields",
    [
        ({}, ""),
        ({"rescore": False, "objects": 3.0}, "rescore: 0 object_scale: 3"),
        ({"thresh": 0.6, "others": 2.0, "coord": 1.0}, "thresh: 0.6 noobject_scale: 2 coord_scale: 1"),
    ],
)
def test_region_loss(more, fields):
    x, given = draw(2, 40, 4, 4), boxes(20, 3)
    text = f"num_class: 3 {words('biases', np.array(CELLS).flatten())} {fields}"
    net = one_layer(f'type: "RegionLoss" region_loss_param {{ {text} }}', x.shape, given.shape)
    wanted = [region(x[n].numpy(), given[n, :20].numpy(), **more) for n in range(2)]
    x.requires_grad_()
    top = net(x, given)
    same(top, sum((lacks**2).sum() for lacks in wanted) / 2, 1e-6)
    (got,) = torch.autograd.grad(top, x)
    same(got, np.stack([lacks.reshape(x.shape[1:]) for lacks in wanted]) / 2, 1e-6)


def test_where_boxes_end():
    """As in the source: at width 0, and those that an anchor may overlap at x 0, too."""
    x, given = draw(2, 40, 4, 4), boxes(20, 3)
    given[:, 6, 1], given[:, 12, 3], given[:, 3, 1] = 0, 0, 1.2  # the fourth box's centre is outside
    text = f"num_class: 3 thresh: 0.2 {words('biases', np.array(CELLS).flatten())}"
    net = one_layer(f'type: "RegionLoss" region_loss_param {{ {text} }}', x.shape, given.shape)
    answered = [i for i in range(12) if i != 3]
    wanted = [region(x[n].numpy(), given[n, answered].numpy(), seen=given[n, :6].numpy()) for n in range(2)]
    same(net(x, given), sum((lacks**2).sum() for lacks in wanted) / 2, 1e-6)


def test_a_box_without_a_height_is_nobody_s():
    mask = [2, 3]
    x, given = draw(2, 16, 4, 5), boxes(6, 3)
    given[:, 4, 4] = 0
    text = (
        f"num_class: 3 num: 2 anchors_scale: 32 mask: 2 mask: 3 {words('biases', np.array(SIZES).flatten())}"
    )
    net = one_layer(f'type: "Yolov3" yolov3_param {{ {text} }}', x.shape, given.shape)
    rows = [given[n, [0, 1, 2, 3, 5]].numpy() for n in range(2)]
    wanted = [yolov3(x[n].numpy(), rows[n], mask)[0] for n in range(2)]
    same(net(x, given), sum((lacks**2).sum() for lacks in wanted) / 2, 1e-6)


def found(maps, chances, least, threshold):
    """Rows of one item: every class of every anchor is a candidate."""
    candidates = []
    for here in maps:
        for n, i, j in here.places():
            scores = chances(here.x[n, 5:, i, j]) * sigmoid(here.x[n, 4, i, j])
            candidates += [(s, c, here.box(n, i, j)) for c, s in enumerate(scores) if s > least]
    kept = []
    for score, label, box in sorted(candidates, key=lambda c: -c[0]):
        if all(near(box, other) < threshold for *_, other in kept):
            kept.append((score, label, box))
    return [
        [c + 1, s, b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2] for s, c, b in kept
    ]


@pytest.mark.parametrize("least", [0.01, 0.3, 0.6, 0.9999])
@pytest.mark.parametrize("version", [2, 3])
def test_what_is_found(version, least):
    maps = [draw(2, 24 if version == 3 else 40, n, n, seed=n) for n in (3, 5)]
    common = f"num_classes: 3 confidence_threshold: {least} nms_threshold: 0.45"
    if version == 3:
        fields = f"{words('biases', np.array(SIZES[:3] * 2).flatten())} mask: 2 mask: 1 mask: 0 mask: 3 mask: 4 mask: 5"
        text = f'type: "Yolov3DetectionOutput" yolov3_detection_output_param {{ {common} {fields} '
        text += "anchors_scale: 32 anchors_scale: 16 }"
        kinds, chances = ((SIZES[2::-1], 32), (SIZES[:3], 16)), sigmoid
    else:
        text = f'type: "YoloDetectionOutput" yolo_detection_output_param {{ {common} '
        text += words("biases", np.array(CELLS).flatten()) + " }"
        kinds, chances = ((CELLS, 1),) * 2, lambda v: np.exp(v) / np.exp(v).sum()
    wanted = []
    for n in range(2):
        here = [Map(x[n].numpy(), sizes, scale) for x, (sizes, scale) in zip(maps, kinds, strict=True)]
        wanted += [[n, *row] for row in found(here, chances, least, 0.45)]
    net = one_layer(text, *(x.shape for x in maps))
    assert (not wanted) == (least == 0.9999)
    wanted = wanted or [[0, *[-1] * 6], [1, *[-1] * 6]]
    same(net(*maps), np.array(wanted, float)[None, None], 1e-6)


ONE = "num: 1 biases: [1, 1] mask:"


@pytest.mark.parametrize(
    "name, fields, shape, said",
    [
        ("Yolov3", "iou_loss: GIOU", (1, 8, 2, 2), "only MSE is known here"),
        ("Yolov3", f"use_focal_loss: true {ONE} 0", (1, 25, 2, 2), "focal"),
        ("Yolov3", f"{ONE} 1", (1, 25, 2, 2), r"mask \[1\] of 1 biases"),
        ("Yolov3", f"{ONE} 0", (2, 25, 2, 2), "300 boxes of 5 values"),
        ("Yolov3", f"{ONE} 0", (1, 24, 2, 2), "25 channels is needed"),
        ("RegionLoss", "bias_match: 0", (1, 25, 2, 2), "bias_match 0 is not known"),
        ("RegionLoss", "biases: 1", (1, 25, 2, 2), "10 biases are needed, not 1"),
        ("RegionLoss", 'softmax_tree: "a"', (1, 25, 2, 2), "softmax_tree is not known here"),
        ("YoloDetectionOutput", "num_classes: 1 num_box: 1 biases: [1, 1]", (1, 6, 2, 3), "a square map"),
        ("Yolov3DetectionOutput", "num_classes: 1 gaussian_box: true", (1, 6, 2, 2), "gaussian_box is not"),
        ("Yolov3DetectionOutput", "num_classes: 1", (1, 6, 2, 2), "2 mask_group_num for 1 bottoms"),
    ],
)
def test_what_is_refused(name, fields, shape, said):
    message = {
        "Yolov3": "yolov3",
        "RegionLoss": "region_loss",
        "YoloDetectionOutput": "yolo_detection_output",
    }
    message = message.get(name, "yolov3_detection_output")
    shapes = [shape] if name.endswith("Output") else [shape, (1, 300, 5)]
    with pytest.raises(CaffeValueError, match=said):
        one_layer(f'type: "{name}" {message}_param {{ {fields} }}', *shapes)


def test_halves():
    x = draw(1, 24, 4, 4)
    text = f"num_class: 3 num: 3 mask: [0, 1, 2] {words('biases', np.array(SIZES).flatten())}"
    net = one_layer(f'type: "Yolov3" yolov3_param {{ {text} }}', x.shape, (1, 300, 5))
    given = boxes(9, 3)[:1]
    half = x.half().requires_grad_()
    top = net(half, given)
    same(top.double(), net(half.detach().double(), given), 1e-2)
    top.backward()
    assert half.grad.isfinite().all() and half.grad.dtype == torch.half


def test_a_data_layer_says_the_shape_of_its_boxes():
    data = 'top: "data" top: "label" data_param { batch_size: 4 } annotated_data_param { yolo_data_type: 1 }'
    loss = f'bottom: "data" bottom: "label" yolov3_param {{ num_class: 1 num: 1 mask: 0 {words("biases", (1, 1))} }}'
    text = f'layer {{ name: "d" type: "AnnotatedData" {data} }} layer {{ name: "L" type: "Yolov3" {loss} }}'
    net = caffe_net(text, shapes={"data": (4, 6, 2, 2)})
    assert net.shapes["label"] == (4, 1, 300, 5)
