"""Run one built library of Caffe tests: FOLDER BACKEND FILTER REPORT.xml. Status 77: this machine has no GPU."""

import os
import sys
from pathlib import Path

import numpy
import torch

from cuffi.backends import BACKENDS
from cuffi.caffe_layers.call import services
from cuffi.runtime import raw_stream
from cuffi.runtime.library import Library

from .twister import Twister

NUMPY = {0: numpy.float32, 1: numpy.float64, 2: numpy.int32}


class TwisterServices(services.Services):
    """The services, with random numbers from a generator like Caffe's own, on a GPU, too."""

    def __init__(self, ffi, lib, cuda: bool):
        self.twister = Twister()
        super().__init__(ffi, lib, cuda)

    def random(self, kind, address, count, dtype, device, a, b):
        if count:
            at = int(self.ffi.cast("uintptr_t", address))
            values = services.view_memory(at, count, self.dtypes[dtype], services.place(device))
            drawn = self.twister.fill(kind, count, dtype, a, b).view(NUMPY[dtype])
            values.copy_(torch.from_numpy(drawn))
        return 1

    def seed(self):
        return int(self.twister.words(1)[0])

    def set_seed(self, seed):
        self.twister.seed(seed)


def main(folder: str, backend: str, filters: str, report: str) -> int:
    cuda = not BACKENDS[backend].on_host
    if cuda and not torch.cuda.is_available():
        return 77
    # All is tiny: a second thread would wait for the first, for minutes where others use the processor.
    torch.set_num_threads(1)
    path = Path(folder).resolve()
    library = Library(path.name, path.name, path, backend, ())
    ffi, lib = library.ffi, library.lib
    texts = [ffi.new("char[]", os.fsencode(text)) for text in (filters, report)]
    host_services = TwisterServices(ffi, lib, cuda)
    status = lib.caffe_test_run_ffi(
        host_services.address,
        *(int(ffi.cast("uintptr_t", text)) for text in texts),
        0 if cuda else lib.CAFFE_ON_HOST,
        raw_stream(0) if cuda else 0,
    )
    if status < 0:
        library.fail("caffe_test_run")
    if failure := services.take_failure():
        raise failure
    return int(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
