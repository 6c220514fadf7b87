#pragma once
#include <aten/functions.h>

// The quotient rounded down.
template <typename T>
C10_HOST_DEVICE inline T div_rtn(T x, T y) {
  const T quotient = x / y, rest = x % y;
  return rest && (rest < 0) != (y < 0) ? quotient - 1 : quotient;
}
