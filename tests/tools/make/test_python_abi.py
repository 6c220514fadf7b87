"""How C++ is compiled for any Python."""

import subprocess

import pytest
from support.compiler import CXX

from tools.make.python_abi import PYTHON_ABI, python_includes


@pytest.mark.parametrize(("called", "status"), [("PyList_Size", 0), ("PyUnicode_AsUTF8", 1)])
def test_the_stable_abi_alone_compiles(tmp_path, called, status):
    """Python 3.10's stable ABI lacks PyUnicode_AsUTF8."""
    (tmp_path / "x.cpp").write_text(f"#include <Python.h>\nauto* kept = &{called};\n")
    command = [*CXX.split(), PYTHON_ABI, *python_includes(), "-fsyntax-only", str(tmp_path / "x.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == status and (not status or called in done.stderr), done.stderr
