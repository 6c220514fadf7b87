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

from .old_torch.ffi.torch_utils_ffi import _library, _wrap_function, create_extension, old_functions

__all__ = ["_library", "_wrap_function", "create_extension", "old_functions"]
