"""linux/aarch64: programs are cross-compiled, and run by qemu. It keeps the order of memory that x86 has, so what ARM
does with less order is not shown here: a job of the workflow `test` runs on an ARM processor.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

import build_ffi
from cuffi.judging import programs

CXX, QEMU = "aarch64-linux-gnu-g++", "qemu-aarch64-static"
needs_arm = pytest.mark.skipif(
    not (shutil.which(CXX) and shutil.which(QEMU)), reason=f"no {CXX}, or no {QEMU}"
)

MAIN = r"""
#include <cstdio>
#include <cuda_fp16.h>
%s
int main() {
  float* o; char* x; cudaMallocManaged(&o, 256); cudaMallocManaged(&x, 64);
  for (int i = 0; i < 64; ++i) x[i] = (char)(i - 32), o[i] = 0;
  k<<<2, 32>>>(o, x); cudaDeviceSynchronize();
  float sum = 0; for (int i = 0; i < 64; ++i) sum += o[i];
  printf("%%g\n", sum); return 0;
}
"""
# A kernel, and the sum of what it writes.
KERNELS = {
    "char": ("o[i] = x[i] < 0 ? 0 : x[i];", sum(range(32))),
    "guard": ("__shared__ half2 h[32]; h[t] = __float2half2_rn(1); o[i] = __low2float(h[t]);", 64),
    "shuffle": ("o[i] = __shfl_down_sync(0xffffffffu, (float)t, 1, 32);", 2 * (sum(range(1, 32)) + 31)),
    "phases": ("__shared__ int s[32]; s[t] = t; __syncthreads(); o[i] = s[31 - t];", 2 * sum(range(32))),
    "doubles": ("double a = t, b = t + 1, c = t * 2; for (int n = 0; n < 9; ++n) { __syncwarp(); a += b - c / 2; } "
                "o[i] = a;", 2 * sum(t + 9 for t in range(32))),
    "atomics": ("atomicAdd(o, 1.0f); atomicMax((int*)(o + 1), __float_as_int(3.0f));", 67),
}  # fmt: skip


@pytest.fixture
def arm(monkeypatch):
    monkeypatch.setenv("CXX", CXX)
    programs.compiler.cache_clear()
    yield
    programs.compiler.cache_clear()


def run(*command) -> subprocess.CompletedProcess:
    return subprocess.run(
        [QEMU, "-L", "/usr/aarch64-linux-gnu", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=100,
    )


@needs_arm
@pytest.mark.parametrize("mode", ["plain", "races"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_gives_what_x86_gives(arm, tmp_path, monkeypatch, name, mode):
    """And the race finder reports nothing: a variable of g++'s own is none of the kernel's."""
    body, wanted = KERNELS[name]
    kernel = f"__global__ void k(float* o, const char* x) {{ int t = threadIdx.x, i = blockIdx.x * 32 + t; {body} }}"
    file, log = tmp_path / "k.cu", tmp_path / "log"
    file.write_text(MAIN % kernel)
    monkeypatch.setenv("CAFFE_RACES", str(log))
    done = run(programs.program(programs.rewritten([file]), [file], mode, tmp_path / "made", []))
    assert (done.returncode, done.stdout) == (0, f"{wanted}\n"), done.stderr
    told = [line.split("\t")[0] for line in log.read_text().splitlines()] if log.exists() else []
    assert not {"race", "unset"} & set(told), log.read_text()


def compiled(text: str, folder: Path, *options: str) -> Path:
    (folder / "x.cpp").write_text(text)
    command = [CXX, "-std=c++17", "-static", *options, f"-I{ROOT}/src/edge", "x.cpp", "-o", "x"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "x"


@needs_arm
def test_a_feature_that_the_processor_lacks_is_known(tmp_path):
    program = compiled(
        '#include "cpu_arm.h"\n#include <stdio.h>\n'
        'int main(int, char** v) { puts(caffe_cpu_supports(v[1]) ? "yes" : "no"); }\n',
        tmp_path,
    )
    for cpu, feature, wanted in (
        ("cortex-a57", "sve", "no"), ("max", "sve", "yes"), ("cortex-a57", "atomics", "no"), ("max", "i8mm", "yes"),
        ("cortex-a76", "asimddp", "yes"), ("max", "nothing", "no"),
    ):  # fmt: skip
        assert run("-cpu", cpu, program, feature).stdout == f"{wanted}\n", (cpu, feature)


@needs_arm
@pytest.mark.parametrize(
    "march, wanted",
    [
        ("armv8-a", ""),
        ("armv8.2-a", "atomics asimdrdm"),
        ("armv8.2-a+sve+bf16", "atomics asimdhp asimdrdm sve bf16"),
    ],
)
def test_what_is_asked_of_the_processor(march, wanted):
    assert build_ffi.cpu_features([CXX], [f"-march={march}"]) == wanted.split()


def test_each_feature_of_the_list_is_asked_for_by_its_name():
    text = (ROOT / "src" / "edge" / "cpu_arm.h").read_text()
    assert set(re.findall(r'\{"(\w+)", AT_HWCAP2?, \d+\}', text)) == set(build_ffi.ARM_FEATURES.values())


@needs_arm
def test_an_atomic_orders_memory(tmp_path):
    """As each does on x86: much code has no fence behind a lock."""
    text = "#include <cuda_runtime.h>\nint take(int* lock) { return atomicCAS(lock, 0, 1) + atomicExch(lock, 2); }\n"
    (tmp_path / "x.cpp").write_text(text)
    command = [CXX, "-std=c++17", "-O2", "-march=armv8.2-a", "-DCAFFE_HOST_BACKEND=1", f"-I{ROOT}/include/host",
               f"-I{ROOT}/include", "-S", "x.cpp", "-o", "-"]  # fmt: skip
    code = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "casal" in code and "swpal" in code and not re.search(r"\b(cas|swp|ldadd)\t", code)
