"""The extensions of this folder, built once in a copy for all its tests."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import python_with_torch
from support.workshop import FIXTURES, ROOT

PROGRAM = ROOT / "cuffi/old_torch/ffi" / "program.py"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess:
    """`python -m cuffi.ffi WORDS` in a folder."""
    return python_with_torch.run([sys.executable, PROGRAM, *words], cwd=folder)


@pytest.fixture(scope="session")
def extension(tmp_path_factory) -> Path:
    """A copy of tests/fixtures/ffi_extension, built by its own make.sh, which runs build.py."""
    folder = tmp_path_factory.mktemp("ffi") / "extension"
    shutil.copytree(FIXTURES / "ffi_extension", folder)
    done = run(folder, "bash", "make.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "_ext.old: built for host" in done.stdout, done.stdout
    return folder
