// thrust's function objects, for host and device.
#ifndef CAFFE_LEGACY_THRUST_FUNCTIONAL_H_
#define CAFFE_LEGACY_THRUST_FUNCTIONAL_H_

#include "caffe/util/device_alternate.hpp"

namespace thrust {

#define CAFFE_THRUST_FUNCTION_(name, Result, value)                                       \
  template <typename T>                                                                   \
  struct name {                                                                           \
    __host__ __device__ Result operator()(const T& a, const T& b) const { return value; } \
  };
CAFFE_THRUST_FUNCTION_(plus, T, a + b)
CAFFE_THRUST_FUNCTION_(minus, T, a - b)
CAFFE_THRUST_FUNCTION_(multiplies, T, a* b)
CAFFE_THRUST_FUNCTION_(divides, T, a / b)
CAFFE_THRUST_FUNCTION_(maximum, T, a < b ? b : a)
CAFFE_THRUST_FUNCTION_(minimum, T, b < a ? b : a)
CAFFE_THRUST_FUNCTION_(less, bool, a < b)
CAFFE_THRUST_FUNCTION_(greater, bool, b < a)
CAFFE_THRUST_FUNCTION_(less_equal, bool, a <= b)
CAFFE_THRUST_FUNCTION_(greater_equal, bool, a >= b)
CAFFE_THRUST_FUNCTION_(equal_to, bool, a == b)
CAFFE_THRUST_FUNCTION_(not_equal_to, bool, a != b)
#undef CAFFE_THRUST_FUNCTION_

}  // namespace thrust

#endif  // CAFFE_LEGACY_THRUST_FUNCTIONAL_H_
