"""The files of the edge between Python and C, and their digests.

build_ffi.py writes the digests into each library, and `runtime.library` compares them. A library of another version
may have structs of another layout, and a call would write to the wrong memory. `runtime.extension` does the same for
the extension that makes calls. make has no torch, so this file does not import it.
"""

import functools
import hashlib
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# The folder of the Makefile, headers and sources in an installed package. In a checkout it is the package's parent.
INSTALLED = "_toolkit"
# The files that every library's edge is compiled from, and those that Caffe layers' libraries add.
EVERY = (
    "build_ffi.py", "include/caffe_ffi.h", "src/edge/ffi_guard.h", "src/edge/ffi_run.h", "src/edge/way_out.h",
)  # fmt: skip
CAFFE = ("cuffi/caffe_layers/include/caffe/layer_record.h", "cuffi/caffe_layers/core/caffe_layer.h")
# The files of the extension that makes calls, one for all layers (tools/make/build_call.py).
CALL = (
    "src/edge/call.cpp", "src/edge/call_launcher.h", "src/edge/call_plan.h", "src/edge/call_short.h",
    "src/edge/call_table.h", "src/edge/call_torch.h", "src/edge/dlpack.h", "src/edge/methods.h",
)  # fmt: skip
# The files of the Python module of an extension of torch.utils.ffi (cuffi/old_torch/make/wrapper.py).
FFI = (
    "build_ffi.py", "cuffi/old_torch/include/TH/TH.h", "cuffi/old_torch/include/THC/THC.h", "src/edge/call_torch.h",
    "src/edge/dlpack.h", "src/edge/ffi_guard.h", "cuffi/old_torch/src/th_call.h", "src/edge/way_out.h",
    "cuffi/old_torch/make/declarations.py", "cuffi/old_torch/make/uses.py", "cuffi/old_torch/make/wrapper.py",
)  # fmt: skip


@functools.cache
def root() -> Path | None:
    """The folder of the toolkit's Makefile; None if only the package is here."""
    return next((f for f in (PACKAGE / INSTALLED, PACKAGE.parent) if (f / "build_ffi.py").exists()), None)


def wings_sources() -> list[str]:
    """The files that wings add to this extension: cuffi/<wing>/edge/*.cpp."""
    return sorted(f"cuffi/{f.relative_to(PACKAGE).as_posix()}" for f in PACKAGE.glob("*/edge/*.cpp"))


@functools.cache
def call_files() -> tuple[str, ...]:
    """CALL, the wings' files, and the headers of cuffi/<wing>/include that these include."""
    found = [*CALL]
    for source in wings_sources():
        wing = source.split("/")[1]
        named = re.findall(r'#include "([^"]+)"', (PACKAGE / source.removeprefix("cuffi/")).read_text())
        own = [name for name in named if (PACKAGE / wing / "include" / name).exists()]
        found += [source, *(f"cuffi/{wing}/include/{name}" for name in own)]
    return tuple(found)


def path_of(folder: Path, file: str) -> Path:
    """The path of a file of the toolkit. `cuffi/...` is a file of this package, wherever the package is installed."""
    return PACKAGE / file.removeprefix("cuffi/") if file.startswith("cuffi/") else folder / file


def digest(folder: Path, files: tuple[str, ...]) -> str:
    """A digest of the contents of files in the toolkit's folder."""
    total = hashlib.sha256()
    for file in files:
        total.update(path_of(folder, file).read_bytes())
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
