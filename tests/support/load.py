"""Shared by the tests of load: a cache for this session, a compiler that records its starts, user's sources."""

import shutil
import stat
import time
from pathlib import Path

import pytest
import torch
from support.compiler import CXX
from support.workshop import CORE, Fork, made_once

from cuffi import load_inline
from cuffi.loading import loaded, recipe, run_make

ROOT = Path(__file__).resolve().parents[2]

RELU6 = """
template <typename Dtype>
__global__ void relu6(const int n, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, n) { out[i] = min(max(in[i], Dtype(0)), Dtype(6)); }
}
"""
# One exported function, without Caffe's dispatch.
FILL = """#include "caffe_cuda_macro.h"

__global__ void fill_kernel(const int64_t n, float* top) {{
  CUDA_KERNEL_LOOP(i, n) {{ top[i] = {value}; }}
}}

extern "C" int fill(float* top, int64_t count, void* stream) {{
  fill_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, top);
  return CAFFE_LAUNCH_STATUS();
}}
"""
# The same without a kernel, and so without the headers of one, which are most of its compilation.
QUICK_FILL = """extern "C" int fill(float* top, int64_t count, void* stream) {{
  for (int64_t i = 0; i < count; ++i) top[i] = {value};
  return 0;
}}
"""
FILL_DECLARED = "int fill(float *top, int64_t count, void *stream);"


@pytest.fixture
def tree_core(shared_folder, monkeypatch) -> None:
    """Use the tree's own objects, and one folder of bytecode; another folder would compile each of them again."""
    monkeypatch.setattr(recipe, "core_in", lambda cache: CORE.core)
    monkeypatch.setattr(run_make, "bytecode", lambda: str(shared_folder / "bytecode"))


@pytest.fixture(scope="session")
def session_cache(shared_folder) -> Path:
    """A cache for all workers, so that a layer that several tests load is built once."""
    return made_once(shared_folder / "home", lambda home: (home / "cuffi").mkdir(mode=0o700)) / "cuffi"


@pytest.fixture
def cache(session_cache, tree_core, monkeypatch) -> Path:
    """The session's cache, and the host backend alone unless a test says otherwise."""
    monkeypatch.setenv("CUFFI_CACHE", str(session_cache))
    monkeypatch.setenv("NVCC", "")
    monkeypatch.setenv("CUFFI_CUDA", "nvcc")
    return session_cache


@pytest.fixture
def own_cache(tree_core, tmp_path, monkeypatch) -> Path:
    """A cache of the test's own. NVRTC builds nothing unless a test says otherwise."""
    folder = tmp_path / "cuffi"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("CUFFI_CACHE", str(folder))
    monkeypatch.setenv("CUFFI_CUDA", "nvcc")
    return folder


@pytest.fixture
def kept(session_cache, own_cache, monkeypatch) -> Path:
    """An entry in a cache of the test's own, of QUICK_FILL with the value 1: a copy of the session's."""
    with monkeypatch.context() as context:
        context.setenv("CUFFI_CACHE", str(session_cache))
        built = load_inline("fills", QUICK_FILL.format(value=1)).layer.folder.parents[1]
    loaded._imported.clear()
    return Path(shutil.copytree(built, own_cache / built.name, symlinks=True))


@pytest.fixture(scope="session")
def compiler_script(shared_folder) -> Path:
    """One for all tests: for a compiler of another name the toolkit's own objects would be compiled anew."""

    def write(folder: Path) -> None:
        script = folder / "cxx"
        script.write_text(
            '#!/bin/sh\necho "$@" >>"$CXX_OF_TEST/starts"\n'
            f'while [ -e "$CXX_OF_TEST/hold" ]; do sleep 0.05; done\nexec {CXX} "$@"\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)

    return made_once(shared_folder / "compiler", write) / "cxx"


@pytest.fixture
def compiler(compiler_script, own_cache, shared_folder, tmp_path, monkeypatch):
    """CXX is a script that writes a line at each start, waits if a file says so, and then compiles."""
    monkeypatch.setattr(recipe, "core_in", lambda cache: str(shared_folder / "core"))
    monkeypatch.setenv("CXX", str(compiler_script))
    monkeypatch.setenv("CXX_OF_TEST", str(tmp_path))
    return Compiler(tmp_path / "starts", tmp_path / "hold")


class Compiler:
    def __init__(self, starts: Path, hold: Path):
        self._starts, self.hold = starts, hold

    @property
    def starts(self) -> list[str]:
        """The options of each start."""
        return self._starts.read_text().splitlines() if self._starts.exists() else []

    def compiled(self, source: str) -> int:
        """How often a file was compiled."""
        return sum(f"/{source} " in f"{start} " and " -c " in start for start in self.starts)


def loads(value: int) -> str:
    """A script that fills with the value, and prints the outcome. It may run in a fork."""
    return f"""
import torch, cuffi
from cuffi.loading import loaded
loaded._imported.clear()
top = torch.zeros(3)
cuffi.load_inline("fills", {QUICK_FILL.format(value=value)!r}, backends="host").fill(top, 3)
print(*top.tolist())
assert top.tolist() == [{value}] * 3
"""


def wait_for(condition, process: Fork, seconds: float = 60):
    """Wait for what the process is to do."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def folder(parent, name="fills", value=1, init="from .._runtime import Layer\n\nlayer = Layer(__name__)\n"):
    made = parent / name
    made.mkdir(parents=True)
    (made / f"{name}.cu").write_text(FILL.format(value=value))
    (made / f"{name}.h").write_text("int fill(float *top, int64_t count, void *stream);\n")
    (made / "cases.py").write_text("CASES = []\n")
    if init:
        (made / "__init__.py").write_text(init)
    return made


def filled(module) -> float:
    top = torch.zeros(3)
    module.layer.fill(top, 3)
    assert len(set(top.tolist())) == 1
    return top[0].item()
