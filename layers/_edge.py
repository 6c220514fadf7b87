"""The edge between Python and a layer's library, and by what a library shows which toolkit it was built with.

build_ffi.py writes the digests below into each library, and `_runtime.library` compares them: structs that moved, or a
function that takes something else, would be memory written at the wrong place. To read this file takes no torch.
"""

import functools
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# What a build reads of the toolkit. In a checkout it lies beside the package, in an installed one inside of it.
INSTALLED = "_toolkit"
# All that is compiled into every library's edge; and what those of Caffe layers have besides.
EVERY = ("build_ffi.py", "include/caffe_ffi.h", "src/ffi_guard.h", "src/ffi_run.h")
CAFFE = (
    "include/caffe/layer_record.h",
    "src/caffe/caffe_layer.h",
    "src/caffe/caffe_layer_call.h",
    "src/call_torch.h",
    "src/dlpack.h",
)


@functools.cache
def root() -> Path | None:
    """The folder of the toolkit's Makefile; None where the package is alone."""
    return next((f for f in (PACKAGE / INSTALLED, PACKAGE.parent) if (f / "build_ffi.py").exists()), None)


def digest(folder: Path, files: tuple[str, ...]) -> str:
    """Of the contents of files in the toolkit's folder."""
    total = hashlib.sha256()
    for file in files:
        total.update((folder / file).read_bytes())
    return total.hexdigest()[:16]


@functools.cache
def expected() -> list[str]:
    """The digests of this toolkit: of every library, of a Caffe layer's. None where the package is alone."""
    return [digest(root(), files) for files in (EVERY, CAFFE)] if root() else []


def fits(said: str) -> bool:
    """Whether a library that says this was built with this toolkit. A native layer's says the first digest alone."""
    given = said.split()
    return not expected() or (bool(given) and given == expected()[: len(given)])
