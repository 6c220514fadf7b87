#ifndef CAFFE_LEGACY_BOOST_FUNCTION_HPP_
#define CAFFE_LEGACY_BOOST_FUNCTION_HPP_

#include <functional>

namespace boost {
using std::function;
}

#endif  // CAFFE_LEGACY_BOOST_FUNCTION_HPP_
