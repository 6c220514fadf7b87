"""Run one built library of Caffe tests: FOLDER BACKEND FILTER REPORT.xml. Status 77: this machine has no GPU."""

import ctypes
import os
import sys
from ctypes import c_double, c_int64, c_void_p
from pathlib import Path
from types import SimpleNamespace

import numpy
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from twister import Twister

from layers import _caffe_services as services
from layers._runtime import _Library, _raw_stream

NUMPY = {0: numpy.float32, 1: numpy.float64, 2: numpy.int32}


def drawing() -> dict:
    """The services that draw, from a generator like Caffe's own; on a GPU, too."""
    twister = Twister()

    @services.service(c_int64, c_int64, c_void_p, c_int64, c_int64, c_int64, c_double, c_double)
    def random(kind, address, count, dtype, device, a, b):
        if count:
            values = services.view_memory(address, count, services.DTYPES[dtype], device)
            values.copy_(torch.from_numpy(twister.fill(kind, count, dtype, a, b).view(NUMPY[dtype])))
        return 1

    @services.service(c_int64)
    def seed():
        return int(twister.words(1)[0])

    @services.service(None, c_int64)
    def set_seed(value):
        twister.seed(value)

    return {"random": random, "seed": seed, "set_seed": set_seed}


def main(folder: str, backend: str, filters: str, report: str) -> int:
    cuda = backend == "cuda"
    if cuda and not torch.cuda.is_available():
        return 77
    path = Path(folder).resolve()
    library = _Library(SimpleNamespace(folder=path, module=path.name, name=path.name, dtypes=()), backend)
    texts = [ctypes.create_string_buffer(os.fsencode(text)) for text in (filters, report)]
    host_services = services.HostServices(cuda, **drawing())
    status = library.lib.caffe_test_run_ffi(
        host_services.address,
        *map(ctypes.addressof, texts),
        0 if cuda else -1,
        _raw_stream(0) if cuda else 0,
    )
    if status < 0:
        library.fail("caffe_test_run")
    if failure := services.take_failure():
        raise failure
    return int(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
