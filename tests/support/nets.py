"""What the tests of whole nets share."""

import numpy as np
import torch

from layers import caffe_net
from layers._net.stock import StockLayer


def one_layer(layer: str, *shapes, tops: int = 1, **options):
    """A net of one layer named L, for bottoms x0, x1, ... of these shapes; its tops are y0, y1, ..."""
    inputs = "".join(
        f'input: "x{i}" input_shape {{ {" ".join(f"dim: {d}" for d in shape)} }}\n'
        for i, shape in enumerate(shapes)
    )
    bottoms = "".join(f'bottom: "x{i}" ' for i in range(len(shapes)))
    names = "".join(f'top: "y{i}" ' for i in range(tops))
    net = caffe_net(f'{inputs}layer {{ name: "L" {bottoms}{names}{layer} }}', **options).double()
    # A caffemodel has a layer's blobs, and no others.
    if isinstance(net.L, StockLayer):
        assert set(net.L.state_dict()) == set(net.L.present_blobs())
    return net


def randomised(net: torch.nn.Module):
    """The net with random parameters."""
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.normal_()
    return net


def gradients_are_right(function, *tensors) -> bool:
    return torch.autograd.gradcheck(
        function, tuple(t.detach().clone().requires_grad_() for t in tensors), fast_mode=True
    )


def same(got, wanted, tolerance=1e-9):
    torch.testing.assert_close(
        got.detach(), torch.as_tensor(np.asarray(wanted)), rtol=tolerance, atol=tolerance
    )


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def labels(classes, *shape, seed=0):
    return torch.randint(0, classes, shape, generator=torch.Generator().manual_seed(seed)).double()
