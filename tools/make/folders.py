"""The folders with layers: which names and paths make accepts, and a folder's kind and files.

A layer's name becomes a folder, a Python module, and a word in a makefile and in a shell command. A path becomes a
target of make, which cannot be quoted. So a name that make or a shell could misread is refused. Every make runs this,
so nothing slow is imported here.
"""

from __future__ import annotations

import glob
import keyword
import os
import re

from ..files import content, read
from ..package_module import package_module
from ..refused import Refused
from .kinds import kinds
from .package import OWN, PACKAGE

shown = package_module("base/shown").shown

# Names that the package uses itself (cuffi/__init__.py), and `build`.
TOOLKIT_NAMES = frozenset({
    "adopt", "build", "caffe", "caffe_layer", "caffe_net", "CaffeNet", "cases", "core", "layer", "layers",
    "load", "load_inline", "operator", "Layer", "CaffeBuildError", "CaffeError", "CaffeRuntimeError", "CaffeTypeError",
    "CaffeValueError", "dnn", "ffi", "train",
})  # fmt: skip
# Characters with a meaning for make or the shell, which may not be in a target's name.
_UNFIT = re.compile(r"[\s'\"`;&|<>(){}*?\[\]!#%=:,$\\~^\x00-\x1f\x7f]")
# A source's name below its layer's folder.
_FILE = re.compile(r"\w[\w.+@-]*\Z")


def why_no_layer(name: str) -> str | None:
    """Why a layer cannot have this name, or None if it can."""
    if not (name.isascii() and name.isidentifier()):
        return "a layer is named like a Python module: letters, digits and underscores, as in roi_pool2"
    if keyword.iskeyword(name):
        return "this is a keyword of Python"
    if name.startswith("_") or name in TOOLKIT_NAMES:
        return "the toolkit uses this name itself"
    return None


def check_layer(name: str, setting: str) -> str:
    if why := why_no_layer(name):
        raise Refused(f"{setting}={shown(name)}: {why}")
    return name


def check_file(name: str) -> str | None:
    """Why a source of a layer cannot have this name (its path in the folder), or None if it can."""
    if all(_FILE.match(part) for part in name.split("/")):
        return None
    return f"{shown(name)}: make cannot work with this file name; rename it (letters, digits and . _ + - @)"


def check_path(path: str, setting: str) -> str:
    """Refuse a path in which make cannot work."""
    if found := _UNFIT.search(path):
        said = "a space" if found[0] == " " else "a line break" if found[0] in "\n\r" else repr(found[0])
        kind = "a path with spaces" if found[0].isspace() else f"a path with {said} in it"
        raise Refused(
            f"{setting}: make cannot work in {kind}: {shown(path)}: rename the folder, or link to it"
        )
    if any(part.startswith("-") for part in path.split("/")):
        raise Refused(f"{setting}: make cannot work in a path with a part that begins with -: {shown(path)}")
    return path


def folder_of(layers_dir: str, name: str, setting: str) -> str:
    """The folder of that layer. A link that leads out of layers_dir is refused."""
    folder = os.path.join(layers_dir, check_layer(name, setting))
    if os.path.dirname(os.path.realpath(folder)) != os.path.realpath(layers_dir) and os.path.lexists(folder):
        raise Refused(f"{setting}={name}: {folder} is a link that leads out of {layers_dir}")
    return folder


# ----------------------------------------------------------------------------------------------- folders

SOURCES = (".cpp", ".cc", ".cu")
HEADERS = (".hpp", ".h", ".cuh", ".hh", ".inl")
# A kernel that tests the GPU's architecture is compiled for each one. A test only for sm_80 needs no more than nvcc's
# two front ends, one for GPUs before sm_80 and one for later ones (mk/cuda.mk).
_ASKS_ARCH = re.compile(
    rb"__CUDA_ARCH(?!__\s*(?:>=|<)\s*800\b)|cuda/(?:ptx|barrier|pipeline)|cooperative_groups|mma\.h\b"
)
_DEFINES_ARCH = re.compile(rb"defined\s*\(?\s*__CUDA_ARCH__\s*\)?|#\s*ifn?def\s+__CUDA_ARCH__\b")
# What may declare device code of another file; macros that stand for __device__.
_DECLARES = rb"\bextern\b[^;{}()]*__(?:constant|device|managed)__|__(?:constant|device|managed)__\s+extern\b"
_PROTOTYPE = rb"|\b(?:%s)\b[^;{}()=]*\([^;{}]*\)\s*(?:const\s*)?;"
_OF_DEVICES = re.compile(rb"#\s*define\s+(\w+)[^\n]*__device__")


def declares(text: bytes) -> bool:
    """May a file declare device code of another file?"""
    words = b"|".join([b"__device__", *_OF_DEVICES.findall(text)])
    return re.search(_DECLARES + _PROTOTYPE % words, text) is not None


class Folder:
    """A layer's folder. Its files are named by their path in it."""

    # The kind's own archives that it is linked with.
    archives: tuple[str, ...] = ()
    # Does the device code of a file need that of another one?
    needs_others = False

    def __init__(self, path: str):
        self.path, self.name = path, os.path.basename(path)
        files = sorted(_files(path))
        self.sources = [f for f in files if f.endswith(SOURCES)]
        self.headers = [f for f in files if f.endswith(HEADERS)]
        # Files of other suffixes, which some kinds have.
        self.others = [f for f in files if f not in self.sources + self.headers and "/" not in f]
        # Other files that decide what is built.
        self.beside: list[str] = []
        # For a broken link, which has no content, the compiler has an error.
        texts = {file: content(os.path.join(path, file)) for file in self.sources + self.headers}
        self.asks_arch = any(_ASKS_ARCH.search(_DEFINES_ARCH.sub(b"", text)) for text in texts.values())
        self.kind = next(kind for kind in kinds() if kind.is_of(self, texts))
        self.kind.examine(self, texts)
        self.has_init = os.path.exists(os.path.join(path, "__init__.py"))
        # The reasons why this layer cannot be built.
        self.refused = [why for why in map(check_file, self.kind.files(self)) if why]

    def note_others(self, texts: dict[str, bytes]) -> None:
        """Note whether the device code of the files is to be linked. Without a declaration, they stay unread."""
        if len(self.sources) > 1 and any(map(declares, texts.values())):
            from ..cuda.across import needs_others
            from ..cuda.analysis import Unit

            paths = [os.path.join(self.path, file) for file in self.sources]
            self.needs_others = needs_others([Unit(read(path), path).sources for path in paths])

    def note_beside(self, *files: str) -> None:
        """Note those of these files that the folder has."""
        self.beside = [file for file in files if self.has(file)]

    def has(self, file: str) -> bool:
        return os.path.exists(os.path.join(self.path, file))


def folders(layers_dir: str) -> tuple[dict[str, Folder], dict[str, str]]:
    """The layers by name; and the folders with sources that cannot be a layer, with the reason."""
    found, unfit = {}, {}
    listed = [
        (place, name) for place in places(layers_dir) for name in package_module("folders").candidates(place)
    ]
    for place, name in listed:
        try:
            folder = Folder(os.path.join(place, name))
        except OSError as error:
            unfit[name] = f"it cannot be read: {error.strerror}"
            continue
        if folder.sources and (why := why_no_layer(name)):
            unfit[name] = why
        elif folder.sources:
            found[name] = folder
    return found, unfit


def places(layers_dir: str) -> list[str]:
    """The folder itself; with the toolkit's own `layers` also those of the wings."""
    if layers_dir != OWN:
        return [layers_dir]
    return [OWN, *sorted(glob.glob(os.path.join(PACKAGE, "*", "layers")))]


def layers_in(layers_dir: str) -> dict[str, Folder]:
    return folders(layers_dir)[0] if os.path.isdir(layers_dir) else {}


def _files(path: str, below: str = ""):
    for entry in os.scandir(os.path.join(path, below)):
        if entry.name.startswith((".", "__pycache__")):
            continue
        name = f"{below}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _files(path, f"{name}/")
        elif entry.name.endswith((*SOURCES, *HEADERS, *(s for kind in kinds() for s in kind.suffixes))):
            yield name
