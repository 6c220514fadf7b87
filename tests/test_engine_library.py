"""The built library as a file: what it needs, what loads it, what it says where it does not fit."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import LAYERS, LAYERS_DIR, ROOT

import build_ffi

ALLOWED = re.compile(
    r"(libc|libm|libmvec|libstdc\+\+|libgcc_s|libpthread|libdl|librt|ld-linux[\w-]*)\.so\.\d+\Z"
)


@pytest.mark.parametrize("backend", ["host", "cuda"])
@pytest.mark.parametrize("layer", LAYERS)
def test_needs_nothing_of_torch_or_of_one_python(layer, backend):
    """Seed bug 12: symbols that only the process's other libraries gave. Built once, it loads anywhere."""
    library = LAYERS_DIR / layer / f"_{backend}.abi3.so"
    if not library.exists():
        pytest.skip(f"{layer} is not built for {backend}")
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    assert needed and all(ALLOWED.match(name) for name in needed), needed
    assert "RUNPATH" not in dynamic and "RPATH" not in dynamic
    listing = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
    undefined = [line.split()[-1] for line in listing.splitlines() if " U " in line]
    assert not [name for name in undefined if re.search(r"torch|c10|at3|THC|cudaLaunch", name)]
    stable = {"_Py_NoneStruct", "_Py_Dealloc"}
    assert not [name for name in undefined if name.startswith("_Py") and name not in stable]
    defined = [line.split()[-1] for line in listing.splitlines() if re.search(r" [TBDRW] ", line)]
    assert [name for name in defined if not name.startswith("_Z")] == [f"PyInit__{backend}"], (
        "exports more than its init function"
    )


def test_import_of_a_layer_that_is_not_built(workshop):
    """Works; the first call says what to type."""
    workshop.layer("one")
    for file in (ROOT / "layers").glob("_*.py"):
        (workshop.folder / file.name).write_text(file.read_text())
    said = workshop.import_and_fill("one")
    wanted = (
        r"CaffeRuntimeError: one: not built for host: /.*_host\.abi3\.so is missing\. Type `make LAYERS=one`"
    )
    assert re.match(wanted, said), said


def test_only_the_missing_backend_is_missing(kernels, monkeypatch):
    """A tensor on the GPU and a library for the host alone: an error that says what to type."""
    loops = kernels["loops"]
    if "cuda" in loops.backends():
        pytest.skip("the kernels are built for CUDA here")
    with pytest.raises(RuntimeError, match=r"loops: not built for cuda: .*make LAYERS=loops.*needs nvcc"):
        loops.library("cuda")


def test_built_for_another_processor(workshop, engine_kernels, monkeypatch):
    """Said when loaded, instead of an illegal instruction in the kernel."""
    one = workshop.layer("one")
    workshop.build()
    monkeypatch.setattr(build_ffi, "CPU_FEATURES", {"__x86_64__": "avx512er"})  # which only Xeon Phi had
    archive = workshop.folder / "build" / "one" / "host" / "libone.a"
    build_ffi.build(one / "one.h", archive, one / "_host.abi3.so", ["g++"], [], ["-pthread"], "a test", one)
    said = workshop.import_and_fill("one")
    wanted = r"CaffeRuntimeError: one: .* cannot run here: .* with avx512er, .*: make HOST_ARCH=native"
    assert re.match(wanted, said), said


def test_broken_library(workshop):
    """Something else under its name: a Python error that says so."""
    one = workshop.layer("one")
    workshop.build()
    (one / "_host.abi3.so").write_text("not a library\n")
    said = workshop.import_and_fill("one")
    assert said.startswith("ImportError: ") and "one/_host.abi3.so" in said


def test_build_info(kernels):
    library = kernels["loops"].library("host")
    assert library._text(library.lib.caffe_build_info()) == "host native"


def test_library_loads_under_two_package_names(engine_kernels, kernels):
    """Two folders may hold a layer of the same name; their libraries do not mix."""
    from layers._cases import load_package

    other = importlib.import_module(f"{load_package(engine_kernels, 'engine_kernels_again')}.loops").layer
    assert other is not kernels["loops"] and other.library("host") is not kernels["loops"].library("host")
    top = torch.zeros(3)
    other.loops_fill(top, 3, 0)
    assert top.tolist() == [1, 2, 3]


# ---------------------------------------------------------------------------------------- packages


@pytest.fixture
def install_packages(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("install_packages")


def test_missing_package_in_a_managed_python(install_packages, monkeypatch, capsys, tmp_path):
    """The operating system's Python is left alone; what to do instead is said."""
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    (tmp_path / "requirements.txt").write_text("# comment\npytest\nno-such-package-anywhere>=1  # why\n")
    monkeypatch.setattr(install_packages.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(sys, "argv", ["install_packages.py", str(tmp_path / "requirements.txt")])
    monkeypatch.setattr(install_packages.subprocess, "run", lambda *_, **__: pytest.fail("ran pip"))
    assert install_packages.main() != 0
    said = capsys.readouterr().out
    assert "no-such-package-anywhere>=1" in said and "pytest" not in said
    assert "python3 -m venv" in said and "make" in said


def test_nothing_missing_installs_nothing(install_packages, monkeypatch, tmp_path):
    (tmp_path / "requirements.txt").write_text("pytest\n\n# nothing else\n")
    monkeypatch.setattr(sys, "argv", ["install_packages.py", str(tmp_path / "requirements.txt")])
    monkeypatch.setattr(install_packages.subprocess, "run", lambda *_, **__: pytest.fail("ran pip"))
    assert install_packages.main() == 0


def test_missing_package_is_installed_into_this_python(install_packages, monkeypatch, tmp_path):
    (tmp_path / "requirements.txt").write_text("no-such-package-anywhere>=1\n")
    monkeypatch.setattr(install_packages.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["install_packages.py", str(tmp_path / "requirements.txt")])
    ran = []
    monkeypatch.setattr(
        install_packages.subprocess,
        "run",
        lambda command: ran.append(command) or subprocess.CompletedProcess(command, 0),
    )
    assert install_packages.main() == 0
    (command,) = ran
    assert (
        command[:4] == [sys.executable, "-m", "pip", "install"]
        and command[-1] == "no-such-package-anywhere>=1"
    )


def test_hidden_toolkit(tmp_path):
    """find_nvcc says nothing where there is nothing, and finds one in CUDA_HOME."""
    tool = ROOT / "tools" / "find_nvcc.py"
    home = tmp_path / "cuda"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "nvcc").write_text("binary")
    (home / "bin" / "nvcc").chmod(0o755)
    found = subprocess.run(
        [sys.executable, tool, str(home)], capture_output=True, text=True, env={"PATH": ""}
    ).stdout
    assert Path(found.strip()) == home / "bin" / "nvcc"
