// thrust on the CPU: for host memory, and for the host backend, whose device memory is host memory.
// cuffi/caffe_layers/make/prepare.py makes a layer's thrust/*.h include this file. Each algorithm runs from first to last.
// All sorts are stable, because layers rely on it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "caffe/util/device_alternate.hpp"
#include "caffe/util/thrust_functions.hpp"
#include "caffe/util/value_iterator.hpp"

namespace thrust {

// --------------------------------------------------------------------------------- policies: no effect here

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
namespace cuda {
static const caffe_policy par, par_nosync;
}
namespace system {
namespace cuda = ::thrust::cuda;
}

// name(policy, ...) calls name(...).
#define CAFFE_THRUST_ANYWHERE_(name)                            \
  template <typename... Arguments>                              \
  auto name(const caffe_policy&, Arguments&&... arguments) {    \
    return thrust::name(std::forward<Arguments>(arguments)...); \
  }

// ------------------------------------------------------------------------------------ memory

template <typename T>
class device_ptr {
 public:
  typedef std::random_access_iterator_tag iterator_category;
  typedef std::remove_cv_t<T> value_type;
  typedef std::ptrdiff_t difference_type;
  typedef T* pointer;
  typedef T& reference;

  device_ptr() : at_(nullptr) {}
  explicit device_ptr(T* at) : at_(at) {}
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
  device_ptr operator++(int) { return device_ptr(at_++); }
  device_ptr operator--(int) { return device_ptr(at_--); }
  friend device_ptr operator+(device_ptr p, difference_type n) { return p += n; }
  friend device_ptr operator+(difference_type n, device_ptr p) { return p += n; }
  friend device_ptr operator-(device_ptr p, difference_type n) { return p -= n; }
  friend difference_type operator-(device_ptr a, device_ptr b) { return a.at_ - b.at_; }
  friend bool operator==(device_ptr a, device_ptr b) { return a.at_ == b.at_; }
  friend bool operator!=(device_ptr a, device_ptr b) { return a.at_ != b.at_; }
  friend bool operator<(device_ptr a, device_ptr b) { return a.at_ < b.at_; }

 private:
  T* at_;
};

template <typename T>
device_ptr<T> device_pointer_cast(T* p) {
  return device_ptr<T>(p);
}
template <typename T>
T* raw_pointer_cast(T* p) {
  return p;
}
template <typename T>
T* raw_pointer_cast(const device_ptr<T>& p) {
  return p.get();
}

// A new vector has value-initialized elements. Each kind converts from the other and from std::vector.
#define CAFFE_THRUST_VECTOR_(name)                               \
  template <typename T>                                          \
  class name : public std::vector<T> {                           \
   public:                                                       \
    using std::vector<T>::vector;                                \
    name() {}                                                    \
    name(const std::vector<T>& other) : std::vector<T>(other) {} \
  };
CAFFE_THRUST_VECTOR_(device_vector)
CAFFE_THRUST_VECTOR_(host_vector)
#undef CAFFE_THRUST_VECTOR_

// ------------------------------------------------------------------------------------ function objects

#define CAFFE_THRUST_FUNCTION_(name, Result, value)                                       \
  template <typename T>                                                                   \
  struct name {                                                                           \
    __host__ __device__ Result operator()(const T& a, const T& b) const { return value; } \
  };
CAFFE_THRUST_FUNCTION_(plus, T, a + b)
CAFFE_THRUST_FUNCTION_(minus, T, a - b)
CAFFE_THRUST_FUNCTION_(multiplies, T, a* b)
CAFFE_THRUST_FUNCTION_(divides, T, a / b)
CAFFE_THRUST_FUNCTION_(modulus, T, a % b)
CAFFE_THRUST_FUNCTION_(maximum, T, a < b ? b : a)
CAFFE_THRUST_FUNCTION_(minimum, T, b < a ? b : a)
CAFFE_THRUST_FUNCTION_(less, bool, a < b)
CAFFE_THRUST_FUNCTION_(greater, bool, b < a)
CAFFE_THRUST_FUNCTION_(less_equal, bool, a <= b)
CAFFE_THRUST_FUNCTION_(greater_equal, bool, a >= b)
CAFFE_THRUST_FUNCTION_(equal_to, bool, a == b)
CAFFE_THRUST_FUNCTION_(not_equal_to, bool, a != b)
CAFFE_THRUST_FUNCTION_(logical_and, bool, a&& b)
CAFFE_THRUST_FUNCTION_(logical_or, bool, a || b)
#undef CAFFE_THRUST_FUNCTION_

#define CAFFE_THRUST_FUNCTION_(name, Result, value)                           \
  template <typename T>                                                       \
  struct name {                                                               \
    __host__ __device__ Result operator()(const T& a) const { return value; } \
  };
CAFFE_THRUST_FUNCTION_(identity, const T&, a)
CAFFE_THRUST_FUNCTION_(negate, T, -a)
CAFFE_THRUST_FUNCTION_(square, T, a* a)
CAFFE_THRUST_FUNCTION_(logical_not, bool, !a)
#undef CAFFE_THRUST_FUNCTION_

// Function objects from expressions: _1 * 2 > _2 is a function of two arguments.
namespace placeholders {

template <typename Function>
struct expression {
  Function value;
  template <typename... Arguments>
  auto operator()(const Arguments&... arguments) const {
    return value(std::tie(arguments...));
  }
};
template <typename Function>
expression<Function> make_expression(Function function) {
  return {function};
}
template <typename Constant>
auto value_of(const Constant& constant) {
  return [constant](const auto&) { return constant; };
}
template <typename Function>
Function value_of(const expression<Function>& one) {
  return one.value;
}
template <typename T>
struct is_expression : std::false_type {};
template <typename Function>
struct is_expression<expression<Function>> : std::true_type {};

#define CAFFE_THRUST_OPERATOR_(op)                                                                           \
  template <typename A, typename B,                                                                          \
            typename = std::enable_if_t<is_expression<A>::value || is_expression<B>::value>>                 \
  auto operator op(const A& a, const B& b) {                                                                 \
    return make_expression(                                                                                  \
        [x = value_of(a), y = value_of(b)](const auto& arguments) { return x(arguments) op y(arguments); }); \
  }
CAFFE_THRUST_OPERATOR_(+)
CAFFE_THRUST_OPERATOR_(-)
CAFFE_THRUST_OPERATOR_(*)
CAFFE_THRUST_OPERATOR_(/)
CAFFE_THRUST_OPERATOR_(%)
CAFFE_THRUST_OPERATOR_(==)
CAFFE_THRUST_OPERATOR_(!=)
CAFFE_THRUST_OPERATOR_(<)
CAFFE_THRUST_OPERATOR_(>)
CAFFE_THRUST_OPERATOR_(<=)
CAFFE_THRUST_OPERATOR_(>=)
CAFFE_THRUST_OPERATOR_(&&)
CAFFE_THRUST_OPERATOR_(||)
#undef CAFFE_THRUST_OPERATOR_

template <std::size_t N>
struct argument {
  template <typename Arguments>
  auto operator()(const Arguments& arguments) const {
    return std::get<N>(arguments);
  }
};
static const expression<argument<0>> _1{};
static const expression<argument<1>> _2{};

}  // namespace placeholders

// ------------------------------------------------------------------------------------ pairs and iterators

using std::get;
using std::make_pair;
using std::make_tuple;
using std::pair;
using std::tie;
using std::tuple;

using caffe::counting_iterator;
using caffe::make_counting_iterator;

template <typename T>
struct caffe_always {
  T value;
  caffe_always(T of = T()) : value(of) {}
  T operator()(std::ptrdiff_t) const { return value; }
  std::ptrdiff_t operator-(const caffe_always&) const { return 0; }
};
template <typename T>
using constant_iterator = caffe::value_iterator<caffe_always<T>, T>;
template <typename T>
constant_iterator<T> make_constant_iterator(T value) {
  return constant_iterator<T>(value);
}

template <typename Function, typename Iterator>
struct caffe_of {
  Iterator first;
  // Mutable, because the operator() of old functors is often not const.
  mutable Function function;
  auto operator()(std::ptrdiff_t i) const { return function(first[i]); }
  std::ptrdiff_t operator-(const caffe_of& other) const { return first - other.first; }
};
template <typename Function, typename Iterator>
auto make_transform_iterator(Iterator first, Function function) {
  typedef caffe_of<Function, Iterator> Of;
  return caffe::value_iterator<Of, decltype(std::declval<Of>()(0))>({first, function});
}

// The elements of several iterators, as a tuple of references. A write to the tuple writes to each of them.
template <typename... Iterators>
struct caffe_zipped {
  tuple<Iterators...> firsts;
  auto operator()(std::ptrdiff_t i) const {
    return std::apply(
        [i](const auto&... first) {
          return tuple<typename std::iterator_traits<Iterators>::reference...>(first[i]...);
        },
        firsts);
  }
  std::ptrdiff_t operator-(const caffe_zipped& other) const { return get<0>(firsts) - get<0>(other.firsts); }
};
template <typename... Iterators>
caffe::value_iterator<caffe_zipped<Iterators...>,
                      tuple<typename std::iterator_traits<Iterators>::value_type...>,
                      tuple<typename std::iterator_traits<Iterators>::reference...>>
make_zip_iterator(const tuple<Iterators...>& firsts) {
  return decltype(thrust::make_zip_iterator(firsts))({firsts});
}
template <typename Tuple>
using zip_iterator = decltype(thrust::make_zip_iterator(std::declval<Tuple>()));

// ------------------------------------------------------------------------------------ algorithms of std

// With a stencil: the predicate tests the stencil's element instead.
template <typename Iterator, typename Stencil, typename Predicate, typename T>
void replace_if(Iterator first, Iterator last, Stencil stencil, Predicate predicate, const T& value) {
  for (; first != last; ++first, ++stencil)
    if (predicate(*stencil)) *first = value;
}
template <typename Iterator, typename Stencil, typename Predicate>
Iterator remove_if(Iterator first, Iterator last, Stencil stencil, Predicate predicate) {
  Iterator out = first;
  for (; first != last; ++first, ++stencil)
    if (!predicate(*stencil)) *out++ = *first;
  return out;
}
template <typename Iterator, typename Stencil, typename Out, typename Predicate>
Out copy_if(Iterator first, Iterator last, Stencil stencil, Out out, Predicate predicate) {
  for (; first != last; ++first, ++stencil)
    if (predicate(*stencil)) *out++ = *first;
  return out;
}

#define CAFFE_THRUST_STD_(name)                                                     \
  template <typename First, typename... Arguments,                                  \
            typename = std::enable_if_t<!std::is_same<First, caffe_policy>::value>> \
  auto name(First first, Arguments... arguments) {                                  \
    return std::name(first, arguments...);                                          \
  }                                                                                 \
  CAFFE_THRUST_ANYWHERE_(name)
CAFFE_THRUST_STD_(all_of)
CAFFE_THRUST_STD_(any_of)
CAFFE_THRUST_STD_(copy)
CAFFE_THRUST_STD_(copy_if)
CAFFE_THRUST_STD_(copy_n)
CAFFE_THRUST_STD_(count)
CAFFE_THRUST_STD_(count_if)
CAFFE_THRUST_STD_(equal)
CAFFE_THRUST_STD_(fill)
CAFFE_THRUST_STD_(fill_n)
CAFFE_THRUST_STD_(find)
CAFFE_THRUST_STD_(find_if)
CAFFE_THRUST_STD_(for_each)
CAFFE_THRUST_STD_(generate)
CAFFE_THRUST_STD_(inner_product)
CAFFE_THRUST_STD_(is_sorted)
CAFFE_THRUST_STD_(max_element)
CAFFE_THRUST_STD_(min_element)
CAFFE_THRUST_STD_(merge)
CAFFE_THRUST_STD_(minmax_element)
CAFFE_THRUST_STD_(none_of)
CAFFE_THRUST_STD_(remove)
CAFFE_THRUST_STD_(remove_if)
CAFFE_THRUST_STD_(replace)
CAFFE_THRUST_STD_(replace_if)
CAFFE_THRUST_STD_(reverse)
CAFFE_THRUST_STD_(set_difference)
CAFFE_THRUST_STD_(set_intersection)
CAFFE_THRUST_STD_(set_union)
CAFFE_THRUST_STD_(stable_sort)
CAFFE_THRUST_STD_(transform)
CAFFE_THRUST_STD_(unique)
#undef CAFFE_THRUST_STD_

using std::max;
using std::min;
using std::swap;

// --------------------------------------------------------------------------------- algorithms that std lacks

template <typename Iterator>
using caffe_value = typename std::iterator_traits<Iterator>::value_type;

template <typename Iterator, typename... Before>
void sort(Iterator first, Iterator last, Before... before) {
  std::stable_sort(first, last, before...);
}
CAFFE_THRUST_ANYWHERE_(sort)

template <typename Keys, typename Values, typename Before>
void stable_sort_by_key(Keys first, Keys last, Values values, Before before) {
  typedef std::pair<caffe_value<Keys>, caffe_value<Values>> Pair;
  std::vector<Pair> pairs;
  Values value = values;
  for (Keys key = first; key != last; ++key, ++value) pairs.emplace_back(*key, *value);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](const Pair& a, const Pair& b) { return before(a.first, b.first); });
  for (Pair& pair : pairs) {
    *first++ = std::move(pair.first);
    *values++ = std::move(pair.second);
  }
}
template <typename Keys, typename Values>
void stable_sort_by_key(Keys first, Keys last, Values values) {
  thrust::stable_sort_by_key(first, last, values, less<caffe_value<Keys>>());
}
CAFFE_THRUST_ANYWHERE_(stable_sort_by_key)

template <typename Keys, typename Values, typename... Before>
void sort_by_key(Keys first, Keys last, Values values, Before... before) {
  thrust::stable_sort_by_key(first, last, values, before...);
}
CAFFE_THRUST_ANYWHERE_(sort_by_key)

template <typename Iterator, typename T, typename Function>
T reduce(Iterator first, Iterator last, T start, Function function) {
  return std::accumulate(first, last, start, function);
}
template <typename Iterator, typename T>
T reduce(Iterator first, Iterator last, T start) {
  return std::accumulate(first, last, start);
}
template <typename Iterator>
auto reduce(Iterator first, Iterator last) {
  return std::accumulate(first, last, caffe_value<Iterator>());
}
CAFFE_THRUST_ANYWHERE_(reduce)

template <typename Iterator, typename Function, typename T, typename Sum>
T transform_reduce(Iterator first, Iterator last, Function function, T start, Sum sum) {
  for (; first != last; ++first) start = sum(start, function(*first));
  return start;
}
CAFFE_THRUST_ANYWHERE_(transform_reduce)

template <typename Keys, typename Values, typename KeysOut, typename ValuesOut, typename Equal, typename Sum>
std::pair<KeysOut, ValuesOut> reduce_by_key(Keys first, Keys last, Values values, KeysOut keys,
                                            ValuesOut sums, Equal equal, Sum sum) {
  while (first != last) {
    const caffe_value<Keys> key = *first;
    caffe_value<Values> so_far = *values;
    for (++first, ++values; first != last && equal(key, *first); ++first, ++values)
      so_far = sum(so_far, *values);
    *keys++ = key;
    *sums++ = so_far;
  }
  return {keys, sums};
}
template <typename Keys, typename Values, typename KeysOut, typename ValuesOut,
          typename Equal = equal_to<caffe_value<Keys>>>
std::pair<KeysOut, ValuesOut> reduce_by_key(Keys first, Keys last, Values values, KeysOut keys,
                                            ValuesOut sums, Equal equal = Equal()) {
  return thrust::reduce_by_key(first, last, values, keys, sums, equal, plus<caffe_value<Values>>());
}
CAFFE_THRUST_ANYWHERE_(reduce_by_key)

// The scans may be in place: each element is read before its sum is written.
template <typename Iterator, typename Out, typename Function, typename Sum>
Out transform_inclusive_scan(Iterator first, Iterator last, Out out, Function function, Sum sum) {
  return std::transform_inclusive_scan(first, last, out, sum, function);
}
CAFFE_THRUST_ANYWHERE_(transform_inclusive_scan)

template <typename Iterator, typename Out, typename Function, typename T, typename Sum>
Out transform_exclusive_scan(Iterator first, Iterator last, Out out, Function function, T start, Sum sum) {
  return std::transform_exclusive_scan(first, last, out, start, sum, function);
}
CAFFE_THRUST_ANYWHERE_(transform_exclusive_scan)

template <typename Iterator, typename Out, typename Sum = plus<caffe_value<Iterator>>>
Out inclusive_scan(Iterator first, Iterator last, Out out, Sum sum = Sum()) {
  return thrust::transform_inclusive_scan(first, last, out, identity<caffe_value<Iterator>>(), sum);
}
CAFFE_THRUST_ANYWHERE_(inclusive_scan)

template <typename Iterator, typename Out, typename T, typename Sum = plus<T>>
Out exclusive_scan(Iterator first, Iterator last, Out out, T start, Sum sum = Sum()) {
  return thrust::transform_exclusive_scan(first, last, out, identity<caffe_value<Iterator>>(), start, sum);
}
template <typename Iterator, typename Out>
Out exclusive_scan(Iterator first, Iterator last, Out out) {
  return thrust::exclusive_scan(first, last, out, caffe_value<Iterator>());
}
CAFFE_THRUST_ANYWHERE_(exclusive_scan)

template <typename Iterator, typename T>
void sequence(Iterator first, Iterator last, T start, T step) {
  for (; first != last; ++first, start = start + step) *first = start;
}
template <typename Iterator, typename T>
void sequence(Iterator first, Iterator last, T start) {
  thrust::sequence(first, last, start, T(1));
}
template <typename Iterator>
void sequence(Iterator first, Iterator last) {
  thrust::sequence(first, last, caffe_value<Iterator>(0));
}
CAFFE_THRUST_ANYWHERE_(sequence)

template <typename Iterator, typename Function>
void tabulate(Iterator first, Iterator last, Function function) {
  for (std::ptrdiff_t i = 0; first != last; ++first, ++i) *first = function(i);
}
CAFFE_THRUST_ANYWHERE_(tabulate)

template <typename Map, typename In, typename Out>
Out gather(Map first, Map last, In in, Out out) {
  for (; first != last; ++first, ++out) *out = in[*first];
  return out;
}
CAFFE_THRUST_ANYWHERE_(gather)

template <typename In, typename Map, typename Out>
void scatter(In first, In last, Map map, Out out) {
  for (; first != last; ++first, ++map) out[*map] = *first;
}
CAFFE_THRUST_ANYWHERE_(scatter)

// Searches for one value, or for each value of a range. For a range the results go to `out`,
// positions as indices.
#define CAFFE_THRUST_SEARCH_(name, found)                                                        \
  template <typename Iterator, typename T, typename... Before>                                   \
  auto name(Iterator first, Iterator last, const T& value, Before... before) {                   \
    return std::name(first, last, value, before...);                                             \
  }                                                                                              \
  template <typename Iterator, typename Values, typename Out, typename... Before>                \
  Out name(Iterator first, Iterator last, Values value, Values end, Out out, Before... before) { \
    for (; value != end; ++value, ++out) *out = std::name(first, last, *value, before...) found; \
    return out;                                                                                  \
  }                                                                                              \
  CAFFE_THRUST_ANYWHERE_(name)
CAFFE_THRUST_SEARCH_(lower_bound, -first)
CAFFE_THRUST_SEARCH_(upper_bound, -first)
CAFFE_THRUST_SEARCH_(binary_search, )
#undef CAFFE_THRUST_SEARCH_
#undef CAFFE_THRUST_ANYWHERE_

}  // namespace thrust
