"""A Python, a C++ compiler and a CUDA toolkit whose folder has a blank, a bracket, a quote or a dollar in its name."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from tools.make import find_nvcc

ODD = 'a (b) é it\'s & "that" [x] #1 $HOME `id`;%'


def run_make(*settings: str) -> subprocess.CompletedProcess:
    command = ["make", "-k", "-C", str(ROOT), "NVCC=", *settings, "libraries"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture
def layers(tmp_path) -> Path:
    ignored = shutil.ignore_patterns("*.so")
    shutil.copytree(ROOT / "layers" / "round", tmp_path / "mine" / "round", ignore=ignored)
    return tmp_path / "mine"


def test_a_layer_is_built_by_such_a_python(layers, tmp_path):
    """One that has this one's packages."""
    folder = tmp_path / "odd" / ODD
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    with_packages = [path for path in sys.path if any(Path(path).glob("*.dist-info"))]
    (packages / "shared.pth").write_text("\n".join(with_packages))
    done = run_make(f"PYTHON={folder}/bin/python", f"LAYERS_DIR={layers}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (layers / "round" / "_host.abi3.so").exists()


def test_such_a_compiler_is_run_and_named(layers, tmp_path):
    """It fails, and prints nothing, as the whole command is then shown. The wrapper's compiler has options, too."""
    compiler = tmp_path / ODD / "g++"
    compiler.parent.mkdir()
    compiler.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/ran\nexit 3\n')
    compiler.chmod(0o755)
    done = run_make(f"CXX={shlex.quote(str(compiler))}", f"LAYERS_DIR={layers}", f"CORE={tmp_path}/core")
    said, ran = done.stdout + done.stderr, (tmp_path / "ran").read_text()
    assert done.returncode and "Syntax error" not in said
    assert f"ended with an error: {shlex.quote(str(compiler))} -std=c++17" in said
    assert "-x c++-header" in ran and "\n-O1 " in ran


def test_the_folders_beside_nvcc(tmp_path):
    home = tmp_path / ODD
    for file in ("bin/nvcc", "lib64/libcudart_static.a", "targets/sbsa-linux/include/cuda_runtime.h"):
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).touch()
    made = find_nvcc.options(f"{home}/bin/nvcc")
    assert shlex.split(made["CUDA_LIB"]) == [f"-L{home}/bin/../lib64"]
    assert shlex.split(made["CUDA_INCLUDE"]) == ["-isystem", f"{home}/bin/../targets/sbsa-linux/include"]
    assert find_nvcc.options(str(tmp_path / "usr" / "bin" / "nvcc")) == {"CUDA_LIB": "", "CUDA_INCLUDE": ""}
