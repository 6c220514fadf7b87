// thrust's policies, pointers and vectors. For a program of CUDA's (include/host/thrust) device memory is that of
// cudaMalloc(), so that the judge knows it; else it is the process's own.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

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

// ------------------------------------------------------------------------------------ vectors

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

// A new vector has value-initialized elements; a bool has a byte. Each kind converts from the other and from std::vector.
template <typename T, typename Memory, typename Pointer>
class caffe_vector {
 public:
  typedef T value_type;
  typedef std::size_t size_type;
  typedef std::ptrdiff_t difference_type;
  typedef T& reference;
  typedef const T& const_reference;
  typedef Pointer pointer, iterator;
  typedef typename std::pointer_traits<Pointer>::template rebind<const T> const_pointer, const_iterator;
  typedef std::reverse_iterator<iterator> reverse_iterator;
  typedef std::reverse_iterator<const_iterator> const_reverse_iterator;

  caffe_vector() {}
  explicit caffe_vector(size_type n) { resize(n); }
  caffe_vector(size_type n, const T& value) { assign(n, value); }
  template <typename In, typename = typename std::iterator_traits<In>::iterator_category>
  caffe_vector(In first, In last) {
    assign(first, last);
  }
  caffe_vector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  caffe_vector(const caffe_vector& other) { assign(other.begin(), other.end()); }
  caffe_vector(caffe_vector&& other) noexcept { swap(other); }
  template <typename U, typename OtherMemory, typename OtherPointer>
  caffe_vector(const caffe_vector<U, OtherMemory, OtherPointer>& other) {
    assign(other.begin(), other.end());
  }
  template <typename U, typename Allocator>
  caffe_vector(const std::vector<U, Allocator>& other) {
    assign(other.begin(), other.end());
  }
  ~caffe_vector() { reset(); }
  caffe_vector& operator=(caffe_vector other) { return swap(other), *this; }

  size_type size() const { return size_; }
  size_type max_size() const { return static_cast<size_type>(PTRDIFF_MAX) / sizeof(T); }
  size_type capacity() const { return capacity_; }
  bool empty() const { return !size_; }
  pointer data() { return pointer(at_); }
  const_pointer data() const { return const_pointer(at_); }
  iterator begin() { return data(); }
  iterator end() { return data() + size_; }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size_; }
  const_iterator cbegin() const { return data(); }
  const_iterator cend() const { return data() + size_; }
  reverse_iterator rbegin() { return reverse_iterator(end()); }
  reverse_iterator rend() { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }
  reference operator[](size_type i) { return at_[i]; }
  const_reference operator[](size_type i) const { return at_[i]; }
  reference front() { return at_[0]; }
  const_reference front() const { return at_[0]; }
  reference back() { return at_[size_ - 1]; }
  const_reference back() const { return at_[size_ - 1]; }

  void reserve(size_type n) {
    if (n > capacity_) move_to(n);
  }
  void shrink_to_fit() {
    if (size_ < capacity_) move_to(size_);
  }
  void resize(size_type n) { resize(n, T()); }
  void resize(size_type n, const T& value) {
    reserve(n);
    if (n < size_)
      std::destroy(at_ + n, at_ + size_);
    else
      std::uninitialized_fill(at_ + size_, at_ + n, value);
    size_ = n;
  }
  void assign(size_type n, const T& value) {
    const T kept = value;
    clear();
    resize(n, kept);
  }
  template <typename In, typename = typename std::iterator_traits<In>::iterator_category>
  void assign(In first, In last) {
    caffe_vector made;
    made.reserve(std::distance(first, last));
    for (; first != last; ++first) ::new (made.at_ + made.size_++) T(*first);
    swap(made);
  }
  void assign(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  void clear() { resize(0); }
  void push_back(const T& value) {
    const T kept = value;
    if (size_ == capacity_) reserve(size_ ? 2 * size_ : 1);
    ::new (at_ + size_++) T(kept);
  }
  template <typename... Arguments>
  void emplace_back(Arguments&&... arguments) {
    push_back(T(std::forward<Arguments>(arguments)...));
  }
  void pop_back() { std::destroy_at(at_ + --size_); }
  iterator erase(const_iterator first, const_iterator last) {
    T* const to = at_ + (first - cbegin());
    T* const end = std::move(at_ + (last - cbegin()), at_ + size_, to);
    std::destroy(end, at_ + size_);
    size_ = end - at_;
    return iterator(to);
  }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  iterator insert(const_iterator at, const T& value) { return insert(at, &value, &value + 1); }
  void insert(const_iterator at, size_type n, const T& value) {
    const std::vector<T> values(n, value);
    insert(at, values.begin(), values.end());
  }
  template <typename In, typename = typename std::iterator_traits<In>::iterator_category>
  iterator insert(const_iterator at, In first, In last) {
    const size_type from = at - cbegin();
    caffe_vector made;
    made.reserve(size_ + std::distance(first, last));
    T* to = std::uninitialized_copy(at_, at_ + from, made.at_);
    for (; first != last; ++first) ::new (to++) T(*first);
    made.size_ = std::uninitialized_copy(at_ + from, at_ + size_, to) - made.at_;
    swap(made);
    return begin() + from;
  }
  iterator insert(const_iterator at, std::initializer_list<T> values) {
    return insert(at, values.begin(), values.end());
  }
  void swap(caffe_vector& other) {
    std::swap(at_, other.at_), std::swap(size_, other.size_), std::swap(capacity_, other.capacity_);
  }
  friend bool operator==(const caffe_vector& a, const caffe_vector& b) {
    return a.size_ == b.size_ && std::equal(a.at_, a.at_ + a.size_, b.at_);
  }
  friend bool operator!=(const caffe_vector& a, const caffe_vector& b) { return !(a == b); }

 private:
  void move_to(size_type n) {
    T* const to = n ? static_cast<T*>(Memory::make(n * sizeof(T))) : nullptr;
    std::uninitialized_move(at_, at_ + size_, to);
    const size_type kept = size_;
    reset();
    at_ = to, size_ = kept, capacity_ = n;
  }
  void reset() {
    std::destroy(at_, at_ + size_);
    if (at_) Memory::free(at_);
    at_ = nullptr, size_ = capacity_ = 0;
  }
  T* at_ = nullptr;
  size_type size_ = 0, capacity_ = 0;
};
template <typename A, typename P, typename MA, typename B, typename Q, typename MB>
bool operator==(const caffe_vector<A, MA, P>& a, const caffe_vector<B, MB, Q>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

template <typename T, typename = void>
using device_vector = caffe_vector<T, caffe_cuda_memory, device_ptr<T>>;
template <typename T, typename = void>
using host_vector = caffe_vector<T, caffe_process_memory, T*>;
template <typename T>
using universal_vector = caffe_vector<T, caffe_managed_memory, T*>;
template <typename T>
using universal_ptr = T*;

}  // namespace thrust
