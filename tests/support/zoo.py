"""The layers of tests/fixtures/caffe_zoo as modules, on each device and mode."""

import importlib

import pytest
import torch
from torch import Tensor

from cuffi.base import CaffeError

DEVICES = ["cpu", "kernels", "cuda"]  # the layer's CPU code, its kernels on the host, on a GPU


@pytest.fixture(scope="session")
def zoo(shared_layers):
    """The layers of caffe_zoo, built with the core that make has compiled for the tree."""
    shared_layers.build_layers("caffe_zoo")
    return importlib.import_module(f"{shared_layers.package}.caffe_zoo")


@pytest.fixture(params=DEVICES)
def place(request):
    """A function that moves a module to its device and mode; with the device."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    return Place(request.param)


class Place:
    def __init__(self, name: str):
        self.mode = {"cpu": "cpu", "kernels": "gpu", "cuda": None}[name]
        self.device = "cuda" if name == "cuda" else "cpu"

    def __call__(self, module):
        module.mode = self.mode
        return module.to(self.device)

    def draw(self, *shape, dtype=torch.float64, grad=False, seed=1) -> Tensor:
        values = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
        return values.to(self.device).requires_grad_(grad)


def grads(tops, inputs, seed=3, **options):
    tops = tops if isinstance(tops, tuple) else (tops,)
    generator = torch.Generator().manual_seed(seed)
    diffs = [torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t) for t in tops]
    return torch.autograd.grad(tops, inputs, diffs, **options)


def raises(error, *words):
    """An error of this kind, and the layers' own, whose message has all these words."""
    pattern = "(?s)" + "".join(f"(?=.*{word})" for word in words)
    assert issubclass(error, CaffeError)
    return pytest.raises(Exception, match=pattern, check=lambda e: type(e).__name__ == error.__name__)


@pytest.fixture
def gpu():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return Place("cuda")


FILLER = {"filler": {"type": "uniform", "min": 1, "max": 2}}
