// thrust's policies, pointers and allocations. For a program of CUDA's (include/host/thrust) device memory is that of
// cudaMalloc(), so that the judge knows it; else it is the process's own.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#ifndef __CUDACC__
#ifndef __host__
#define __host__
#define __device__
#endif
#endif

namespace thrust {

// ------------------------------------------------------------------------------------ memory that may be written

#ifdef CAFFE_THRUST_OF_CUDA
// Algorithms write where these point, until the memory ends. The race finder sees no code of the host's.
template <typename T>
void caffe_may_write(T* at) {
  if (!std::is_const<T>::value && at) {
    cuda_host::host_waits();
    cuda_host::memory_filled(at);
  }
}
#else
template <typename T>
void caffe_may_write(T*) {}
#endif
template <typename T, typename = std::enable_if_t<!std::is_pointer<T>::value>>
void caffe_may_write(const T&) {}

// ------------------------------------------------------------------------------------ policies

struct caffe_policy {
  template <typename Stream>
  caffe_policy on(Stream) const {
    return {};
  }
  template <typename Allocator>
  caffe_policy operator()(Allocator&&) const {
    return {};
  }
};
static const caffe_policy device, host, seq;
typedef caffe_policy device_execution_policy, host_execution_policy;
namespace cuda {
static const caffe_policy par, par_nosync;
}
namespace system {
namespace cuda = ::thrust::cuda;
}
namespace omp {
static const caffe_policy par;
}

// name(policy, ...) calls name(...).
#define CAFFE_THRUST_ANYWHERE_(name)                            \
  template <typename... Arguments>                              \
  auto name(const caffe_policy&, Arguments&&... arguments) {    \
    (caffe_may_write(arguments), ...);                          \
    return thrust::name(std::forward<Arguments>(arguments)...); \
  }

// ------------------------------------------------------------------------------------ pointers

template <typename T>
class device_ptr {
 public:
  typedef std::random_access_iterator_tag iterator_category;
  typedef std::remove_cv_t<T> value_type;
  typedef std::ptrdiff_t difference_type;
  typedef T* pointer;
  typedef T& reference;

  device_ptr() : at_(nullptr) {}
  device_ptr(std::nullptr_t) : at_(nullptr) {}
  explicit device_ptr(T* at) : at_(at) { caffe_may_write(at); }
  operator device_ptr<const T>() const { return device_ptr<const T>(at_); }
  T* get() const { return at_; }
  explicit operator bool() const { return at_ != nullptr; }
  T& operator*() const { return *at_; }
  T* operator->() const { return at_; }
  T& operator[](difference_type i) const { return at_[i]; }
  device_ptr& operator+=(difference_type n) { return at_ += n, *this; }
  device_ptr& operator-=(difference_type n) { return at_ -= n, *this; }
  device_ptr& operator++() { return *this += 1; }
  device_ptr& operator--() { return *this -= 1; }
  device_ptr operator++(int) { return std::exchange(*this, *this + 1); }
  device_ptr operator--(int) { return std::exchange(*this, *this - 1); }
  friend device_ptr operator+(device_ptr p, difference_type n) { return p += n; }
  friend device_ptr operator+(difference_type n, device_ptr p) { return p += n; }
  friend device_ptr operator-(device_ptr p, difference_type n) { return p -= n; }
  friend difference_type operator-(device_ptr a, device_ptr b) { return a.at_ - b.at_; }
  friend bool operator==(device_ptr a, device_ptr b) { return a.at_ == b.at_; }
  friend bool operator!=(device_ptr a, device_ptr b) { return a.at_ != b.at_; }
  friend bool operator<(device_ptr a, device_ptr b) { return a.at_ < b.at_; }
  friend bool operator>(device_ptr a, device_ptr b) { return b < a; }
  friend bool operator<=(device_ptr a, device_ptr b) { return !(b < a); }
  friend bool operator>=(device_ptr a, device_ptr b) { return !(a < b); }

 private:
  T* at_;
};
template <typename T>
using device_reference = T&;

template <typename T>
device_ptr<T> device_pointer_cast(T* p) {
  return device_ptr<T>(p);
}
template <typename T>
device_ptr<T> device_pointer_cast(const device_ptr<T>& p) {
  return p;
}
template <typename T>
__host__ __device__ T* raw_pointer_cast(T* p) {
  return p;
}
template <typename T>
__host__ __device__ T* raw_pointer_cast(const device_ptr<T>& p) {
  return p.get();
}
template <typename T>
T& raw_reference_cast(T& value) {
  return value;
}

// ------------------------------------------------------------------------------------ allocations

struct caffe_process_memory {
  static void* make(std::size_t bytes) { return ::operator new(bytes); }
  static void free(void* memory) { ::operator delete(memory); }
};
#ifdef CAFFE_THRUST_OF_CUDA
struct caffe_cuda_memory {
  static void* make(std::size_t bytes) {
    void* memory;
    if (cudaMalloc(&memory, bytes)) throw std::bad_alloc();
    cuda_host::memory_filled(memory);
    return memory;
  }
  static void free(void* memory) { cudaFree(memory); }
};
struct caffe_managed_memory : caffe_cuda_memory {
  static void* make(std::size_t bytes) {
    void* memory;
    if (cudaMallocManaged(&memory, bytes)) throw std::bad_alloc();
    return memory;
  }
};
#else
typedef caffe_process_memory caffe_cuda_memory, caffe_managed_memory;
#endif
template <typename T>
device_ptr<T> device_malloc(std::size_t count) {
  return device_ptr<T>(static_cast<T*>(caffe_cuda_memory::make(count * sizeof(T))));
}
template <typename T>
device_ptr<T> device_new(std::size_t count = 1) {
  const device_ptr<T> made = device_malloc<T>(count);
  std::uninitialized_fill_n(made.get(), count, T());
  return made;
}
template <typename T>
void device_free(const device_ptr<T>& memory) {
  caffe_cuda_memory::free(memory.get());
}
template <typename T>
void device_delete(const device_ptr<T>& memory, std::size_t count = 1) {
  std::destroy_n(memory.get(), count);
  device_free(memory);
}

template <typename T>
using universal_ptr = T*;

}  // namespace thrust
