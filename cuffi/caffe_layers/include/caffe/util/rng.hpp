// The call's generator, and functions that draw from it.
#ifndef CAFFE_RNG_CPP_HPP_
#define CAFFE_RNG_CPP_HPP_

#include <random>

#include "caffe/common.hpp"

namespace caffe {

typedef std::mt19937 rng_t;

inline rng_t* caffe_rng() { return static_cast<rng_t*>(Caffe::rng_stream().generator()); }

template <class RandomAccessIterator, class RandomGenerator>
inline void shuffle(RandomAccessIterator begin, RandomAccessIterator end, RandomGenerator* gen) {
  typedef typename std::iterator_traits<RandomAccessIterator>::difference_type Distance;
  for (Distance i = std::distance(begin, end) - 1; i > 0; --i) {
    std::iter_swap(begin + i, begin + std::uniform_int_distribution<Distance>(0, i)(*gen));
  }
}

template <class RandomAccessIterator>
inline void shuffle(RandomAccessIterator begin, RandomAccessIterator end) {
  shuffle(begin, end, caffe_rng());
}

}  // namespace caffe

#endif  // CAFFE_RNG_CPP_HPP_
