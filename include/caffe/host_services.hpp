// What the engine asks of the process that loaded it (Python with torch; a test program has its own), and
// what the running call told the engine. Not a header of upstream's.
#ifndef CAFFE_HOST_SERVICES_HPP_
#define CAFFE_HOST_SERVICES_HPP_

#include <stddef.h>
#include <stdint.h>

namespace caffe {

// Function addresses, in the order in which Python packs them as 64-bit words. A function that fails returns
// 0 (allocate, random, text, fft) and leaves its reason with its own side, which raises it instead of the
// engine's error.
struct HostServices {
  // `bytes` of memory, not zeroed. device: -1 host memory, -2 page-locked host memory, else the CUDA device's
  // own. A token for it comes back.
  void* (*allocate)(int64_t bytes, int64_t device, int64_t* token);
  // The engine's last use of that memory is enqueued on the current stream.
  void (*release)(int64_t token);
  // A cublasHandle_t for the current device, set to the current stream.
  void* (*blas_handle)();
  // Fill `count` elements at `address` from torch's generator of that device (-1: the CPU's). 1 if done.
  // kind: 0 uniform in [a, b), 1 normal of mean a and deviation b, 2 Bernoulli of probability a, 3 all bits
  // of a 32-bit word. dtype: 0 float, 1 double, 2 32-bit integer.
  int64_t (*random)(int64_t kind, void* address, int64_t count, int64_t dtype, int64_t device, double a,
                    double b);
  // A seed drawn from torch's CPU generator, for caffe_rng().
  int64_t (*seed)();
  // One line for people: severity 0 INFO, 1 WARNING, 2 ERROR.
  void (*log)(int64_t severity, const char* text);
  // Paths of the shared objects in which BLAS (sgemm_ and so on) and, or "", cuBLAS are to be found.
  const char* blas_library;
  const char* cublas_library;
  // Caffe::set_random_seed: seeds torch's generators.
  void (*set_seed)(int64_t seed);
  // Real protobuf's text format, of the message of that full name in `file`, a serialized
  // FileDescriptorProto. kind: 0 wire format to text, 1 to text in one line, 2 text to wire format, 3 the
  // same for a part of a message: a single field may come twice, a required one not at all. take(to, ...) is
  // called once, with the result. 1 if done, 2 if the text is wrong: the result then says why.
  int64_t (*text)(int64_t kind, const char* file, int64_t file_bytes, const char* message, const char* input,
                  int64_t input_bytes, void (*take)(void* to, const char* data, int64_t bytes), void* to);
  // A batch of Fourier transforms, not normalised, by torch.fft on the current stream. words: cufftType,
  // direction, device (-1: host), the addresses of input and output, batch; of input, then of output, the
  // distance from one transform to the next and the stride of each axis, in elements; the `axes` sizes. 1 if
  // done.
  int64_t (*fft)(const int64_t* words, int64_t axes);
};

extern HostServices host_services;

// The running call, per thread. Kernel launches are put on current_stream() by tools/cuda_for_nvcc.py.
struct CallContext {
  int mode = 0;     // 0 CPU, 1 GPU
  int device = -1;  // CUDA index; -1 on the host backend, in either mode
  void* stream = nullptr;
  bool is_train = true;
  int64_t iteration = -1;  // of the training loop, if that says it
};
extern thread_local CallContext call_context;

}  // namespace caffe

#endif  // CAFFE_HOST_SERVICES_HPP_
