"""The C++ compiler that the toolkit takes here, for tests that compile by themselves."""

import shlex
import shutil
import subprocess

import pytest

from cuffi.base.compiler import cxx

CXX = cxx()
# Its words, for a list of arguments.
WORDS = shlex.split(CXX)


def of_name(name: str) -> str:
    """The path of a certain compiler or tool. A test that needs that one is skipped where it is not there."""
    found = shutil.which(name)
    if not found:
        pytest.skip(f"no {name}")
    return found


def preprocessed(text: str, *options: str) -> str:
    """A text of C++ as the preprocessor leaves it, without its lines' numbers."""
    command = [*WORDS, "-E", "-P", "-x", "c++", *options, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
