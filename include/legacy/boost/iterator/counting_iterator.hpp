#ifndef CAFFE_LEGACY_BOOST_ITERATOR_COUNTING_ITERATOR_HPP_
#define CAFFE_LEGACY_BOOST_ITERATOR_COUNTING_ITERATOR_HPP_

#include "caffe/util/value_iterator.hpp"

namespace boost {
using caffe::counting_iterator;
using caffe::make_counting_iterator;
}  // namespace boost

#endif  // CAFFE_LEGACY_BOOST_ITERATOR_COUNTING_ITERATOR_HPP_
