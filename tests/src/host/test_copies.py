"""Kernels whose loops become memcpy, memmove or memset: a wild address there ends the call, and Python lives on."""

import subprocess
import sys

import pytest
from conftest import ROOT

KERNELS = """
struct Big { char bytes[4096]; };
__global__ void tile(int* y, const int* x, long long at) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = x[t + at];
  __syncthreads();
  y[t] = s[255 - t];
}
__global__ void row(int* y, const int* x, long long at) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 256) y[i] = x[i + at];
}
__global__ void clear(int* y, const int* x, long long at) { y[threadIdx.x + at] = 0; }
__global__ void ones(char* y, const int* x, long long at) { y[threadIdx.x + at] = 1; }
__global__ void whole(int* y, const int* x, long long at) {
  const Big v = *(const Big*)(x + at);
  memcpy(y, &v, sizeof v);
}
__global__ void explicitly(int* y, const int* x, long long at) { memcpy(y, x + at, blockDim.x); }
__global__ void moved(int* y, const int* x, long long at) { memmove(y, x + at, blockDim.x); __syncthreads(); }
__global__ void set(int* y, const int* x, long long at) { memset(y + at, 3, blockDim.x); }
"""
CHILD = """
import sys, torch
from cuffi import load_inline
m = load_inline("wild_copies", sys.argv[1], backends="host")
x, y = torch.arange(2048, dtype=torch.int32), torch.zeros(2048, dtype=torch.int32)
for name in sys.argv[2:]:
    to = y.view(torch.int8) if name == "ones" else y
    try:
        getattr(m, name)(to, x, 1 << 40, 1, 1, 1, 256, 1, 1)
    except RuntimeError as error:
        print(name, str(error))
m.row(y, x, 3, 1, 1, 1, 256, 1, 1)
print("and then", torch.equal(y[:256], x[3:259]))
"""
NAMES = ("tile", "row", "clear", "ones", "whole", "explicitly", "moved", "set")


@pytest.mark.usefixtures("cache")
def test_a_wild_address_in_a_copy_is_an_error():
    command = [sys.executable, "-W", "ignore", "-c", CHILD, KERNELS, *NAMES]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*NAMES, "and"], done.stderr
    assert all("used memory that is not there" in line for line in lines[:-1]), lines
    assert lines[-1] == "and then True"
