"""What the tests of load share: a cache of this session's, a compiler that tells when it is started, user's sources."""

import os
import shutil
import stat
from pathlib import Path

import pytest
from support.workshop import CORE, made_once

from layers._load import toolkit

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


def empty_cache(folder: Path, core: Path) -> Path:
    """A cache without entries, with a folder of the toolkit's own objects that it shares."""
    folder.mkdir(mode=0o700)
    (folder / f"core-{toolkit.digest().hex()[:16]}").symlink_to(core)
    return folder


@pytest.fixture(scope="session")
def session_core(shared_folder):
    """The toolkit's own objects, for all caches of all workers. They begin with those that make has compiled."""
    made = ROOT / CORE.core_of("host")

    def copy(folder: Path) -> None:
        if made.exists():
            shutil.copytree(made, folder / made.name)

    return made_once(shared_folder / "core", copy)


@pytest.fixture(scope="session")
def session_cache(session_core, tmp_path_factory):
    return empty_cache(tmp_path_factory.mktemp("home") / "cuffi", session_core)


@pytest.fixture
def cache(session_cache, monkeypatch):
    """The session's cache, and the host backend alone unless a test says otherwise."""
    monkeypatch.setenv("CUFFI_CACHE", str(session_cache))
    monkeypatch.setenv("NVCC", "")
    return session_cache


@pytest.fixture
def own_cache(session_core, tmp_path, monkeypatch):
    """A cache of the test's own."""
    folder = empty_cache(tmp_path / "cuffi", session_core)
    monkeypatch.setenv("CUFFI_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def compiler_script(tmp_path_factory) -> Path:
    """One for all tests: for a compiler of another name the toolkit's own objects would be compiled anew."""
    real = shutil.which(os.environ.get("CXX", "g++"))
    script = tmp_path_factory.mktemp("compiler") / "cxx"
    script.write_text(
        '#!/bin/sh\necho "$@" >>"$CXX_OF_TEST/starts"\n'
        f'while [ -e "$CXX_OF_TEST/hold" ]; do sleep 0.05; done\nexec {real} "$@"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


@pytest.fixture
def compiler(compiler_script, tmp_path, monkeypatch):
    """CXX is a script that writes a line at each start, waits if a file says so, and then compiles."""
    monkeypatch.setenv("CXX", str(compiler_script))
    monkeypatch.setenv("CXX_OF_TEST", str(tmp_path))
    return Compiler(tmp_path / "starts", tmp_path / "hold")


class Compiler:
    def __init__(self, starts: Path, hold: Path):
        self._starts, self.hold = starts, hold

    @property
    def starts(self) -> list[str]:
        return self._starts.read_text().splitlines() if self._starts.exists() else []
