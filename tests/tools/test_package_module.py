"""Parts of the package `layers` for make, loaded as files."""

import subprocess
import sys

import pytest
from conftest import ROOT

from tools.package_module import package_module


def test_a_part_is_the_packages_file_and_loaded_once():
    assert package_module("backends").__file__ == str(ROOT / "cuffi" / "backends.py")
    assert package_module("backends") is package_module("backends")
    with pytest.raises(StopIteration):
        package_module("no_such_part")


def test_neither_torch_nor_the_package_is_imported():
    script = "import sys, tools.make.backends; print(*{'torch', 'layers', 'numpy'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
