"""A small example of each stock type, with values for its bottoms; and of all types, with those of fork_cases."""

from __future__ import annotations

import torch

from .fork_cases import CASES, Case
from .nets import draw, labels

X = draw(2, 3, 4, 5)
ROWS = draw(4, 3)
MARKS = torch.ones(3, 2).double()

STOCK_CASES = {
    "Accuracy": Case("Accuracy", (X, labels(3, 2, 4, 5))),
    "BatchReindex": Case("BatchReindex", (X, labels(2, 3)), (0,)),
    "Bias": Case("Bias", (X, draw(3, 4)), (0, 1)),
    "Concat": Case("Concat", (X, draw(2, 2, 4, 5)), (0, 1)),
    "ContrastiveLoss": Case(
        "ContrastiveLoss contrastive_loss_param { margin: 3 }",
        (ROWS, draw(4, 3, seed=1), labels(2, 4)),
        (0, 1),
    ),
    "Convolution": Case(
        "Convolution convolution_param { num_output: 2 kernel_size: 3 }",
        (X, draw(2, 3, 4, 5, seed=1)),
        (0, 1),
        tops=2,
    ),
    "Crop": Case("Crop crop_param { offset: 1 }", (X, draw(2, 3, 2, 3)), (0,)),
    "Deconvolution": Case(
        "Deconvolution convolution_param { num_output: 2 kernel_size: 3 }",
        (X, draw(2, 3, 4, 5, seed=1)),
        (0, 1),
        tops=2,
    ),
    "Eltwise": Case("Eltwise", (X, draw(2, 3, 4, 5, seed=1)), (0, 1)),
    "EuclideanLoss": Case("EuclideanLoss", (X, draw(2, 3, 4, 5, seed=1)), (0, 1)),
    "Filter": Case("Filter", (X, torch.tensor([0.0, 0.5]).double()), (0,)),
    "HingeLoss": Case("HingeLoss", (ROWS, labels(3, 4)), (0,)),
    "InfogainLoss": Case("InfogainLoss", (X, labels(3, 2, 4, 5), draw(3, 3).abs()), (0,)),
    "LSTM": Case("LSTM recurrent_param { num_output: 3 }", (draw(3, 2, 4), MARKS, draw(2, 5)), (0, 2)),
    "LSTMUnit": Case("LSTMUnit", (draw(1, 2, 3), draw(1, 2, 12), MARKS[:1]), (0, 1), tops=2),
    "MultinomialLogisticLoss": Case("MultinomialLogisticLoss", (ROWS.softmax(1), labels(3, 4)), (0,)),
    "RNN": Case("RNN recurrent_param { num_output: 3 }", (draw(3, 2, 4), MARKS, draw(2, 5)), (0, 2)),
    "Scale": Case("Scale", (X, draw(3, 4)), (0, 1)),
    "SigmoidCrossEntropyLoss": Case("SigmoidCrossEntropyLoss", (X, labels(2, 2, 3, 4, 5)), (0,)),
    "SoftmaxWithLoss": Case("SoftmaxWithLoss", (X, labels(3, 2, 4, 5)), (0,)),
}
# Those with one bottom.
SINGLE_CASES = {
    name: Case(f"{name} {fields}".strip(), (X,), (0,), tops, True)
    for name, fields, tops in (
        ("AbsVal", "", 1),
        ("BNLL", "", 1),
        ("BatchNorm", "", 1),
        ("Clip", "clip_param { min: -1 max: 1 }", 1),
        ("Dropout", "dropout_param { dropout_ratio: 0.25 }", 1),
        ("ELU", "", 1),
        ("Exp", "", 1),
        ("Flatten", "", 1),
        ("Im2col", "convolution_param { kernel_size: 2 }", 1),
        ("InnerProduct", "inner_product_param { num_output: 2 }", 1),
        ("LRN", "", 1),
        ("Log", "", 1),
        ("MVN", "", 1),
        ("PReLU", "", 1),
        ("Pooling", "pooling_param { kernel_size: 2 }", 1),
        ("Power", "power_param { power: 0.5 shift: 1 }", 1),
        ("ReLU", "", 1),
        ("Reduction", "reduction_param { operation: ASUM }", 1),
        ("Reshape", "reshape_param { shape { dim: 0 dim: -1 } }", 1),
        ("SPP", "spp_param { pyramid_height: 2 }", 1),
        ("Sigmoid", "", 1),
        ("Slice", "slice_param { slice_point: 1 }", 2),
        ("Softmax", "", 1),
        ("Split", "", 2),
        ("Swish", "", 1),
        ("TanH", "", 1),
        ("Tile", "tile_param { tiles: 2 }", 1),
    )
} | {
    "ArgMax": Case("ArgMax", (X,)),
    "Embed": Case("Embed embed_param { input_dim: 3 num_output: 2 }", (labels(3, 2, 4),)),
    "Parameter": Case("Parameter parameter_param { shape { dim: 2 } }", ()),
    "Silence": Case("Silence", (X,), (), 0),
    "Threshold": Case("Threshold", (X,)),
}
ALL_CASES = STOCK_CASES | {name: case for name, case in CASES.items() if len(case.bottoms) > 1}
