"""make caffetest: the numbers that tests draw, and how a built library of tests is run."""

import random
from types import SimpleNamespace

import cffi
import numpy
import pytest
import torch

from tools.caffetest import run_tests
from tools.caffetest.twister import Twister

UNIFORM, NORMAL, BERNOULLI, BITS = range(4)


def reference(seed):
    """Python's own Mersenne twister, seeded as boost's."""
    state = [seed]
    for i in range(1, 624):
        state.append(1812433253 * (state[-1] ^ state[-1] >> 30) + i & 0xFFFFFFFF)
    generator = random.Random()
    generator.setstate((3, (*state, 624), None))
    return lambda: generator.getrandbits(32)


@pytest.mark.parametrize("seed", [1701, 0, 5])
def test_draws_are_boosts(seed):
    drawn, word = Twister(seed), reference(seed)
    assert drawn.fill(BITS, 3, 2, 0, 0).tolist() == [word() for _ in range(3)]
    got = drawn.fill(UNIFORM, 4, 1, -1, 3)
    assert got.dtype == numpy.float64 and got.tolist() == [word() / 2**32 * 4 - 1 for _ in range(4)]
    assert drawn.fill(BERNOULLI, 20, 2, 0.3, 0).tolist() == [
        int(word() <= 0.3 * 0xFFFFFFFF) for _ in range(20)
    ]
    # Two normal values of two draws; of an odd count the last one is lost.
    pairs = [(word() / 2**32, word() / 2**32) for _ in range(2)]
    radii = [(first, (-2 * numpy.log(1 - second)) ** 0.5) for first, second in pairs]
    wanted = [r * f(2 * numpy.pi * a) for a, r in radii for f in (numpy.cos, numpy.sin)][:3]
    numpy.testing.assert_allclose(drawn.fill(NORMAL, 3, 1, 5, 2), 5 + 2 * numpy.array(wanted), rtol=1e-12)
    assert drawn.fill(BITS, 1, 2, 0, 0).tolist() == [word()]
    assert drawn.fill(NORMAL, 4, 0, 0, 1).dtype == numpy.float32


def test_a_seed_begins_anew():
    drawn = Twister()
    first = drawn.words(2).tolist()
    assert drawn.words(2).tolist() != first == [(word := reference(1701))(), word()]
    drawn.seed(1701 + 2**32)
    assert drawn.words(2).tolist() == first
    drawn.seed(2)
    assert drawn.words(2).tolist() != first


def test_what_rounds_to_one_is_drawn_again(monkeypatch):
    drawn, words = Twister(), iter([2**32 - 1, 2**31, 2**32 - 200, 2**30])
    monkeypatch.setattr(
        drawn, "words", lambda count: numpy.array([next(words) for _ in range(count)], numpy.uint64)
    )
    assert drawn.unit(2, numpy.float32).tolist() == [0.5, 1 - 2**-24]


class Services:
    """What a library of tests calls back: here nothing."""

    address = 7

    def __init__(self, ffi, lib, cuda):
        self.cuda = cuda


@pytest.fixture
def library(monkeypatch):
    """A library of tests that notes how it is run and gives the status that it is told."""
    ran, ffi = SimpleNamespace(status=0, calls=[], failed=[]), cffi.FFI()

    def call(address, filters, report, device, stream):
        texts = [ffi.string(ffi.cast("char *", at)) for at in (filters, report)]
        ran.calls.append((address, *texts, device, stream))
        return ran.status

    def opened(name, module, path, backend, sources):
        ran.opened = (name, path.name, backend)
        lib = SimpleNamespace(caffe_test_run_ffi=call, CAFFE_ON_HOST=-1)
        return SimpleNamespace(ffi=ffi, lib=lib, fail=ran.failed.append)

    monkeypatch.setattr(run_tests, "Library", opened)
    monkeypatch.setattr(run_tests, "TwisterServices", Services)
    monkeypatch.setattr(run_tests.services, "take_failure", lambda: None)
    return ran


@pytest.mark.parametrize("status", [0, 1])
def test_a_library_of_tests_is_run(library, tmp_path, status):
    library.status = status
    assert run_tests.main(str(tmp_path / "of_x"), "host", "A*", "r.xml") == status
    assert library.calls == [(7, b"A*", b"r.xml", -1, 0)] and library.opened == ("of_x", "of_x", "host")
    assert not library.failed


def test_a_library_of_tests_that_fails(library, tmp_path, monkeypatch):
    library.status = -1
    run_tests.main(str(tmp_path), "host", "*", "r.xml")
    assert library.failed == ["caffe_test_run"]
    library.status, error = 0, KeyError("a service")
    monkeypatch.setattr(run_tests.services, "take_failure", lambda: error)
    with pytest.raises(KeyError):
        run_tests.main(str(tmp_path), "host", "*", "r.xml")


def test_without_a_gpu_its_tests_are_left_out(library, tmp_path, monkeypatch):
    monkeypatch.setattr(run_tests.torch.cuda, "is_available", lambda: False)
    assert run_tests.main(str(tmp_path), "cuda", "*", "r.xml") == 77 and not library.calls
    monkeypatch.setattr(run_tests.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(run_tests, "raw_stream", lambda device: 40 + device)
    assert run_tests.main(str(tmp_path), "cuda", "*", "r.xml") == 0
    assert library.calls[0][-2:] == (0, 40)


@pytest.mark.parametrize(("dtype", "kind"), [(0, numpy.float32), (1, numpy.float64), (2, numpy.int32)])
def test_a_draw_goes_where_it_is_asked_for(dtype, kind):
    ffi = cffi.FFI()
    memory = numpy.zeros(6, kind)
    services = run_tests.TwisterServices.__new__(run_tests.TwisterServices)
    services.ffi, services.twister = ffi, Twister()
    services.dtypes = dict(enumerate((torch.float32, torch.float64, torch.int32)))
    address = ffi.cast("void*", memory.ctypes.data)
    wanted = Twister().fill(BERNOULLI if dtype == 2 else UNIFORM, 5, dtype, 0.5, 3)
    assert services.random(BERNOULLI if dtype == 2 else UNIFORM, address, 5, dtype, -1, 0.5, 3) == 1
    assert memory[:5].tolist() == wanted.tolist() and memory[5] == 0
    assert services.random(UNIFORM, address, 0, 1, -1, 0, 1) == 1 and memory[5] == 0
    services.set_seed(3)
    assert services.seed() == reference(3)()
