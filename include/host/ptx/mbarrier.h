// mbarrier: a barrier in a word of shared memory. It counts arrivals, and the bytes of bulk copies.
//
// The word has the arrivals that are missing and those of a phase (20 bits each), the phase's parity (1), the bytes that are missing
// (22, with a sign), and whether an even number of bulk copies has begun (1). A phase ends when no arrival and no byte is missing.
#pragma once

#include "memory.h"

namespace cuda_ptx {

constexpr u32 kMostArrivals = (1 << 20) - 1;

struct Mbarrier {
  u32 pending, expected, parity;
  s32 bytes;
  u32 begun = 0;

  static Mbarrier of(u64 word) {
    return {static_cast<u32>(word & kMostArrivals), static_cast<u32>(word >> 20 & kMostArrivals),
            static_cast<u32>(word >> 40 & 1), static_cast<s32>(static_cast<s64>(word << 1) >> 42),
            static_cast<u32>(word >> 63)};
  }
  u64 word() const {
    return pending | u64(expected) << 20 | u64(parity) << 40 |
           (static_cast<u64>(static_cast<s64>(bytes)) & 0x3fffff) << 41 | u64(begun) << 63;
  }
  Mbarrier settled() const {
    return pending || bytes ? *this : Mbarrier{expected, expected, parity ^ 1, 0, begun};
  }
};

// Changes it in one step. Returns the state before.
template <typename Change>
__forceinline__ u64 change_mbarrier(char* at, bool releases, bool acquires, Change change_it) {
  return change<u64>(at, releases, acquires, [&](u64 word) {
    Mbarrier own = Mbarrier::of(word);
    change_it(own);
    return own.settled().word();
  });
}

__forceinline__ void mbarrier_init(char* at, u32 count) {
  if (!count || count > kMostArrivals) ::cuda_host::ptx_problem("an mbarrier for no or too many arrivals");
  store<u64>(at, Mbarrier{count, count, 0, 0}.word());
}
__forceinline__ void mbarrier_expect(char* at, s32 bytes) {
  change_mbarrier(at, false, false, [bytes](Mbarrier& own) { own.bytes += bytes; });
}
// drops: the thread takes part in no later phase.
__forceinline__ u64 mbarrier_arrive(char* at, bool releases, u32 count, s32 bytes, bool drops) {
  return change_mbarrier(at, releases, false, [=](Mbarrier& own) {
    if (count > own.pending) ::cuda_host::ptx_problem("more arrivals at an mbarrier than its phase expects");
    own.bytes += bytes;
    own.pending -= count;
    if (drops) own.expected -= count;
  });
}
__forceinline__ bool mbarrier_ended(char* at, bool acquires, u32 parity) {
  return Mbarrier::of(load_atomic<u64>(at, acquires)).parity != (parity & 1);
}
// Has the phase ended that had this parity? If not, bulk copies are done, as late as CUDA allows, and other threads go on.
__forceinline__ bool mbarrier_test(char* at, bool acquires, u32 parity) {
  if (mbarrier_ended(at, acquires, parity)) return true;
  load_atomic<u64>(at, true);  // a copy comes after what its thread did before it
  if (const s32 copied = static_cast<s32>(::cuda_host::bulk_done(at)))
    change_mbarrier(at, true, false, [copied](Mbarrier& own) { own.bytes -= copied; });
  else
    ::cuda_host::spin();
  return mbarrier_ended(at, acquires, parity);
}
__forceinline__ bool mbarrier_test_state(char* at, bool acquires, u64 state) {
  return mbarrier_test(at, acquires, Mbarrier::of(state).parity);
}
__forceinline__ u32 mbarrier_pending(u64 state) { return Mbarrier::of(state).pending; }

// cp.async.mbarrier.arrive: this thread's copies so far. Without noinc the phase expects one arrival more.
__forceinline__ void mbarrier_arrive_with_copies(char* at, bool is_expected) {
  ::cuda_host::async_wait(-1);
  if (is_expected) mbarrier_arrive(at, true, 1, 0, false);
}
// cp.async.bulk to shared memory.
__forceinline__ void bulk_copy(char* to, const char* from, u32 bytes, char* barrier) {
  aligned(to, 16), aligned(from, 16);
  if (bytes % 16) ::cuda_host::ptx_problem("a bulk copy of a size that is no multiple of 16");
  ::cuda_host::bulk_copy(to, from, bytes, barrier);
  // The copy comes after what this thread did. Nobody runs in between, as with change().
  typedef u64 word __attribute__((may_alias));
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  __atomic_fetch_xor(reinterpret_cast<word*>(barrier), 1ull << 63,
                     __ATOMIC_RELAXED);  // a change: it publishes
}
__forceinline__ void bulk_store(char* to, const char* from, u32 bytes) {
  aligned(to, 16), aligned(from, 16);
  if (bytes % 16) ::cuda_host::ptx_problem("a bulk copy of a size that is no multiple of 16");
  ::cuda_host::bulk_store(to, from, bytes);
}

}  // namespace cuda_ptx
