from . import StockLayer


class Clip(StockLayer):
    def __init__(self, definition):
        super().__init__(definition)
        self.least, self.most = definition.message.clip_param.min, definition.message.clip_param.max

    def forward(self, x):
        return x.clamp(self.least, self.most)
