"""The files of the edge between Python and C, and their digests.

build_ffi.py writes the digests into each library, and `_runtime.library` compares them. A library of another version
may have structs of another layout, and a call would write to the wrong memory. `_runtime.extension` does the same for
the extension that makes calls. make has no torch, so this file does not import it.
"""

import functools
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# The folder of the Makefile, headers and sources in an installed package. In a checkout it is the package's parent.
INSTALLED = "_toolkit"
# The files that every library's edge is compiled from, and those that Caffe layers' libraries add.
EVERY = (
    "build_ffi.py", "include/caffe_ffi.h", "src/edge/ffi_guard.h", "src/edge/ffi_run.h", "src/edge/way_out.h",
)  # fmt: skip
CAFFE = ("include/caffe/layer_record.h", "src/caffe/caffe_layer.h")
# The files of the extension that makes calls, one for all layers (tools/make/build_call.py).
CALL = (
    "include/caffe/layer_record.h", "src/edge/call.cpp", "src/edge/call_caffe.h", "src/edge/call_launcher.h",
    "src/edge/call_plan.h", "src/edge/call_short.h", "src/edge/call_table.h", "src/edge/call_torch.h",
    "src/edge/dlpack.h",
)  # fmt: skip
# The files of the Python module of an extension of torch.utils.ffi (tools/ffi/wrapper.py).
FFI = (
    "build_ffi.py", "include/TH/TH.h", "include/THC/THC.h", "src/edge/call_torch.h", "src/edge/dlpack.h",
    "src/edge/ffi_guard.h", "src/edge/th_call.h", "src/edge/way_out.h", "tools/ffi/declarations.py",
    "tools/ffi/uses.py", "tools/ffi/wrapper.py",
)  # fmt: skip


@functools.cache
def root() -> Path | None:
    """The folder of the toolkit's Makefile; None if only the package is here."""
    return next((f for f in (PACKAGE / INSTALLED, PACKAGE.parent) if (f / "build_ffi.py").exists()), None)


def digest(folder: Path, files: tuple[str, ...]) -> str:
    """A digest of the contents of files in the toolkit's folder."""
    total = hashlib.sha256()
    for file in files:
        total.update((folder / file).read_bytes())
    return total.hexdigest()[:16]


@functools.cache
def expected() -> list[str]:
    """This toolkit's digests of EVERY and of CAFFE; none if only the package is here."""
    folder = root()
    return [digest(folder, files) for files in (EVERY, CAFFE)] if folder else []


def matches(digests: str) -> bool:
    """Was a library with these digests built with this toolkit? A native layer's library has only the first digest."""
    found = digests.split()
    return not expected() or (bool(found) and found == expected()[: len(found)])
