"""Includes of forks that name no file of the layer: those that the toolkit answers by names, or by nothing."""

from __future__ import annotations

import re
from pathlib import Path

HEADERS_HERE = Path(__file__).resolve().parents[2] / "include"
# Headers of which the toolkit has at most names. Many layers include them and use nothing of them.
NOTHING = re.compile(
    r"caffe/(solver|sgd_solvers|solver_factory|parallel|data_reader|internal_thread|python_layer)\.hpp\Z"
    r"|caffe/util/(db|db_lmdb|db_leveldb|hdf5|blocking_queue|upgrade_proto|cudnn|nccl|signal_handler)\.h(pp)?\Z"
    r"|caffe/layers/\w*data_layer\.hpp\Z|(opencv2?/[\w/]+|opencv|cv|highgui|cxcore)\.h(pp)?\Z|thrust/[\w/]+\.h\Z|(leveldb/\w+|lmdb|hdf5|hdf5_hl|gtest/gtest|google/protobuf/.+)\.h\Z"
)
# CUDA's headers that forks include. cuda_runtime.h has their content, on the host, too. The libraries' headers are
# empty, and a layer that uses such a library is refused (tools/port/refusals.py).
CUDA_NAMES = re.compile(
    r"(device_(functions|launch_parameters|atomic_functions|double_functions|types)|sm_\d\d_(atomic_functions|intrinsics)"
    r"|math_functions|common_functions|cuda_(device_)?runtime_api|driver_types|vector_(types|functions)|host_defines"
    r"|builtin_types|channel_descriptor|cuda_profiler_api|crt/\w+|(?P<library>curand|cusparse|cusolverDn|cublas|cublas_api|cudnn))\.h(pp)?\Z"
)


def spelled_here(include: str) -> str:
    """An include's path with slashes, and in our header's case: Visual Studio accepts caffe\\Filler.hpp, too."""
    path = include.replace("\\", "/")
    is_ours = path != path.lower() and (HEADERS_HERE / path.lower()).is_file()
    return path.lower() if is_ours else path
