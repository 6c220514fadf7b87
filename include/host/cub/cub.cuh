// cub's collectives and its most used device algorithms, for the host: the same classes and results, in plain code. nvcc
// has its own. A kernel of a file that includes this always has threads that can wait (tools/cuda/alone.py).
//
// Reductions go in the order of the threads, where cub leaves the order open. As with cub, the result of a reduction is
// that of thread 0 or lane 0, and temporary memory may be used again after a barrier.
#pragma once

#include <string.h>

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>
#include <type_traits>
#include <vector>

#include "../cuda_runtime.h"

#ifndef CUB_VERSION
#define CUB_VERSION 200000
#endif

namespace cub {

// ----------------------------------------------------------------------------------------------------- small things

struct Sum {
  template <typename T, typename U>
  __host__ __device__ auto operator()(const T& a, const U& b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <typename T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
template <typename K, typename V>
struct KeyValuePair {
  typedef K Key;
  typedef V Value;
  K key;
  V value;
  KeyValuePair() = default;
  __host__ __device__ KeyValuePair(const K& k, const V& v) : key(k), value(v) {}
  __host__ __device__ bool operator!=(const KeyValuePair& b) const {
    return key != b.key || value != b.value;
  }
};
// The pair of the largest or least value; of equal ones, that of the least key.
struct ArgMax {
  template <typename K, typename V>
  __host__ __device__ KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a,
                                                    const KeyValuePair<K, V>& b) const {
    return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <typename K, typename V>
  __host__ __device__ KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a,
                                                    const KeyValuePair<K, V>& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

namespace host {

// Room for N values of any class, which nobody constructs.
template <typename T, int N>
struct Room {
  alignas(T) unsigned char bytes[N * sizeof(T)];
  T& operator[](int i) { return reinterpret_cast<T*>(bytes)[i]; }
  void put(int i, const T& value) { new (&(*this)[i]) T(value); }
};
// A collective's room: the caller's, or its class's own of the block, which runs on one thread of the host.
template <typename Storage, typename Self>
class Collective {
 protected:
  Storage& room_;
  static Storage& own() {
    static thread_local Storage storage;
    return storage;
  }

 public:
  typedef Storage TempStorage;
  Collective() : room_(own()) {}
  explicit Collective(Storage& storage) : room_(storage) {}
};
inline int thread() {
  return static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
}
template <typename T, int N, typename Op>
T reduced(const T (&items)[N], Op op) {
  T result = items[0];
  for (int i = 1; i < N; ++i) result = op(result, items[i]);
  return result;
}

// The scans of a block or of a warp. Self::before(total, op, last) gives the op of all earlier threads' totals; `last` is
// nothing, a T that becomes the op of all totals, or a function that gets it and returns what the whole begins with.
struct Nothing {};
template <typename T>
struct Before {
  bool any;
  T value;
};
template <typename T, typename Self, typename Storage>
class Scans : public Collective<Storage, Self> {
  template <int N, typename Op, typename Last>
  void scan(bool inclusive, const T (&in)[N], T (&out)[N], Op op, const T* initial, Last& last) {
    Before<T> sum = static_cast<Self*>(this)->before(reduced(in, op), op, last);
    if (initial) sum = {true, sum.any ? op(*initial, sum.value) : *initial};
    for (int i = 0; i < N; ++i) {
      const T next = sum.any ? op(sum.value, in[i]) : in[i];
      out[i] = inclusive ? next : sum.value;
      sum = {true, next};
    }
  }
  template <typename L>
  static L& only(L& last) {
    return last;
  }
  static Nothing& only() {
    static Nothing nothing;
    return nothing;
  }

 public:
  using Collective<Storage, Self>::Collective;
  template <int N, typename... L>
  void InclusiveSum(T (&in)[N], T (&out)[N], L&&... last) {
    scan(true, in, out, Sum(), nullptr, only(last...));
  }
  template <int N, typename... L>
  void ExclusiveSum(T (&in)[N], T (&out)[N], L&&... last) {
    const T zero{};
    constexpr bool begins = (std::is_invocable<L&, T>::value || ...);
    scan(false, in, out, Sum(), begins ? nullptr : &zero, only(last...));
  }
  template <int N, typename Op, typename... L>
  void InclusiveScan(T (&in)[N], T (&out)[N], Op op, L&&... last) {
    scan(true, in, out, op, nullptr, only(last...));
  }
  template <int N, typename Op, typename... L>
  std::enable_if_t<std::is_invocable<Op&, T, T>::value> ExclusiveScan(T (&in)[N], T (&out)[N], Op op,
                                                                      L&&... last) {
    scan(false, in, out, op, nullptr, only(last...));
  }
  template <int N, typename I, typename Op, typename... L>
  std::enable_if_t<!std::is_invocable<I&, T, T>::value> ExclusiveScan(T (&in)[N], T (&out)[N], I initial,
                                                                      Op op, L&&... last) {
    const T begin(initial);
    scan(false, in, out, op, &begin, only(last...));
  }
#define CUB_HOST_OF_ONE(name)              \
  template <typename... L>                 \
  void name(T in, T& out, L&&... others) { \
    T one[1] = {in}, made[1];              \
    name(one, made, others...);            \
    out = made[0];                         \
  }
  CUB_HOST_OF_ONE(InclusiveSum)
  CUB_HOST_OF_ONE(ExclusiveSum)
  CUB_HOST_OF_ONE(InclusiveScan)
  CUB_HOST_OF_ONE(ExclusiveScan)
#undef CUB_HOST_OF_ONE
};
template <typename T, int N>
struct ScanRoom {
  Room<T, N> totals;
  Room<T, 1> begin;
};
// totals[i] becomes the op of the totals up to i.
template <typename Totals, typename Op>
void accumulate(Totals& totals, int n, Op op) {
  for (int i = 1; i < n; ++i) totals.put(i, op(totals[i - 1], totals[i]));
}
// The lanes of a logical warp of W threads, and the place in it.
template <int W>
struct Lanes {
  const int lane = thread() % 32 % W;
  const unsigned mask = (W == 32 ? 0xffffffffu : (1u << W % 32) - 1) << (thread() % 32 / W * W);
  void meet() const { __syncwarp(mask); }
};

}  // namespace host

// ------------------------------------------------------------------------------------------------ of a block's threads

template <typename T, int X, BlockReduceAlgorithm A = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1,
          int P = 0>
struct BlockReduce : host::Collective<host::Room<T, X * Y * Z>, BlockReduce<T, X, A, Y, Z, P>> {
  using host::Collective<host::Room<T, X * Y * Z>, BlockReduce>::Collective;
  template <typename Op>
  T Reduce(T value, Op op, int valid = X * Y * Z) {
    const int t = host::thread();
    this->room_.put(t, value);
    __syncthreads();
    if (t == 0)
      for (int i = 1; i < valid; ++i) value = op(value, this->room_[i]);
    return value;
  }
  template <int N, typename Op>
  T Reduce(T (&items)[N], Op op) {
    return Reduce(host::reduced(items, op), op);
  }
  template <typename Items>
  T Sum(Items&& items) {
    return Reduce(items, cub::Sum());
  }
  T Sum(T value, int valid) { return Reduce(value, cub::Sum(), valid); }
};
template <typename T, int X, BlockScanAlgorithm A = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int P = 0>
struct BlockScan : host::Scans<T, BlockScan<T, X, A, Y, Z, P>, host::ScanRoom<T, X * Y * Z>> {
  using host::Scans<T, BlockScan, host::ScanRoom<T, X * Y * Z>>::Scans;
  template <typename Op, typename Last>
  host::Before<T> before(T total, Op op, Last& last) {
    const int t = host::thread();
    auto& room = this->room_;
    room.totals.put(t, total);
    __syncthreads();
    if (t == 0) host::accumulate(room.totals, X * Y * Z, op);
    __syncthreads();
    host::Before<T> found = {t > 0, t ? room.totals[t - 1] : total};
    const T all = room.totals[X * Y * Z - 1];
    if constexpr (std::is_invocable<Last&, T>::value) {
      // The first warp asks, as in cub; the answer is that of thread 0.
      if (t < 32) {
        const T begin = last(all);
        if (t == 0) room.begin.put(0, begin);
      }
      __syncthreads();
      found = {true, found.any ? op(room.begin[0], found.value) : room.begin[0]};
    } else if constexpr (std::is_same<Last, T>::value) {
      last = all;
    }
    return found;
  }
};

template <typename T, int X, int N, BlockLoadAlgorithm A = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1, int P = 0>
struct BlockLoad : host::Collective<host::Nothing, BlockLoad<T, X, N, A, Y, Z, P>> {
  using host::Collective<host::Nothing, BlockLoad>::Collective;
  static int place(int i) {
    return A == BLOCK_LOAD_STRIPED ? host::thread() + i * X * Y * Z : host::thread() * N + i;
  }
  template <typename From>
  void Load(From from, T (&items)[N]) {
    for (int i = 0; i < N; ++i) items[i] = from[place(i)];
  }
  template <typename From>
  void Load(From from, T (&items)[N], int valid) {
    for (int i = 0; i < N; ++i)
      if (place(i) < valid) items[i] = from[place(i)];
  }
  template <typename From, typename D>
  void Load(From from, T (&items)[N], int valid, D otherwise) {
    for (T& item : items) item = static_cast<T>(otherwise);
    Load(from, items, valid);
  }
};
template <typename T, int X, int N, BlockStoreAlgorithm A = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1,
          int P = 0>
struct BlockStore : host::Collective<host::Nothing, BlockStore<T, X, N, A, Y, Z, P>> {
  using host::Collective<host::Nothing, BlockStore>::Collective;
  template <typename To>
  void Store(To to, T (&items)[N], int valid = std::numeric_limits<int>::max()) {
    for (int i = 0; i < N; ++i) {
      const int at = A == BLOCK_STORE_STRIPED ? host::thread() + i * X * Y * Z : host::thread() * N + i;
      if (at < valid) to[at] = items[i];
    }
  }
};
template <typename T, int X, int N, bool A = false, int Y = 1, int Z = 1, int P = 0>
class BlockExchange
    : public host::Collective<host::Room<T, X * Y * Z * N>, BlockExchange<T, X, N, A, Y, Z, P>> {
  static int blocked(int i) { return host::thread() * N + i; }
  static int striped(int i) { return host::thread() + i * X * Y * Z; }
  template <typename U>
  void exchange(const T (&in)[N], U (&out)[N], int (*from)(int), int (*to)(int)) {
    __syncthreads();  // of an exchange before this
    for (int i = 0; i < N; ++i) this->room_.put(from(i), in[i]);
    __syncthreads();
    for (int i = 0; i < N; ++i) out[i] = this->room_[to(i)];
  }

 public:
  using host::Collective<host::Room<T, X * Y * Z * N>, BlockExchange>::Collective;
  template <typename U>
  void StripedToBlocked(const T (&in)[N], U (&out)[N]) {
    exchange(in, out, striped, blocked);
  }
  template <typename U>
  void BlockedToStriped(const T (&in)[N], U (&out)[N]) {
    exchange(in, out, blocked, striped);
  }
  void StripedToBlocked(T (&items)[N]) { StripedToBlocked(items, items); }
  void BlockedToStriped(T (&items)[N]) { BlockedToStriped(items, items); }
};

// ------------------------------------------------------------------------------------------------- of a warp's threads

template <typename T, int W = 32, int P = 0>
struct WarpReduce : host::Collective<host::Room<T, W>, WarpReduce<T, W, P>> {
  using host::Collective<host::Room<T, W>, WarpReduce>::Collective;
  template <typename Op>
  T Reduce(T value, Op op, int valid = W) {
    const host::Lanes<W> lanes;
    this->room_.put(lanes.lane, value);
    lanes.meet();
    if (lanes.lane == 0)
      for (int i = 1; i < valid; ++i) value = op(value, this->room_[i]);
    lanes.meet();
    return value;
  }
  T Sum(T value, int valid = W) { return Reduce(value, cub::Sum(), valid); }
};
template <typename T, int W = 32, int P = 0>
struct WarpScan : host::Scans<T, WarpScan<T, W, P>, host::ScanRoom<T, W>> {
  using host::Scans<T, WarpScan, host::ScanRoom<T, W>>::Scans;
  template <typename Op, typename Last>
  host::Before<T> before(T total, Op op, Last& last) {
    const host::Lanes<W> lanes;
    auto& totals = this->room_.totals;
    totals.put(lanes.lane, total);
    lanes.meet();
    if (lanes.lane == 0) host::accumulate(totals, W, op);
    lanes.meet();
    const host::Before<T> found = {lanes.lane > 0, lanes.lane ? totals[lanes.lane - 1] : total};
    if constexpr (std::is_same<Last, T>::value) last = totals[W - 1];
    lanes.meet();
    return found;
  }
};

// ---------------------------------------------------------------------------------------------- of a device's memory

namespace host {
// What the host writes here for the device, the race finder does not see.
template <typename T>
void is_filled(const T& out) {
  if constexpr (std::is_pointer<T>::value) cuda_host::memory_filled(out);
}
// Each is called twice: first, with no memory, for the number of bytes that it needs.
template <typename Work, typename... Outs>
cudaError_t twice(void* memory, size_t& bytes, const Work& work, const Outs&... outs) {
  if (memory)
    work(), (is_filled(outs), ...);
  else
    bytes = 1;
  return cudaSuccess;
}
template <typename It>
using ValueOf = std::decay_t<decltype(std::declval<It&>()[0])>;
// What a sum is kept in, as in cub: neither that of the elements, which for a count of bytes is too small, nor that of
// the initial value, which is often the int 0.
template <typename Op, typename T, typename In>
using SumOf = std::decay_t<decltype(std::declval<Op&>()(std::declval<T>(), std::declval<ValueOf<In>>()))>;
// A key as an unsigned number of the same order. -0 is equal to 0, as in cub.
template <typename K>
auto ordered(K key) {
  using Bits = std::conditional_t<
      sizeof(K) == 8, uint64_t,
      std::conditional_t<sizeof(K) == 4, uint32_t, std::conditional_t<sizeof(K) == 2, uint16_t, uint8_t>>>;
  constexpr Bits top = static_cast<Bits>(Bits{1} << (8 * sizeof(K) - 1));
  Bits bits;
  memcpy(&bits, &key, sizeof(K));
  if (std::is_unsigned<K>::value) return bits;
  if (std::is_integral<K>::value) return static_cast<Bits>(bits ^ top);
  return static_cast<Bits>(bits & top && bits != top ? ~bits : bits | top);
}
}  // namespace host

struct DeviceReduce {
  template <typename In, typename Out, typename Op, typename T, typename N = int>
  static cudaError_t Reduce(void* memory, size_t& bytes, In in, Out out, N n, Op op, T initial,
                            cudaStream_t = nullptr) {
    return host::twice(
        memory, bytes,
        [&] {
          host::SumOf<Op, T, In> result = initial;
          for (N i = 0; i < n; ++i) result = op(result, in[i]);
          *out = result;
        },
        out);
  }
#define CUB_HOST_REDUCE(name, op, initial)                                                                   \
  template <typename In, typename Out, typename N>                                                           \
  static cudaError_t name(void* memory, size_t& bytes, In in, Out out, N n, cudaStream_t stream = nullptr) { \
    return Reduce(memory, bytes, in, out, n, op, initial, stream);                                           \
  }
  CUB_HOST_REDUCE(Sum, cub::Sum(), host::ValueOf<Out>(0))
  CUB_HOST_REDUCE(Max, cub::Max(), std::numeric_limits<host::ValueOf<In>>::lowest())
  CUB_HOST_REDUCE(Min, cub::Min(), std::numeric_limits<host::ValueOf<In>>::max())
#undef CUB_HOST_REDUCE
};
struct DeviceScan {
  template <typename In, typename Out, typename Op, typename N>
  static cudaError_t InclusiveScan(void* memory, size_t& bytes, In in, Out out, Op op, N n,
                                   cudaStream_t = nullptr) {
    return host::twice(
        memory, bytes,
        [&] {
          if (n <= 0) return;
          host::SumOf<Op, host::ValueOf<In>, In> sum = in[0];
          for (N i = 0; i < n; ++i) {
            if (i) sum = op(sum, in[i]);
            out[i] = sum;
          }
        },
        out);
  }
  template <typename In, typename Out, typename Op, typename T, typename N>
  static cudaError_t ExclusiveScan(void* memory, size_t& bytes, In in, Out out, Op op, T initial, N n,
                                   cudaStream_t = nullptr) {
    return host::twice(
        memory, bytes,
        [&] {
          host::SumOf<Op, T, In> sum = initial;
          for (N i = 0; i < n; ++i) {
            const auto next = op(sum, in[i]);  // in and out may be the same
            out[i] = sum, sum = next;
          }
        },
        out);
  }
  template <typename In, typename Out, typename N>
  static cudaError_t InclusiveSum(void* memory, size_t& bytes, In in, Out out, N n,
                                  cudaStream_t s = nullptr) {
    return InclusiveScan(memory, bytes, in, out, Sum(), n, s);
  }
  template <typename In, typename Out, typename N>
  static cudaError_t ExclusiveSum(void* memory, size_t& bytes, In in, Out out, N n,
                                  cudaStream_t s = nullptr) {
    return ExclusiveScan(memory, bytes, in, out, Sum(), host::ValueOf<In>(0), n, s);
  }
};
class DeviceRadixSort {
  template <typename K, typename N>
  static std::vector<size_t> order(const K* keys, N n, int begin, int end, bool descending) {
    std::vector<size_t> found(static_cast<size_t>(n));
    std::iota(found.begin(), found.end(), size_t{0});
    const int bits = 8 * sizeof(K);
    const uint64_t mask =
        (end - begin >= 64 ? ~uint64_t{0} : (uint64_t{1} << (std::min(end, bits) - begin)) - 1);
    const auto part = [&](size_t i) { return static_cast<uint64_t>(host::ordered(keys[i])) >> begin & mask; };
    std::stable_sort(found.begin(), found.end(),
                     [&](size_t a, size_t b) { return descending ? part(a) > part(b) : part(a) < part(b); });
    return found;
  }

 public:
#define CUB_HOST_SORT(keys_name, pairs_name, descending)                                             \
  template <typename K, typename N>                                                                  \
  static cudaError_t keys_name(void* memory, size_t& bytes, const K* in, K* out, N n, int begin = 0, \
                               int end = sizeof(K) * 8, cudaStream_t = nullptr) {                    \
    return host::twice(                                                                              \
        memory, bytes,                                                                               \
        [&] {                                                                                        \
          N at = 0;                                                                                  \
          for (size_t i : order(in, n, begin, end, descending)) out[at++] = in[i];                   \
        },                                                                                           \
        out);                                                                                        \
  }                                                                                                  \
  template <typename K, typename V, typename N>                                                      \
  static cudaError_t pairs_name(void* memory, size_t& bytes, const K* in, K* out, const V* values,   \
                                V* values_out, N n, int begin = 0, int end = sizeof(K) * 8,          \
                                cudaStream_t = nullptr) {                                            \
    return host::twice(                                                                              \
        memory, bytes,                                                                               \
        [&] {                                                                                        \
          N at = 0;                                                                                  \
          for (size_t i : order(in, n, begin, end, descending))                                      \
              out[at] = in[i], values_out[at++] = values[i];                                         \
        },                                                                                           \
        out, values_out);                                                                            \
  }
  CUB_HOST_SORT(SortKeys, SortPairs, false)
  CUB_HOST_SORT(SortKeysDescending, SortPairsDescending, true)
#undef CUB_HOST_SORT
};

}  // namespace cub
