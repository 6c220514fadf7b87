"""Labels, items and indices that are none: refused in each call, and in a compiled graph, for all types from one list.

Caffe's CHECKs say so, or its code reads beyond its memory. The values around the wrong one are those of the lists.
"""

import functools
from typing import Any

import pytest
import torch
from support.fork_cases import CASES
from support.nets import one_layer, randomised
from support.pairs import SINGLE_CASES, STOCK_CASES

from cuffi.nets.stock import StockLayer

ALL = {**SINGLE_CASES, **STOCK_CASES, **CASES}
ALL["Embed"] = ALL["Embed"]._replace(train=False)
# MultiBoxLoss by sigmoids, and BboxAccuracy with a box for each class.
ALL["Logistic"] = CASES["MultiBoxLoss"]._replace(
    layer=CASES["MultiBoxLoss"].layer.replace("num_classes", "conf_loss_type: LOGISTIC num_classes")
)
# (the type, the bottom, the index of a value in it, what it must not be)
WRONG = [
    ("Accuracy", 1, (0, 0, 0), (-1, 3)),
    ("BatchReindex", 1, (1,), (-1, -0.5, 2)),
    ("Embed", 0, None, (-1, 99)),
    ("HingeLoss", 1, (2,), (-1, 3)),
    ("InfogainLoss", 1, (1, 2, 3), (-1, 3)),
    ("MultinomialLogisticLoss", 1, (0,), (-1, 3)),
    ("SoftmaxWithLoss", 1, (0, 1, 2), (-1, 3, -100)),
    ("BboxAccuracy", 2, (0, 0), (4,)),
    ("BoxAnnotatorOHEM", 0, (3, 0), (-1,)),
    ("ByMask", 1, (0, 0, 1, 1), (-1, 16)),
    ("CenterLoss", 1, (4,), (-1, 4)),
    ("DetectionEvaluate", 0, (0, 0, 1, 1), (0,)),
    ("DetectionEvaluate", 1, (0, 0, 1, 1), (0,)),
    ("DetectionGroupLoss", 2, (0, 0, 1, 1), (3,)),
    ("DetectionOutput", 2, (0, 0, 2), (0,)),
    ("DetectionLoss", 1, (1, 0, 1, 2), (-1, 3)),
    ("FocalLoss", 1, (0, 1, 2), (-1, 4, -100)),
    ("FrcnnOutput", 2, (4, 0), (1, -1)),
    ("Logistic", 3, (0, 0, 0, 1), (-1, 4)),
    ("MarginInnerProduct", 1, (0,), (-1, 4)),
    ("MultiBoxLoss", 3, (0, 0, 0, 1), (0, -1, 4)),
    ("OfCascadeRCNN", 1, (0, 5), (0, -2)),
    ("ProposalTarget", 0, (0, 0), (2,)),
    ("ProposalTarget", 1, (0, 5), (0, 4)),
    ("PSROIPooling", 1, (1, 0), (-1, 2)),
    ("RegionLoss", 1, (0, 0, 1, 0), (-1, 3)),
    ("ROIAlign", 1, (1, 0), (-1, 2)),
    ("ROIPooling", 1, (1, 0), (-1, 2)),
    ("Yolov3", 1, (1, 0, 2, 0), (-1, 3)),
]
CASES_OF_ONE = [(name, i, at, value) for name, i, at, values in WRONG for value in values]


@functools.cache
def net_of(name, compiled):
    case = ALL[name]
    torch.manual_seed(1)
    native = {case.layer.partition(" ")[0]: True}
    net = randomised(one_layer(case.text, *[b.shape for b in case.bottoms], tops=case.tops, native=native))
    net.train(case.train)
    torch._dynamo.reset()
    # With the decompositions of torch's own compiler, which take negative indices from the end.
    return torch.compile(net, backend="aot_eager_decomp_partition", fullgraph=True) if compiled else net


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name, i, at, value", CASES_OF_ONE)
def test_a_wrong_value_is_refused(name, i, at, value, compiled):
    if compiled and name == "ProposalTarget":
        pytest.skip("it draws regions until there are enough: it cannot be compiled")
    bottoms = [b.clone() for b in ALL[name].bottoms]
    net = net_of(name, compiled)
    with torch.no_grad():
        net(*bottoms)
    bottoms[i][at or (0,) * bottoms[i].dim()] = value
    with pytest.raises((ValueError, RuntimeError, IndexError)), torch.no_grad():
        net(*bottoms)


def test_a_captured_graph_asserts_on_the_device(monkeypatch):
    """A bool of the GPU's would end the capture."""
    asserted = []

    class OnGpu:
        is_cuda = True

        def any(self):
            return torch.tensor(True)

        def __invert__(self):
            return torch.tensor([True, False])

    class Layer:
        layer_name, check = "l", StockLayer.check
        check_rows_in_graph = StockLayer.check_rows_in_graph

    monkeypatch.setattr(torch, "_assert_async", lambda right, words: asserted.append((bool(right), words)))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    layer: Any = Layer()
    wrong: Any = OnGpu()
    StockLayer.check_rows(layer, wrong, "wrong")
    assert asserted == [(False, "l: wrong")]
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    with pytest.raises(ValueError, match="wrong"):
        StockLayer.check_rows(layer, wrong, "wrong")
