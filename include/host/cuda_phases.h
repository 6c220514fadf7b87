// What the loops of phases and of warps are made of (tools/cuda/phases.py, tools/cuda/warps.py): a block's threads, a warp's
// lanes, places for their variables, and what lanes send each other.
#pragma once

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include <new>
#include <type_traits>
#include <utility>

#include "cuda_api.h"
#include "cuda_words.h"

namespace cuda_host {

// Who runs, for what AddressSanitizer reports. In a row of several blocks threads are counted from the first block.
#if defined(__SANITIZE_ADDRESS__)
inline void show(uint3 thread, uint3 block, uint3 dim) {
  threadIdx = uint3{thread.x % dim.x, thread.y, thread.z};
  blockIdx = uint3{block.x + thread.x / dim.x, block.y, block.z};
}
#else
inline void show(uint3, uint3, uint3) {}
#endif

// A phase of a block (tools/cuda/phases.py): its threads, one after the other. `phase` gets the thread's place, its number
// in the block, and blockIdx.x * blockDim.x + threadIdx.x, which the compiler can then count in int.
template <typename Phase>
__forceinline__ void each_thread(uint3 block, uint3 dim, const Phase& phase) {
  const int begin = static_cast<int>(block.x * dim.x), width = static_cast<int>(dim.x);
  int row = 0;
  for (unsigned int z = 0; z < dim.z; ++z)
    for (unsigned int y = 0; y < dim.y; ++y, row += width)
      for (int x = 0; x < width; ++x) {
        const uint3 thread{static_cast<unsigned int>(x), y, z};
        show(thread, block, dim);
        phase(thread, row + x, static_cast<unsigned int>(begin + x));
      }
}
// The same of a phase that has blockIdx.x * blockDim.x + threadIdx.x as an unsigned number. If the compiler knows that it is
// below 2^31, it sees it count up. Beyond, who cares for speed.
template <typename Phase>
__attribute__((noinline, cold)) void phase_apart(const Phase& phase, uint3 thread, int number,
                                                 unsigned int x) {
  phase(thread, number, x);
}
template <typename Phase>
__forceinline__ void each_thread_along(uint3 block, uint3 dim, const Phase& phase) {
  if ((static_cast<uint64_t>(block.x) + 1) * dim.x > INT_MAX)
    return each_thread(block, dim,
                       [&](uint3 thread, int number, unsigned int x)
                           __attribute__((always_inline)) { phase_apart(phase, thread, number, x); });
  const int begin = static_cast<int>(block.x * dim.x), width = static_cast<int>(dim.x);
  int row = 0;
  for (unsigned int z = 0; z < dim.z; ++z)
    for (unsigned int y = 0; y < dim.y; ++y, row += width)
      for (int along = begin; along < begin + width; ++along) {
        if (along < 0 || along == INT_MAX) __builtin_unreachable();
        const uint3 thread{static_cast<unsigned int>(along - begin), y, z};
        show(thread, block, dim);
        phase(thread, row + along - begin, static_cast<unsigned int>(along));
      }
}
// A place for each thread of a block, for a variable that is no number (tools/cuda/kept.py). Of a reference it has the address.
template <typename T>
struct Kept {
  static_assert(std::is_trivially_copyable<T>::value, "a variable behind a barrier is copied as memory");
  alignas(T) char places[1024][sizeof(T)];
  T& operator[](int thread) { return *reinterpret_cast<T*>(places[thread]); }
};
template <typename T>
struct Kept<T&> {
  T* places[1024];
  T& refer(int thread, T& to) { return *(places[thread] = &to); }
  T& operator[](int thread) { return *places[thread]; }
};
// The same for `auto`.
struct KeptBytes {
  alignas(16) char places[1024][64];
  template <typename T>
  std::decay_t<T>& as(int thread) {
    static_assert(std::is_trivially_copyable<std::decay_t<T>>::value && sizeof(T) <= 64, "no plain type");
    return *reinterpret_cast<std::decay_t<T>*>(places[thread]);
  }
};
// The variable begins its life there, with a value or without.
template <typename T>
__forceinline__ T& keep(T& place, const std::remove_const_t<T>& value) {
  memcpy(const_cast<std::remove_const_t<T>*>(&place), &value, sizeof(T));
  return place;
}
template <typename T>
__forceinline__ T& begin(T& place) {
  if constexpr (!std::is_trivially_default_constructible<T>::value) new (&place) T;
  return place;
}
// t < n, of a thread's index. As int, with what is negative or beyond int apart, a loop over t ends at n, and has no
// condition.
template <typename Index, typename Other>
CAFFE_HOST_THROUGH bool below(Index t, Other n) {
  if constexpr (std::is_same<Index, unsigned int>::value && std::is_integral<Other>::value &&
                sizeof(Other) == sizeof(int)) {
    const int index = static_cast<int>(t), end = static_cast<int>(n);
    const int most =
        static_cast<int>(static_cast<unsigned int>(end >> 31) >> 1);  // without a choice in the loop
    return index < 0 || index == INT_MAX ? t < n : index < (most | (end & INT_MAX));
  } else
    return t < n;
}
#define CAFFE_HOST_PLACE                                                \
  [&]([[maybe_unused]] ::uint3 threadIdx, [[maybe_unused]] int caffe_t, \
      [[maybe_unused]] unsigned int caffe_x) __attribute__((always_inline))
#define CAFFE_HOST_EACH                                                                          \
  ::cuda_host::each_thread(blockIdx, blockDim,                                                  \
                           [&]([[maybe_unused]] ::uint3 threadIdx, [[maybe_unused]] int caffe_t, \
                               [[maybe_unused]] unsigned int caffe_x) __attribute__((always_inline)) {
#define CAFFE_HOST_EACH_ALONG ::cuda_host::each_thread_along(blockIdx, blockDim, CAFFE_HOST_PLACE {
// A loop of which threads take turns (tools/cuda/interchange.py): its head runs for the first thread of a row, or of a warp, and
// each_turn runs its body for as many threads as have a turn. i: the first one's index; the next has the next.
template <typename Row>
__forceinline__ void each_row(uint3 block, uint3 dim, const Row& row) {
  int number = 0;
  for (unsigned int z = 0; z < dim.z; ++z)
    for (unsigned int y = 0; y < dim.y; ++y, number += static_cast<int>(dim.x))
      row(uint3{0, y, z}, number, block.x * dim.x);
}
// Of the indices from i on, how many are below `end`, or are it. The first is.
template <bool with_end, typename Index, typename End>
__forceinline__ int turns(int width, Index i, End end) {
  if constexpr (std::is_integral_v<End>) {
    using Whole = std::make_unsigned_t<decltype(i + end)>;
    const Whole more = static_cast<Whole>(end) - static_cast<Whole>(i);
    const Whole most = static_cast<Whole>(width - with_end);
    return static_cast<int>(more < most ? more : most) + with_end;
  } else {
    int number = 1;
    while (number < width && (with_end ? i + Index(number) <= end : i + Index(number) < end)) ++number;
    return number;
  }
}
template <typename Turn, typename Index>
__attribute__((noinline, cold)) void turn_apart(const Turn& turn, uint3 thread, int number, unsigned int x,
                                                Index i) {
  turn(thread, number, x, i);
}
template <bool with_end, typename Index, typename End, typename Turn>
__forceinline__ void each_turn(uint3 first, int number, unsigned int x, int width, Index i, End end,
                               const Turn& turn) {
  const int count = turns<with_end>(width, i, end), column = static_cast<int>(first.x),
            from = static_cast<int>(x);
  if constexpr (std::is_same_v<Index, unsigned int>)  // what is below 2^31 is seen to count up
    if (static_cast<int>(i) >= 0 && static_cast<int>(i) <= INT_MAX - width) {
      const int begin = static_cast<int>(i);
      for (int k = 0; k < count; ++k) {
        const int at = begin + k;
        if (at < 0) __builtin_unreachable();
        turn(uint3{static_cast<unsigned int>(column + k), first.y, first.z}, number + k,
             static_cast<unsigned int>(from + k), static_cast<unsigned int>(at));
      }
      return;
    }
  for (int k = 0; k < count; ++k) {
    const uint3 thread{static_cast<unsigned int>(column + k), first.y, first.z};
    if constexpr (std::is_same_v<Index, unsigned int>)
      turn_apart(turn, thread, number + k, static_cast<unsigned int>(from + k), i + static_cast<Index>(k));
    else
      turn(thread, number + k, static_cast<unsigned int>(from + k), i + static_cast<Index>(k));
  }
}
#define CAFFE_HOST_TURN(index)                                                       \
  [&]([[maybe_unused]] ::uint3 threadIdx, [[maybe_unused]] int caffe_t,              \
      [[maybe_unused]] unsigned int caffe_x, [[maybe_unused]] decltype(index) index) \
      __attribute__((always_inline))
// The warps of a block whose rows are whole warps (tools/cuda/warps.py), and the lanes of a warp, from its first one on.
template <typename Warp>
__forceinline__ void each_warp(uint3 block, uint3 dim, const Warp& warp) {
  const int begin = static_cast<int>(block.x * dim.x), width = static_cast<int>(dim.x);
  int row = 0;
  for (unsigned int z = 0; z < dim.z; ++z)
    for (unsigned int y = 0; y < dim.y; ++y, row += width)
      for (int x = 0; x < width; x += 32)
        warp(uint3{static_cast<unsigned int>(x), y, z}, row + x, static_cast<unsigned int>(begin + x));
}
template <typename Lane>
__forceinline__ auto each_lane(uint3 first, int number, unsigned int x, const Lane& lane) {
  using Result = decltype(lane(first, number, x));
  const int from = static_cast<int>(x), column = static_cast<int>(first.x);
  if (from < 0 || from > INT_MAX - 32) __builtin_unreachable();  // larger grids run as threads (run_warps)
  for (int k = 0; k < 32; ++k)
    lane(uint3{static_cast<unsigned int>(column + k), first.y, first.z}, number + k,
         static_cast<unsigned int>(from + k));
  if constexpr (!std::is_void_v<Result>) return Result();
}
#define CAFFE_HOST_EACH_WARP \
  ::cuda_host::each_warp(blockIdx, blockDim, CAFFE_HOST_PLACE { \
    [[maybe_unused]] const auto __syncwarp = [](unsigned int = 0) {};
#define CAFFE_HOST_EACH_LANE ::cuda_host::each_lane(threadIdx, caffe_t, caffe_x, CAFFE_HOST_PLACE {
// The threads of a block that have returned, while others go on. What is asked of a warp is asked of its first thread.
struct Gone {
  bool is[1024] = {};
  int count = 0, leaving = 0;
  // Those that leave now: the others of their warp do not see it before all are at the same place.
  short last[1024];
  void leave(int thread) { last[leaving++] = static_cast<short>(thread); }
  void left() {
    for (int k = 0; k < leaving; ++k) {
      count += !is[last[k]];
      is[last[k]] = true;
    }
    leaving = 0;
  }
  void leave_warp(int first) {
    for (int k = 0; k < 32; ++k)
      if (!is[first + k]) leave(first + k);
    left();
  }
  // After a loop in which threads leave.
  bool everyone(uint3 dim) {
    left();
    return count == static_cast<int>(dim.x * dim.y * dim.z);
  }
  bool nobody(int first) {
    left();
    return !there(first);
  }
  unsigned int there(int first) const {
    unsigned int lanes = ~0u;
    for (int k = 0; count && k < 32; ++k) lanes &= ~(static_cast<unsigned int>(is[first + k]) << k);
    return lanes;
  }
};
struct Everyone {
  static constexpr unsigned int there(int) { return ~0u; }
};
// The same as each_thread and each_lane, of those that are left.
template <typename Phase>
__forceinline__ void each_left_thread(const Gone& gone, uint3 block, uint3 dim, const Phase& phase) {
  if (!gone.count) return each_thread(block, dim, phase);
  each_thread(block, dim, [&](uint3 thread, int number, unsigned int x) __attribute__((always_inline)) {
    if (!gone.is[number]) phase(thread, number, x);
  });
}
template <typename Lane>
__forceinline__ auto each_left_lane(const Gone& gone, uint3 first, int number, unsigned int x,
                                    const Lane& lane) {
  using Result = decltype(lane(first, number, x));
  if (!gone.count) return each_lane(first, number, x, lane);
  each_lane(first, number, x, [&](uint3 thread, int at, unsigned int along) __attribute__((always_inline)) {
    if (!gone.is[at]) lane(thread, at, along);
  });
  if constexpr (!std::is_void_v<Result>) return Result();
}
#define CAFFE_HOST_EACH_LEFT \
  ::cuda_host::each_left_thread(caffe_gone, blockIdx, blockDim, CAFFE_HOST_PLACE {
#define CAFFE_HOST_EACH_LEFT_LANE \
  ::cuda_host::each_left_lane(caffe_gone, threadIdx, caffe_t, caffe_x, CAFFE_HOST_PLACE {
// What the lanes of a block's warps send each other at one place. As on fibres, who gets from a lane that has returned gets
// its own.
template <typename T>
struct Sending {
  const T* warp;
  int lane;
  unsigned int there;
  T from(int source) const { return warp[there >> source & 1 ? source : lane]; }
};
// The values of a warp's 32 lanes in vector registers of 32 bytes.
template <size_t bytes>
struct RegisterOf;
#define CAFFE_HOST_BITS(type)                                                               \
  template <>                                                                               \
  struct RegisterOf<sizeof(type)> {                                                         \
    typedef type Vector __attribute__((vector_size(32), aligned(sizeof(type)), may_alias)); \
  };
CAFFE_HOST_BITS(signed char)
CAFFE_HOST_BITS(short)
CAFFE_HOST_BITS(int)
CAFFE_HOST_BITS(long long)
#undef CAFFE_HOST_BITS
template <typename T>
struct InRegisters {
  using Vector = typename RegisterOf<sizeof(T)>::Vector;
  static constexpr int width = 32 / sizeof(T), count = sizeof(T);
  Vector at[count];
  __forceinline__ void load(const T* lanes) {
    for (int j = 0; j < count; ++j) memcpy(&at[j], lanes + j * width, sizeof(Vector));
  }
  __forceinline__ void store(T* lanes) const {
    for (int j = 0; j < count; ++j) memcpy(lanes + j * width, &at[j], sizeof(Vector));
  }
};
// Lane k of a part of the warp's lanes gets that of `a` and `b`, one behind the other, whose number stands there.
template <typename Vector, int... from>
__forceinline__ Vector picked(Vector a, Vector b, std::integer_sequence<int, from...>) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, from...);
#else
  return __builtin_shuffle(a, b, Vector{from...});
#endif
}
struct MoveXor {
  static constexpr int source(int lane, int by) { return lane ^ by; }
  template <int step, typename Vector, int... k>
  static __forceinline__ Vector within(Vector a, std::integer_sequence<int, k...>) {
    return picked(a, a, std::integer_sequence<int, (k ^ step)...>());
  }
  template <int step, typename Lanes>
  static __forceinline__ void move(const Lanes& now, Lanes& next) {
    constexpr int n = Lanes::width;
    for (int j = 0; j < Lanes::count; ++j)
      if constexpr (step >= n)
        next.at[j] = now.at[j ^ step / n];
      else
        next.at[j] = within<step>(now.at[j], std::make_integer_sequence<int, n>());
  }
};
struct MoveDown {
  static constexpr int source(int lane, int by) { return lane + by; }
  template <int step, bool is_last, typename Vector, int... k>
  static __forceinline__ Vector within(Vector a, Vector b, std::integer_sequence<int, k...>) {
    constexpr int n = sizeof...(k);
    return picked(a, b, std::integer_sequence<int, (is_last && k + step >= n ? k : k + step)...>());
  }
  template <int step, typename Lanes>
  static __forceinline__ void move(const Lanes& now, Lanes& next) {
    constexpr int n = Lanes::width, whole = step / n, rest = step % n, last = Lanes::count - 1;
    const auto all = std::make_integer_sequence<int, n>();
    static_assert(!rest || !whole, "a power of two");
    for (int j = 0; j <= last; ++j)
      if (rest && j == last)
        next.at[j] = within<rest, true>(now.at[j], now.at[j], all);
      else if (rest)
        next.at[j] = within<rest, false>(now.at[j], now.at[j + 1], all);
      else
        next.at[j] = now.at[j + whole <= last ? j + whole : j];
  }
};
struct MoveUp {
  static constexpr int source(int lane, int by) { return lane - by; }
  template <int step, bool is_first, typename Vector, int... k>
  static __forceinline__ Vector within(Vector a, Vector b, std::integer_sequence<int, k...>) {
    constexpr int n = sizeof...(k);
    return picked(a, b, std::integer_sequence<int, (is_first && k < step ? n + k : n + k - step)...>());
  }
  template <int step, typename Lanes>
  static __forceinline__ void move(const Lanes& now, Lanes& next) {
    constexpr int n = Lanes::width, whole = step / n, rest = step % n;
    const auto all = std::make_integer_sequence<int, n>();
    static_assert(!rest || !whole, "a power of two");
    for (int j = 0; j < Lanes::count; ++j)
      if (rest && j == 0)
        next.at[j] = within<rest, true>(now.at[j], now.at[j], all);
      else if (rest)
        next.at[j] = within<rest, false>(now.at[j - 1], now.at[j], all);
      else
        next.at[j] = now.at[j >= whole ? j - whole : j];
  }
};
template <typename T>
struct Type {};
template <typename Left>
struct SentOf {
  const Left* left;
  alignas(64) char bytes[1024 * 8];
  explicit SentOf(const Left* left_ = nullptr) : left(left_) {}
  template <typename T>
  T* from(int thread) {
    return reinterpret_cast<T*>(bytes) + thread;
  }
  template <typename T>
  void put(int thread, T value) {
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "shuffles move up to 8 bytes");
    *from<T>(thread) = value;
  }
  template <typename T>
  Sending<std::decay_t<T>> of(int thread) {
    return {from<std::decay_t<T>>(thread & ~31), thread & 31, left->there(thread & ~31)};
  }
  // What a lane got by one of these, which move the values of a warp from its thread `first` on. All lanes have one `by`.
  template <typename T>
  std::decay_t<T> got(int thread) {
    return *from<std::decay_t<T>>(thread);
  }
  // For each lane, what a lane `step` away has; its own, if there is none.
  template <int step, typename T, typename Way>
  static __forceinline__ void move_all(T* lanes, Way) {
    using Lanes = InRegisters<T>;
    Lanes now, next;
    now.load(lanes);
    Way::template move<step>(now, next);
    next.store(lanes);
  }
  template <typename T, typename Way>
  __forceinline__ void move(T* lanes, unsigned int there, int by, Way way) {
    if (there == ~0u) switch (by) {  // as in most sums
        case 1:
          return move_all<1>(lanes, way);
        case 2:
          return move_all<2>(lanes, way);
        case 4:
          return move_all<4>(lanes, way);
        case 8:
          return move_all<8>(lanes, way);
        case 16:
          return move_all<16>(lanes, way);
      }
    T old[32];
    memcpy(old, lanes, sizeof old);
    for (int k = 0; k < 32; ++k) {
      const int of = Way::source(k, by);
      if (of >= 0 && of < 32 && (there >> of & 1)) lanes[k] = old[of];
    }
  }
  template <typename T>
  void move_xor(Type<T>, int first, Int by) {
    move(from<std::decay_t<T>>(first), left->there(first), by, MoveXor());
  }
  template <typename T>
  void move_down(Type<T>, int first, UInt by) {
    move(from<std::decay_t<T>>(first), left->there(first), static_cast<int>(by), MoveDown());
  }
  template <typename T>
  void move_up(Type<T>, int first, UInt by) {
    move(from<std::decay_t<T>>(first), left->there(first), static_cast<int>(by), MoveUp());
  }
  template <typename T>
  void move_at(Type<T>, int first, Int by) {
    std::decay_t<T>* const lanes = from<std::decay_t<T>>(first);
    if (!(left->there(first) >> (by & 31) & 1)) return;
    const std::decay_t<T> value = lanes[by & 31];
    for (int k = 0; k < 32; ++k) lanes[k] = value;
  }
  // As reduce(tile, value, merge) of cooperative groups does it: by halves.
  template <int size, typename T, typename Merge>
  __forceinline__ void merge(Type<T>, int first, const Merge& merge) {
    std::decay_t<T>* const lanes = from<std::decay_t<T>>(first);
    const unsigned int there = left->there(first);
    for (int by = size / 2; by; by /= 2) {
      std::decay_t<T> old[32];
      memcpy(old, lanes, sizeof old);
      if (there == ~0u)
        for (int k = 0; k < 32; ++k) lanes[k] = merge(old[k], old[k ^ by]);
      else
        for (int k = 0; k < 32; ++k)
          if (there >> k & 1) lanes[k] = merge(old[k], old[there >> (k ^ by) & 1 ? k ^ by : k]);
    }
  }
  // The lanes that answer yes; whether all do.
  unsigned int vote(int first) const {
    unsigned int lanes = 0;
    for (int k = 0; k < 32; ++k) lanes |= static_cast<unsigned int>(bytes[first + k] != 0) << k;
    return lanes & left->there(first);
  }
  int all(int first) const { return vote(first) == left->there(first); }
};
using Sent = SentOf<Everyone>;
template <typename T>
__forceinline__ T warp_at(UInt, Sending<T> sent, Int source, Int width = 32) {
  return sent.from((sent.lane & ~(width - 1)) + (source & (width - 1)));
}
template <typename T>
__forceinline__ T warp_up(UInt, Sending<T> sent, UInt delta, Int width = 32) {
  const int source = sent.lane - static_cast<int>(delta);
  return sent.from(source < (sent.lane & ~(width - 1)) ? sent.lane : source);
}
template <typename T>
__forceinline__ T warp_down(UInt, Sending<T> sent, UInt delta, Int width = 32) {
  const int source = sent.lane + static_cast<int>(delta);
  return sent.from(source > (sent.lane | (width - 1)) ? sent.lane : source);
}
template <typename T>
__forceinline__ T warp_xor(UInt, Sending<T> sent, Int lanes, Int width = 32) {
  const int source = sent.lane ^ lanes;
  return sent.from(source > (sent.lane | (width - 1)) ? sent.lane : source);
}
// Of a tile: a source outside of it is the lane itself.
template <typename T>
__forceinline__ T tile_xor(unsigned int, Sending<T> sent, unsigned int lanes, int width) {
  return sent.from(lanes < static_cast<unsigned int>(width) ? sent.lane ^ static_cast<int>(lanes)
                                                            : sent.lane);
}
template <typename T>
__forceinline__ unsigned int warp_match_any(unsigned int, Sending<T> sent) {
  const auto own = +sent.warp[sent.lane];
  unsigned int same = 0;
  for (int k = 0; k < 32; ++k) {
    const auto other = +sent.from(k);
    same |= static_cast<unsigned int>(!memcmp(&own, &other, sizeof own)) << k;
  }
  return same & sent.there;
}
template <typename T>
__forceinline__ unsigned int warp_match_all(unsigned int mask, Sending<T> sent, int* all) {
  *all = warp_match_any(mask, sent) == sent.there;
  return *all ? sent.there : 0;
}
#define CAFFE_HOST_WARP_REDUCE(name, expression)                           \
  template <typename T>                                                    \
  __forceinline__ auto warp_reduce_##name(unsigned int, Sending<T> sent) { \
    using Number = decltype(+T());                                         \
    Number a = sent.warp[sent.lane];                                       \
    for (int k = 0; k < 32; ++k) {                                         \
      if (k == sent.lane || !(sent.there >> k & 1)) continue;              \
      const Number b = sent.warp[k];                                       \
      a = static_cast<Number>(expression);                                 \
    }                                                                      \
    return a;                                                              \
  }
CAFFE_HOST_WARP_REDUCE(add, static_cast<unsigned int>(a) + static_cast<unsigned int>(b))
CAFFE_HOST_WARP_REDUCE(min, a < b ? a : b)
CAFFE_HOST_WARP_REDUCE(max, a < b ? b : a)
CAFFE_HOST_WARP_REDUCE(and, a& b)
CAFFE_HOST_WARP_REDUCE(or, a | b)
CAFFE_HOST_WARP_REDUCE(xor, a ^ b)
#undef CAFFE_HOST_WARP_REDUCE
}  // namespace cuda_host
