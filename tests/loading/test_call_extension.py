"""As users have it: a wheel's package, or a checkout in which make never ran. A call writes into the cache alone."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support import python_with_torch
from support.workshop import made_once

import cuffi
from cuffi import edge
from cuffi.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(cuffi.__file__).parent
pytestmark = pytest.mark.xdist_group("installed copies")  # one test closes what another one compares
STRING = "import torch; from cuffi import load_inline; m = load_inline({name!r}, {text!r}, backends='host'); {then}"
ADD = "__global__ void k(int n, float* x) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += {by}; }}"


def copied(source: Path, to: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "*.so", "_host.json", "_cuda.json", "build")
    shutil.copytree(source, to, ignore=ignored)


def toolkit_into(target: Path) -> None:
    target.mkdir(exist_ok=True)
    for part in ("Makefile", "mk", "build_ffi.py", "requirements", "include", "src", "tools"):
        (copied if (ROOT / part).is_dir() else shutil.copy2)(ROOT / part, target / part)


@pytest.fixture(scope="module")
def installed(shared_folder) -> Path:
    """A folder with the package as pip installs it, of which a library is the one that calls."""
    spec = re.search(r'SHIM = """.*?"""|SHIM = \'\'\'(.*?)\'\'\'', (ROOT / "setup.py").read_text(), re.S)
    assert spec

    def make(site: Path) -> None:
        copied(PACKAGE, site / "cuffi")
        shutil.copy2(PACKAGE / "runtime" / "_call.abi3.so", site / "cuffi" / "runtime")
        toolkit_into(site / "cuffi" / edge.INSTALLED)
        (site / "cuffi" / edge.INSTALLED / "VERSION").write_text(f"{VERSION}\n")
        (site / "cuffi" / edge.INSTALLED / "cuffi").mkdir()
        (site / "cuffi" / edge.INSTALLED / "cuffi" / "__init__.py").write_text(spec[1])
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(site)], check=True)

    return made_once(shared_folder / "installed", make)


@pytest.fixture(scope="module")
def checkout(shared_folder) -> Path:
    """A checkout in which make never ran."""

    def make(place: Path) -> None:
        copied(PACKAGE, place / "cuffi")
        toolkit_into(place)
        copied(ROOT / "layers" / "sigmoid", place / "layers" / "sigmoid")

    return made_once(shared_folder / "checkout", make)


@pytest.fixture(scope="module")
def cache_of(shared_folder):
    """A cache for each of the two, so that their cores are built once."""
    return lambda place: (
        made_once(shared_folder / f"cache-{place.name}", lambda c: (c / "c").mkdir(mode=0o700)) / "c"
    )


def files_in(place: Path) -> dict[str, tuple]:
    """All that lies there, without the bytecode that importing a package writes. A folder's own time is not compared:
    bytecode changes it, and whatever else appears in it is listed itself."""
    found = {}
    for path in place.rglob("*"):
        if "__pycache__" not in path.parts or edge.INSTALLED in path.parts or "tools" in path.parts:
            status = path.lstat()
            found[str(path.relative_to(place))] = (
                0 if path.is_dir() else status.st_mtime_ns,
                status.st_ino,
                stat.S_IMODE(status.st_mode),
            )
    return found


def run(place: Path, cache: Path, name: str, by: int = 1, **more: str) -> subprocess.CompletedProcess:
    then = "x = torch.zeros(5); m.k(5, x, 1, 1, 1, 8, 1, 1); print(x.tolist())"
    code = STRING.format(name=name, text=ADD.format(by=by), then=then)
    own = {"PYTHONPATH": str(place), "CUFFI_CACHE": str(cache), "NVCC": "", "LAYERS_DIR": "", **more}
    return python_with_torch.run([sys.executable, "-c", code], cache, os.environ | own)


@pytest.mark.parametrize("which", ["installed", "checkout"])
def test_a_string_writes_into_the_cache_alone(request, cache_of, which):
    """Also its first process runs it: in a checkout what makes calls is built into the cache."""
    place = request.getfixturevalue(which)
    before = files_in(place)
    for name in ("one", "two"):
        done = run(place, cache_of(place), name, by=2)
        assert done.stdout == f"{[2.0] * 5}\n", done.stderr
    assert files_in(place) == before
    calls = [p for p in cache_of(place).glob("call-*") if p.is_dir()]
    assert len(calls) == (which == "checkout")


def test_a_read_only_package(installed, cache_of):
    """As root installed it. (Root may write where it may not.)"""
    modes = {p: p.stat().st_mode for p in [installed, *installed.rglob("*")]}
    try:
        for path, mode in modes.items():
            path.chmod(mode & 0o555)
        done = run(installed, cache_of(installed), "three", by=3)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert done.stdout == f"{[3.0] * 5}\n", done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_what_root_used_others_can_use(installed, checkout, cache_of):
    """The modes of what is beside the cache are those of the tree, whatever root built first."""
    for place in (installed, checkout):
        run(place, cache_of(place), "four", by=4)
        closed = [p for p in place.rglob("*") if not p.stat().st_mode & 0o004]
        assert not closed


@pytest.mark.parametrize("which", ["installed", "checkout"])
def test_two_processes_at_once(request, cache_of, which, tmp_path):
    """In a checkout both need what makes calls."""
    place, cache = request.getfixturevalue(which), cache_of(request.getfixturevalue(which))
    for kept in cache.glob("call-*"):
        shutil.rmtree(kept) if kept.is_dir() else kept.unlink()
    own = os.environ | {"PYTHONPATH": str(place), "CUFFI_CACHE": str(cache), "NVCC": "", "LAYERS_DIR": ""}
    processes = []
    for by in (5, 6):
        then = "x = torch.zeros(2); m.k(2, x, 1, 1, 1, 8, 1, 1); print(x.tolist())"
        code = STRING.format(name=f"at_once{by}", text=ADD.format(by=by), then=then)
        processes.append(
            subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=own, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )  # fmt: skip
    for by, process in zip((5, 6), processes, strict=True):
        out, error = process.communicate(timeout=300)
        assert out == f"{[float(by)] * 2}\n", error


def test_a_checkouts_own_layers_say_that_make_did_not_run(checkout, cache_of, tmp_path):
    """Beside a string that runs."""
    then = "x = torch.zeros(2); m.k(2, x, 1, 1, 1, 8, 1, 1); from cuffi.sigmoid import sigmoid; sigmoid(x)"
    code = STRING.format(name="beside", text=ADD.format(by=1), then=then)
    own = {"PYTHONPATH": str(checkout), "CUFFI_CACHE": str(cache_of(checkout)), "NVCC": "", "LAYERS_DIR": ""}
    done = python_with_torch.run([sys.executable, "-c", code], tmp_path, os.environ | own)
    assert "sigmoid: not built for host" in done.stderr and "Type `make LAYERS=sigmoid`" in done.stderr


def test_each_setting_of_compilers_has_objects_of_its_own(installed, cache_of):
    """CPATH, which conda sets: the objects without it stay."""
    cache = cache_of(installed)
    run(installed, cache, "seven")
    (core,) = cache.glob("core-*")
    before = {p: p.stat().st_mtime_ns for p in core.rglob("host-*/*.o")}
    assert before
    done = run(installed, cache, "eight", by=8, CPATH="/usr/include")
    assert done.stdout == f"{[8.0] * 5}\n", done.stderr
    assert {p: p.stat().st_mtime_ns for p in before} == before
    run(installed, cache, "nine")
    assert {p: p.stat().st_mtime_ns for p in before} == before
