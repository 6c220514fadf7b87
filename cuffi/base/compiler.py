"""The C++ compiler that a machine has."""

import os
import shutil

# What Makefile's CXX says if nobody names one.
SEARCH = "search"
_NAMES = ("g++", "clang++")


def cxx(wanted: str | None = None) -> str:
    """The command of the C++ compiler: the wanted one, by default CXX; else g++, or clang++ if that alone is there."""
    for named in (wanted or "", os.environ.get("CXX", "")):
        if named.strip() not in ("", SEARCH):
            return named
    return next(filter(shutil.which, _NAMES), _NAMES[0])
