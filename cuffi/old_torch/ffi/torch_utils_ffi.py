"""What was torch.utils.ffi. Importing this makes that name importable; `cuffi.ffi` has the same names."""

import sys

import torch.utils

from .build_extension import create_extension
from .ffi_library import library as _library
from .function import old_functions

__all__ = ["_library", "_wrap_function", "create_extension", "old_functions"]


def _wrap_function(function, ffi):
    """torch.utils.ffi._wrap_function: the functions of `lib` take tensors as they are."""
    return function


sys.modules["torch.utils.ffi"] = vars(torch.utils)["ffi"] = sys.modules[__name__]
