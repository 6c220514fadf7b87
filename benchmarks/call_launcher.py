"""A call that passes two tensors of 16 floats to a kernel: our launcher's, and tvm_ffi's if it is installed.

On a processor tvm_ffi is a loop in C++. It asks torch nothing. Ours also asks whether a mode watches, whether
a tensor's memory holds the negatives of its values, and whether a gradient is lost, and it tells autograd that the
output was written to.
"""

import importlib.util
from collections.abc import Callable

import torch
from cuffi.sigmoid import sigmoid

from cuffi import load_inline

from . import _machine
from ._machine import GPU
from ._report import Report, Settings
from ._timing import in_turns, loop
from .call import CALLS

GROUP = "call"
ELEMENTS = 16
OURS, TVM = "ours", "tvm_ffi"

KERNEL = """
__global__ void twice_kernel(int64_t n, const float* bottom, float* top) {
  int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) top[i] = 2 * bottom[i];
}
"""
LAUNCH = "twice_kernel<<<(%s + 255) / 256, 256, 0, static_cast<cudaStream_t>(%s)>>>(%s);"
CUFFI = f"""{KERNEL}
extern "C" int twice(const float* bottom, float* top, int64_t count, void* stream) {{
  {LAUNCH % ("count", "stream", "count, bottom, top")}
  return CAFFE_LAUNCH_STATUS();
}}
"""
HEAD = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
"""
ARGUMENTS = """
  const int64_t count = bottom.size(0);
  const float* from = static_cast<const float*>(bottom.data_ptr());
  float* to = static_cast<float*>(top.data_ptr());
"""
TVM_CPU = f"""{HEAD}
void twice(tvm::ffi::TensorView bottom, tvm::ffi::TensorView top) {{
{ARGUMENTS}
  for (int64_t i = 0; i < count; ++i) to[i] = 2 * from[i];
}}
"""
TVM_CUDA = f"""{HEAD}{KERNEL}
void twice(tvm::ffi::TensorView bottom, tvm::ffi::TensorView top) {{
{ARGUMENTS}
  void* stream = TVMFFIEnvGetStream(bottom.device().device_type, bottom.device().device_id);
  {LAUNCH % ("count", "stream", "count, from, to")}
}}
"""


def measure(settings: Settings) -> Report:
    report = Report(f"One call with two tensors of {ELEMENTS} floats, nothing allocated")
    for device in _machine.devices():
        bottom = torch.randn(ELEMENTS, device=device)
        calls: dict[str, tuple[Callable, tuple]] = {}
        ours = load_inline("call_launcher", CUFFI, backends="host" if device == "cpu" else [GPU]).twice
        calls[OURS] = ours, (bottom, torch.zeros_like(bottom), ELEMENTS)
        if importlib.util.find_spec("tvm_ffi"):
            calls[TVM] = of_tvm(device), (bottom, torch.zeros_like(bottom))
        for call, arguments in calls.values():
            call(*arguments)
            if not torch.equal(arguments[1], 2 * bottom):
                raise RuntimeError("a result is wrong")
        calls["sigmoid"], calls["torch.sigmoid"] = (sigmoid, (bottom,)), (torch.sigmoid, (bottom,))
        timers = {name: loop(*call, CALLS, device) for name, call in calls.items()}
        times = in_turns(timers, seconds=1.0 if settings.quick else 3.0, least=30, most=400)
        for name in times:
            us, least = times.median(name) * 1e6, times.least(name) * 1e6
            report.row(on=device, call=name, us=us, least=least, spread=times.spread(name))
        here = _machine.here(device)
        if TVM in calls:
            report.figure("a launcher's call, ours / tvm_ffi", here, times.ratio(OURS, TVM), 1.25)
        report.figure("sigmoid(x), ours / torch", here, times.ratio("sigmoid", "torch.sigmoid"), 1.0)
    if not importlib.util.find_spec("tvm_ffi"):
        report.notes.append("tvm_ffi is absent: pip install apache-tvm-ffi.")
    return report


def of_tvm(device: str) -> Callable:
    import tvm_ffi.cpp

    sources = {"cpp_sources": TVM_CPU} if device == "cpu" else {"cuda_sources": TVM_CUDA}
    return tvm_ffi.cpp.load_inline(f"call_launcher_{device}", functions="twice", **sources).twice
