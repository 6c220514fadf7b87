"""Extensions of torch.utils.ffi (2017, 2018): build and run them, unedited.

    python -m cuffi.ffi build.py             run a script of that time, such as the extension's build script
    python -m cuffi.ffi make                 run a program, such as its Makefile or make.sh

`import cuffi.ffi` makes `torch.utils.ffi` importable, and `old_functions()` runs old-style autograd Functions
everywhere. docs/revive-a-torch-ffi-extension.md walks through it.
"""

import os
import sys

if __name__ == "__main__":  # under another package's name, because old code has its own `layers`
    program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "old_torch", "ffi", "program.py")
    os.execv(sys.executable, [sys.executable, program, *sys.argv[1:]])

import torch.utils

from .old_torch.ffi.build_extension import create_extension
from .old_torch.ffi.ffi_library import library as _library
from .old_torch.ffi.function import old_functions

__all__ = ["_library", "_wrap_function", "create_extension", "old_functions"]


def _wrap_function(function, ffi):
    """torch.utils.ffi._wrap_function: the functions of `lib` take tensors as they are."""
    return function


sys.modules["torch.utils.ffi"] = torch.utils.ffi = sys.modules[__name__]
