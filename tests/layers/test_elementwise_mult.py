"""elementwise_mult beyond its cases: other shapes, and tensors that do not fit together."""

import pytest
import torch
from conftest import DEVICES, skip_if_missing
from cuffi.elementwise_mult import elementwise_mult, layer


@pytest.fixture(params=DEVICES)
def device(request):
    skip_if_missing(request.param, layer)
    return request.param


def test_sizes_that_differ(device):
    with pytest.raises(ValueError, match=r"elementwise_mult: b: expected the shape of a, \[4\], got .*\[1\]"):
        elementwise_mult(torch.rand(4, device=device), torch.rand(1, device=device))


def test_any_number_of_dimensions(device):
    for shape in ((), (3,), (2, 3), (2, 3, 4, 5, 6)):
        a, b = torch.rand(shape, device=device), torch.rand(shape, device=device)
        assert torch.equal(elementwise_mult(a, b), a * b)


def test_tensors_on_two_gpus():
    skip_if_missing("cuda", layer)
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU only")
    with pytest.raises(TypeError, match=r"elementwise_mult: .*expected a tensor on cuda:0"):
        elementwise_mult(torch.rand(3, device="cuda:0"), torch.rand(3, device="cuda:1"))
