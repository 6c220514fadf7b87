"""The HIP backend without its GPU: the copy of the checkout, and the commands that make would run in it."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT
from support import python_with_torch

from lab.hip.__main__ import with_hip


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git's")
    folder = tmp_path_factory.mktemp("hip") / "copy"
    with_hip(folder)
    return folder


@pytest.fixture
def make(copy):
    def run(*words: str) -> str:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("MAKEFLAGS", "NVCC", "ARCH", "LAYERS_DIR")
        }
        command = [
            "make",
            "-n",
            "V=1",
            f"PYTHON={sys.executable}",
            "NVCC=",
            "LAYERS=round",
            *words,
            "libraries",
        ]
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
        return done.stdout + done.stderr

    return run


def test_what_make_would_run(make, tmp_path):
    compiler = tmp_path / "hipcc"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o700)
    said = make("BACKENDS=hip", f"HIPCC={compiler}", "HIP_ARCH=gfx90a gfx942")
    (compile_line,) = [
        line for line in said.splitlines() if "printf" in line and "hip/round.cu.o -MF" in line
    ]
    assert f"{compiler} " in compile_line and "-Iinclude/hip -include cuda_runtime.h -x hip" in compile_line
    assert "--offload-arch=gfx90a --offload-arch=gfx942" in compile_line
    (link_line,) = [line for line in said.splitlines() if "tools.make.link" in line and "printf" in line]
    assert "layers/round/_hip.abi3.so" in link_line and "-lamdhip64" in link_line


def test_it_is_built_when_asked_for_alone(make):
    assert "/hip/" not in make()
    assert "BACKENDS=hip: there is no compiler: see HIPCC" in make("BACKENDS=hip")
    assert "HIPCC=/nowhere/hipcc: there is no such program" in make("HIPCC=/nowhere/hipcc")


def test_which_backend_a_gpu_is_served_by(copy):
    program = """from types import SimpleNamespace
from cuffi.runtime.library import backends_by_device
for version in {"cuda": "13.0", "hip": None}, {"cuda": None, "hip": "6.4"}, {}:
    print([backend.name for backend in backends_by_device(SimpleNamespace(**version)).values()])
"""
    done = python_with_torch.run([sys.executable, "-c", program], copy)
    assert done.stdout.splitlines() == ["['cuda', 'host']", "['hip', 'host']", "['cuda', 'host']"], (
        done.stderr
    )
