"""What a shell says of colours, of git, of compilers and of temporary files: none of the tests' business."""

import os
import tempfile
from collections.abc import MutableMapping

from tools.make.folders import check_path
from tools.refused import Refused

# Variables that change what programs print, which repository git has, and what compilers do.
_OTHERS = (
    "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "CLICOLOR", "CLICOLOR_FORCE", "GCC_COLORS", "COLUMNS", "LINES",
    "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CDPATH", "GREP_OPTIONS",
)  # fmt: skip
# git's own, which it sets for its hooks.
_OF_GIT = ("DIR", "WORK_TREE", "INDEX_FILE", "OBJECT_DIRECTORY", "COMMON_DIR", "PREFIX", "NAMESPACE")
# For tests, whose layers lie in it, where the user's own cannot be: make works in no folder with a blank in its path.
_TEMPORARY = ("/tmp", "/var/tmp")


def clean(environment: MutableMapping[str, str]) -> str:
    """Take them out. Returns a line for the head of the run; "" if there is nothing to say."""
    for name in (*_OTHERS, *(f"GIT_{name}" for name in _OF_GIT)):
        environment.pop(name, None)
    try:
        check_path(tempfile.gettempdir(), "TMPDIR")
    except Refused as error:
        instead = next((f for f in _TEMPORARY if os.access(f, os.W_OK)), None)
        if instead is None:
            raise SystemExit(f"{error}: set TMPDIR to another folder") from None
        environment["TMPDIR"] = tempfile.tempdir = instead
        return f"{error}. The tests use {instead}"
    return ""
