#ifndef CAFFE_LEGACY_BOOST_ARRAY_HPP_
#define CAFFE_LEGACY_BOOST_ARRAY_HPP_

#include <array>

namespace boost {
using std::array;
}

#endif  // CAFFE_LEGACY_BOOST_ARRAY_HPP_
