"""A build script as of 2017: run make.sh first, it said. Nobody runs it here."""

import os

import torch
from torch.utils.ffi import create_extension

this_file = os.path.dirname(os.path.realpath(__file__))
sources, headers, defines, extra_objects = ["src/old.c"], ["src/old.h"], [], []
with_cuda = False

if torch.cuda.is_available():
    print("Including CUDA code.")
    sources += ["src/old_cuda.c"]
    headers += ["src/old_cuda.h"]
    defines += [("WITH_CUDA", None), ("SCALE", 3)]
    extra_objects = [os.path.join(this_file, "src/old.cu.o")]
    extra_objects += ["/usr/local/cuda/lib64/libcudart_static.a"]
    with_cuda = True

ffi = create_extension(
    "_ext.old", headers=headers, sources=sources, define_macros=defines, relative_to=__file__,
    with_cuda=with_cuda, extra_objects=extra_objects, extra_compile_args=["-std=c99", "-fopenmp"],
)  # fmt: skip

if __name__ == "__main__":
    ffi.build()
