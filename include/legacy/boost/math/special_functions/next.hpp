#ifndef CAFFE_LEGACY_BOOST_MATH_SPECIAL_FUNCTIONS_NEXT_HPP_
#define CAFFE_LEGACY_BOOST_MATH_SPECIAL_FUNCTIONS_NEXT_HPP_

#include <cmath>

namespace boost {
namespace math {

template <typename T>
T nextafter(T from, T to) {
  return std::nextafter(from, to);
}

}  // namespace math
}  // namespace boost

#endif  // CAFFE_LEGACY_BOOST_MATH_SPECIAL_FUNCTIONS_NEXT_HPP_
