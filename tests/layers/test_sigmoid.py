"""sigmoid beyond its cases: long rows and a single row."""

import re

import pytest
import torch
from conftest import DEVICES, skip_if_missing
from cuffi.sigmoid import Sigmoid, layer, sigmoid


@pytest.fixture(params=DEVICES)
def device(request):
    skip_if_missing(request.param, layer)
    return request.param


@pytest.mark.parametrize("shape", [(2, 2), (64, 128), (1, 7), (7, 1)], ids=str)
def test_all_rows_and_columns_are_written(device, shape):
    x = torch.randn(shape, device=device)
    torch.testing.assert_close(sigmoid(x), torch.sigmoid(x))
    assert bool((sigmoid(x) != 0).all())


def test_rows_longer_than_65535(device):
    for shape in ((2, 70_000), (70_000, 2), (5,), (2, 3, 4)):
        x = torch.randn(shape, device=device)
        torch.testing.assert_close(Sigmoid()(x), torch.sigmoid(x))


def test_the_float_kernel_computes_in_float():
    source = (layer.folder / "sigmoid.cu").read_text()
    assert not re.search(r"\d\.\d*(?!\d*f)\b", re.sub(r"//.*", "", source)), "a double literal in the kernels"
