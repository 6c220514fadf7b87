"""Which names and paths make accepts, from a caller or in a folder.

A layer's name becomes a folder, a Python module, and a word in a makefile and in a shell's command. A path becomes a
target of make's, which cannot be quoted. So a name that make or a shell could misread is refused.
"""

from __future__ import annotations

import keyword
import os
import re

from ..refused import Refused

# Names that the package of layers uses itself (layers/__init__.py), and `build`.
TOOLKIT_NAMES = frozenset({
    "adopt", "build", "caffe", "caffe_layer", "caffe_net", "CaffeNet", "cases", "core", "layer", "layers",
    "load", "load_inline", "operator", "Layer", "CaffeBuildError", "CaffeError", "CaffeRuntimeError", "CaffeTypeError",
    "CaffeValueError",
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
        return "this is a word of Python's own"
    if name.startswith("_") or name in TOOLKIT_NAMES:
        return "this name is the toolkit's own"
    return None


def check_layer(name: str, setting: str) -> str:
    if why := why_no_layer(name):
        raise Refused(f"{setting}={shown(name)}: {why}")
    return name


def check_type(name: str) -> str:
    """A layer type is a C++ identifier: REGISTER_LAYER_CLASS makes names from it."""
    if not (name.isascii() and name.isidentifier()):
        raise Refused(f"TYPE={shown(name)}: a layer type is a C++ name, as in PSROIPooling")
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
        raise Refused(f"{setting}: make cannot work in {kind}: {shown(path)}")
    if any(part.startswith("-") for part in path.split("/")):
        raise Refused(f"{setting}: make cannot work in a path with a part that begins with -: {shown(path)}")
    return path


def folder_of(layers_dir: str, name: str, setting: str) -> str:
    """The folder of that layer. A link that leads out of layers_dir is refused."""
    folder = os.path.join(layers_dir, check_layer(name, setting))
    if os.path.dirname(os.path.realpath(folder)) != os.path.realpath(layers_dir) and os.path.lexists(folder):
        raise Refused(f"{setting}={name}: {folder} is a link that leads out of {layers_dir}")
    return folder


def shown(text: str) -> str:
    """A text from outside as one line that is safe to print."""
    return text if text.isprintable() else ascii(text)
