"""Find the file of a Caffe layer that an #include means.

The files lie flat in one folder, and their includes have the paths of the fork. An include means the file whose path in
the folder is the end of the include's path: `caffe/layers/x_layer.hpp` is x_layer.hpp. If the folder has
util/common.hpp and common.hpp, `caffe/util/common.hpp` is the former, because the longest path wins.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

HEADERS_HERE = Path(__file__).resolve().parents[2] / "include"
SOURCES = (".cpp", ".cc", ".cu")
HEADERS = (".hpp", ".h", ".cuh", ".hh", ".inl")
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


class LayerFolder:
    def __init__(self, path: str):
        self.path = os.path.normpath(path)
        self.files = sorted(
            os.path.relpath(os.path.join(parent, name), self.path)
            for parent, _, names in os.walk(self.path)
            for name in names
            if name.endswith(SOURCES + HEADERS)
        )
        self._found: dict[str, str | None] = {}

    def relative(self, path: str) -> str:
        return os.path.relpath(path, self.path)

    def find(self, include: str) -> str | None:
        """The path of the included file in the folder. None if the file is the toolkit's or the system's."""
        if include not in self._found:
            parts = PurePosixPath(include).parts
            ends = ["/".join(parts[i:]) for i in range(len(parts))]
            deeper = (file for file in self.files if "/" in include and file.endswith(f"/{include}"))
            self._found[include] = next((end for end in ends if end in self.files), next(deeper, None))
        return self._found[include]
