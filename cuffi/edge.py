"""The files of the edge between Python and C, and their digests.

build_ffi.py writes the digests into each library, and `runtime.library` compares them. A library of another version
may have structs of another layout, and a call would write to the wrong memory. `runtime.extension` does the same for
the extension that makes calls. make has no torch, so this file does not import it.
"""

import functools
import hashlib
import json
import re
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent
# The folder of the Makefile, headers and sources in an installed package. In a checkout it is the package's parent.
INSTALLED = "_toolkit"
# The files that every library's edge is compiled from. A wing's libraries have more (`structs`).
EVERY = (
    "build_ffi.py", "tools/make/declarations.py", "include/caffe_ffi.h", "src/edge/cpu_arm.h", "src/edge/ffi_guard.h",
    "src/edge/ffi_run.h", "src/edge/way_out.h",
)  # fmt: skip
# The files of the extension that makes calls, one for all layers (tools/make/build_call.py).
CALL = (
    "src/edge/call.cpp", "include/caffe_device_std.h", "include/caffe_half.h", "include/caffe_launch.h",
    "src/edge/call_kernels.h",
    "src/edge/cuda_driver.h", "src/edge/launch_steps.h", "src/edge/call_launcher.h", "src/edge/call_plan.h",
    "src/edge/call_short.h", "src/edge/call_table.h", "src/edge/call_torch.h", "src/edge/dlpack.h",
    "src/edge/methods.h",
)  # fmt: skip


class Structs(NamedTuple):
    """The C structs that a wing's libraries and Python pass to each other: cuffi/<wing>/edge/structs.json.

    Attributes:
        wing: its name.
        header: the file with the structs. A layer's header that names one gets their declarations.
        files: all files that such a library's edge has beside EVERY.
    """

    wing: str
    header: str
    files: tuple[str, ...]


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
def structs() -> dict[str, Structs]:
    """The structs of the wings that have some, by wing."""
    found = {}
    for file in sorted(PACKAGE.glob("*/edge/structs.json")):
        wing, said = file.parent.parent.name, json.loads(file.read_text())
        found[wing] = Structs(wing, said["header"], (said["header"], *said["others"]))
    return found


def digests(folder: Path, wing: str = "") -> str:
    """What a library says of its edge: the digest of EVERY, and of its wing's files: `2f0a <wing>=91be`."""
    own = [f"{wing}={digest(folder, structs()[wing].files)}"] if wing else []
    return " ".join([digest(folder, EVERY), *own])


@functools.cache
def _expected(wing: str) -> str:
    folder = root()
    return digests(folder, wing) if folder and (not wing or wing in structs()) else ""


def matches(found: str) -> bool:
    """Was a library that says `found` built with this toolkit? If only the package is here, nobody can tell."""
    wing = found.partition(" ")[2].partition("=")[0]
    return root() is None or (bool(found) and found == _expected(wing))
