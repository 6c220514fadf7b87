// Cooperative groups on the host, by the barriers and shuffles of cuda_warp.h: a block, tiles of a warp, the lanes at a
// statement, and the grid of a cooperative launch.
#pragma once

#include <string.h>

#include "cuda_runtime.h"

namespace cooperative_groups {

class thread_block {
 public:
  __forceinline__ static void sync(int line = __builtin_LINE()) { cuda_host::block_barrier(0, {line}); }
  __forceinline__ static unsigned int size() { return blockDim.x * blockDim.y * blockDim.z; }
  __forceinline__ static unsigned int num_threads() { return size(); }
  __forceinline__ static unsigned int thread_rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  __forceinline__ static dim3 group_index() { return dim3(blockIdx); }
  __forceinline__ static dim3 thread_index() { return dim3(threadIdx); }
  __forceinline__ static dim3 group_dim() { return dim3(blockDim); }
  __forceinline__ static dim3 dim_threads() { return dim3(blockDim); }
};
__forceinline__ thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  __forceinline__ static bool is_valid() { return cuda_host::is_cooperative(); }
  __forceinline__ static void sync(int line = __builtin_LINE()) { cuda_host::grid_barrier({line}); }
  __forceinline__ static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
  __forceinline__ static unsigned long long block_rank() {
    return (1ull * blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  __forceinline__ static unsigned long long size() { return num_blocks() * thread_block::size(); }
  __forceinline__ static unsigned long long num_threads() { return size(); }
  __forceinline__ static unsigned long long thread_rank() {
    return block_rank() * thread_block::size() + thread_block::thread_rank();
  }
  __forceinline__ static dim3 group_dim() { return dim3(gridDim); }
  __forceinline__ static dim3 dim_blocks() { return dim3(gridDim); }
  __forceinline__ static dim3 block_index() { return dim3(blockIdx); }
};
__forceinline__ grid_group this_grid() { return {}; }

class coalesced_group;

// Lanes of a warp, numbered in their order. A value from a number that the group does not have is the thread's own.
class lane_group {
 public:
  explicit lane_group(unsigned int mask = 0) : mask_(mask) {}
  __forceinline__ void sync() const { __syncwarp(mask_); }
  __forceinline__ unsigned int size() const { return __builtin_popcount(mask_); }
  __forceinline__ unsigned int num_threads() const { return size(); }
  __forceinline__ unsigned int thread_rank() const {
    return __builtin_popcount(mask_ & ((1u << cuda_host::lane()) - 1));
  }
  template <typename T>
  __forceinline__ T shfl(T value, cuda_host::Int rank) const {
    return from(value, static_cast<unsigned int>(rank) % size());
  }
  template <typename T>
  __forceinline__ T shfl_down(T value, cuda_host::UInt by) const {
    return from(value, thread_rank() + by);
  }
  template <typename T>
  __forceinline__ T shfl_up(T value, cuda_host::UInt by) const {
    return from(value, by > thread_rank() ? thread_rank() : thread_rank() - by);
  }
  template <typename T>
  __forceinline__ T shfl_xor(T value, cuda_host::UInt by) const {
    return from(value, thread_rank() ^ by);
  }
  __forceinline__ int any(cuda_host::Int is) const { return __any_sync(mask_, is); }
  __forceinline__ int all(cuda_host::Int is) const { return __all_sync(mask_, is); }
  __forceinline__ unsigned int ballot(cuda_host::Int is) const { return packed(__ballot_sync(mask_, is)); }
  template <typename T>
  __forceinline__ unsigned int match_any(T value) const {
    return packed(__match_any_sync(mask_, value));
  }
  template <typename T>
  __forceinline__ unsigned int match_all(T value, int& all) const {
    return packed(__match_all_sync(mask_, value, &all));
  }
  // The lanes of this lane's part, of so many lanes in their order.
  __forceinline__ unsigned int part(unsigned int size) const {
    const unsigned int own = thread_rank() / size;
    unsigned int result = 0, rank = 0;
    for (unsigned int left = mask_; left; left &= left - 1, ++rank)
      if (rank / size == own) result |= left & (~left + 1);
    return result;
  }
  // Groups of labels are numbered by their first lanes; the two of an answer by the answer.
  template <typename Label>
  coalesced_group parted(Label label, bool by_answer = false) const;

 protected:
  // Values of any size, eight bytes at a time.
  template <typename T>
  __forceinline__ T from(T value, unsigned int rank) const {
    return from_lane(value, lane_of(rank < size() ? rank : thread_rank()));
  }
  template <typename T>
  __forceinline__ T from_lane(T value, int lane) const {
    T result = value;
    for (size_t at = 0; at < sizeof(T); at += 8) {
      uint64_t part = 0;
      const size_t bytes = sizeof(T) - at < 8 ? sizeof(T) - at : 8;
      memcpy(&part, reinterpret_cast<const char*>(&value) + at, bytes);
      part = cuda_host::shuffle(mask_, part, lane);
      memcpy(reinterpret_cast<char*>(&result) + at, &part, bytes);
    }
    return result;
  }
  __forceinline__ int lane_of(unsigned int rank) const {
    unsigned int left = mask_;
    for (; rank; --rank) left &= left - 1;
    return __builtin_ctz(left);
  }
  // A bit for each number instead of each lane.
  __forceinline__ unsigned int packed(unsigned int lanes) const {
    unsigned int result = 0, number = 0;
    for (unsigned int left = mask_; left; left &= left - 1, ++number)
      result |= (lanes >> __builtin_ctz(left) & 1u) << number;
    return result;
  }
  __forceinline__ static unsigned int tile_mask(unsigned int size) {
    const unsigned int all = size >= 32 ? 0xffffffffu : (1u << size) - 1;
    const unsigned int block = thread_block::size(), warp = thread_block::thread_rank() / 32 * 32;
    const unsigned int there = block - warp >= 32 ? 0xffffffffu : (1u << (block - warp)) - 1;
    return all << (cuda_host::lane() / size * size % 32) & there;
  }
  unsigned int mask_;
};

class coalesced_group : public lane_group {
 public:
  explicit coalesced_group(unsigned int mask, unsigned int rank = 0, unsigned int groups = 1)
      : lane_group(mask), rank_(rank), groups_(groups) {}
  __forceinline__ unsigned int meta_group_rank() const { return rank_; }
  __forceinline__ unsigned int meta_group_size() const { return groups_; }
  // As on a GPU, a number that the group does not have is lane 31, which may take no part.
  template <typename T>
  __forceinline__ T shfl(T value, cuda_host::Int rank) const {
    return from_lane(value, static_cast<unsigned int>(rank) < size() ? lane_of(rank) : 31);
  }

 private:
  unsigned int rank_, groups_;  // of the groups into which the lanes were parted
};
__forceinline__ coalesced_group coalesced_threads(int line = __builtin_LINE(), int column = 0) {
  return coalesced_group(__activemask(line, column));
}

template <typename Label>
__forceinline__ coalesced_group lane_group::parted(Label label, bool by_answer) const {
  const unsigned int same = __match_any_sync(mask_, label);
  if (by_answer) return coalesced_group(same, label ? 1 : 0, 2);
  const unsigned int first = same & (~same + 1);
  const unsigned int firsts = __ballot_sync(mask_, first == 1u << cuda_host::lane());
  return coalesced_group(same, __builtin_popcount(firsts & (first - 1)), __builtin_popcount(firsts));
}
// Those of the group's lanes that have the same label, or the same answer.
template <typename Label>
__forceinline__ coalesced_group labeled_partition(const lane_group& group, Label label) {
  return group.parted(label);
}
__forceinline__ coalesced_group binary_partition(const lane_group& group, bool is) {
  return group.parted(is, true);
}

template <unsigned int Size, typename Parent = void>
class thread_block_tile : public lane_group {
 public:
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "the host has tiles of 1, 2, 4, 8, 16 or 32 threads");
  __forceinline__ thread_block_tile() : lane_group(tile_mask(Size)) {}
  template <typename Other>
  __forceinline__ thread_block_tile(const thread_block_tile<Size, Other>& same) : lane_group(same) {}
  static constexpr unsigned int size() { return Size; }
  static constexpr unsigned int num_threads() { return Size; }
  __forceinline__ static unsigned int meta_group_rank() { return thread_block::thread_rank() / Size; }
  __forceinline__ static unsigned int meta_group_size() { return (thread_block::size() + Size - 1) / Size; }
};

// Any of the above.
class thread_group : public lane_group {
 public:
  __forceinline__ thread_group(const thread_block&) : block_(true) {}
  __forceinline__ thread_group(const lane_group& lanes) : lane_group(lanes) {}
  __forceinline__ void sync(int line = __builtin_LINE()) const {
    block_ ? thread_block::sync(line) : lane_group::sync();
  }
  __forceinline__ unsigned int size() const { return block_ ? thread_block::size() : lane_group::size(); }
  __forceinline__ unsigned int num_threads() const { return size(); }
  __forceinline__ unsigned int thread_rank() const {
    return block_ ? thread_block::thread_rank() : lane_group::thread_rank();
  }
  __forceinline__ thread_group tile(unsigned int size) const {
    return lane_group(block_ ? tile_mask(size) : part(size));
  }

 private:
  bool block_ = false;
};

template <unsigned int Size, typename Parent>
__forceinline__ thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}
__forceinline__ thread_group tiled_partition(const thread_group& group, unsigned int size) {
  return group.tile(size);
}
__forceinline__ coalesced_group tiled_partition(const coalesced_group& group, unsigned int size) {
  return coalesced_group(group.part(size), group.thread_rank() / size, (group.size() + size - 1) / size);
}

template <typename Group>
__forceinline__ void sync(const Group& group, int line = __builtin_LINE()) {
  if constexpr (std::is_base_of<lane_group, Group>::value && !std::is_same<thread_group, Group>::value)
    group.sync();
  else
    group.sync(line);
}
template <typename Group>
__forceinline__ void synchronize(const Group& group, int line = __builtin_LINE()) {
  sync(group, line);
}

// ------------------------------------------------------------------- reduce.h, scan.h, memcpy_async.h

#define CAFFE_HOST_OPERATION(name, expression)                          \
  template <typename T = void>                                          \
  struct name {                                                         \
    __forceinline__ T operator()(T a, T b) const { return expression; } \
  };                                                                    \
  template <>                                                           \
  struct name<void> {                                                   \
    template <typename T>                                               \
    __forceinline__ T operator()(T a, T b) const {                      \
      return expression;                                                \
    }                                                                   \
  };
CAFFE_HOST_OPERATION(plus, a + b)
CAFFE_HOST_OPERATION(less, b < a ? b : a)
CAFFE_HOST_OPERATION(greater, a < b ? b : a)
CAFFE_HOST_OPERATION(bit_and, a& b)
CAFFE_HOST_OPERATION(bit_or, a | b)
CAFFE_HOST_OPERATION(bit_xor, a ^ b)
#undef CAFFE_HOST_OPERATION

// merge(...) of all values, by halves, as a GPU's butterfly does for tiles; in order for other groups.
template <typename Group, typename T, typename Merge>
__forceinline__ T reduce(const Group& group, T value, Merge&& merge) {
  const unsigned int size = group.size();
  if ((size & (size - 1)) == 0) {
    for (unsigned int by = size / 2; by; by /= 2) value = merge(value, group.shfl_xor(value, by));
    return value;
  }
  T result = group.shfl(value, 0);
  for (unsigned int rank = 1; rank < size; ++rank) result = merge(result, group.shfl(value, rank));
  return result;
}
template <typename Group, typename T, typename Merge = plus<>>
__forceinline__ T inclusive_scan(const Group& group, T value, Merge&& merge = {}) {
  for (unsigned int by = 1; by < group.size(); by *= 2) {
    const T before = group.shfl_up(value, by);
    if (group.thread_rank() >= by) value = merge(before, value);
  }
  return value;
}
template <typename Group, typename T, typename Merge = plus<>>
__forceinline__ T exclusive_scan(const Group& group, T value, Merge&& merge = {}) {
  const T before = group.shfl_up(inclusive_scan(group, value, merge), 1);
  return group.thread_rank() ? before : T();
}

// Each thread of the group copies a part. A copy to shared memory is done when it is waited for.
template <typename Group>
__forceinline__ void memcpy_async(const Group& group, void* to, const void* from, size_t bytes) {
  char* const target = static_cast<char*>(to);
  const char* const source = static_cast<const char*>(from);
  const uintptr_t both = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes;
  const size_t unit = both % 16 == 0 ? 16 : both % 4 == 0 ? 4 : 1;
  const bool later = cuda_host::is_shared(to);
  for (size_t at = group.thread_rank() * unit; at < bytes; at += group.size() * unit) {
    if (later)
      cuda_host::async_copy(target + at, source + at, unit, unit);
    else
      for (size_t i = at; i < at + unit; ++i) target[i] = source[i];
  }
  cuda_host::async_commit();
}
// The groups of copies that are not the last kLater ones are done, and visible to the group.
template <unsigned kLater, typename Group>
__forceinline__ void wait_prior(const Group& group, int line = __builtin_LINE()) {
  cuda_host::async_wait(kLater);
  sync(group, line);
}
template <typename Group>
__forceinline__ void wait(const Group& group, int line = __builtin_LINE()) {
  cuda_host::async_wait(-1);
  sync(group, line);
}

}  // namespace cooperative_groups
