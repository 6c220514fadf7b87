#ifndef CAFFE_LEGACY_BOOST_UNORDERED_MAP_HPP_
#define CAFFE_LEGACY_BOOST_UNORDERED_MAP_HPP_

#include <unordered_map>

namespace boost {
using std::unordered_map;
}

#endif  // CAFFE_LEGACY_BOOST_UNORDERED_MAP_HPP_
