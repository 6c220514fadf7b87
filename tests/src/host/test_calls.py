"""Launches as function calls, also of a kernel that is a void*; what else whole programs ask CUDA's runtime for."""

import subprocess
import sys

import pytest
from support.workshop import ROOT

LAUNCHES = r"""#include <cstdio>
template <typename T, int N>
__global__ void add(T* x, T k) {
  extern __shared__ T s[];
  s[threadIdx.x] = k;
  x[threadIdx.x] += N * s[threadIdx.x];
}
__global__ void one(float* x) { x[threadIdx.x] += 1; }
namespace ns {
__global__ void two(float* x) { x[threadIdx.x] += 2; }
}  // namespace ns
struct Spec {
  void* kernel;
  int block;
};
template <typename T>
Spec choose(int n) {
  Spec s;
  s.block = 8;
  s.kernel = n ? (void*)add<T, 3> : (void*)add<T, 5>;
  return s;
}
int main() {
  float h[8] = {}, *x, k = 2;
  cudaMalloc(&x, 32);
  cudaMemset(x, 0, 32);
  Spec s = choose<float>(1);
  void* args[] = {&x, &k};
  if (cudaFuncSetAttribute(s.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000)) return 9;
  if (cudaLaunchKernel(s.kernel, 1, s.block, args, 60000, 0)) return 1;
  const void* f = reinterpret_cast<const void*>(&one);
  if (cudaLaunchKernel(f, dim3(1), dim3(8), args, 0, 0)) return 2;
  if (cudaLaunchKernel((const void*)ns::two, dim3(1), dim3(8), args, 0, 0)) return 3;
  void* g = (void*)&ns::two;
  if (cudaLaunchCooperativeKernel(g, dim3(1), dim3(8), args)) return 3;
  if (cudaLaunchKernel((void*)h, dim3(1), dim3(8), args, 0, 0) != cudaErrorInvalidDeviceFunction) return 4;
  cudaGetLastError();
  cudaLaunchConfig_t c = {};
  c.gridDim = 1;
  c.blockDim = 8;
  cudaLaunchAttribute a[1];
  a[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  a[0].val.programmaticStreamSerializationAllowed = 1;
  c.attrs = a;
  c.numAttrs = 1;
  if (cudaLaunchKernelEx(&c, one, x)) return 5;
  if (cudaLaunchKernelExC(&c, g, args)) return 6;
  a[0].id = cudaLaunchAttributeClusterDimension;
  a[0].val.clusterDim = {2, 1, 1};
  if (cudaLaunchKernelEx(&c, one, x) != cudaErrorNotSupported) return 7;
  cudaMemcpy(h, x, 32, cudaMemcpyDeviceToHost);
  printf("%g\n", h[3]);
  return h[3] == 6 + 1 + 2 + 2 + 1 + 2 ? 0 : 8;
}
"""


def run(tmp_path, text: str) -> subprocess.CompletedProcess:
    (tmp_path / "program.cu").write_text(text)
    command = [sys.executable, "-m", "cuffi.run", str(tmp_path / "program.cu")]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_launches_of_kernels_by_their_address(cache, tmp_path):
    """Each way to cast, in an expression and in a struct; an address that is no kernel, and a cluster, are refused."""
    done = run(tmp_path, LAUNCHES)
    assert (done.returncode, done.stdout) == (0, "14\n"), done.stderr


BODIES = {
    "attributes": "cudaFuncAttributes a; CHECK(!cudaFuncGetAttributes(&a, k) && a.maxThreadsPerBlock >= 32)",
    "pointers": "cudaPointerAttributes a; CHECK(!cudaPointerGetAttributes(&a, p + 3) && a.type == cudaMemoryTypeDevice)"
    " CHECK(!cudaPointerGetAttributes(&a, &a) && a.type == cudaMemoryTypeUnregistered)"
    " float* h; cudaMallocHost(&h, 8); CHECK(!cudaPointerGetAttributes(&a, h) && a.type == cudaMemoryTypeHost)",
    "device": "CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice)",
    "names": 'CHECK(!strcmp(cudaGetErrorName(cudaErrorLaunchFailure), "cudaErrorLaunchFailure"))'
    ' CHECK(!strcmp(cudaGetErrorString(cudaErrorInvalidDevice), "invalid device ordinal"))'
    " CHECK(cudaErrorMissingConfiguration == 52 && cudaErrorMisalignedAddress == 716)"
    ' CHECK(!strcmp(cudaGetErrorString(cudaErrorInvalidPtx), "cudaErrorInvalidPtx")) CHECK(!cudaThreadExit())',
    "limits": "size_t n; CHECK(!cudaDeviceGetLimit(&n, cudaLimitStackSize) && n >= 1024)",
    "blocks": "int g, b; CHECK(!cudaOccupancyMaxPotentialBlockSizeVariableSMem(&g, &b, k,"
    " [](int n) { return size_t(n) << 10; }, 1024) && b <= 227 && b >= 32)",
    "graphs": "cudaGraph_t g; CHECK(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal) == cudaErrorNotSupported)"
    " CHECK(cudaGetLastError() == cudaErrorNotSupported) CHECK(cudaStreamEndCapture(0, &g) == cudaErrorNotSupported)",
    "arrays": "cudaArray_t a; cudaChannelFormatDesc f = cudaCreateChannelDesc<float>(); char h[64] = {1};"
    " CHECK(!cudaMallocArray(&a, &f, 4, 3)) const auto kind = cudaMemcpyHostToDevice; const size_t far = -4;"
    " CHECK(!cudaMemcpy2DToArray(a, 8, 1, h, 16, 8, 2, kind))"
    " CHECK(cudaMemcpy2DToArray(a, 12, 1, h, 16, 8, 2, kind) == cudaErrorInvalidValue)"
    " CHECK(cudaMemcpy2DToArray(a, far, 1, h, 16, 8, 2, kind) == cudaErrorInvalidValue)"
    " CHECK(cudaMemcpy2DFromArray(h, 16, a, 0, far, 8, 4, kind) == cudaErrorInvalidValue)"
    " CHECK(!cudaMemcpyToArray(a, 8, 1, h, 24, kind) && cudaMemcpyToArray(a, far, 1, h, 24, kind))"
    " CHECK(cudaMemcpyFromArray(h, a, 0, far, 4, kind) == cudaErrorInvalidValue && !cudaFreeArray(a))",
    "copies": "cudaExtent e = make_cudaExtent(12, 3, 2); cudaPitchedPtr q; CHECK(!cudaMalloc3D(&q, e) && q.pitch >= 12)"
    " CHECK(!cudaMemset3D(q, 5, e)) unsigned char h[2][4][16] = {}; cudaMemcpy3DParms c = {};"
    " c.srcPtr = q; c.srcPos = make_cudaPos(4, 1, 1); c.dstPtr = make_cudaPitchedPtr(h, 16, 16, 4);"
    " c.dstPos = make_cudaPos(2, 1, 0); c.extent = make_cudaExtent(8, 2, 1); c.kind = cudaMemcpyDeviceToHost;"
    " CHECK(!cudaMemcpy3D(&c)) int sum = 0; for (auto& s : h) for (auto& r : s) for (int v : r) sum += v;"
    " CHECK(sum == 80 && h[0][1][2] == 5 && h[0][2][9] == 5 && !h[0][1][1] && !h[1][1][2])"
    " c.extent.width = q.pitch; CHECK(cudaMemcpy3D(&c) == cudaErrorInvalidValue)",
}


@pytest.mark.parametrize("name", BODIES)
def test_the_rest_of_the_runtime(name, cache, tmp_path):
    head = "#include <cstdio>\n#include <cstring>\n#define CHECK(x) if (!(x)) { puts(#x); return 1; }\n"
    head += "__global__ void k(float* a) { a[threadIdx.x] = 1; }\n"
    done = run(
        tmp_path, f"{head}int main() {{ float* p; cudaMalloc(&p, 256);\n{BODIES[name]}\nreturn 0; }}\n"
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
