// thrust's reduction of host memory, from left to right.
#ifndef CAFFE_LEGACY_THRUST_REDUCE_H_
#define CAFFE_LEGACY_THRUST_REDUCE_H_

#include <iterator>
#include <numeric>

#include "thrust/functional.h"

namespace thrust {

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
  return std::accumulate(first, last, typename std::iterator_traits<Iterator>::value_type());
}

}  // namespace thrust

#endif  // CAFFE_LEGACY_THRUST_REDUCE_H_
