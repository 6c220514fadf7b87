#pragma once

#include <cmath>

namespace boost {
namespace math {

template <typename T>
T nextafter(T from, T to) {
  return std::nextafter(from, to);
}

}  // namespace math
}  // namespace boost
