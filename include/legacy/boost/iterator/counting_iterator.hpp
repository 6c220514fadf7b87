#pragma once

#include "caffe/util/value_iterator.hpp"

namespace boost {
using caffe::counting_iterator;
using caffe::make_counting_iterator;
}  // namespace boost
