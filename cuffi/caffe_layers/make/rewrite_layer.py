"""Rewrite a .cu of a Caffe layer for a backend's compiler: what tools/cuda does with any file, and what a fork's needs.

    python -m cuffi.caffe_layers.make.rewrite_layer to_host  --root layers/foo layers/foo/a.cu build/foo/a.cpp
    python -m cuffi.caffe_layers.make.rewrite_layer for_nvcc --root layers/foo layers/foo/a.cu build/foo/a.cu

Includes have the fork's paths (layer_folder.py). For nvcc, launches that name no stream get torch's:

    <<<grid, block>>>              <<<grid, block, 0, ::caffe::current_stream()>>>
"""

from __future__ import annotations

import re
import sys

from tools.cuda.analysis import Unit
from tools.cuda.for_nvcc import NOTES, NvccRewriter
from tools.cuda.rewrite import Rewriter, rewrite_files
from tools.cuda.source import Source
from tools.cuda.to_host import PROLOGUE, HostRewriter

from .layer_folder import LayerFolder

# Words that only nvcc understands. A file without them can be compiled by a C++ compiler.
DEVICE = re.compile(
    r"__(global|device|shared|constant|managed)__|__CUDA|__NVCC|<<\s*<|\bthrust\b|\bcub\b|curand_kernel|\.cuh|KERNEL_LOOP|atomic"
)


class LayerHostRewriter(HostRewriter):
    """Rewrites one file of a Caffe layer for the host compiler."""

    def __init__(self, unit: Unit, source: Source):
        super().__init__(unit, source)
        rename_atomics(self)

    def _refuse_headers(self, unit: Unit):
        """There is a header of each such name (prepare.py)."""


class LayerNvccRewriter(NvccRewriter):
    """Rewrites one file of a Caffe layer for nvcc."""

    def __init__(self, unit: Unit, source: Source):
        super().__init__(unit, source)
        # Each launch must get its stream. The other problems concern only the host.
        self.problems += source.lost_launches
        rename_atomics(self)
        if source is unit.main and not any(DEVICE.search(s.text) for s in unit.sources):
            self.edit(0, 0, "// No device code\n#line 1\n")
        for launch in source.launches:
            if not launch.stream:
                shared = "" if launch.shmem else ", 0"
                self.edit(launch.config[1], launch.config[1], f"{shared}, ::caffe::current_stream()")


def rename_atomics(rewriter: Rewriter) -> None:
    """Rename an older fork's own `atomicAdd(double*, double)`. CUDA has this function since version 8."""
    for function in rewriter.source.functions:
        first = function.parameters[0].type.replace(" ", "") if function.parameters else ""
        if function.name == "atomicAdd" and first == "double*" and "__device__" in function.words:
            rewriter.edit(function.at, function.at, "forks_own_")


REWRITERS = {
    "to_host": (LayerHostRewriter, PROLOGUE, ""),
    "for_nvcc": (LayerNvccRewriter, '#include "caffe/util/device_alternate.hpp"\n', NOTES),
}


def main() -> int:
    compiler, *arguments = sys.argv[1:]
    rewriter, prologue, notes = REWRITERS[compiler]
    return rewrite_files(
        f"{compiler}.py", rewriter, arguments, prologue, notes, lambda root: LayerFolder(root).find
    )


if __name__ == "__main__":
    sys.exit(main())
