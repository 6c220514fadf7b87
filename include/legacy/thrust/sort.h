// thrust's sorts of host memory. All are stable: thrust's plain ones are too, on the host, and layers lean on
// it.
#ifndef CAFFE_LEGACY_THRUST_SORT_H_
#define CAFFE_LEGACY_THRUST_SORT_H_

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "thrust/functional.h"

namespace thrust {

template <typename Iterator, typename Before>
void stable_sort(Iterator first, Iterator last, Before before) {
  std::stable_sort(first, last, before);
}

template <typename Iterator>
void stable_sort(Iterator first, Iterator last) {
  std::stable_sort(first, last);
}

template <typename Iterator, typename... Before>
void sort(Iterator first, Iterator last, Before... before) {
  thrust::stable_sort(first, last, before...);
}

template <typename Keys, typename Values, typename Before>
void stable_sort_by_key(Keys first, Keys last, Values values, Before before) {
  typedef typename std::iterator_traits<Keys>::value_type Key;
  typedef typename std::iterator_traits<Values>::value_type Value;
  std::vector<std::pair<Key, Value>> pairs;
  Values value = values;
  for (Keys key = first; key != last; ++key, ++value) pairs.emplace_back(*key, *value);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](const std::pair<Key, Value>& a, const std::pair<Key, Value>& b) {
                     return before(a.first, b.first);
                   });
  for (std::pair<Key, Value>& pair : pairs) {
    *first++ = std::move(pair.first);
    *values++ = std::move(pair.second);
  }
}

template <typename Keys, typename Values>
void stable_sort_by_key(Keys first, Keys last, Values values) {
  thrust::stable_sort_by_key(first, last, values, less<typename std::iterator_traits<Keys>::value_type>());
}

template <typename Keys, typename Values, typename... Before>
void sort_by_key(Keys first, Keys last, Values values, Before... before) {
  thrust::stable_sort_by_key(first, last, values, before...);
}

}  // namespace thrust

#endif  // CAFFE_LEGACY_THRUST_SORT_H_
