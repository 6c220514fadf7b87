"""make caffetest: the tests' random numbers, and running a built library of tests."""

from types import SimpleNamespace

import cffi
import numpy
import pytest
import torch
from support.twister import BERNOULLI, UNIFORM, reference

from lab.caffetest import run_tests
from lab.caffetest.twister import Twister


class Services:
    """The callbacks of a library of tests: here none."""

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
