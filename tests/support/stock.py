"""The layers of tests/fixtures/caffe_stock: the core's math and stock layers, run in each possible way."""

import importlib

import pytest
import torch

from cuffi.caffe_layers.call import instance, services

DTYPES = [torch.float32, torch.float64]
SIZES = [0, 1, 7, 1000, 100_003]
PLACES = {"cpu": ("cpu", "cpu"), "kernels": ("gpu", "cpu"), "cuda": (None, "cuda")}


@pytest.fixture(scope="session")
def stock(shared_layers):
    """The layers of caffe_stock, built with the core that make has compiled for the tree."""
    shared_layers.build_layers("caffe_stock")
    return importlib.import_module(f"{shared_layers.package}.caffe_stock")


class Place:
    """The device, mode and dtype of a layer."""

    def __init__(self, stock, name: str, dtype: torch.dtype):
        self.stock, self.name, self.dtype = stock, name, dtype
        self.mode, self.device = PLACES[name]

    def module(self, layer: str, **parameters):
        module = getattr(self.stock, layer)(**parameters)
        module.mode = self.mode
        return module.to(self.device)

    def math(self, function: str, *bottoms, **parameters):
        """The function's results for tensors in double; it gets them in this place's dtype."""
        module = self.module("Math", math_param={"function": function, **parameters})
        with torch.no_grad():
            return module(*(b.to(self.device, self.dtype) for b in bottoms)).double().cpu()

    def draw(self, *shape, seed=1, positive=False):
        """Numbers in double that the dtype can hold exactly."""
        values = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double()
        return values.abs() + 0.01 if positive else values

    def close(self, result, expected, scale=1.0):
        tolerance = (1e-5 if self.dtype == torch.float32 else 1e-12) * scale
        torch.testing.assert_close(result, expected.double(), rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.fixture(params=DTYPES, ids=["float", "double"])
def dtype(request):
    return request.param


class Fences:
    """Replaces torch for a layer's memory: guard bytes around each tensor, which no layer may write to."""

    def __init__(self):
        self.made = []

    def __getattr__(self, name: str):
        return getattr(torch, name)

    def empty(self, *shape, dtype=None, device="cpu", pin_memory=False):
        shape = torch.Size(shape if isinstance(shape[0], int) else shape[0])
        if torch.device(device).type != "cpu" or pin_memory:
            return torch.empty(shape, dtype=dtype, device=device, pin_memory=pin_memory)
        whole = torch.full((shape.numel() + 2 * 64,), 77, dtype=dtype)
        self.made.append((whole, shape.numel()))
        return whole[64:-64].view(shape)

    def empty_like(self, tensor, **options):
        return self.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)

    def look(self):
        for whole, count in self.made:
            assert bool((whole[:64] == 77).all()), f"written in front of {count} elements"
            assert bool((whole[64 + count :] == 77).all()), f"written behind {count} elements"


@pytest.fixture
def fences(monkeypatch):
    made = Fences()
    for module in (instance, services):
        monkeypatch.setattr(module, "torch", made)
    yield made
    made.look()


@pytest.fixture(params=PLACES)
def at(request, stock, dtype, fences):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    return Place(stock, request.param, dtype)


# ---------------------------------------------------------------------------------------- stock layers


def compare(at, module, reference, *inputs, scale=100.0):
    """Forward and backward of the module, and autograd's through the reference with the module's blobs."""
    ours = [x.to(at.device, at.dtype).requires_grad_() for x in inputs]
    tops = module(*ours)
    blobs = [p for _, p in sorted(module.named_parameters())]
    theirs = [x.clone().requires_grad_() for x in inputs]
    copies = [p.detach().double().cpu().requires_grad_() for p in blobs]
    expected = reference(*theirs, *copies)
    tops, expected = (t if isinstance(t, tuple) else (t,) for t in (tops, expected))
    assert len(tops) == len(expected)
    diffs = [
        torch.randn(e.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
        for e in expected
    ]
    for top, e in zip(tops, expected, strict=True):
        assert top.shape == e.shape
        at.close(top.detach().double().cpu(), e.detach(), scale)
    grads = torch.autograd.grad(tops, ours + blobs, [d.to(at.device, at.dtype) for d in diffs])
    for grad, e in zip(grads, torch.autograd.grad(expected, theirs + copies, diffs), strict=True):
        at.close(grad.double().cpu(), e, scale)
