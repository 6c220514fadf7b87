"""A small example of each stock type with two bottoms or more, with values for its bottoms."""

from __future__ import annotations

import torch

from .known_cases import CASES, Case
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
ALL_CASES = STOCK_CASES | {name: case for name, case in CASES.items() if len(case.bottoms) > 1}
