"""Each header that extensions include compiles alone, on the host; all together with kernels around them."""

import subprocess

import pytest
import torch
from support.compiler import WORDS
from support.workshop import ROOT

from cuffi.old_torch import cpp_extension

HEADERS = ROOT / "cuffi" / "old_torch" / "include" / "extension"
NAMES = sorted(
    str(f.relative_to(folder))
    for folder in (HEADERS, HEADERS / "later")
    for f in folder.rglob("*")
    if f.is_file()
    and "aten" not in f.relative_to(folder).parts
    and "later" not in f.relative_to(folder).parts
)


def test_all_together_in_a_kernels_file(extensions):
    text = "".join(f"#include <{name}>\n" for name in NAMES)
    module = cpp_extension.load_inline("headers", text + "int two() { return 2; }", functions="two")
    assert module.two() == 2
    kernel = (
        text + "C10_LAUNCH_BOUNDS_1(1024) __global__ void k(int* x) { CUDA_KERNEL_LOOP(i, 3) x[i] = i; }\n"
    )
    kernel += "using namespace at::cuda::detail;\nvoid f(torch::Tensor x) {\n"
    kernel += "  k<<<GET_BLOCKS(3), CUDA_NUM_THREADS>>>(x.data_ptr<int>()); C10_CUDA_KERNEL_LAUNCH_CHECK(); }"
    module = cpp_extension.load_inline("kernels", "void f(torch::Tensor x);", kernel, functions="f")
    module.f(x := torch.zeros(3, dtype=torch.int32))
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("part", range(4))
def test_each_alone(part, tmp_path):
    """What it needs is included by itself."""
    command = [*WORDS, "-std=c++17", "-fsyntax-only", "-w", "-DCAFFE_HOST_BACKEND=1", f"-I{HEADERS}"]
    command += [f"-I{HEADERS}/later", f"-I{ROOT}/include", "-idirafter", f"{ROOT}/include/host", "-x", "c++"]
    heads = sorted(
        {(HEADERS / n if (HEADERS / n).exists() else HEADERS / "later" / n).read_text() for n in NAMES}
    )
    for i, text in enumerate(heads[part::4]):
        source = tmp_path / f"{i}.cpp"
        source.write_text(text)
        done = subprocess.run([*command, str(source)], capture_output=True, text=True)
        assert done.returncode == 0, text + done.stderr


def test_a_shuffle_of_a_half_is_one_function(tmp_path, nvcc):
    """pytorch_scatter: CUDA's shuffles take a BFloat16 by float, and a Half by the extension's own, as with torch."""
    (tmp_path / "k.cu").write_text("""#include "aten/half.h"
    __device__ c10::Half __shfl_up_sync(unsigned mask, const c10::Half value, unsigned by) {
      return __shfl_up_sync(mask, value.operator __half(), by);
    }
    template <typename T> __global__ void sum(T* x) {
      x[threadIdx.x] = x[threadIdx.x] + __shfl_up_sync(0xffffffffu, x[threadIdx.x], 1);
    }
    template __global__ void sum<c10::Half>(c10::Half*);
    template __global__ void sum<c10::BFloat16>(c10::BFloat16*);
    __global__ void casts(c10::BFloat16* x, __nv_bfloat16* y) { y[0] = __nv_bfloat16(x[0]); x[1] = y[1]; }
    """)
    headers = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'cuffi/old_torch/include/extension'}", "-DATEN_WITH_HALF"]
    command = [nvcc, "-ptx", "-std=c++17", "-arch=sm_90", *headers, "k.cu", "-o", "k.ptx"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
