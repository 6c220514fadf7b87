"""`python -m cuffi`: the folder on stdout, for scripts, and the versions on stderr."""

import os
import subprocess
import sys

import torch
from conftest import ROOT


def run(**environment):
    return subprocess.run(
        [sys.executable, "-m", "cuffi"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def test_the_folder_alone_is_on_stdout():
    assert run().stdout == f"{ROOT}\n"


def test_versions_are_on_stderr():
    told = run(CXX=f"{sys.executable} -I", NVCC="no-such-nvcc").stderr
    assert f"torch {torch.__version__}" in told
    assert f"-I: Python {sys.version.split()[0]}" in told
    assert "no-such-nvcc: not found" in told
