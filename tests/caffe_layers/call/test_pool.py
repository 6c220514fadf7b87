"""A Caffe module's pool of instances: what it stores, and which instance a call gets. No GPU is needed."""

from types import SimpleNamespace

import pytest
import torch
from support.zoo import raises

from cuffi.caffe_layers.call.instance import CPU, GPU, Site
from cuffi.caffe_layers.call.pool import Pool
from cuffi.runtime import CaffeRuntimeError, CaffeTypeError, CaffeValueError

HOST = Site("host", -1, 0, torch.float32, 0)
DEVICE = Site("cuda", 0, 3, torch.float32, 0)
GRAPH = DEVICE._replace(stream=5, capture=True)


class Lent:
    def __init__(self, site):
        self.site = site


@pytest.fixture
def pool(zoo):
    return Pool(zoo.Ramp()._pool.definition)


def test_which_code_is_tried(pool):
    """The host tries the layer's CPU code, then its kernels, until it knows which one exists."""
    assert [pool.modes(HOST, forced) for forced in (None, CPU, GPU)] == [(CPU, GPU), (CPU,), (GPU,)]
    assert [pool.modes(DEVICE, forced) for forced in (None, GPU)] == [(GPU,), (GPU,)]
    with raises(CaffeTypeError, "mode 'cpu' is for CPU tensors, not for cuda:0"):
        pool.modes(DEVICE, CPU)
    for mode in (GPU, CPU):
        pool.run_on_host(mode)
        assert pool.modes(HOST, None) == (mode,) and pool.modes(DEVICE, None) == (GPU,)
        assert pool.modes(HOST, CPU) == (CPU,)


@pytest.mark.parametrize(
    "change, there",
    [({}, True), ({"device": 1}, False), ({"dtype": torch.float64}, False), ({"phase": 1}, False)],
    ids=str,
)
def test_a_graph_takes_an_instance_of_another_stream(pool, change, there):
    """It takes the last used one of the same device, dtype and phase."""
    found = [Lent(None), Lent(None)]
    pool.free[DEVICE._replace(stream=4)] = []
    pool.free[DEVICE._replace(**change)] = list(found)
    taken = pool._warm(GRAPH)
    assert taken is (found[1] if there else None)
    if there:
        assert taken.site == GRAPH and pool.free[DEVICE] == found[:1]
        assert pool.acquire(GRAPH, GPU) is found[0]
        pool.lend(taken)
        assert pool.lent == {taken}
        pool.release(taken)
        assert pool.captured == [taken] and not pool.free[GRAPH] and not pool.lent


def test_a_released_instance_is_the_next(pool):
    one, other = (Lent(HOST) for _ in range(2))
    for instance in (one, other):
        pool.lend(instance)
    assert pool.lent == {one, other}
    for instance in (one, other):
        pool.release(instance)
    assert not pool.lent and not pool.captured
    assert [pool.acquire(HOST, CPU), pool.acquire(HOST, CPU)] == [other, one]


def test_sizes_that_vary(pool):
    """Sizes vary between calls of the same bottoms. Another number of axes says nothing about an axis."""
    pool._expect(((2, 3),), ((2, 3), (4,)))
    assert pool.varying == set()
    pool._expect(((2, 3),), ((2, 5), (4,)))
    assert pool.varying == {(0, 1)}
    pool._expect(((2, 3),), ((2, 5), (6,)))
    pool._expect(((9, 9),), ((1, 1), (1,)))
    assert pool.varying == {(0, 1), (1, 0)}
    pool._expect(((2, 3),), ((2, 5, 1), (6,)))
    assert pool.varying == {(0, 1), (1, 0)} and pool.top_shapes[((2, 3),)] == ((2, 5, 1), (6,))


def test_shapes_are_forgotten_where_every_batch_has_its_own(pool):
    for i in range(1001):
        pool._expect(((i,),), ((i,),))
    assert len(pool.top_shapes) == 1001
    pool._expect(((2000,),), ((7,),))
    assert pool.top_shapes == {((2000,),): ((7,),)} and not pool.varying


def test_a_second_backward_in_a_graph(pool):
    for site, states in ((GRAPH, {}), (HOST, {-1: torch.zeros(1), 0: None})):
        with raises(CaffeRuntimeError, "a second backward cannot be part of a CUDA graph"):
            pool.forward_again(site, CPU, [], [], [], [], states)


def test_code_that_a_layer_has_not(pool):
    """The hint names the other code, if it may exist."""
    words = {(GPU, DEVICE): "use CPU tensors", (CPU, HOST): "m.mode = 'gpu' or None"}
    pool.definition = SimpleNamespace(
        no_code=lambda function, library, hint: f"{function}{hint}", library=lambda backend: None
    )
    for mode, site in ((GPU, DEVICE), (CPU, HOST), (GPU, HOST)):
        said = pool.no_code_for("Forward", mode, site)
        assert said.startswith("Forward_gpu" if mode == GPU else "Forward_cpu")
        assert [hint for hint in words.values() if hint in said] == [
            words[key] for key in words if key == (mode, site)
        ]


def test_how_many_bottoms(zoo):
    module = zoo.Ramp()
    module._pool.check_bottoms(5)  # nothing is known before it is set up
    module(torch.ones(2, 3))
    module._pool.check_bottoms(1)
    with raises(CaffeValueError, "expected 1 bottoms, got 2$"):
        module._pool.check_bottoms(2)
    named = zoo.Ramp(bottom="x", top="y")._pool
    with raises(CaffeValueError, "expected 1 bottoms: x, got 2$"):
        named.check_bottoms(2)
