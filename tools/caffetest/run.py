"""Run one built library of Caffe tests: FOLDER BACKEND FILTER REPORT.xml. Status 77: this machine has no GPU."""

import ctypes
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from layers import _caffe_services as services  # noqa: E402
from layers._runtime import _Library, _raw_stream  # noqa: E402


def main(folder: str, backend: str, filters: str, report: str) -> int:
    cuda = backend == "cuda"
    if cuda and not torch.cuda.is_available():
        return 77
    path = Path(folder).resolve()
    library = _Library(SimpleNamespace(folder=path, module=path.name, name=path.name, dtypes=()), backend)
    texts = [ctypes.create_string_buffer(os.fsencode(text)) for text in (filters, report)]
    host_services = services.HostServices(None, cuda)
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
