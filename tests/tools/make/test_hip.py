"""The HIP backend without its GPU: the commands and, if hipcc is installed, a library."""

import json
import shutil
import stat
from types import SimpleNamespace

import pytest
from conftest import ROOT, Workshop

from cuffi.backends import BACKENDS
from cuffi.runtime.library import backends_by_device


@pytest.fixture
def workshop(tmp_path) -> Workshop:
    """With nothing built in it: these tests need no library of the host's."""
    return Workshop(tmp_path / "my_layers")


def test_what_make_would_run(workshop, tmp_path):
    compiler = tmp_path / "hipcc"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    workshop.layer("one")
    said = workshop.build(
        "-n", "V=1", "BACKENDS=hip", f"HIPCC={compiler}", "HIP_ARCH=gfx90a gfx942", "libraries"
    )
    (compile_line,) = [line for line in said.splitlines() if "printf" in line and "hip/one.cu.o -MF" in line]
    assert f"{compiler} " in compile_line and "-Iinclude/hip -include cuda_runtime.h -x hip" in compile_line
    assert "--offload-arch=gfx90a --offload-arch=gfx942" in compile_line
    (link_line,) = [line for line in said.splitlines() if "tools.make.link" in line and "printf" in line]
    assert f"{workshop.folder}/one/_hip.abi3.so" in link_line and "-lamdhip64" in link_line
    assert "one/hip/one.cu " in said and "bin/nvcc" not in said


def test_it_is_built_when_asked_for_alone(workshop):
    workshop.layer("one")
    assert "/hip/" not in workshop.build("-n", "libraries")
    done = workshop.make("BACKENDS=hip", "libraries")
    assert done.returncode and "BACKENDS=hip: there is no compiler: see HIPCC" in done.output
    done = workshop.make("HIPCC=/nowhere/hipcc", "libraries")
    assert done.returncode and "HIPCC=/nowhere/hipcc: there is no such program" in done.output


def test_which_backend_a_gpu_is_served_by():
    for version, name in (
        ({"cuda": "13.0", "hip": None}, "cuda"),
        ({"cuda": None, "hip": "6.4"}, "hip"),
        ({}, "cuda"),
    ):
        backends = backends_by_device(SimpleNamespace(**version))
        assert (backends["cpu"], backends["cuda"]) == (BACKENDS["host"], BACKENDS[name])


@pytest.mark.skipif(not shutil.which("hipcc"), reason="no hipcc")
def test_kernels_compile(workshop):
    """They use shuffles, ballots and indices, of which include/hip has code. hipcc 5.2 knows gfx90a."""
    for name in ("warp", "indexing"):
        shutil.copytree(ROOT / "tests" / "fixtures" / "kernels" / name, workshop.folder / name)
    workshop.build("BACKENDS=hip", "HIPCC=hipcc", "HIP_ARCH=gfx90a", "libraries")
    for name in ("warp", "indexing"):
        said = json.loads((workshop.folder / name / "_hip.json").read_text())
        assert (said["backend"], said["architectures"]) == ("hip", ["gfx90a"])
