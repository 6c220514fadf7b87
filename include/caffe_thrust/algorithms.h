// thrust's algorithms on the processor. Each runs from first to last. All sorts are stable, because layers rely on it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "caffe_thrust/functions.h"
#include "caffe_thrust/iterators.h"
#include "caffe_thrust/memory.h"

namespace thrust {

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

template <typename In, typename Out, typename Function, typename Predicate>
Out transform_if(In first, In last, Out out, Function function, Predicate predicate) {
  for (; first != last; ++first, ++out)
    if (predicate(*first)) *out = function(*first);
  return out;
}
template <typename In, typename Stencil, typename Out, typename Function, typename Predicate>
Out transform_if(In first, In last, Stencil stencil, Out out, Function function, Predicate predicate) {
  for (; first != last; ++first, ++stencil, ++out)
    if (predicate(*stencil)) *out = function(*first);
  return out;
}
template <typename In, typename In2, typename Stencil, typename Out, typename Function, typename Predicate>
Out transform_if(In first, In last, In2 second, Stencil stencil, Out out, Function function,
                 Predicate predicate) {
  for (; first != last; ++first, ++second, ++stencil, ++out)
    if (predicate(*stencil)) *out = function(*first, *second);
  return out;
}
CAFFE_THRUST_ANYWHERE_(transform_if)

#define CAFFE_THRUST_STD_(name)                                                     \
  template <typename First, typename... Arguments,                                  \
            typename = std::enable_if_t<!std::is_same<First, caffe_policy>::value>> \
  auto name(First first, Arguments... arguments) {                                  \
    return std::name(first, arguments...);                                          \
  }                                                                                 \
  CAFFE_THRUST_ANYWHERE_(name)
CAFFE_THRUST_STD_(adjacent_difference)
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
CAFFE_THRUST_STD_(find_if_not)
CAFFE_THRUST_STD_(for_each)
CAFFE_THRUST_STD_(for_each_n)
CAFFE_THRUST_STD_(generate)
CAFFE_THRUST_STD_(generate_n)
CAFFE_THRUST_STD_(inner_product)
CAFFE_THRUST_STD_(is_partitioned)
CAFFE_THRUST_STD_(is_sorted)
CAFFE_THRUST_STD_(is_sorted_until)
CAFFE_THRUST_STD_(max_element)
CAFFE_THRUST_STD_(merge)
CAFFE_THRUST_STD_(min_element)
CAFFE_THRUST_STD_(minmax_element)
CAFFE_THRUST_STD_(mismatch)
CAFFE_THRUST_STD_(none_of)
CAFFE_THRUST_STD_(partition_copy)
CAFFE_THRUST_STD_(partition_point)
CAFFE_THRUST_STD_(remove)
CAFFE_THRUST_STD_(remove_copy)
CAFFE_THRUST_STD_(remove_copy_if)
CAFFE_THRUST_STD_(remove_if)
CAFFE_THRUST_STD_(replace)
CAFFE_THRUST_STD_(replace_copy)
CAFFE_THRUST_STD_(replace_copy_if)
CAFFE_THRUST_STD_(replace_if)
CAFFE_THRUST_STD_(reverse)
CAFFE_THRUST_STD_(reverse_copy)
CAFFE_THRUST_STD_(set_difference)
CAFFE_THRUST_STD_(set_intersection)
CAFFE_THRUST_STD_(set_symmetric_difference)
CAFFE_THRUST_STD_(set_union)
CAFFE_THRUST_STD_(stable_partition)
CAFFE_THRUST_STD_(stable_sort)
CAFFE_THRUST_STD_(swap_ranges)
CAFFE_THRUST_STD_(transform)
CAFFE_THRUST_STD_(uninitialized_copy)
CAFFE_THRUST_STD_(uninitialized_fill)
CAFFE_THRUST_STD_(unique)
CAFFE_THRUST_STD_(unique_copy)
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

// Each is stable here; thrust leaves the order within the two parts open.
template <typename Iterator, typename... Arguments>
auto partition(Iterator first, Iterator last, Arguments... arguments) {
  return thrust::stable_partition(first, last, arguments...);
}
CAFFE_THRUST_ANYWHERE_(partition)

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

template <typename Map, typename Stencil, typename In, typename Out, typename Predicate = identity<>>
Out gather_if(Map first, Map last, Stencil stencil, In in, Out out, Predicate predicate = Predicate()) {
  for (; first != last; ++first, ++stencil, ++out)
    if (predicate(*stencil)) *out = in[*first];
  return out;
}
CAFFE_THRUST_ANYWHERE_(gather_if)

template <typename In, typename Map, typename Stencil, typename Out, typename Predicate = identity<>>
void scatter_if(In first, In last, Map map, Stencil stencil, Out out, Predicate predicate = Predicate()) {
  for (; first != last; ++first, ++map, ++stencil)
    if (predicate(*stencil)) out[*map] = *first;
}
CAFFE_THRUST_ANYWHERE_(scatter_if)

// Of each run of equal keys the first one, with its value.
template <typename Keys, typename Values, typename KeysOut, typename ValuesOut,
          typename Equal = equal_to<caffe_value<Keys>>>
std::pair<KeysOut, ValuesOut> unique_by_key_copy(Keys first, Keys last, Values values, KeysOut keys,
                                                 ValuesOut kept, Equal equal = Equal()) {
  while (first != last) {
    const caffe_value<Keys> key = *first;
    const caffe_value<Values> value = *values;
    for (++first, ++values; first != last && equal(key, *first);) ++first, ++values;
    *keys++ = key;
    *kept++ = value;
  }
  return {keys, kept};
}
CAFFE_THRUST_ANYWHERE_(unique_by_key_copy)
template <typename Keys, typename Values, typename... Equal>
std::pair<Keys, Values> unique_by_key(Keys first, Keys last, Values values, Equal... equal) {
  return thrust::unique_by_key_copy(first, last, values, first, values, equal...);
}
CAFFE_THRUST_ANYWHERE_(unique_by_key)
template <typename Iterator, typename Equal = equal_to<caffe_value<Iterator>>>
std::ptrdiff_t unique_count(Iterator first, Iterator last, Equal equal = Equal()) {
  std::ptrdiff_t count = first != last;
  for (Iterator next = first; first != last && ++next != last; ++first) count += !equal(*first, *next);
  return count;
}
CAFFE_THRUST_ANYWHERE_(unique_count)

// The scans of each run of equal keys.
template <typename Keys, typename Values, typename Out, typename Equal = equal_to<caffe_value<Keys>>,
          typename Sum = plus<caffe_value<Values>>>
Out inclusive_scan_by_key(Keys first, Keys last, Values values, Out out, Equal equal = Equal(),
                          Sum sum = Sum()) {
  while (first != last) {
    caffe_value<Keys> key = *first;
    caffe_value<Values> so_far = *values;
    for (;;) {
      *out++ = so_far;
      if (++values, ++first == last || !equal(key, *first)) break;
      key = *first;
      so_far = sum(so_far, *values);
    }
  }
  return out;
}
CAFFE_THRUST_ANYWHERE_(inclusive_scan_by_key)
template <typename Keys, typename Values, typename Out, typename T = caffe_value<Values>,
          typename Equal = equal_to<caffe_value<Keys>>, typename Sum = plus<T>>
Out exclusive_scan_by_key(Keys first, Keys last, Values values, Out out, T start = T(), Equal equal = Equal(),
                          Sum sum = Sum()) {
  while (first != last) {
    caffe_value<Keys> key = *first;
    T so_far = start;
    for (;;) {
      const caffe_value<Values> value = *values;
      *out++ = so_far;
      if (++values, ++first == last || !equal(key, *first)) break;
      key = *first;
      so_far = sum(so_far, value);
    }
  }
  return out;
}
CAFFE_THRUST_ANYWHERE_(exclusive_scan_by_key)

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
template <typename Iterator, typename T, typename... Before>
auto equal_range(Iterator first, Iterator last, const T& value, Before... before) {
  return std::equal_range(first, last, value, before...);
}
CAFFE_THRUST_ANYWHERE_(equal_range)
#undef CAFFE_THRUST_ANYWHERE_

}  // namespace thrust
