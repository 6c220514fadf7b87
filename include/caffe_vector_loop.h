// CUDA_KERNEL_LOOP at copy speed for bodies that stay as they are.
//
// A vector loop needs a body that touches some pointers only as `p[i]`, with the loop's own index i, and that
// writes once, at its end. The plain loop gives each thread one element, and reaches about 60% of the memory's
// speed. In a vector loop each thread loads 16 bytes of neighbouring elements into registers, twice. It runs the
// body on each element, and then stores the results together. In the body the pointers' names are these
// registers (Window), so the body needs no change.
//
// tools/cuda/for_nvcc.py decides which loops become vector loops, and rewrites
//
//   CUDA_KERNEL_LOOP(i, n) { out[i] = in[i] * 2; }                                     into
//
//   { const int64_t i_vectorized = cuffi::vectorized(n, in, out);
//     CAFFE_VECTOR_REST(i, n) { out[i] = in[i] * 2; }
//     CUDA_VECTOR_LOOP(i, n, in, out) CAFFE_VECTOR_READ(i, in) CAFFE_VECTOR_WRITE(i, out)
//     CAFFE_VECTOR_LANES(i, n) { out[i] = in[i] * 2; } }
//
// In its launches, CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS becomes
// cuffi::vector_blocks(n, kernel), cuffi::kVectorThreads.
//
// The vector loop handles only whole windows, so it needs no test for the end. The plain loop does the rest: the last
// few elements, small launches, and misaligned pointers. The result is right for any grid, alignment, count and
// aliasing, because all reads of an element come before its write, as in the body.
#ifndef CAFFE_VECTOR_LOOP_H_
#define CAFFE_VECTOR_LOOP_H_
#ifdef __CUDACC__

#ifndef __CUDACC_RTC__
#include <stdint.h>

#include <type_traits>
#endif

namespace cuffi {

// With fewer bytes behind a pointer, one element per thread fills the GPU better than one window per thread
// (measured on an H200).
constexpr int64_t kVectorFrom = int64_t(1) << 21;

// The most bytes that one instruction loads or stores.
constexpr int kWidestAccess = 16;

// The number of neighbouring elements of one access, for the widest type.
__host__ __device__ constexpr int vector_lanes(int widest) {
  return widest >= kWidestAccess ? 1 : kWidestAccess / widest;
}

// The accesses of a thread. In each, the threads of a warp read side by side. Several accesses overlap, and so does
// their arithmetic.
#ifndef CAFFE_VECTOR_CHUNKS
#define CAFFE_VECTOR_CHUNKS 2
#endif
constexpr int kVectorChunks = CAFFE_VECTOR_CHUNKS;
constexpr int kVectorWarp = 32;
// Threads per block. On an H200 sigmoid in half takes 2 to 4% less time than with 512, from 2^22 elements on.
constexpr int kVectorThreads = 128;

template <typename... Pointee>
__host__ __device__ constexpr int widest() {
  int bytes = 1;
  ((bytes = static_cast<int>(sizeof(Pointee)) > bytes ? static_cast<int>(sizeof(Pointee)) : bytes), ...);
  return bytes;
}

// The elements of one access.
template <typename T, int Lanes>
struct alignas(sizeof(T) * Lanes < kWidestAccess ? sizeof(T) * Lanes : kWidestAccess) Together {
  T values[Lanes];
};

// The number of elements, from the first on, that the vector loop handles: those of whole warps. None if the
// grid has a thread for each element, as small launches have, or if a pointer is misaligned for windows.
template <typename... T>
__device__ __forceinline__ int64_t vectorized(int64_t n, T*... pointers) {
  constexpr int kLanes = vector_lanes(widest<T...>()), kTile = kLanes * kVectorChunks * kVectorWarp;
  const int64_t threads = int64_t(gridDim.x) * blockDim.x;
  if (threads >= n || threads % kVectorWarp != 0) return 0;
  const bool aligned =
      (... &&
       (reinterpret_cast<uintptr_t>(pointers) % alignof(Together<std::remove_const_t<T>, kLanes>) == 0));
  return aligned ? n / kTile * kTile : 0;
}

// A thread's position. kLanes of its elements lie side by side, the next kLanes a warp's width further on.
template <int Lanes, typename Index>
struct VectorPosition {
  static constexpr int kLanes = Lanes, kElements = Lanes * kVectorChunks;
  int64_t at, step, end;

  __device__ __forceinline__ explicit VectorPosition(int64_t n)
      : at(start(int64_t(blockIdx.x) * blockDim.x + threadIdx.x)),
        step(int64_t(gridDim.x) * blockDim.x * kElements),
        end(n) {}
  __device__ __forceinline__ bool inside() const { return at < end; }
  __device__ __forceinline__ void next() { at += step; }
  __device__ __forceinline__ Index first() const { return static_cast<Index>(at); }
  // The distance from the first element to another.
  static __device__ __forceinline__ constexpr int distance(int element) {
    return element / Lanes * (kVectorWarp * Lanes) + element % Lanes;
  }

 private:
  static __device__ __forceinline__ int64_t start(int64_t thread) {
    return thread / kVectorWarp * (kVectorWarp * kElements) + thread % kVectorWarp * Lanes;
  }
};

template <typename Index, typename... Pointee>
__device__ VectorPosition<vector_lanes(widest<Pointee...>()), Index> vector_over(Index n, Pointee*...);

// A thread's elements behind one pointer. They are in registers until the end of the body.
template <typename Place, typename T, bool Load, bool Store>
class Window {
  using Value = std::remove_const_t<T>;
  using Elements = Together<Value, Place::kLanes>;

 public:
  __device__ __forceinline__ Window(T* memory, const Place& place)
      : memory_(memory + place.at), first_(place.first()) {
    if constexpr (Load) {
#pragma unroll
      for (int k = 0; k < kVectorChunks; ++k) window_[k] = *reinterpret_cast<const Elements*>(chunk(k));
    }
  }
  __device__ __forceinline__ ~Window() {
    if constexpr (Store) {
#pragma unroll
      for (int k = 0; k < kVectorChunks; ++k)
        *reinterpret_cast<Elements*>(const_cast<Value*>(chunk(k))) = window_[k];
    }
  }
  Window(const Window&) = delete;

  // `i` is the loop's index: `first` plus a distance, which unrolling makes a constant.
  template <typename Index>
  __device__ __forceinline__ std::conditional_t<Store, Value&, const Value&> operator[](Index i) {
    const int distance = static_cast<int>(i - first_);
    return window_[distance / (kVectorWarp * Place::kLanes)].values[distance % Place::kLanes];
  }

 private:
  __device__ __forceinline__ T* chunk(int k) const { return memory_ + k * kVectorWarp * Place::kLanes; }

  T* memory_;
  decltype(std::declval<Place>().first()) first_;
  Elements window_[kVectorChunks];
};

template <bool Load, bool Store, typename Place, typename T>
__device__ __forceinline__ Window<Place, T, Load, Store> window(T* memory, const Place& place) {
  return {memory, place};
}

// The blocks for a launch of a kernel with a vector loop. Its elements have `bytes` bytes.
__host__ __device__ inline int vector_blocks(int64_t count, int bytes) {
  const int64_t each = count * bytes < kVectorFrom ? 1 : vector_lanes(bytes) * kVectorChunks;
  const int64_t blocks = (count + each * kVectorThreads - 1) / (each * kVectorThreads);
  return static_cast<int>(blocks < 1 ? 1 : blocks > INT32_MAX ? INT32_MAX : blocks);
}
// The same, with the bytes by the kernel's pointers.
template <typename... Parameter>
__host__ __device__ inline int vector_blocks(int64_t count, void (*)(Parameter...)) {
  return vector_blocks(count, widest<std::conditional_t<std::is_pointer<Parameter>::value,
                                                        std::remove_pointer_t<Parameter>, char>...>());
}
// For launches that leave the template arguments to deduction: the bytes are those of float.
__host__ __device__ inline int vector_blocks(int64_t count) {
  return vector_blocks(count, static_cast<int>(sizeof(float)));
}

}  // namespace cuffi

// The plain loop over the elements that the vector loop leaves.
#define CAFFE_VECTOR_REST(i, n) CAFFE_KERNEL_LOOP_OVER(x(n, i##_vectorized), i, n)

#define CUDA_VECTOR_LOOP(i, n, ...)                                                                          \
  for (decltype(::cuffi::vector_over((n) + 0, __VA_ARGS__)) i##_vector(i##_vectorized); i##_vector.inside(); \
       i##_vector.next())

#define CAFFE_VECTOR_WINDOW(i, p, load, store)                                       \
  if (auto& p##_memory = p; false) {                                                 \
  } else if (auto p = ::cuffi::window<load, store>(p##_memory, i##_vector); false) { \
  } else

#define CAFFE_VECTOR_READ(i, p) CAFFE_VECTOR_WINDOW(i, p, true, false)
#define CAFFE_VECTOR_WRITE(i, p) CAFFE_VECTOR_WINDOW(i, p, false, true)
// For a pointer that is read as well, or not always written.
#define CAFFE_VECTOR_UPDATE(i, p) CAFFE_VECTOR_WINDOW(i, p, true, true)

#define CAFFE_VECTOR_LANES(i, n)                                                                            \
  _Pragma("unroll") for (int i##_element = 0; i##_element < decltype(i##_vector)::kElements;                \
                         ++i##_element) if (auto i =                                                        \
                                                static_cast<decltype((n) + 0)>(                             \
                                                    i##_vector.first() + i##_vector.distance(i##_element)); \
                                            false) {}                                                       \
  else

#endif  // __CUDACC__
#endif  // CAFFE_VECTOR_LOOP_H_
