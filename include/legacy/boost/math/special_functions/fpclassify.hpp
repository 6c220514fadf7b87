#ifndef CAFFE_LEGACY_BOOST_MATH_SPECIAL_FUNCTIONS_FPCLASSIFY_HPP_
#define CAFFE_LEGACY_BOOST_MATH_SPECIAL_FUNCTIONS_FPCLASSIFY_HPP_

#include <cmath>

namespace boost {
namespace math {
using std::isfinite;
using std::isinf;
using std::isnan;
}  // namespace math
}  // namespace boost

#endif  // CAFFE_LEGACY_BOOST_MATH_SPECIAL_FUNCTIONS_FPCLASSIFY_HPP_
