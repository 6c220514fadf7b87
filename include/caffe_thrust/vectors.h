// thrust's vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "caffe_thrust/memory.h"

namespace thrust {

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

}  // namespace thrust
