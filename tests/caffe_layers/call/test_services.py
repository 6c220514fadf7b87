"""Random numbers of Caffe layers, on layers of caffe_zoo; the services as the core calls them."""

import importlib
import logging
import threading
from pathlib import Path
from unittest import TestCase

import cffi
import pytest
import torch
from conftest import ROOT
from support.typed import not_none
from support.zoo import grads, raises

from cuffi.caffe_layers.call import services
from cuffi.caffe_layers.call.instance import Site
from cuffi.runtime import CaffeRuntimeError


def services_of(zoo):
    """The module that the zoo's layers use."""
    return importlib.import_module(f"{zoo.__package__.rpartition('.')[0]}._caffe.services")


def test_follows_torchs_seed(zoo, place):
    m, x = place(zoo.Noise()), place.draw(1000)
    torch.manual_seed(5)
    y = m(x)
    other = m(x)
    torch.manual_seed(5)
    assert torch.equal(m(x), y) and not torch.equal(other, y)
    assert 300 < (y == 0).sum() < 700
    assert torch.equal(m.eval()(x), x)
    assert not torch.equal(m.train()(x), x)
    m = place(zoo.Noise('layer { type: "Noise" phase: TEST }'))
    assert torch.equal(m(x), x) and not torch.equal(m.train()(x), x)


def test_a_call_within_anothers_leaves_its_draws(zoo, place):
    """A profile function may call a layer while another one's draws are watched."""
    m, x = place(zoo.Noise()), place.draw(50, grad=True)
    for _ in range(4):  # by Python, then by C
        with services_of(zoo).watched_draws() as outer:
            y = m(x)
            assert services_of(zoo).drawn == {threading.get_ident(): outer} and not outer
        y.sum().backward()
    assert not services_of(zoo).drawn


def test_cpu_forward_without_cpu_backward(zoo, monkeypatch):
    """Forward is run again by kernels, and later calls use kernels at once."""
    m, x = zoo.Kernels(), torch.randn(5, requires_grad=True)
    torch.testing.assert_close(grads(m(x), x), grads(2 * x, x))
    assert m._pool.host_mode == "gpu"
    torch.testing.assert_close(grads(m(x), x), grads(2 * x, x))
    m = zoo.Kernels()
    m(x)
    several = [m(x) for _ in range(3)]  # each object has its short way, with CPU code
    grads(several.pop(), x)
    del several
    monkeypatch.setattr(type(m._pool), "forward_again", None)
    for _ in range(2):
        several = [m(x) for _ in range(3)]
        for y in several:
            torch.testing.assert_close(grads(y, x), grads(2 * x, x))
    m = zoo.Kernels()
    m.mode = "cpu"
    with raises(CaffeRuntimeError, r"Backward_cpu is NOT_IMPLEMENTED \(zoo_layers.cpp:\d+: ", "m.mode"):
        grads(m(x), x)


def test_cpu_forward_without_cpu_backward_and_other_random_numbers(zoo):
    m, x = zoo.Noise(zoo_param={"slope": 1}), torch.randn(100, requires_grad=True)
    with raises(CaffeRuntimeError, "gave another result"):
        m(x).sum().backward()
    y = m(x)
    y.sum().backward()
    assert torch.equal(not_none(x.grad), (y != 0).to(x))


def test_no_backward_at_all(zoo):
    m, x = zoo.Kernels(zoo_param={"slope": 1}), torch.randn(3, requires_grad=True)
    for _ in range(2):
        with raises(CaffeRuntimeError, r"Backward_... is NOT_IMPLEMENTED \(zoo_layers.c..?:\d+: "):
            m(x).sum().backward()
    assert m._pool.host_mode in (None, "cpu")


# ------------------------------------------------------------------------------------------ called as the core does


@pytest.fixture(scope="module")
def given():
    """The services, and cffi's module that knows their struct."""
    ffi = cffi.FFI()
    ffi.cdef((ROOT / "cuffi/caffe_layers/include/caffe/layer_record.h").read_text())
    return services.Services(ffi, ffi.dlopen(None), cuda=False), ffi


def test_memory_by_token(given):
    """At least one byte each; released memory is freed, and torch's errors become NULL and are kept."""
    made, ffi = given
    token, tokens = ffi.new("int64_t *"), []
    with torch.inference_mode():
        for size, wanted in ((0, 1), (1, 1), (5, 5)):
            address = made.struct.allocate(size, -1, token)
            tokens.append(token[0])
            tensor = services.memory[token[0]]
            assert (tensor.data_ptr(), tensor.numel()) == (int(ffi.cast("uintptr_t", address)), wanted)
            assert not tensor.is_inference()
    assert len(set(tokens)) == 3 and 0 not in tokens
    for one in tokens * 2:
        made.struct.release(one)
    assert not set(tokens) & set(services.memory)
    services.take_failure()
    assert not services.failed()
    assert made.struct.allocate(1 << 62, -1, token) == ffi.NULL and services.failed()
    assert isinstance(services.take_failure(), RuntimeError) and services.take_failure() is None
    assert made.struct.random(99, ffi.NULL, 3, 99, -1, 0, 1) == 0  # no such type
    assert isinstance(services.take_failure(), KeyError)
    assert made.struct.random(99, ffi.NULL, 0, 99, -1, 0, 1) == 1  # and no number to draw


def test_all_bits_are_drawn(given):
    made, ffi = given
    words = torch.zeros(4000, dtype=torch.int32)
    at = ffi.cast("void *", words.data_ptr())
    assert made.struct.random(made.c.CAFFE_DRAW_BITS, at, 4000, made.c.CAFFE_DRAWN_INT32, -1, 0, 0) == 1
    for bit in range(32):
        assert 1700 < int((words >> bit & 1).sum()) < 2300
    seeds = [made.struct.seed() for _ in range(50)]
    assert min(seeds) >= 0 and 1 << 58 < max(seeds) < 1 << 62 and len(set(seeds)) == 50
    made.struct.set_seed(7)
    first = made.struct.seed()
    made.struct.set_seed(7)
    assert made.struct.seed() == first


def test_severities(given):
    made, ffi = given
    with TestCase().assertLogs("caffe", logging.DEBUG) as said:
        for severity in range(4):
            made.struct.log(severity, ffi.new("char[]", b"said \xff"))
    wanted = [logging.INFO, logging.WARNING, logging.ERROR, logging.ERROR]
    assert [(one.levelno, one.getMessage()) for one in said.records] == [
        (level, "said \ufffd") for level in wanted
    ]


def test_where_blas_is(given):
    made, ffi = given
    assert Path(ffi.string(made.struct.blas_library).decode()).name.startswith("libtorch_cpu.so")
    assert ffi.string(made.struct.cublas_library) == b"" and made.struct.blas_handle == ffi.NULL


def test_where_a_call_runs():
    host, first, second = (Site("host" if d < 0 else "cuda", d, 0, torch.float32, 0) for d in (-1, 0, 1))
    assert (host.on_host, first.on_host, second.on_host) == (True, False, False)
    assert [str(site.torch_device) for site in (host, first, second)] == ["cpu", "cuda:0", "cuda:1"]
