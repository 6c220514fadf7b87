"""An old-style Function around the extension, as a model of 2017 had it."""

from _ext import old
from torch.autograd import Function


class Rounded(Function):
    def forward(self, x):
        top = x.new()
        old.old_round(x, top)
        return top

    def backward(self, grad):
        bottom_grad = grad.new()
        old.old_scale(grad, bottom_grad, 2.0)
        return bottom_grad
