"""A warp-synchronous kernel of 2017: the race finder names its line, in the user's own file."""

import os
import subprocess
import sys

from support import python_with_torch

from .conftest import PROGRAM, ROOT

KERNEL = """#include "sum.h"
__global__ void sum(float* x) {
  __shared__ volatile float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 16) s[threadIdx.x] += s[threadIdx.x + 16];
  if (threadIdx.x < 8) s[threadIdx.x] += s[threadIdx.x + 8];
  __syncthreads();
  x[threadIdx.x] = s[0];
}
void launch(float* x, cudaStream_t stream) { sum<<<1, 32, 0, stream>>>(x); }
"""
HEADER = """#include <cuda_runtime.h>
#ifdef __cplusplus
extern "C"
#endif
void launch(float* x, cudaStream_t stream);
"""
SOURCE = """#include <THC/THC.h>
#include "sum.h"
extern THCState *state;
int total(THCudaTensor *x) {
  launch(THCudaTensor_data(state, x), THCState_getCurrentStream(state));
  return 1;
}
"""
BUILD = """from torch.utils.ffi import create_extension
create_extension('old.total', 'total.h', ['total.c'], with_cuda=True, relative_to=__file__,
                 extra_objects=['sum.cu.o']).build()
"""


def test_a_race_is_named_with_the_user_s_line(tmp_path, cache):
    files = {"sum.cu": KERNEL, "sum.h": HEADER, "total.c": SOURCE, "total.h": "int total(THCudaTensor *x);"}
    files |= {
        "build.py": BUILD,
        "use.py": "import torch\nfrom old import total\ntotal.total(torch.ones(32).cuda())\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    environment = os.environ | {
        "SANITIZE": "races",
        "CAFFE_RACES": str(tmp_path / "log"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    for script in ("build.py", "use.py"):
        done = python_with_torch.run([sys.executable, PROGRAM, script], tmp_path, environment)
        assert done.returncode == 0, done.stdout + done.stderr
    command = [sys.executable, "-m", "tools.cases.races", str(tmp_path / "log")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "race in kernel sum: a shared variable (4 bytes)" in done.stdout
    assert f"{tmp_path}/sum.cu:6: thread " in done.stdout and f"{tmp_path}/sum.cu:7: thread " in done.stdout
    assert f"{tmp_path}/sum.cu:9" not in done.stdout  # it lies behind a barrier
