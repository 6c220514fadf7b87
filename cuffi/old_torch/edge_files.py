"""The files from which an extension's Python module is compiled: the edge between Python and its C.

The module has their digest (make/build_wrapper.py), and ffi/ffi_library.py compares it.
"""

FILES = (
    "build_ffi.py", "src/edge/call_torch.h",
    "src/edge/cpu_arm.h", "src/edge/dlpack.h", "src/edge/ffi_guard.h", "src/edge/way_out.h",
    "cuffi/old_torch/include/TH/TH.h", "cuffi/old_torch/include/THC/THC.h", "cuffi/old_torch/src/th_call.h",
    "cuffi/old_torch/make/build_wrapper.py", "cuffi/old_torch/make/declarations.py", "cuffi/old_torch/make/uses.py",
    "cuffi/old_torch/make/wrapper.py",
)  # fmt: skip
