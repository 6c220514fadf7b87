// A built layer in a C++ program, without Python and without torch. In the toolkit's folder, after make:
//
//   g++ -std=c++17 -I. examples/without_python.cpp build/round/host/libround.a -pthread -o without_python
//
// The launcher takes host memory. With build/round/cuda/libround.a and nvcc it takes the GPU's,
// and a cudaStream_t.
#include <cstdint>
#include <cstdio>
#include <exception>

extern "C" {
#include "layers/round/round.h"
}

int main() {
  const int kFloat32 = 0;  // include/caffe_ffi.h has the dtypes' numbers
  const float bottom[] = {0.2f, 0.5f, 0.9f};
  float top[3];
  try {
    const int status = round_forward(bottom, top, 3, kFloat32, nullptr);
    if (status) return status;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  std::printf("%g %g %g\n", top[0], top[1], top[2]);
}
