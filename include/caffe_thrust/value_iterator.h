// An iterator over values that are computed, for the names of boost and thrust.
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>

namespace caffe {

// An iterator over value(0), value(1), ..., which are computed, not stored. The two ends of a range may be
// made apart: value - other is then the distance between their starts.
template <typename Value, typename T, typename Reference = T>
class value_iterator {
 public:
  typedef std::random_access_iterator_tag iterator_category;
  typedef T value_type;
  typedef std::ptrdiff_t difference_type;
  typedef const T* pointer;
  typedef Reference reference;

  explicit value_iterator(Value value = Value(), difference_type at = 0) : value_(value), at_(at) {}
  // Of a value that is made of two, such as an iterator and a function.
  template <typename A, typename B, typename = decltype(Value{std::declval<A>(), std::declval<B>()})>
  value_iterator(A a, B b) : value_{a, b}, at_(0) {}
  Reference operator*() const { return value_(at_); }
  Reference operator[](difference_type i) const { return value_(at_ + i); }
  value_iterator& operator+=(difference_type n) { return at_ += n, *this; }
  value_iterator& operator-=(difference_type n) { return at_ -= n, *this; }
  value_iterator& operator++() { return *this += 1; }
  value_iterator& operator--() { return *this -= 1; }
  value_iterator operator++(int) { return value_iterator(value_, at_++); }
  value_iterator operator--(int) { return value_iterator(value_, at_--); }
  friend value_iterator operator+(value_iterator a, difference_type n) { return a += n; }
  friend value_iterator operator+(difference_type n, value_iterator a) { return a += n; }
  friend value_iterator operator-(value_iterator a, difference_type n) { return a -= n; }
  friend difference_type operator-(const value_iterator& a, const value_iterator& b) {
    return a.at_ - b.at_ + (a.value_ - b.value_);
  }
  friend bool operator==(const value_iterator& a, const value_iterator& b) { return a - b == 0; }
  friend bool operator!=(const value_iterator& a, const value_iterator& b) { return a - b != 0; }
  friend bool operator<(const value_iterator& a, const value_iterator& b) { return a - b < 0; }
  friend bool operator>(const value_iterator& a, const value_iterator& b) { return a - b > 0; }
  friend bool operator<=(const value_iterator& a, const value_iterator& b) { return a - b <= 0; }
  friend bool operator>=(const value_iterator& a, const value_iterator& b) { return a - b >= 0; }

 private:
  Value value_;
  difference_type at_;
};

template <typename T>
struct counted_from {
  T first;
  counted_from(T value = T()) : first(value) {}
  T operator()(std::ptrdiff_t i) const { return first + static_cast<T>(i); }
  std::ptrdiff_t operator-(const counted_from& other) const {
    return static_cast<std::ptrdiff_t>(first) - static_cast<std::ptrdiff_t>(other.first);
  }
};
template <typename T>
using counting_iterator = value_iterator<counted_from<T>, T>;
template <typename T>
counting_iterator<T> make_counting_iterator(T first) {
  return counting_iterator<T>(first);
}

}  // namespace caffe
