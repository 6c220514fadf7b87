import torch.nn.functional as F

from . import StockLayer


class ELU(StockLayer):
    def __init__(self, definition):
        super().__init__(definition)
        self.alpha = definition.message.elu_param.alpha

    def forward(self, x):
        return F.elu(x, self.alpha)
