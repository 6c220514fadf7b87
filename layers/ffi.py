"""What extensions of torch.utils.ffi need: `old_functions` runs old-style autograd Functions.

from layers.ffi import old_functions      # cuffi.ffi, if the toolkit is installed
old_functions()
"""

from ._ffi.function import old_functions

__all__ = ["old_functions"]
