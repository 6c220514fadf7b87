// nvcuda::wmma on the host. Where the elements of a fragment lie is as on an H200: files rely on it, though CUDA does not
// promise it.
#ifndef CAFFE_HOST_MMA_H_
#define CAFFE_HOST_MMA_H_

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

namespace nvcuda {
namespace wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}
namespace host {
template <typename T>
struct Stored;
#define CAFFE_HOST_STORED(type, stored_as, code)                        \
  template <>                                                           \
  struct Stored<type> {                                                 \
    using Type = stored_as;                                             \
    static constexpr ::cuda_host::MatrixType value = ::cuda_host::code; \
  };
CAFFE_HOST_STORED(__half, __half, kF16)
CAFFE_HOST_STORED(__nv_bfloat16, __nv_bfloat16, kBf16)
CAFFE_HOST_STORED(precision::tf32, float, kTf32)
CAFFE_HOST_STORED(float, float, kF32)
CAFFE_HOST_STORED(double, double, kF64)
CAFFE_HOST_STORED(signed char, signed char, kS8)
CAFFE_HOST_STORED(unsigned char, unsigned char, kU8)
CAFFE_HOST_STORED(int, int, kS32)
#undef CAFFE_HOST_STORED
// How many elements a lane holds: since Volta halves of A and B are there twice.
template <typename Use, int m, int n, int k, typename T>
constexpr int held() {
  constexpr int all = std::is_same_v<Use, matrix_a> ? m * k : std::is_same_v<Use, matrix_b> ? k * n : m * n;
  if (std::is_same_v<Use, accumulator>) return all / 32;
  return std::is_same_v<T, __half> ? 16 : all / 32;
}
template <typename Use, int m, int n, int k, typename T>
__forceinline__::cuda_host::FragmentPlace place(int lane, int index) {
  constexpr int use = std::is_same_v<Use, matrix_a> ? 0 : std::is_same_v<Use, matrix_b> ? 1 : 2;
  return ::cuda_host::fragment_place(use, m, n, k, Stored<T>::value, lane, index);
}
}  // namespace host

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
class fragment {
 public:
  using element_type = T;
  using storage_element_type = typename host::Stored<T>::Type;
  enum { num_elements = host::held<Use, m, n, k, T>(), num_storage_elements = num_elements };
  storage_element_type x[num_elements];
};

template <typename Use, int m, int n, int k, typename T, typename Layout, typename V>
__forceinline__ void fill_fragment(fragment<Use, m, n, k, T, Layout>& f, const V& value) {
  for (int i = 0; i < f.num_elements; ++i) f.x[i] = value;
}
template <typename Use, int m, int n, int k, typename T, typename Layout, typename V>
__forceinline__ void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& f, const V* from, unsigned ldm) {
  constexpr bool by_rows = std::is_same_v<Layout, row_major>;
  const int lane = ::cuda_host::lane();
  for (int i = 0; i < f.num_elements; ++i) {
    const auto at = host::place<Use, m, n, k, T>(lane, i);
    f.x[i] = from[by_rows ? static_cast<size_t>(at.row) * ldm + at.column
                          : static_cast<size_t>(at.column) * ldm + at.row];
  }
}
template <int m, int n, int k, typename T, typename V>
__forceinline__ void load_matrix_sync(fragment<accumulator, m, n, k, T>& f, const V* from, unsigned ldm,
                                      layout_t layout) {
  const int lane = ::cuda_host::lane();
  for (int i = 0; i < f.num_elements; ++i) {
    const auto at = host::place<accumulator, m, n, k, T>(lane, i);
    f.x[i] = from[layout == mem_row_major ? static_cast<size_t>(at.row) * ldm + at.column
                                          : static_cast<size_t>(at.column) * ldm + at.row];
  }
}
template <int m, int n, int k, typename T, typename V>
__forceinline__ void store_matrix_sync(V* to, const fragment<accumulator, m, n, k, T>& f, unsigned ldm,
                                       layout_t layout) {
  const int lane = ::cuda_host::lane();
  for (int i = 0; i < f.num_elements; ++i) {
    const auto at = host::place<accumulator, m, n, k, T>(lane, i);
    to[layout == mem_row_major ? static_cast<size_t>(at.row) * ldm + at.column
                               : static_cast<size_t>(at.column) * ldm + at.row] = f.x[i];
  }
}
template <int m, int n, int k, typename A, typename LayoutA, typename B, typename LayoutB, typename C,
          typename D>
__forceinline__ void mma_sync(fragment<accumulator, m, n, k, D>& d,
                              const fragment<matrix_a, m, n, k, A, LayoutA>& a,
                              const fragment<matrix_b, m, n, k, B, LayoutB>& b,
                              const fragment<accumulator, m, n, k, C>& c, bool saturate = false) {
  using host::Stored;
  static constexpr ::cuda_host::MmaShape shapes[2] = {
      {m, n, k, Stored<A>::value, Stored<B>::value, Stored<C>::value, Stored<D>::value, false, false, false,
       false, false},
      {m, n, k, Stored<A>::value, Stored<B>::value, Stored<C>::value, Stored<D>::value, true, false, false,
       false, false}};
  ::cuda_host::wmma(&shapes[saturate], a.x, b.x, c.x, d.x, a.num_elements, b.num_elements);
}
__forceinline__ float __float_to_tf32(float x) {
  return ::cuda_ptx::bit_cast<float>(::cuda_ptx::to_tf32(x, ::cuda_ptx::kAway, false));
}

}  // namespace wmma
}  // namespace nvcuda

#endif  // CAFFE_HOST_MMA_H_
