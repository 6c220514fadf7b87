"""What C reads and writes in torch's own memory, or asks torch for."""

import ctypes

import pytest
import torch
from cuffi.sigmoid import layer, sigmoid
from support.typed import not_none

from cuffi.runtime import CaffeError, extension, places

UNKNOWN = {"version_counter": None, "autograd_place": None}


@pytest.fixture(params=["read", "asked"])
def _calls(request):
    not_none(extension.usable()).configure(
        extension.of_torch() | (UNKNOWN if request.param == "asked" else {})
    )
    yield
    not_none(extension.usable()).configure(extension.of_torch())


def word(address: int, kind=ctypes.c_uint64) -> int:
    return kind.from_address(address).value


def test_where_the_version_is():
    """In tensors of other kinds than those by which the place was found. None: another torch."""
    if (found := places.version_counter()) is None:
        pytest.skip("this torch has it elsewhere")
    counter, number = found
    base = torch.zeros(4, dtype=torch.complex64)
    for one in (base, base[1:], torch.view_as_real(base), base.conj(), torch.nn.Parameter(torch.ones(2))):
        with torch.no_grad():
            one.mul_(2)
        assert word(word(one._cdata + counter) + number, ctypes.c_uint32) == one._version > 0
    with torch.inference_mode():
        assert word(torch.ones(3)._cdata + counter) == 0


def test_where_the_gradient_is():
    if (at := places.autograd_place()) is None:
        pytest.skip("this torch has it elsewhere")
    leaf = torch.ones(2, 2, requires_grad=True)
    for one in (leaf, leaf.exp(), leaf.T, torch.ones(3).requires_grad_(), leaf.view(4)[1:]):
        assert one.requires_grad and word(one._cdata + at)
    assert word(torch.ones(5)._cdata + at) == 0


@pytest.mark.usefixtures("_calls")
def test_a_write_is_counted():
    """In the tensor, its base and its views. A backward that saved what was overwritten is an error."""
    base, x = torch.zeros(8), torch.rand(4)
    view = base[4:]
    for count in (1, 2, 3):
        layer.sigmoid_forward(x, view, 4)
        assert base._version == view._version == count
    assert torch.allclose(base[4:], x.sigmoid())
    with torch.inference_mode():
        inner = torch.zeros(4)
        layer.sigmoid_forward(x, inner, 4)
        assert torch.allclose(inner, x.sigmoid())
    leaf, saved = torch.rand(4, requires_grad=True), torch.rand(4)
    loss = (leaf * saved).sum()
    layer.sigmoid_forward(x, saved, 4)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.usefixtures("_calls")
def test_a_lost_gradient_is_refused():
    x = torch.rand(4)
    for top in (torch.zeros(4, requires_grad=True), torch.nn.Parameter(torch.zeros(4))):
        with pytest.raises(CaffeError):
            layer.sigmoid_forward(x, top, 4)
        with torch.no_grad():
            layer.sigmoid_forward(x, top, 4)
        assert torch.allclose(top.detach(), x.sigmoid())
    no_more = torch.zeros(4, requires_grad=True).requires_grad_(False)
    layer.sigmoid_forward(x, no_more, 4)
    leaf = torch.rand(4, requires_grad=True)
    assert sigmoid(leaf).requires_grad and not sigmoid(leaf.detach()).requires_grad


def test_a_torch_that_has_them_elsewhere_is_asked(monkeypatch):
    """Where the memory cannot be read, or no place is the only one."""
    for size in (16, 0):
        for find in (places.version_counter, places.autograd_place):
            monkeypatch.setattr(places, "SIZE", size)
            assert find.__wrapped__() is None
    monkeypatch.setattr(places.os, "open", lambda *_: (_ for _ in ()).throw(OSError("no such file")))
    assert places.version_counter.__wrapped__() is None and places.autograd_place.__wrapped__() is None
