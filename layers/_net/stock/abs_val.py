from . import StockLayer


class AbsVal(StockLayer):
    def forward(self, x):
        return x.abs()
