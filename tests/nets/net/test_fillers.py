"""The fillers' numbers, as in Caffe's filler.hpp."""

import math
from types import SimpleNamespace

import pytest
import torch
from support.nets import one_layer

from cuffi import CaffeValueError
from cuffi.nets.net.fillers import fill

DEFAULTS = dict(type="constant", value=0, min=0, max=1, mean=0, std=1, sparse=-1, variance_norm=0)


def filled(*shape, **filler):
    torch.manual_seed(0)
    blob = torch.full(shape, torch.nan)
    fill(blob, SimpleNamespace(**DEFAULTS | filler))
    return blob


def test_constant():
    assert filled(2, 3, value=2.5).unique().tolist() == [2.5]
    assert filled(2, 3, type="", value=2.5).unique().tolist() == [2.5]


def test_uniform():
    values = filled(1000, type="uniform", min=-3, max=5)
    assert -3 <= values.min() < -2.9 and 4.9 < values.max() <= 5


def test_gaussian():
    values = filled(100, 100, type="gaussian", mean=2, std=0.5)
    assert abs(values.mean() - 2) < 0.02 and abs(values.std() - 0.5) < 0.02


@pytest.mark.parametrize(("sparse", "share"), [(0, 0), (1, 0.01), (25, 0.25), (100, 1), (200, 1)])
def test_sparse(sparse, share):
    """On average, this many inputs of each output are not zero."""
    values = filled(100, 150, type="gaussian", sparse=sparse)
    assert abs((values != 0).double().mean() - share) < 0.01 and (
        share not in (0, 1) or share == (values != 0).double().mean()
    )


def test_positive_unitball():
    values = filled(3, 4, 5, type="positive_unitball")
    torch.testing.assert_close(values.sum((1, 2)), torch.ones(3))
    assert values.min() >= 0 and values.max() < 0.2


@pytest.mark.parametrize(("norm", "fan"), [(0, 10 * 9), (1, 40 * 9), (2, 25 * 9)])
def test_fans(norm, fan):
    """The blob is [40, 10, 3, 3]; the modes are FAN_IN, FAN_OUT, AVERAGE."""
    values = filled(40, 10, 3, 3, type="xavier", variance_norm=norm)
    limit = math.sqrt(3 / fan)
    assert 0.99 * limit < values.abs().max() <= limit and values.min() < -0.9 * limit
    values = filled(40, 10, 3, 3, type="msra", variance_norm=norm)
    assert abs(values.std() / math.sqrt(2 / fan) - 1) < 0.05 and abs(values.mean()) < 0.01


def test_fans_of_a_vector():
    assert filled(27, type="xavier", variance_norm=1).abs().max() <= math.sqrt(3 / 27)
    assert 1 < filled(27, type="xavier").abs().max() <= math.sqrt(3)


def test_bilinear():
    """An upsampling by 2."""
    line = torch.tensor([0.25, 0.75, 0.75, 0.25])
    assert torch.equal(filled(2, 3, 4, 4, type="bilinear"), (line[:, None] * line).expand(2, 3, 4, 4))
    line = torch.tensor([1, 2, 3, 2, 1]) / 3
    torch.testing.assert_close(filled(1, 1, 5, 5, type="bilinear")[0, 0], line[:, None] * line)


@pytest.mark.parametrize(
    "values, wanted", [("", (1, 1)), ("diag_val: 20 diag_val: 4.5f", (20, 4.5)), ("diag_val: 3", (3, 1))]
)
@pytest.mark.parametrize("kind, shape", [("Convolution", (2, 3, 3, 2)), ("Deconvolution", (3, 2, 3, 2))])
def test_diagonal(values, wanted, kind, shape):
    """Of FlowNet2: each output is the mean of its channel, times a number."""
    filler = f'weight_filler {{ type: "diagonal" {values} }}'
    net = one_layer(
        f'type: "{kind}" convolution_param {{ num_output: 2 kernel_h: 3 kernel_w: 2 {filler} }}', (1, 3, 6, 6)
    )
    weight = torch.zeros(shape, dtype=torch.float64)
    weight[0, 0], weight[1, 1] = wanted[0] / 6, wanted[1] / 6
    torch.testing.assert_close(net.L.weight.detach(), weight, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("shape", "filler", "said"),
    [
        ((2,), dict(type="diagonals"), "no type 'diagonals'"),
        ((2,), dict(type="uniform", sparse=3), "sparse is for the gaussian filler, not for uniform"),
        ((), dict(type="gaussian", sparse=3), "the blob has no axes"),
        ((2, 3, 4), dict(type="bilinear"), "4 axes"),
        ((1, 2, 3, 4), dict(type="bilinear"), "square kernels"),
    ],
)
def test_refused(shape, filler, said):
    with pytest.raises(CaffeValueError, match=f"filler: .*{said}"):
        filled(*shape, **filler)


def test_of_nothing():
    assert filled(0, 3, type="positive_unitball").shape == (0, 3)
