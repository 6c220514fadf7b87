"""A .cu becomes a program."""

import os
import re
import subprocess

import pytest
from support.workshop import FIXTURES

from cuffi.judging.programs import NotBuilt, program, rewritten

MAIN = "__global__ void k() {}\nint main() { k<<<1, 1>>>(); return N; }\n"


def test_kernels_and_main(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(MAIN)
    unbuilt = rewritten([file])
    assert unbuilt.kernels == ["k"] and unbuilt.has_main and list(unbuilt.texts) == ["judged0.cpp"]


def test_options_and_errors(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(MAIN)
    unbuilt = rewritten([file])
    assert program(unbuilt, [file], "plain", tmp_path / "one", ["-DN=3"]).exists()
    with pytest.raises(NotBuilt) as error:
        program(unbuilt, [file], "plain", tmp_path / "two", [])
    assert error.value.kind == "not-built" and "k.cu:2" in error.value.lines[0]


@pytest.mark.parametrize(
    "text, kind", [("int f();\n", "no-kernel"), ("#include <thrust/sort.h>\nint main() {}\n", "refused")]
)
def test_what_cannot_be_built(text, kind, tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(text)
    with pytest.raises(NotBuilt) as error:
        rewritten([file])
    assert error.value.kind == kind and "k.cu" in error.value.lines[0]


BARRIERS_AND_ATOMICS = """#include <cuda_runtime.h>
__global__ void k(int* a) {
  for (int i = 0; i < 60000; ++i) {
    atomicOr(a + blockIdx.x, 0);
    __syncthreads();
  }
}
int main() {
  int* a;
  cudaMalloc(&a, 64); cudaMemset(a, 0, 64);
  k<<<2, 64>>>(a);
}
"""


def test_threads_that_go_on_do_not_wait_for_each_other(tmp_path):
    """They use atomic operations for seconds, as if they spun, and their barriers open."""
    (tmp_path / "k.cu").write_text(BARRIERS_AND_ATOMICS)
    files = [tmp_path / "k.cu"]
    built = program(rewritten(files), files, "races", tmp_path, [])
    done = subprocess.run(
        [built], capture_output=True, text=True, env=os.environ | {"CAFFE_RACES": "/dev/null"}
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "options, words",
    [([], ""), (["-DUSE_PTX=2"], "undecided.cu:16:.*inline PTX"), (["-DUSE_CUBLAS"], "cublas")],
)
def test_what_only_a_gpu_runs_in_a_branch_of_an_unknown_macro(options, words, tmp_path):
    file = tmp_path / "undecided.cu"
    file.write_bytes((FIXTURES / "rewrite" / "undecided.cu").read_bytes() + b"int main() {}\n")
    if not words:
        assert program(rewritten([file]), [file], "plain", tmp_path / "one", options).exists()
        return
    with pytest.raises(NotBuilt) as error:
        program(rewritten([file]), [file], "plain", tmp_path / "one", options)
    assert re.search(words, "\n".join(error.value.lines)), error.value.lines
