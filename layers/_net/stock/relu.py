import torch.nn.functional as F

from . import StockLayer


class ReLU(StockLayer):
    def __init__(self, definition):
        super().__init__(definition)
        self.negative_slope = definition.message.relu_param.negative_slope

    def top_shapes(self, x):
        return [x]

    def forward(self, x):
        return F.leaky_relu(x, self.negative_slope) if self.negative_slope else F.relu(x)
