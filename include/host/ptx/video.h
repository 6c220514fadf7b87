// Video instructions: of one number (vadd, vshl ...), and of two or four in a register (vadd2, vabsdiff4 ...).
#pragma once

#include <limits>

#include "registers.h"

namespace cuda_ptx {

enum Video { kVadd, kVsub, kVavrg, kVabsdiff, kVmin, kVmax, kVshl, kVshr };
__forceinline__ s64 video(Video what, s64 a, s64 b, bool wraps) {
  if (what == kVshl || what == kVshr) b = wraps ? b & 31 : b > 32 ? 32 : b;
  switch (what) {
    case kVadd:
      return a + b;
    case kVsub:
      return a - b;
    case kVavrg:
      return (a + b + (a + b >= 0)) >> 1;
    case kVabsdiff:
      return a > b ? a - b : b - a;
    case kVmin:
      return a < b ? a : b;
    case kVmax:
      return a > b ? a : b;
    case kVshl:
      if (b == 32) return a > 0 ? s64(1) << 62 : a < 0 ? -(s64(1) << 62) : 0;  // which saturates alike
      return a * (s64(1) << b);
    default:
      return a >> b;
  }
}
template <typename To>
__forceinline__ To video_result(s64 value, bool saturates) {
  constexpr s64 least = std::numeric_limits<To>::min(), most = std::numeric_limits<To>::max();
  return static_cast<To>(!saturates ? value : value < least ? least : value > most ? most : value);
}
// With `adds` the results are added to c. Else they lie beside each other.
template <typename To, typename A, typename B>
__forceinline__ u32 video_lanes(Video what, bool saturates, bool adds, u32 a, u32 b, u32 c) {
  constexpr u32 bits = 8 * sizeof(To), mask = (1ull << bits) - 1;
  u32 lanes = 0, sum = c;
  for (u32 at = 0; at < 32; at += bits) {
    const s64 value = video(what, static_cast<A>(a >> at & mask), static_cast<B>(b >> at & mask), false);
    const To one = video_result<To>(value, saturates);
    lanes |= (static_cast<u32>(one) & mask) << at, sum += static_cast<u32>(one);
  }
  return adds ? sum : lanes;
}

}  // namespace cuda_ptx
