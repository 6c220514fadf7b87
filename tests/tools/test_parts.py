"""Parts of the package `layers` for make, loaded as files."""

import subprocess
import sys

import pytest
from conftest import ROOT

from tools.parts import part


def test_a_part_is_the_packages_file_and_loaded_once():
    assert part("backends").__file__ == str(ROOT / "cuffi" / "backends.py")
    assert part("backends") is part("backends")
    with pytest.raises(StopIteration):
        part("no_such_part")


def test_neither_torch_nor_the_package_is_imported():
    script = "import sys, tools.make.backends; print(*{'torch', 'layers', 'numpy'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
