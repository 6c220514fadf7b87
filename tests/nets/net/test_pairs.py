"""Types with two bottoms or more: which shapes Caffe takes as fitting one another, and what it reads flat.

ROWS is one list of all types. Of each bottom each axis is made 1 long, which torch would broadcast, and
axes are added, and folded. What a row does not allow is refused, when the net is built, and in a call.
"""

import contextlib
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest
import torch
from support.nets import draw, labels, one_layer, randomised, same
from support.pairs import ALL_CASES, STOCK_CASES

from cuffi.base import CaffeError, CaffeValueError
from cuffi.nets.forks import fork_classes, fork_types
from cuffi.nets.stock import stock_class, stock_types

NOTHING: Mapping[int, tuple[int, ...]] = MappingProxyType({})


class Row(NamedTuple):
    checks: str  # what Caffe's code compares
    free: Mapping[int, tuple[int, ...]] = NOTHING  # axes that no other bottom determines, by bottom
    longer: tuple[int, ...] = ()  # bottoms that may have more axes of 1: read flat, or by old accessors
    folded: tuple[int, ...] = ()  # bottoms whose axes after the first may be one
    own: Mapping[int, tuple[int, ...]] = NOTHING  # axes that only the layer's blobs determine


PIXELS = (1, 2, 3)
ROWS = {
    "Accuracy": Row("count of labels = predictions", {}, (0, 1), (1,)),
    "BatchReindex": Row("1 axis of indices", {0: PIXELS, 1: (0,)}, (0,), (0,)),
    "Bias": Row("the second's shape = the first's from axis on", {0: (0, 3)}, (0,)),
    "Concat": Row("shapes but for the axis", {0: (1,), 1: (1,)}),
    "ContrastiveLoss": Row("channels; height and width 1", {}, (0, 1, 2)),
    "Convolution": Row("shapes"),
    "Crop": Row("the second's sizes from axis on fit", {0: (0, 1), 1: (0, 1, 2, 3)}, (1,)),
    "Deconvolution": Row("shapes"),
    "Eltwise": Row("shapes"),
    "EuclideanLoss": Row("shape(0) and count(1)", {}, (0, 1), (0, 1)),
    "Filter": Row("the selector's shape(0); its other axes are 1", {0: PIXELS}, (0, 1), (0,)),
    "HingeLoss": Row("shape(0); the first labels are read", {}, (0, 1)),
    "InfogainLoss": Row("shape(0), count of labels, count of H", {}, (0, 1, 2), (1,)),
    "LSTM": Row("cont = [timesteps, streams]; static streams", {}, (0, 2), (), {0: (2,), 2: (1,)}),
    "LSTMUnit": Row("3, 3 and 2 axes: [1, N, D], [1, N, 4 D], [1, N]"),
    "MultinomialLogisticLoss": Row("shape(0); channels, height, width of labels 1", {}, (0, 1)),
    "RNN": Row("cont = [timesteps, streams]; static streams", {}, (0, 2), (), {0: (2,), 2: (1,)}),
    "Scale": Row("the second's shape = the first's from axis on", {0: (0, 3)}, (0,)),
    "SigmoidCrossEntropyLoss": Row("shape(0) and count", {}, (0, 1), (0, 1)),
    "SoftmaxWithLoss": Row("shape(0), count of labels", {}, (0, 1), (1,)),
    "AutoCrop": Row("axes of both; the second's height and width fit"),
    "Axpy": Row("shapes of x and y; shape(0), shape(1) of a", {}, (0,), (0,)),
    "BoxAnnotatorOHEM": Row("num, height, width", {3: (1,)}, (0, 1, 2, 3)),
    "BoxGroupOutput": Row("num, height, width", {0: (1,)}),
    "BboxAccuracy": Row("num; 5 and 6 values", {}, (0, 1, 2)),
    "ByMask": Row("shapes"),
    "CenterLoss": Row("shape(0); one label an item", {}, (0, 1), (), {0: (1,)}),
    "Correlation": Row("shapes"),
    "DecodeBBox": Row("num; 8 and 5 values", {}, (0, 1)),
    "Depooling": Row("shapes"),
    "DetectionAccuracy": Row("num, height, width"),
    "DetectionEvaluate": Row("width 7 and 8", {0: (2,), 1: (2,)}),
    "DetectionGroupAccuracy": Row("num, height, width"),
    "DetectionGroupLoss": Row("num, height, width"),
    "DetectionLoss": Row("num, height, width"),
    "DetectionOutput": Row("num; counts by the number of priors", {}, (0, 1, 2), (2,)),
    "FlowWarp": Row("num, height, width; 2 channels", {0: (1,)}),
    "FocalLoss": Row("shape(0), count of labels", {}, (0, 1), (1,)),
    "FrcnnOutput": Row("num", {}, (0, 1, 2, 3)),
    "MarginInnerProduct": Row("count of labels", {}, (0, 1), (), {0: (1,)}),
    "MultiBoxLoss": Row("num; counts by the number of priors", {3: (2,)}, (0, 1, 2, 3), (2, 3)),
    "OfCascadeRCNN": Row("7 and 8 values", {0: (0,), 1: (0,), 2: (1,)}, (0, 1, 2)),
    "PriorBox": Row("nothing", {0: (0, *PIXELS), 1: PIXELS}),
    "PriorBoxClustered": Row("nothing", {0: (0, *PIXELS), 1: PIXELS}),
    "ProposalTarget": Row("5 and 7 or 8 values", {0: (0,), 1: (0,)}, (0, 1)),
    "PSROIPooling": Row("channels; 5 values", {0: (2, 3), 1: (0,)}, (1,)),
    "RegionLoss": Row("channels; count of boxes", {}, (1,), (1,)),
    "ROIAlign": Row("5 values", {0: PIXELS, 1: (0,)}, (1,)),
    "ROIPooling": Row("5 values", {0: PIXELS, 1: (0,)}, (1,)),
    "ScaleRoute": Row("num; 5 values", {1: PIXELS}, (0, 1), (0, 1)),
    "SmoothL1Loss": Row("num, channels, height, width", {}, (0, 1)),
    "Yolov3": Row("channels; count of boxes", {0: (2, 3)}, (1,), (1,)),
}
FOUR_AXES = ("HingeLoss", "MultinomialLogisticLoss", "ContrastiveLoss", "SmoothL1Loss", "BoxAnnotatorOHEM")
# Their tops have another form, or count calls.
OTHER_FORM = {("BoxAnnotatorOHEM", 0)}


def test_each_type_with_several_bottoms_has_a_row():
    stock = {name for name in stock_types() if takes_several(stock_class(name))}
    known = {kind.__name__ for name in fork_types() for kind in fork_classes(name) if takes_several(kind)}
    without = {
        *("Silence", "Resample", "YoloDetectionOutput", "Yolov3DetectionOutput", "BoxOutput"),
        "DepthwiseConvolution",  # a Convolution
    }
    assert set(ROWS) | without >= stock | known, (stock | known) - set(ROWS)
    assert set(STOCK_CASES) == stock - without
    assert set(ALL_CASES) - {"AutoCrop"} == set(ROWS) - {"AutoCrop"}


def takes_several(kind) -> bool:
    most = kind.bottoms[1]
    return most is None or most > 1


def made(name, shapes):
    case = ALL_CASES[name]
    torch.manual_seed(1)
    net = one_layer(case.text, *shapes, tops=case.tops, native={case.layer.partition(" ")[0]: True})
    return randomised(net).train(case.train)


def results(name, net, bottoms):
    """The tops, flat, and the gradients of the bottoms that learn."""
    case = ALL_CASES[name]
    bottoms = [x.clone().requires_grad_(i in case.learn) for i, x in enumerate(bottoms)]
    tops = net(*bottoms)
    tops = [tops] if isinstance(tops, torch.Tensor) else list(tops.values())
    if case.learn:
        sum((top.double() * torch.linspace(1, 2, top.numel()).view_as(top)).sum() for top in tops).backward()
    return [t.detach().double().flatten() for t in (*tops, *(b.grad for b in bottoms if b.requires_grad))]


def changed(name, bottom, other):
    return [other if i == bottom else x for i, x in enumerate(ALL_CASES[name].bottoms)]


def shapes_of(bottoms):
    return [x.shape for x in bottoms]


PLACES = [(name, i) for name in ROWS if name != "AutoCrop" for i in range(len(ALL_CASES[name].bottoms))]


@pytest.mark.parametrize("name, bottom", PLACES)
def test_nothing_is_broadcast(name, bottom):
    row, x = ROWS[name], ALL_CASES[name].bottoms[bottom]
    net = made(name, shapes_of(ALL_CASES[name].bottoms))
    for axis in range(x.dim()):
        if x.shape[axis] == 1 or axis in row.free.get(bottom, ()):
            continue
        bottoms = changed(name, bottom, x.narrow(axis, 0, 1).contiguous())
        with pytest.raises(CaffeError):
            net(*bottoms)
        if axis not in row.own.get(bottom, ()):
            with pytest.raises(CaffeError):  # some depend on values, such as a label's range
                made(name, shapes_of(bottoms))(*bottoms)


@pytest.mark.parametrize("name, bottom", PLACES)
def test_what_is_read_flat(name, bottom):
    row, case = ROWS[name], ALL_CASES[name]
    x = case.bottoms[bottom]
    wanted = results(name, made(name, shapes_of(case.bottoms)), case.bottoms)
    forms = [((*x.shape, *(1,) * more), bottom in row.longer) for more in (1, 2)]
    if x.dim() > 2 and x.shape[1:].count(1) < x.dim() - 2:
        forms.append(((x.shape[0], math.prod(x.shape[1:])), bottom in row.folded))
    for shape, is_taken in forms:
        bottoms = changed(name, bottom, x.reshape(shape))
        if len(shape) > 4 and name in FOUR_AXES:
            is_taken = False
        if not is_taken:
            with pytest.raises(CaffeError):
                made(name, shapes_of(bottoms))
            with contextlib.suppress(CaffeValueError):  # a map of one pixel, as in a fully connected net
                results(name, made(name, shapes_of(case.bottoms)), bottoms)
                raise AssertionError(f"{name}: {list(shape)} was taken")
            continue
        for net in (made(name, shapes_of(bottoms)), made(name, shapes_of(case.bottoms))):
            found = results(name, net, bottoms)
            if (name, bottom) not in OTHER_FORM:
                for one, other in zip(found, wanted, strict=True):
                    same(one, other)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("forms", [((), (1, 1), ()), ((1,), (), (1,)), ((1, 1), (1,), (1, 1, 1))])
def test_contrastive_loss_reads_features_flat_and_labels_as_integers(forms, legacy):
    """Caffe's loop: the label is cast to int, and of more labels than pairs the first ones count."""
    a, b = draw(5, 3), draw(5, 3, seed=1)
    a[4] = b[4]
    label = torch.tensor([0.5, 1.0, -0.5, 1.9, 0.0, 1.0]).double()
    total, slope = 0.0, np.zeros((5, 3))
    for n in range(5):
        difference = (a[n] - b[n]).numpy()
        squared = difference @ difference
        distance = math.sqrt(squared)
        if int(label[n]):
            total, slope[n] = total + squared, difference / 5
        elif legacy:
            total += max(2 - squared, 0)
            slope[n] = -difference / 5 if squared < 2 else 0
        else:
            total += max(2 - distance, 0) ** 2
            slope[n] = -difference * (2 - distance) / (distance + 1e-4) / 5 if distance < 2 else 0
    shapes = [(5, 3, *forms[0]), (5, 3, *forms[1]), (6, *forms[2])]
    said = f"margin: 2 legacy_version: {str(legacy).lower()}"
    net = one_layer(f'type: "ContrastiveLoss" contrastive_loss_param {{ {said} }}', *shapes)
    first, second = a.reshape(shapes[0]).requires_grad_(), b.reshape(shapes[1]).requires_grad_()
    loss = net(first, second, label.reshape(shapes[2]))
    loss.backward()
    same(loss, total / 10)
    same(first.grad.reshape(5, 3), slope)
    same(second.grad.reshape(5, 3), -slope)


def test_hinge_loss_reads_the_first_labels():
    scores, given = draw(4, 3), labels(3, 4, 2)
    wanted = one_layer('type: "HingeLoss"', (4, 3), (4,))(scores, given.flatten()[:4])
    same(one_layer('type: "HingeLoss"', (4, 3), (4, 2))(scores, given), wanted)


COMPILED = ("Bias", "Concat", "Convolution", "Eltwise", "Scale")


@pytest.mark.parametrize("name", COMPILED)
def test_the_compiled_types_take_the_same_shapes(stock, name):
    """The core's C++ layers, of the same parameters: what their Reshape refuses, and their tops."""
    case = ALL_CASES[name]
    fields = case.layer.partition(" ")[2]
    names = tuple(f"x{i}" for i in range(len(case.bottoms)))
    tops = tuple(f"y{i}" for i in range(case.tops))
    for bottom, x in enumerate(case.bottoms):
        shapes: list[tuple[int, ...]] = [x.shape, (*x.shape, 1), (*x.shape, 1, 1)]
        shapes += [tuple(1 if j == axis else n for j, n in enumerate(x.shape)) for axis in range(x.dim())]
        for shape in shapes:
            given = shapes_of(changed(name, bottom, torch.empty(shape)))
            module, taken = getattr(stock, name)(fields, bottom=names, top=tops), True
            try:
                module.top_shapes(*given)
            except CaffeError:
                taken = False
            if taken:
                made(name, given)
            else:
                with pytest.raises(CaffeError):
                    made(name, given)
