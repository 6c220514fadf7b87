#ifndef CAFFE_LEGACY_BOOST_UNORDERED_SET_HPP_
#define CAFFE_LEGACY_BOOST_UNORDERED_SET_HPP_

#include <unordered_set>

namespace boost {
using std::unordered_set;
}

#endif  // CAFFE_LEGACY_BOOST_UNORDERED_SET_HPP_
