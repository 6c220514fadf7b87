"""Regularisation: Dropout, random zeros in training."""

import torch.nn.functional as F

from . import StockLayer


class Dropout(StockLayer):
    """In training, each value is 0 with probability dropout_ratio, and the others are divided by 1 - dropout_ratio.

    For any shape. In testing it is the identity.

    Source: BVLC's dropout_layer.cpp.
    """

    understands = ("dropout_param.scale_train", "dropout_param.sample_weights_test")

    def __init__(self, definition):
        super().__init__(definition)
        self.ratio = definition.message.dropout_param.dropout_ratio
        self.scale_train = definition.flag("dropout_param.scale_train", True)
        # Bayesian SegNet also draws in testing.
        self.always = definition.flag("dropout_param.sample_weights_test", False)

    def top_shapes(self, x):
        return [x]

    def forward(self, x):
        if self.training or self.always:
            # Caffe's release build tests the ratio only by what it computes: 0 / 0 for 1.
            said = "dropout_ratio: expected 0 or more, and less than 1 in training, got {}"
            self.check(0 <= self.ratio < 1, said, self.ratio)
            top = F.dropout(x, self.ratio, True)
            return top if self.scale_train else top * (1 - self.ratio)
        return x if self.scale_train else x * (1 - self.ratio)
