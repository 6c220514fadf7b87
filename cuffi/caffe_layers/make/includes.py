"""Forks' includes that do not name a file of the layer: the toolkit has a header with some names, or an empty one."""

from __future__ import annotations

import re
from pathlib import Path

HEADERS_HERE = Path(__file__).resolve().parents[1] / "include"
# Headers of which the toolkit has at most some names. Many layers include them without using them.
NOTHING = re.compile(
    r"caffe/(solver|sgd_solvers|solver_factory|parallel|data_reader|internal_thread|python_layer)\.hpp\Z"
    r"|caffe/util/(db|db_lmdb|db_leveldb|hdf5|blocking_queue|upgrade_proto|cudnn|nccl|signal_handler)\.h(pp)?\Z"
    r"|caffe/layers/\w*data_layer\.hpp\Z|(opencv2?/[\w/]+|opencv|cv|highgui|cxcore)\.h(pp)?\Z|thrust/[\w/]+\.h\Z|(leveldb/\w+|lmdb|hdf5|hdf5_hl|gtest/gtest|google/protobuf/.+)\.h\Z"
)
# Headers whose content another header of the toolkit has.
ELSEWHERE = {
    re.compile(names): header
    for names, header in {
        r"boost/algorithm/string/\w+\.hpp": "boost/algorithm/string.hpp",
        r"boost/(bind/bind|ref)\.hpp": "boost/bind.hpp",
        r"boost/random/\w+\.hpp": "boost/random.hpp",
        r"boost/(enable_shared_from_this|make_shared|weak_ptr|smart_ptr/\w+)\.hpp": "boost/shared_ptr.hpp",
        r"boost/thread/thread\.hpp": "boost/thread.hpp",
        r"boost/utility\.hpp": "boost/next_prior.hpp",
        r"boost/(array|atomic|cstdint|foreach|function|scoped_array|scoped_ptr|shared_array|smart_ptr|static_assert"
        r"|unordered_map|iterator/counting_iterator)\.hpp": "boost/names.hpp",
        r"google/protobuf/descriptor\.h": "caffe/proto/descriptor.hpp",
        r"google/protobuf/text_format\.h": "caffe/proto/text_format.hpp",
        r"google/protobuf/(message|repeated_field)\.h": "caffe/proto/message.hpp",
    }.items()
}
# CUDA's headers that forks include. cuda_runtime.h has their content, on the host, too. The libraries' headers are
# empty, and a layer that uses such a library is refused (cuffi/caffe_layers/port/refusals.py).
CUDA_NAMES = re.compile(
    r"(device_(functions|launch_parameters|atomic_functions|double_functions|types)|sm_\d\d_(atomic_functions|intrinsics)"
    r"|math_functions|common_functions|cuda_(device_)?runtime_api|driver_types|vector_(types|functions)|host_defines"
    r"|builtin_types|channel_descriptor|cuda_profiler_api|crt/\w+|(?P<library>curand|cusparse|cusolverDn|cublas|cublas_api|cudnn))\.h(pp)?\Z"
)


def spelled_here(include: str) -> str:
    """The path of the toolkit's header for an include.

    If there is none, the include's own path, with slashes: Visual Studio accepts caffe\\Filler.hpp, too.
    """
    path = include.replace("\\", "/")
    if path.startswith(("boost/", "google/")):
        return next((header for names, header in ELSEWHERE.items() if names.fullmatch(path)), path)
    is_ours = path != path.lower() and (HEADERS_HERE / path.lower()).is_file()
    return path.lower() if is_ours else path
