"""Instances of a Caffe layer: they are reused, their memory starts with zeros and is freed with the module."""

import copy
import gc
import importlib
import pickle

import torch
from support.zoo import grads, raises

from cuffi.runtime import CaffeRuntimeError, CaffeValueError


def test_instances_come_back(zoo, place):
    m = place(zoo.Noise())
    x = place.draw(4, grad=True)
    for _ in range(5):
        m(x).sum().backward()
        m(x)  # its graph dies
        with torch.no_grad():
            m(x)
    gc.collect()
    assert sum(map(len, m._pool.free.values())) == 1


def test_memory_goes_with_the_module(zoo, place):
    services = importlib.import_module(f"{zoo.__package__.rpartition('.')[0]}._caffe.services")
    gc.collect()
    before = set(services.memory)
    m, x = place(zoo.Noise()), place.draw(4, grad=True)
    y = m(x)
    with torch.no_grad():
        m(x), m(x)
    assert set(services.memory) > before
    gc.disable()
    try:
        del m
        y.sum().backward()  # what it needs is still there
        del y
        assert set(services.memory) == before
    finally:
        gc.enable()


def test_results_start_from_zero(zoo, place):
    """Results start from zero, as Caffe's memory does, also if the object had earlier calls."""
    x = place.draw(1000, grad=True)
    for training in (1, 2, 3):
        m = place(zoo.Adding())
        for _ in range(training):
            torch.full_like(x, 7)  # what the memory to come may hold
            (diff,) = torch.autograd.grad(m(x).sum(), x)
            assert torch.equal(diff, torch.ones_like(x))
        with torch.no_grad():
            for _ in range(3):
                torch.full_like(x, 7)
                assert torch.equal(m(x), x)


def test_a_layer_that_counts_its_calls(zoo):
    m, x = zoo.Counting(), torch.zeros(2)
    for i in range(3):
        assert m(x)[0] == i + 1
    assert copy.deepcopy(m)(x)[0] == 1


def test_iteration(zoo, place):
    """A layer that asks for the training loop's iteration gets it, or an error that says how to set it."""
    m, x = place(zoo.Scheduled()), place.draw(5, grad=True)
    assert m.iteration is None
    with raises(CaffeRuntimeError, "m.iteration = step"):
        m(x)
    for step in (0, 3, 1, 2**30):
        m.iteration = step
        for _ in range(2):  # by Python, then by C
            with torch.no_grad():
                torch.testing.assert_close(m(x), step * x)
            (diff,) = grads(m(x), x)
        torch.testing.assert_close(diff, step * grads(x * 1, x)[0])
    assert m.iteration == 2**30
    with raises(CaffeValueError, "iteration", "-1"):
        m.iteration = -1
    m.iteration = 3
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m)), copy.copy(m)):
        assert other.iteration == 3
        torch.testing.assert_close(other(x), 3 * x)
    m.iteration = None
    with raises(CaffeRuntimeError, "m.iteration = step"):
        m(x)
