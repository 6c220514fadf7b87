"""Sums and products: Axpy, of squeeze-and-excitation nets."""

from . import KnownLayer


class Axpy(KnownLayer):
    """a * x + y, with a number `a` for each item and channel (the first bottom) and x, y of one shape."""

    types = ("Axpy",)
    source = "hujie-frank/SENet"
    bottoms = (3, 3)

    def agree(self, a, x, y):
        self.check(x == y, "bottoms of {} and {}", x, y)
        is_valid = a[:2] == x[:2] and all(size == 1 for size in a[2:])
        self.check(is_valid, "a number for each item and channel is needed, not {} for {}", a, x)

    def forward(self, a, x, y):
        return y + a.reshape(a.shape[:2] + (1,) * (x.dim() - 2)) * x
