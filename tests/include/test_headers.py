"""The headers alone: which compilers accept them, their arithmetic, and the lines in diagnostics."""

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from conftest import FOLDERS, ROOT
from support.compiler import WORDS, of_name
from support.halves import assert_same_floats, interesting_floats
from support.typed import not_none

from tools.cuda.for_nvcc import NvccRewriter
from tools.cuda.rewrite import rewrite
from tools.make.find_nvcc import find

INCLUDE = f"-I{ROOT / 'include'}"
WING = ROOT / "cuffi/caffe_layers/include"
OF_NVCC = ["-include", ROOT / "include" / "caffe_old_nvcc.h"]  # as in mk/cuda.mk


def quiet(command: list) -> None:
    """Run a compiler, which must print nothing."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.fixture
def program(tmp_path):
    """Compile a C++ text and run it; returns its output."""

    def run(text: str, *options: str) -> str:
        (tmp_path / "program.cpp").write_text(text)
        command = [*WORDS, "-std=c++17", INCLUDE, f"-I{ROOT / 'include' / 'host'}", *options]
        subprocess.run([*command, tmp_path / "program.cpp", "-o", tmp_path / "program"], check=True)
        return subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout

    return run


# ------------------------------------------------------------------------------------- who compiles it


def test_min_and_max_in_a_cpp_file_beside_cudas_headers(tmp_path):
    """nvcc's own headers declare them only in .cu files; layers for Microsoft's compiler use them anywhere."""
    nvcc = os.environ.get("NVCC", find(os.environ.get("CUDA_HOME", "")))
    if not nvcc:
        pytest.skip("no nvcc")
    text = "namespace caffe { int f(int a, float b) { using std::max; return max(a, 3) + min(b, 2.0); } }\n"
    (tmp_path / "layer.cpp").write_text('#include "caffe/common.hpp"\n' + text)
    includes = [
        INCLUDE,
        f"-I{WING}",
        f"-I{WING}/legacy",
        f"-I{Path(nvcc).resolve().parents[1] / 'include'}",
    ]
    quiet([*WORDS, "-std=c++17", "-fsyntax-only", *includes, tmp_path / "layer.cpp"])


# Names that forks gave to things of their own in namespace caffe, and the toolkit uses in its headers.
A_FORKS_NAMES = """
#include <numeric>
using namespace std;
#include "caffe/layer.hpp"
#include "caffe/util/math_functions.hpp"
namespace caffe {
class Error { public: int code; };
class Fatal : public Error {};
struct NotImplemented {};
typedef float half;
typedef int bfloat16;
template <typename T> T accumulate_t(T x) { return x; }
struct KernelPosition { int at; };
void launch_status(int);
string dtype_name(double);
namespace types { int x; }
struct Window {}; struct Together {}; int widest, vector_lanes, vectorized;
int f(const vector<int>& v, half h) {
  CHECK_EQ(v.size(), 3) << "three";
  CUDA_CHECK(cudaSuccess);
  CUDA_POST_KERNEL_CHECK;
  CUDA_KERNEL_LOOP(i, 3) { h += i; }
  Fatal own;
  own.code = accumulate(v.begin(), v.end(), 0);
  NOT_IMPLEMENTED;
  return own.code + static_cast<int>(h) + accumulate_t(2);
}
}  // namespace caffe
"""


def test_a_fork_may_have_the_names_of_the_toolkit(tmp_path):
    (tmp_path / "layer.cpp").write_text(A_FORKS_NAMES)
    core = ROOT / "build" / "core" / "include"
    if not (core / "caffe.pb.h").exists():
        pytest.skip("the core is not built")
    host = ROOT / "include" / "host"
    includes = [f"-I{core}", INCLUDE, f"-I{host}", f"-I{WING}", f"-I{WING}/legacy"]
    here = ["-DCAFFE_HOST_BACKEND", "-include", host / "cuda_runtime.h"]
    quiet([*WORDS, "-std=c++17", "-fsyntax-only", *here, *includes, tmp_path / "layer.cpp"])


@pytest.mark.parametrize("header", ["caffe_cuda_macro.h", "caffe_half.h"])
@pytest.mark.parametrize("cxx", ["g++", "clang++"])
def test_header_alone(tmp_path, cxx, header):
    """The headers must include what they use, such as <stdio.h> for fprintf."""
    (tmp_path / "alone.cpp").write_text(f'#include "{header}"\n')
    quiet(
        [
            of_name(cxx),
            "-std=c++17",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            INCLUDE,
            "-fsyntax-only",
            tmp_path / "alone.cpp",
        ]
    )


def test_header_alone_under_nvcc(tmp_path, nvcc):
    (tmp_path / "alone.cu").write_text('#include "caffe_cuda_macro.h"\n')
    warnings = ["-Xcompiler", "-Wall,-Wextra", "-Wno-deprecated-gpu-targets"]
    quiet(
        [
            nvcc,
            "-std=c++17",
            "-arch=sm_80",
            *warnings,
            INCLUDE,
            *OF_NVCC,
            "-c",
            tmp_path / "alone.cu",
            "-o",
            tmp_path / "alone.o",
        ]
    )


@pytest.mark.skipif(not shutil.which("aarch64-linux-gnu-g++"), reason="needs g++-aarch64-linux-gnu")
def test_header_alone_for_arm(tmp_path):
    """Before g++ 13 there is no _Float16 in C++ for it, though its macros are defined."""
    (tmp_path / "alone.cpp").write_text('#include "caffe_cuda_macro.h"\n')
    host = ["-DCAFFE_HOST_BACKEND=1", INCLUDE, f"{INCLUDE}/host", "-fsyntax-only"]
    subprocess.run(["aarch64-linux-gnu-g++", "-std=c++17", *host, tmp_path / "alone.cpp"], check=True)


def test_kernels_compile_under_nvcc(tmp_path, nvcc):
    """All of tests/fixtures/kernels, which the host backend runs, is CUDA too, as it is rewritten for nvcc."""
    sources = sorted((ROOT / "tests" / "fixtures" / "kernels").glob("*/*.cu"))
    texts = [rewrite(str(source), NvccRewriter, "a test", "")[0][""] for source in sources]
    (tmp_path / "all.cu").write_text("\n".join(texts), encoding="latin-1")
    folders = [f"-I{source.parent}" for source in sources]
    output = ["-c", tmp_path / "all.cu", "-o", tmp_path / "all.o"]
    subprocess.run([nvcc, "-std=c++17", "-arch=sm_80", INCLUDE, *OF_NVCC, *folders, *output], check=True)


@pytest.mark.parametrize(
    "header", ["caffe_ffi.h", *(f"{n}.h" for n, f in FOLDERS.items() if (f / f"{n}.h").exists())]
)
def test_declarations_are_c(tmp_path, header):
    """cffi reads them as C, so a C compiler must too."""
    path = ROOT / "include" / header if header == "caffe_ffi.h" else FOLDERS[header[:-2]] / header
    (tmp_path / "alone.c").write_text(f'#include <stdint.h>\n#include "{path}"\n')
    quiet(
        [
            *WORDS,
            "-x",
            "c",
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-fsyntax-only",
            tmp_path / "alone.c",
        ]
    )


# ------------------------------------------------------------------------------------------ arithmetic

POSITIONS = """
#include "caffe_cuda_macro.h"
#include <cstdio>
#include <type_traits>

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;  // in place of the launcher's

// The indices that one thread visits.
template <typename Index>
void walk(const char *name, Index n, unsigned grid, unsigned block_index, unsigned thread) {
  gridDim = {grid, 1, 1}, blockDim = {512, 1, 1}, blockIdx = {block_index, 0, 0}, threadIdx = {thread, 0, 0};
  printf("%s:", name);
  int steps = 0;
  CUDA_KERNEL_LOOP(i, n) {
    static_assert(std::is_same<decltype(i), decltype(n + 0)>::value, "the index has the count's own type");
    printf(" %lld", static_cast<long long>(i));
    if (++steps == 4) break;
  }
  printf("\\n");
}

int main() {
  const int64_t counts[] = {-1, 0, 1, 511, 512, 513, int64_t(1) << 31,
                            (int64_t(1) << 40) - 511, int64_t(1) << 40, INT64_MAX - 511};
  printf("blocks:");
  for (int64_t count : counts) printf(" %d", CAFFE_GET_BLOCKS(count));
  printf("\\n");
  const int64_t huge = (int64_t(1) << 31) + 8;
  walk<int64_t>("last", huge, CAFFE_GET_BLOCKS(huge), CAFFE_GET_BLOCKS(huge) - 1, 7);
  walk<int64_t>("beyond", huge, CAFFE_GET_BLOCKS(huge), CAFFE_GET_BLOCKS(huge) - 1, 8);
  walk<int>("int", INT32_MAX, 1 << 21, (1 << 21) - 1, 510);
  walk<int>("int strided", INT32_MAX, 1 << 20, (1 << 20) - 1, 511);
  walk<unsigned>("unsigned", 4294967295u, 1 << 22, 5, 0);
  walk<size_t>("size_t", size_t(1) << 33, 1 << 22, 1, 2);
  walk<int64_t>("largest grid", (int64_t(1) << 40) + 3, 2147483647u, 2147483646u, 511);
  walk<int>("negative", -5, 1, 0, 0);
}
"""


@pytest.mark.parametrize("cxx", ["g++", "clang++"])
def test_positions_near_2_31(tmp_path, cxx):
    """An int index and an unsigned stride would wrap from 2^30 + 1 elements on; a grid of 0 is refused."""
    (tmp_path / "positions.cpp").write_text(POSITIONS)
    sanitized = ["-fsanitize=undefined", "-fno-sanitize-recover"] if cxx == "g++" else []
    command = [
        of_name(cxx),
        "-std=c++17",
        "-O1",
        *sanitized,
        INCLUDE,
        tmp_path / "positions.cpp",
        "-o",
        tmp_path / "positions",
    ]
    subprocess.run(command, check=True)
    done = subprocess.run([tmp_path / "positions"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = dict(line.split(":") for line in done.stdout.splitlines())
    found = {name: [int(word) for word in words.split()] for name, words in found.items()}
    step = 512 << 20
    assert found == {
        "blocks": [1, 1, 1, 1, 1, 2, 1 << 22, 2**31 - 1, 2**31 - 1, 2**31 - 1],
        "last": [2**31 + 7],
        "beyond": [],
        "int": [2**30 - 2, 2**31 - 2],
        "int strided": [step - 1, 2 * step - 1, 3 * step - 1],
        "unsigned": [5 * 512, 5 * 512 + 2**31],
        "size_t": [514 + k * 2**31 for k in range(4)],
        "largest grid": [512 * (2**31 - 1) - 1],
        "negative": [],
    }


HALVES = """
#include "caffe_half.h"
extern "C" void decode(const uint16_t *bits, float *values, long count, int brain) {
  for (long i = 0; i < count; ++i)
    values[i] = brain ? float(reinterpret_cast<const cuffi::types::bfloat16 *>(bits)[i])
                      : float(reinterpret_cast<const cuffi::types::half *>(bits)[i]);
}
extern "C" void encode(const float *values, uint16_t *bits, long count, int brain) {
  for (long i = 0; i < count; ++i)
    bits[i] = brain ? cuffi::types::bfloat16(values[i]).bits : cuffi::types::half(values[i]).bits;
}
"""


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "options", [[], ["-U__FLT16_MAX__"], ["-mf16c"]], ids=["with _Float16", "without", "f16c"]
)
@pytest.mark.parametrize("cxx", ["g++", "clang++"])
def test_half_conversions(tmp_path, cxx, options, dtype):
    """Both conversions in caffe_half.h, for every bit pattern and for numbers that are hard to round."""
    (tmp_path / "halves.cpp").write_text(HALVES)
    command = [of_name(cxx), "-std=c++17", "-O2", "-shared", "-fPIC", "-w", INCLUDE, *options]
    subprocess.run([*command, tmp_path / "halves.cpp", "-o", tmp_path / "halves.so"], check=True)
    library, brain = ctypes.CDLL(str(tmp_path / "halves.so")), int(dtype == torch.bfloat16)

    def address(tensor):
        return ctypes.c_void_p(tensor.data_ptr())

    patterns = torch.arange(65536, dtype=torch.int32).to(torch.int16)
    found = torch.empty(65536)
    library.decode(address(patterns), address(found), ctypes.c_long(65536), brain)
    assert_same_floats(found, patterns.view(dtype).float())
    floats = interesting_floats(dtype)
    encoded = torch.empty(floats.numel(), dtype=torch.int16)
    library.encode(address(floats), address(encoded), ctypes.c_long(floats.numel()), brain)
    assert_same_floats(encoded.view(dtype).float(), floats.to(dtype).float())


def test_half_expressions_are_float(program):
    """Rounded once, when stored; a half kernel that accumulated in half would lose the small term."""
    text = """
#include "caffe_cuda_macro.h"
#include <cstdio>
#include <type_traits>
int main() {
  caffe::half big = 2048, one = 1;
  static_assert(std::is_same<decltype(big + one), float>::value, "an expression over halves is a float");
  static_assert(std::is_same<caffe::accumulate_t<caffe::bfloat16>, float>::value, "");
  static_assert(std::is_same<caffe::accumulate_t<double>, double>::value, "");
  static_assert(sizeof(caffe::half) == 2 && alignof(caffe::bfloat16) == 2, "");
  caffe::half sum = big + one + one;
  sum += 1.0f;
  printf("%g %g", float(sum), float(caffe::half(big + one)));
}
"""
    assert program(text) == "2052 2048"  # 2051 is half-way between 2050 and 2052; 2049 between 2048 and 2050


def test_cuda_check_evaluates_once(program):
    text = """
#include "caffe_cuda_macro.h"
#include <cstdio>
namespace cuda_host { cudaError_t last_error(bool) { return cudaSuccess; } const char* why_refused() { return ""; } }
int main() {
  int calls = 0;
  auto call = [&] { ++calls; return calls == 1 ? cudaSuccess : cudaErrorMemoryAllocation; };
  CUDA_CHECK(call());
  if (calls == 1)
    CUDA_CHECK(cudaSuccess);  // the macro is one statement
  else
    return 1;
  try {
    CUDA_CHECK(call());
  } catch (const caffe::Error &error) {
    printf("%d %s", calls, error.what());
  }
}
"""
    assert re.fullmatch(
        r"2 .*program\.cpp:14: call\(\): cudaErrorMemoryAllocation: out of memory", program(text)
    )


# ----------------------------------------------------------------------------------- where it leads to


def test_addresses_lead_to_the_users_file(kernels_folder):
    """gdb and addr2line show a kernel's line in the user's .cu."""
    of_name("addr2line")
    source = kernels_folder / "barriers" / "barriers.cu"
    listing = subprocess.run(
        ["nm", "-C", kernels_folder / "barriers" / "_host.abi3.so"], capture_output=True, text=True
    ).stdout
    address = not_none(re.search(r"^(\w+) [tT] barriers_tree_sum$", listing, re.M))[1]
    command = ["addr2line", "-e", kernels_folder / "barriers" / "_host.abi3.so", address]
    path, _, line = subprocess.run(command, capture_output=True, text=True).stdout.strip().rpartition(":")
    assert path == str(source)
    assert "int barriers_tree_sum(" in source.read_text().splitlines()[int(line.split()[0]) - 1]
    debug = subprocess.run(
        ["readelf", "--debug-dump=decodedline", command[2]], capture_output=True, text=True
    ).stdout
    inside = next(
        n for n, text in enumerate(source.read_text().splitlines(), 1) if "held[threadIdx.x] += " in text
    )
    assert re.search(rf"\bbarriers\.cu +{inside} ", debug, re.M), (
        "no machine code is said to come from the kernel's own line"
    )


# --------------------------------------------------------------------------------------- architectures


def test_built_architectures(tmp_path, nvcc):
    """The message of a library that was built for other GPUs."""
    (tmp_path / "arch.cu").write_text("""
#include "caffe_cuda_macro.h"
#include <cstdio>
int main() {
  try {
    CUDA_CHECK(cudaErrorNoKernelImageForDevice);
  } catch (const caffe::Error &error) {
    printf("%s", error.what());
  }
}
""")
    known = subprocess.run(
        [nvcc, "--list-gpu-code"], capture_output=True, text=True, check=True
    ).stdout.split()
    built = [n for n in (75, 80, 90, 100) if f"sm_{n}" in known]  # nvcc 11.5 ends with sm_87
    codes = [word for n in built for word in ("-gencode", f"arch=compute_{n},code=sm_{n}")]
    subprocess.run(
        [nvcc, "-std=c++17", "-w", *codes, INCLUDE, *OF_NVCC, tmp_path / "arch.cu", "-o", tmp_path / "arch"],
        check=True,
    )
    text = subprocess.run([tmp_path / "arch"], capture_output=True, text=True).stdout
    names = " ".join(f"sm_{n}" for n in built)
    assert re.search(rf"arch\.cu:6: .*\(built for {names}, this GPU is sm_\d+: make ARCH=sm_\d+\)$", text), (
        text
    )


def test_length_of_a_vector_on_the_host(program):
    """It overflows only if the result does, as in CUDA."""
    text = """
#include "cuda_runtime.h"
#include <cstdio>
int main() {
  const double big[] = {3e300, 4e300};
  const float x[] = {3, 4, 12};
  std::printf("%g %g %g %.4f", norm(2, big), normf(3, x), rnorm(2, big), rnormf(3, x));
}
"""
    assert program(text, "-DCAFFE_HOST_BACKEND=1") == "5e+300 13 2e-301 0.0769"
