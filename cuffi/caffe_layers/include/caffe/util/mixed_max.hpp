// std::max and std::min of a float and a double. With compilers of 2015 sqrt() and fabs() of a float returned
// a double, so `std::max(sqrt(x), 0.)` compiled in layers of both types. Not a header of Caffe's.
#pragma once

#include <algorithm>
#include <type_traits>

namespace std {

// Because of the int parameter, `std::max<float>(a, b)` does not match these.
template <int = 0, typename A, typename B>
constexpr enable_if_t<is_floating_point<A>::value && is_floating_point<B>::value && !is_same<A, B>::value,
                      common_type_t<A, B>>
max(A a, B b) {
  return a < b ? b : a;
}
template <int = 0, typename A, typename B>
constexpr enable_if_t<is_floating_point<A>::value && is_floating_point<B>::value && !is_same<A, B>::value,
                      common_type_t<A, B>>
min(A a, B b) {
  return b < a ? b : a;
}

}  // namespace std
