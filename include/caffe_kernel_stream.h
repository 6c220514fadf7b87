// CUDA_KERNEL_LOOP at copy speed, its body unedited.
//
// A body that touches some pointers only as `p[i]`, i being the loop's own index, and writes once, at
// its end, is a stream: element in, element out. Caffe's loop gives each thread one such element and moves
// about 60% of what the memory could. Here each thread takes 16 bytes of neighbours at once: they are loaded
// into registers, the body runs on each, and what it wrote is stored together. Within the body the pointers'
// names stand for these registers (Window), so not a byte of it changes.
//
// tools/cuda_for_nvcc.py decides by analysis which loops are streams and rewrites
//
//   CUDA_KERNEL_LOOP(i, n) { out[i] = in[i] * 2; }                                     into
//
//   if (caffe::one_each(n)) { CUDA_KERNEL_LOOP(i, n) { out[i] = in[i] * 2; } } else {
//     CUDA_KERNEL_STREAM(i, n, in, out) CAFFE_STREAM_READ(i, in) CAFFE_STREAM_WRITE(i, out)
//     CAFFE_STREAM_LANES(i, n) { out[i] = in[i] * 2; } }
//
// and CAFFE_GET_BLOCKS(n) in its launches into caffe::stream_blocks(n, kernel). Right for any grid,
// alignment, count and aliasing: all an element's reads come before its write, as they do in the body.
#ifndef CAFFE_KERNEL_STREAM_H_
#define CAFFE_KERNEL_STREAM_H_

#include <stdint.h>

#include <type_traits>

namespace caffe {

// Below this many bytes behind a pointer, one element a thread fills the GPU better than 16 bytes a thread
// (measured on an H200).
constexpr int64_t kStreamFrom = int64_t(1) << 20;

constexpr int stream_lanes(int widest) { return widest >= 16 ? 1 : 16 / widest; }

template <typename... Pointee>
constexpr int widest() {
  int bytes = 1;
  ((bytes = static_cast<int>(sizeof(Pointee)) > bytes ? static_cast<int>(sizeof(Pointee)) : bytes), ...);
  return bytes;
}

// Has the grid a thread for each element? Then Caffe's loop it is: small counts, and launches of some other
// shape.
__device__ __forceinline__ bool one_each(int64_t n) { return int64_t(gridDim.x) * blockDim.x >= n; }

// Where a thread is: `count` elements from `first` on are its own now.
template <int Lanes, typename Index>
struct Stream {
  static constexpr int kLanes = Lanes;
  int64_t at, step, end;

  __device__ __forceinline__ explicit Stream(int64_t n)
      : at((int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * Lanes),
        step(int64_t(gridDim.x) * blockDim.x * Lanes),
        end(n) {}
  __device__ __forceinline__ bool inside() const { return at < end; }
  __device__ __forceinline__ void next() { at += step; }
  __device__ __forceinline__ Index first() const { return static_cast<Index>(at); }
  __device__ __forceinline__ int count() const {
    return end - at < Lanes ? static_cast<int>(end - at) : Lanes;
  }
};

template <typename Index, typename... Pointee>
__device__ Stream<stream_lanes(widest<Pointee...>()), Index> stream_over(Index n, Pointee*...);

// A thread's elements behind one pointer, in registers from here until the end of the body.
template <typename Place, typename T, bool Load, bool Store>
class Window {
  using Value = std::remove_const_t<T>;
  static constexpr int kLanes = Place::kLanes;
  struct alignas(sizeof(Value) * kLanes) Together {
    Value values[kLanes];
  };

 public:
  __device__ __forceinline__ Window(T* memory, const Place& place)
      : memory_(memory + place.at), count_(place.count()), first_(place.first()) {
    together_ = count_ == kLanes && reinterpret_cast<uintptr_t>(memory_) % alignof(Together) == 0;
    if (!Load) return;
    if (together_) {
      window_ = *reinterpret_cast<const Together*>(memory_);
    } else {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        if (lane >= count_) break;
        window_.values[lane] = memory_[lane];
      }
    }
  }
  __device__ __forceinline__ ~Window() {
    if (!Store) return;
    if (together_) {
      *reinterpret_cast<Together*>(const_cast<Value*>(memory_)) = window_;
    } else {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        if (lane >= count_) break;
        const_cast<Value*>(memory_)[lane] = window_.values[lane];
      }
    }
  }
  Window(const Window&) = delete;

  // The index is the loop's own, `first` plus a lane that unrolling makes a constant.
  template <typename Index>
  __device__ __forceinline__ std::conditional_t<Store, Value&, const Value&> operator[](Index i) {
    return window_.values[i - first_];
  }

 private:
  T* memory_;
  int count_;
  decltype(std::declval<Place>().first()) first_;
  bool together_;
  Together window_;
};

template <bool Load, bool Store, typename Place, typename T>
__device__ __forceinline__ Window<Place, T, Load, Store> window(T* memory, const Place& place) {
  return {memory, place};
}

// Blocks for a launch of a streamed kernel, whose elements have `bytes` each.
inline int stream_blocks(int64_t count, int bytes) {
  const int lanes = count * bytes < kStreamFrom ? 1 : stream_lanes(bytes);
  return CAFFE_GET_BLOCKS((count + lanes - 1) / lanes);
}
// The kernel's pointers tell how many bytes.
template <typename... Parameter>
inline int stream_blocks(int64_t count, void (*)(Parameter...)) {
  return stream_blocks(count, widest<std::conditional_t<std::is_pointer<Parameter>::value,
                                                        std::remove_pointer_t<Parameter>, char>...>());
}
// Where the kernel's template arguments are left to deduction, as for float.
inline int stream_blocks(int64_t count) { return stream_blocks(count, static_cast<int>(sizeof(float))); }

}  // namespace caffe

#define CUDA_KERNEL_STREAM(i, n, ...)                                                           \
  for (decltype(::caffe::stream_over((n) + 0, __VA_ARGS__)) i##_stream(n); i##_stream.inside(); \
       i##_stream.next())

#define CAFFE_STREAM_WINDOW(i, p, load, store)                                       \
  if (auto& p##_memory = p; false) {                                                 \
  } else if (auto p = ::caffe::window<load, store>(p##_memory, i##_stream); false) { \
  } else

#define CAFFE_STREAM_READ(i, p) CAFFE_STREAM_WINDOW(i, p, true, false)
#define CAFFE_STREAM_WRITE(i, p) CAFFE_STREAM_WINDOW(i, p, false, true)
// Written, but perhaps not always, or read as well.
#define CAFFE_STREAM_UPDATE(i, p) CAFFE_STREAM_WINDOW(i, p, true, true)

#define CAFFE_STREAM_LANES(i, n)                                                                            \
  _Pragma("unroll") for (int i##_lane = 0; i##_lane < decltype(i##_stream)::kLanes;                         \
                         ++i##_lane) if (auto i =                                                           \
                                             static_cast<decltype((n) + 0)>(i##_stream.first() + i##_lane); \
                                         i##_lane >= i##_stream.count()) {                                  \
    break;                                                                                                  \
  }                                                                                                         \
  else

#endif  // CAFFE_KERNEL_STREAM_H_
