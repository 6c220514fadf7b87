// The Caffe singleton, and the CUDA runtime functions that layers call themselves.
#include "caffe/common.hpp"

#include <random>

namespace caffe {

void GlobalInit(int*, char***) {}

Caffe::Caffe() {}
Caffe::~Caffe() {}

Caffe& Caffe::Get() {
  static thread_local Caffe instance;
  return instance;
}

Caffe::RNG::RNG() : RNG(static_cast<unsigned int>(host_services.seed())) {}
Caffe::RNG::RNG(unsigned int seed) : generator_(new std::mt19937(seed)) {}

Caffe::RNG& Caffe::rng_stream() {
  Caffe& caffe = Get();
  if (!caffe.random_generator_ || caffe.reseed_) {
    caffe.reseed_ = false;
    const uint64_t seed = caffe.call_seed_ ? caffe.call_seed_ : host_services.seed();
    caffe.random_generator_.reset(new RNG(static_cast<unsigned int>(seed)));
  }
  return *caffe.random_generator_;
}

void Caffe::begin_call(uint64_t seed) {
  Caffe& caffe = Get();
  caffe.call_seed_ = seed;
  caffe.reseed_ = true;
}

void Caffe::set_random_seed(const unsigned int seed) {
  if (host_services.set_seed) host_services.set_seed(seed);
  Get().random_generator_.reset(new RNG(seed));
  Get().reseed_ = false;
}

cublasHandle_t Caffe::cublas_handle() {
  if (!host_services.blas_handle) return nullptr;
  return static_cast<cublasHandle_t>(host_services.blas_handle());
}

void Caffe::set_mode(Brew mode) { call_context.mode = mode == GPU; }

#ifdef CAFFE_HOST_BACKEND

void Caffe::SetDevice(const int) {}
void Caffe::DeviceQuery() { LOG(INFO) << "The host backend: kernels run on the CPU."; }
bool Caffe::CheckDevice(const int device_id) { return device_id == 0; }
int Caffe::FindDevice(const int start_id) { return start_id == 0 ? 0 : -1; }

#else

void Caffe::SetDevice(const int device_id) {
  CUDA_CHECK(cudaSetDevice(device_id));
  call_context.device = device_id;
}

void Caffe::DeviceQuery() {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  LOG(INFO) << "Device " << device << ": " << properties.name;
}

bool Caffe::CheckDevice(const int device_id) {
  int count = 0;
  const bool known = cudaGetDeviceCount(&count) == cudaSuccess;
  (void)cudaGetLastError();
  return known && device_id >= 0 && device_id < count;
}

int Caffe::FindDevice(const int start_id) { return CheckDevice(start_id) ? start_id : -1; }

#endif

}  // namespace caffe

#ifndef CAFFE_HOST_BACKEND

// cudaMemcpy returns after the copy is done, so wait here, unless both ends are on the device.
static cudaError_t waited_for(cudaError_t error, cudaMemcpyKind kind) {
  if (error != cudaSuccess || kind == cudaMemcpyDeviceToDevice) return error;
  return cudaStreamSynchronize(caffe::current_stream());
}

cudaError_t caffe_stream_memcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return waited_for(caffe_stream_memcpy_async(to, from, bytes, kind), kind);
}

cudaError_t caffe_stream_memcpy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, kind, stream ? stream : caffe::current_stream());
}

cudaError_t caffe_stream_memcpy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                   size_t width, size_t height, cudaMemcpyKind kind) {
  return waited_for(caffe_stream_memcpy_2d_async(to, to_pitch, from, from_pitch, width, height, kind), kind);
}

cudaError_t caffe_stream_memcpy_2d_async(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                         size_t width, size_t height, cudaMemcpyKind kind,
                                         cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind,
                           stream ? stream : caffe::current_stream());
}

cudaError_t caffe_stream_memset(void* to, int byte, size_t bytes, cudaStream_t stream) {
  return cudaMemsetAsync(to, byte, bytes, stream ? stream : caffe::current_stream());
}

#endif
