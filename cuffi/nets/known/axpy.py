from . import KnownLayer


class Axpy(KnownLayer):
    """a * x + y, with a number `a` for each item and channel (the first bottom) and x, y of one shape."""

    types = ("Axpy",)
    source = "hujie-frank/SENet"
    bottoms = (3, 3)

    def setup(self, a, x, y):
        self.check(x == y, f"bottoms of {list(x)} and {list(y)}")
        is_valid = a[:2] == x[:2] and all(size == 1 for size in a[2:])
        self.check(is_valid, f"a number for each item and channel is needed, not {list(a)} for {list(x)}")

    def forward(self, a, x, y):
        return y + a.reshape(a.shape[:2] + (1,) * (x.dim() - 2)) * x
