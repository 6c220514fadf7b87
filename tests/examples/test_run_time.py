"""The examples that build at run time, and the one without Python, print what they should."""

import json
import subprocess
import sys

import pytest
import torch
from conftest import ROOT, make
from support import python_with_torch
from support.compiler import WORDS
from support.points import layer_object

EXAMPLES = ROOT / "examples"


@pytest.fixture(autouse=True)
def machine(cache, monkeypatch):
    """The examples use a GPU where there is one."""
    if torch.cuda.is_available():
        monkeypatch.delenv("NVCC")


def run(script: str) -> list[str]:
    done = python_with_torch.run([sys.executable, EXAMPLES / script])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_inline_kernel(cache):
    assert run("inline_kernel.py") == ["[0.0, 0.0, 3.0, 6.0, 6.0]"]
    assert list(cache.glob("core-*/host-*/host_launch.o"))  # the toolkit's own objects, for the next kernel


def test_own_folder():
    first, second = run("own_folder.py")
    y, grad = json.loads(f"[{first.replace('] [', '], [')}]")
    assert y == pytest.approx([-0.2, -0.1, 0.5]) and grad == pytest.approx([0.1, 0.1, 1])
    assert json.loads(second) == pytest.approx(y)


def test_without_python(tmp_path):
    """Built by the command in its own comment."""
    if not layer_object("round").folder.joinpath("_host.abi3.so").exists():
        pytest.skip("round is not built for host")
    text = (EXAMPLES / "without_python.cpp").read_text()
    line = next(x.removeprefix("//").split() for x in text.splitlines() if x.startswith("//   g++"))
    build = tmp_path / "build"
    done = make(
        "NVCC=", "LAYERS=round", f"BUILD={build}", f"LAYERS_DIR={copied(tmp_path)}", "libraries", timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    command = [str(build / "round/host/libround.a") if w.endswith("libround.a") else w for w in line[1:-1]]
    program = tmp_path / line[-1]
    subprocess.run([*WORDS, *command, program], check=True, cwd=ROOT, timeout=120)
    assert subprocess.run([program], capture_output=True, text=True).stdout == "0 1 1\n"


def copied(folder):
    """A copy of the layer's sources, so that the tree's own libraries stay as they are."""
    import shutil

    layers = folder / "layers"
    shutil.copytree(
        ROOT / "layers" / "round", layers / "round", ignore=shutil.ignore_patterns("_*.so", "__pycache__")
    )
    return layers
