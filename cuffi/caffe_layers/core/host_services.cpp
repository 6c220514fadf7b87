// The default services, for a program without Python, such as a test.
#include "caffe/host_services.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <random>

#include "caffe/util/device_alternate.hpp"

namespace caffe {
namespace {

std::mt19937_64& generator() {
  static thread_local std::mt19937_64 numbers{1701};
  return numbers;
}

void* allocate(int64_t bytes, int64_t device, int64_t* token) {
  void* address = nullptr;
  const size_t size = bytes > 0 ? bytes : 1;
#ifdef CAFFE_HOST_BACKEND
  address = malloc(size);
#else
  if (device >= 0) {
    if (cudaMallocAsync(&address, size, current_stream()) != cudaSuccess) address = nullptr;
  } else {
    if (cudaMallocHost(&address, size) != cudaSuccess) address = nullptr;
  }
#endif
  *token = reinterpret_cast<int64_t>(address);
  return address;
}

void release(int64_t token) {
  void* address = reinterpret_cast<void*>(token);
#ifdef CAFFE_HOST_BACKEND
  ::free(address);
#else
  if (cudaFreeHost(address) == cudaSuccess) return;
  // The address is in device memory. Clear the error.
  (void)cudaGetLastError();
  (void)cudaFreeAsync(address, current_stream());
#endif
}

template <typename T, typename Next>
bool fill(void* address, int64_t count, Next next) {
  std::unique_ptr<T[]> values(new T[count]);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(next());
  return cudaMemcpyAsync(address, values.get(), count * sizeof(T), cudaMemcpyDefault, current_stream()) ==
             cudaSuccess &&
         cudaStreamSynchronize(current_stream()) == cudaSuccess;
}

template <typename T>
bool fill_real(int64_t kind, void* address, int64_t count, double a, double b) {
  std::mt19937_64& numbers = generator();
  if (kind == 0) {
    std::uniform_real_distribution<T> uniform(a, b);
    return fill<T>(address, count, [&] { return a < b ? uniform(numbers) : T(a); });
  }
  if (kind == 1) {
    std::normal_distribution<T> normal(a, b);
    return fill<T>(address, count, [&] { return normal(numbers); });
  }
  std::bernoulli_distribution bernoulli(a);
  return fill<T>(address, count, [&] { return bernoulli(numbers); });
}

int64_t random(int64_t kind, void* address, int64_t count, int64_t dtype, int64_t, double a, double b) {
  if (dtype == 0) return fill_real<float>(kind, address, count, a, b);
  if (dtype == 1) return fill_real<double>(kind, address, count, a, b);
  std::mt19937_64& numbers = generator();
  std::bernoulli_distribution bernoulli(kind == 2 ? a : 0);
  return fill<uint32_t>(address, count,
                        [&] { return kind == 2 ? uint32_t(bernoulli(numbers)) : uint32_t(numbers()); });
}

int64_t seed() { return static_cast<int64_t>(generator()() >> 1); }

void set_seed(int64_t seed) { generator().seed(static_cast<uint64_t>(seed)); }

}  // namespace

caffe_services host_services = {allocate, release, nullptr, random, seed, set_seed,
                                nullptr,  nullptr, nullptr, "",     ""};
thread_local CallContext call_context;

}  // namespace caffe

extern "C" int caffe_layer_services(const caffe_services* services) {
  caffe::host_services = *services;
  return 0;
}
