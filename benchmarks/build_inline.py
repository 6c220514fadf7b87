"""load_inline of one kernel, of a new string and again in a second process, compared with torch's and tvm_ffi's.

python -m benchmarks.build_inline CONTENDER NUMBER     measures in this process, and prints the seconds

Each contender's environment variable names the folder of its cache. The time is what a user waits for after `import
torch`: the contender's import, load_inline, and one call of the result. A new string is not in the cache, but other
strings are.
"""

import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable

import torch

from . import _machine, _make, _peer
from ._machine import GPU
from ._report import Report, Settings
from ._timing import in_turns

GROUP = "build"
OURS, TORCH, TVM = "ours", "torch", "tvm_ffi"
NEW, AGAIN = "a new string", "the same string, second process"
# The environment variables of the caches.
CACHES = {OURS: "CUFFI_CACHE", TORCH: "TORCH_EXTENSIONS_DIR", TVM: "TVM_FFI_CACHE_DIR"}
# (what, peer) -> the target, as a share of the peer's time
TARGETS = {(NEW, TORCH): 0.2, (NEW, TVM): 1.0, (AGAIN, TORCH): 1.0, (AGAIN, TVM): 1.0}

# The same kernel for each contender. %d makes each string a new one.
KERNEL = """
__global__ void twice_kernel(int64_t n, const float* bottom, float* top) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x)
    top[i] = 2 * bottom[i] + %d;
}
"""
CUFFI_CUDA = """
%s
extern "C" int twice(const float* bottom, float* top, int64_t count, void* stream) {
  twice_kernel<<<(count + 511) / 512, 512, 0, static_cast<cudaStream_t>(stream)>>>(count, bottom, top);
  return CAFFE_LAUNCH_STATUS();
}
"""
TORCH_CUDA = """
#include <torch/types.h>
#include <c10/cuda/CUDAStream.h>
%s
torch::Tensor twice(torch::Tensor bottom) {
  auto top = torch::empty_like(bottom);
  twice_kernel<<<(bottom.numel() + 511) / 512, 512, 0, c10::cuda::getCurrentCUDAStream()>>>(
      bottom.numel(), bottom.const_data_ptr<float>(), top.mutable_data_ptr<float>());
  return top;
}
"""
TVM_CUDA = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
%s
void twice(tvm::ffi::TensorView bottom, tvm::ffi::TensorView top) {
  auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(bottom.device().device_type, bottom.device().device_id));
  twice_kernel<<<(bottom.size(0) + 511) / 512, 512, 0, stream>>>(
      bottom.size(0), static_cast<const float*>(bottom.data_ptr()), static_cast<float*>(top.data_ptr()));
}
"""


def measure(settings: Settings) -> Report:
    report = Report("load_inline of one kernel, only for this GPU, s")
    if not (torch.cuda.is_available() and _make.has_nvcc()):
        report.notes.append("Nothing was measured: this needs nvcc and a GPU.")
        return report
    contenders = [OURS]
    if reason := _peer.absent():
        report.notes.append(f"torch is absent: {reason}.")
    else:
        contenders.append(TORCH)
    if importlib.util.find_spec("tvm_ffi"):
        contenders.append(TVM)
    else:
        report.notes.append("tvm_ffi is absent: it is not installed.")
    with tempfile.TemporaryDirectory() as caches:
        for contender in contenders:
            seconds = in_a_process(contender, 0, caches)
            report.notes.append(f"{contender}, into an empty cache: {seconds:.2f} s.")
        for what, times in (
            (NEW, in_turns(timers(contenders, caches, new=True), 0, least=2, warm=False)),
            (AGAIN, in_turns(timers(contenders, caches, new=False), 0, least=5, warm=False)),
        ):
            report.row(what=what, **{contender: times.median(contender) for contender in times})
            for peer in contenders[1:]:
                ratio = times.ratio(OURS, peer)
                report.figure(f"load_inline, {what} / {peer}", _machine.here(GPU), ratio, TARGETS[what, peer])
    return report


def timers(contenders: list[str], caches: str, new: bool) -> dict[str, Callable[[], float]]:
    """A timer for each contender, of load_inline in a new process: a new string each time, or always the first one."""
    numbers = dict.fromkeys(contenders, 0)

    def timer(contender: str) -> float:
        numbers[contender] += new
        return in_a_process(contender, numbers[contender], caches)

    return {contender: lambda contender=contender: timer(contender) for contender in contenders}


def in_a_process(contender: str, number: int, caches: str) -> float:
    cache = os.path.join(caches, contender)
    if number == 0 and not os.path.isdir(cache):
        os.mkdir(cache)
    return _make.seconds_of(__name__, contender, str(number), **{CACHES[contender]: cache})


def load_ours(number: int) -> Callable:
    from cuffi import load_inline

    module = load_inline(f"twice_{number}", CUFFI_CUDA % (KERNEL % number), backends=[GPU])

    def call(bottom):
        top = torch.empty_like(bottom)
        module.twice(bottom, top, bottom.numel())
        return top

    return call


def load_torch(number: int) -> Callable:
    from torch.utils.cpp_extension import load_inline

    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", _machine.gpu_arch())
    declared = "torch::Tensor twice(torch::Tensor bottom);"
    source = TORCH_CUDA % (KERNEL % number)
    return load_inline(f"twice_{number}", declared, source, functions=["twice"]).twice


def load_tvm(number: int) -> Callable:
    import tvm_ffi.cpp

    source = TVM_CUDA % (KERNEL % number)
    module = tvm_ffi.cpp.load_inline(f"twice_{number}", cuda_sources=source, functions="twice")

    def call(bottom):
        top = torch.empty_like(bottom)
        module.twice(bottom, top)
        return top

    return call


def in_this_process(contender: str, number: int) -> float:
    """Seconds of the contender's import, of load_inline and of one call. torch and CUDA are started before."""
    bottom = torch.arange(1000, dtype=torch.float32, device=GPU)
    torch.cuda.synchronize()
    start = time.perf_counter()
    top = {OURS: load_ours, TORCH: load_torch, TVM: load_tvm}[contender](number)(bottom)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    if not torch.equal(top, 2 * bottom + number):
        raise RuntimeError(f"{contender}: the kernel's result is wrong")
    return seconds


if __name__ == "__main__":
    print(in_this_process(sys.argv[1], int(sys.argv[2])))
