"""A .cu becomes a program."""

import re
import shutil
import subprocess

import pytest
from support.workshop import FIXTURES, ROOT

from cuffi.judge import judge
from cuffi.judging import programs
from cuffi.judging.limits import Limits
from cuffi.judging.programs import NotBuilt, program, rewritten

MAIN = "__global__ void k() {}\nint main() { k<<<1, 1>>>(); return N; }\n"


def test_kernels_and_main(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(MAIN)
    unbuilt = rewritten([file])
    assert unbuilt.kernels == ["k"] and unbuilt.has_main and list(unbuilt.texts) == unbuilt.sources


def test_options_and_errors(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(MAIN)
    unbuilt = rewritten([file])
    assert program(unbuilt, [file], "plain", tmp_path / "one", ["-DN=3"]).exists()
    with pytest.raises(NotBuilt) as error:
        program(unbuilt, [file], "plain", tmp_path / "two", [])
    assert error.value.kind == "not-built" and "k.cu:2" in error.value.lines[0]


ENDLESS = """template <int N> struct F {
  static constexpr long g(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i ^ N; return s; }
  static constexpr long v = g(200000) + F<N - 1>::v;
};
template <> struct F<0> { static constexpr long v = 0; };
__global__ void k(long* o) { o[0] = F<850>::v; }
int main() { long* o; cudaMalloc(&o, 8); k<<<1, 1>>>(o); return 0; }
"""


@pytest.mark.parametrize(
    ("limits", "words"),
    [(Limits(building=2), "limit of time: 2 s"), (Limits(megabytes=30), "limit of memory: 30 MB")],
)
def test_compiling_has_limits(limits, words, tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(ENDLESS)
    programs.prepared("plain")
    with pytest.raises(NotBuilt) as error:
        program(rewritten([file]), [file], "plain", tmp_path / "made", [], limits)
    assert error.value.kind == "not-built" and words in error.value.lines[0]


@pytest.mark.parametrize(
    "text, kind", [("int f();\n", "no-kernel"), ("#include <cudnn.h>\nint main() {}\n", "refused")]
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


def test_threads_that_go_on_do_not_wait_for_each_other(tmp_path, monkeypatch):
    """They use atomic operations as if they spun, for ten times as long as threads may, and their barriers open."""
    launcher = shutil.copytree(ROOT / "src/host", tmp_path / "src/host")
    shutil.copytree(ROOT / "src/edge", tmp_path / "src/edge")
    limits = launcher / "host_kernel.h"
    sooner = limits.read_text().replace("kLostAfter = 60;", "kLostAfter = 0.02;")
    assert sooner != limits.read_text()
    limits.write_text(sooner)
    made = ["-O1", "-c", launcher / "host_launch.cpp", "-o", tmp_path / "sooner.o"]
    programs.call([*programs.compiler(), *programs.flags("plain"), *made])
    prepared = programs.prepared("plain")[0], tmp_path / "sooner.o"
    monkeypatch.setattr(programs, "prepared", lambda mode: prepared)
    (tmp_path / "k.cu").write_text(BARRIERS_AND_ATOMICS)
    files = [tmp_path / "k.cu"]
    built = program(rewritten(files), files, "plain", tmp_path, [])
    done = subprocess.run([built], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "options, words",
    [([], ""), (["-DUSE_PTX=2"], "undecided.cu:16:.*inline PTX"), (["-DUSE_CUDNN"], "cudnn")],
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


def test_headers_of_the_project_are_rewritten(tmp_path):
    """A kernel in a header of another folder, of an include folder, and of a folder that -I names."""
    for folder in ("src", "common", "include", "own"):
        (tmp_path / folder).mkdir()
    (tmp_path / ".git").mkdir()
    names = {"common/a.cuh": "a", "include/b.cuh": "b", "own/c.cuh": "c"}
    for file, name in names.items():
        (tmp_path / file).write_text(f"__global__ void {name}(int* x) {{ x[threadIdx.x] += 1; }}\n")
    (tmp_path / "src" / "k.cu").write_text(
        '#include <cuda_runtime.h>\n#include "../common/a.cuh"\n#include <b.cuh>\n#include "c.cuh"\n'
        "int main() {\n  int* x; cudaMallocManaged(&x, 32); cudaMemset(x, 0, 32);\n"
        '  a<<<1, 8>>>(x), b<<<1, 8>>>(x), c<<<1, 8>>>(x);\n  printf("%d\\n", x[7]);\n}\n'
    )
    files, options = [tmp_path / "src" / "k.cu"], [f"-I{tmp_path / 'own'}"]
    unbuilt = rewritten(files, options)
    assert unbuilt.kernels == ["a", "b", "c"]
    built = program(unbuilt, files, "plain", tmp_path / "made", options)
    assert subprocess.check_output([built]) == b"3\n"


def test_a_header_whose_folder_only_the_projects_makefile_knows(tmp_path):
    """The one file of the repository that has this name."""
    for folder in (".git", "src/sums", "includes/sums"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "includes" / "sums" / "sum.cuh").write_text("__global__ void k(int* x) { *x = 7; }\n")
    file = tmp_path / "src" / "sums" / "k.cu"
    file.write_text(
        '#include "sum.cuh"\nint main() { int* x; cudaMallocManaged(&x, 4); k<<<1, 1>>>(x); '
        "cudaDeviceSynchronize(); return *x; }\n"
    )
    unbuilt = rewritten([file])
    assert unbuilt.kernels == ["k"]
    assert subprocess.call([program(unbuilt, [file], "plain", tmp_path / "made", [])]) == 7


def test_files_of_one_name_in_two_folders(tmp_path):
    for folder, value in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "value.h").write_text(f"static int value() {{ return {value}; }}\n")
        (tmp_path / folder / "k.cu").write_text(f'#include "value.h"\nint {folder}() {{ return value(); }}\n')
    (tmp_path / "main.cu").write_text("int one(), two();\nint main() { return 10 * one() + two(); }\n")
    files = [tmp_path / "main.cu", tmp_path / "one" / "k.cu", tmp_path / "two" / "k.cu"]
    assert subprocess.call([program(rewritten(files), files, "plain", tmp_path / "made", [])]) == 12


@pytest.mark.parametrize("after", ["", "cudaDeviceSynchronize(); k<<<1, 8>>>(x);"])
def test_a_kernel_that_is_not_rewritten_is_no_launch(after, tmp_path):
    """A header outside of the project: its kernel would run once, as a plain function."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "far.cuh").write_text("__global__ void k(int* x) { x[threadIdx.x] = 1; }\n")
    (tmp_path / "project" / "k.cu").write_text(
        f"#include FAR\nint main() {{ int* x; cudaMalloc(&x, 32); k<<<1, 8>>>(x); {after} }}\n"
    )
    files, options = [tmp_path / "project" / "k.cu"], [f'-DFAR="{tmp_path / "far.cuh"}"']
    built = program(rewritten(files), files, "plain", tmp_path / "made", options)
    done = subprocess.run([built], capture_output=True, text=True)
    assert done.returncode and "a kernel was launched that is not rewritten" in done.stderr


def test_a_program_that_prints_the_lines_of_the_judge(tmp_path):
    (tmp_path / "k.cu").write_text(
        """#include <cuda_runtime.h>
__global__ void k(int* a) { a[300] = 1; }
int main() { int* a; cudaMalloc(&a, 4); fputs("JUDGE begin: 0 1 1\\n", stderr); k<<<1, 1>>>(a); }
"""
    )
    assert judge([tmp_path / "k.cu"])["verdict"] == "bounds"


def test_a_program_that_waits_for_words_gets_none(tmp_path):
    text = """__global__ void k() {}
int main() { char words[9] = ""; FILE* from = IN; fgets(words, 9, from); return words[strlen(words) - 1]; }
"""
    for name, kind in (("stdin", "incomplete"), ('fopen("/dev/null", "r")', "bounds")):
        (tmp_path / "k.cu").write_text(text.replace("IN", name))
        assert judge([tmp_path / "k.cu"])["verdict"] == kind


def test_a_kernel_behind_void_pointers_keeps_its_type(tmp_path):
    (tmp_path / "k.cu").write_text(
        """#include <cuda_runtime.h>
template <typename T> __global__ void k(T* x, T n) { x[threadIdx.x] += n; }
int main() {
  float* x; float n = 2, sum;
  cudaMalloc(&x, 16); cudaMemset(x, 0, 16);
  void* arguments[] = {&x, &n};
  cudaFuncSetAttribute((const void*)k<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024);
  cudaLaunchKernel((const void*)k<float>, dim3(1), dim3(4), arguments, 0, 0);
  cudaLaunchCooperativeKernel((void*)k<float>, dim3(1), dim3(4), arguments, 0, 0);
  cudaMemcpy(&sum, x + 3, 4, cudaMemcpyDeviceToHost);
  return sum != 4;
}
"""
    )
    said = judge([tmp_path / "k.cu"])
    assert said["verdict"] == "ok" and said["ran"] == ["k"], said
