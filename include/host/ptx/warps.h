// Warps: numbers of lanes, shuffles, votes.
#pragma once

#include "../cuda_warp.h"
#include "registers.h"

namespace cuda_ptx {

__forceinline__ u32 laneid() { return static_cast<u32>(::cuda_host::lane()); }
__forceinline__ u32 warpid() {
  return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) / 32;
}
enum Shuffle { kIdx, kUpwards, kDownwards, kBfly };
// PTX ISA, shfl: c has the clamp in its lower 5 bits, and the mask of segments above.
template <typename R>
__forceinline__ void shfl(R& to, bool* valid, int how, u32 value, u32 b, u32 c, u32 mask) {
  const u32 lane = laneid(), segments = c >> 8 & 31, clamp = c & 31, by = b & 31;
  const u32 most = (lane & segments) | (clamp & ~segments), least = lane & segments;
  u32 from;
  bool inside;
  switch (how) {
    case kUpwards:
      from = lane - by, inside = static_cast<s32>(from) >= static_cast<s32>(most);
      break;
    case kDownwards:
      from = lane + by, inside = from <= most;
      break;
    case kBfly:
      from = lane ^ by, inside = from <= most;
      break;
    default:
      from = least | (by & ~segments), inside = from <= most;
  }
  if (!inside) from = lane;
  const u32 got = ::cuda_host::shuffle(mask, value, static_cast<int>(from));
  set(to, got);
  if (valid) *valid = inside;
}
__forceinline__ bool uniform(u32 mask, bool p) {
  const u32 there = ::cuda_host::warp_ballot(mask, 1), yes = ::cuda_host::warp_ballot(mask, p);
  return yes == 0 || yes == there;
}

}  // namespace cuda_ptx
