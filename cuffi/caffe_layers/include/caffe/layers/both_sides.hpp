// Caffe's math functions of both sides, CPU and GPU, with the same names. So a layer can write a pass once
// for both. Not a header of Caffe's.
#pragma once

#include "caffe/blob.hpp"
#include "caffe/util/im2col.hpp"
#include "caffe/util/math_functions.hpp"

namespace caffe {

// Declares cpu_<name> and gpu_<name>.
#define CAFFE_BOTH_(name, ...)  \
  template <typename Dtype>     \
  void cpu_##name(__VA_ARGS__); \
  template <typename Dtype>     \
  void gpu_##name(__VA_ARGS__);

// y[i] = x[i] + v[i / inner % dim], and the same with a product
CAFFE_BOTH_(add_along, int n, const Dtype* x, const Dtype* v, int dim, int inner, Dtype* y)
CAFFE_BOTH_(mul_along, int n, const Dtype* x, const Dtype* v, int dim, int inner, Dtype* y)

// One step of an elementwise maximum over blobs 0, 1, 2, ...: adds blob number `which`, x, to the maximum y.
// `from` is the number of the blob that each maximum is from. If blobs 0 and 1 are equal, it is 1; later ties
// keep the earlier blob. So do Caffe's loops.
CAFFE_BOTH_(max_step, int n, int which, const Dtype* x, Dtype* y, int* from)
// y[i] = x[i] where from[i] is `which`, else 0
CAFFE_BOTH_(where, int n, const int* from, int which, const Dtype* x, Dtype* y)
#undef CAFFE_BOTH_

// Copies `rows` rows of `bytes` bytes. Rows are x_pitch bytes apart in x, and y_pitch bytes in y.
void cpu_copy_rows(int rows, size_t bytes, const void* x, size_t x_pitch, void* y, size_t y_pitch);
void gpu_copy_rows(int rows, size_t bytes, const void* x, size_t x_pitch, void* y, size_t y_pitch);

// Functions that differ between the sides, with the same arguments for both.
template <typename Dtype>
const int* cpu_shape(const Blob<Dtype>& blob) {
  return blob.shape().data();
}
template <typename Dtype>
const int* gpu_shape(const Blob<Dtype>& blob) {
  return blob.gpu_shape();
}
template <typename Dtype, typename... Rest>
void cpu_im2col_nd(const Dtype* image, int axes, int /* size */, Rest... rest) {
  im2col_nd_cpu(image, axes, rest...);
}
template <typename Dtype, typename... Rest>
void cpu_col2im_nd(const Dtype* columns, int axes, int /* size */, Rest... rest) {
  col2im_nd_cpu(columns, axes, rest...);
}
template <typename... Arguments>
void gpu_im2col_nd(Arguments... arguments) {
  im2col_nd_gpu(arguments...);
}
template <typename... Arguments>
void gpu_col2im_nd(Arguments... arguments) {
  col2im_nd_gpu(arguments...);
}

#define CAFFE_SIDE_FUNCTION_(name, function) \
  template <typename... Arguments>           \
  static void name(Arguments... arguments) { \
    function(arguments...);                  \
  }

#define CAFFE_SIDE_(Side, side, vector_prefix)                  \
  struct Side {                                                 \
    template <typename T>                                       \
    static const T* data(const Blob<T>& blob) {                 \
      return blob.side##_data();                                \
    }                                                           \
    template <typename T>                                       \
    static const T* diff(const Blob<T>& blob) {                 \
      return blob.side##_diff();                                \
    }                                                           \
    template <typename T>                                       \
    static T* mutable_data(Blob<T>& blob) {                     \
      return blob.mutable_##side##_data();                      \
    }                                                           \
    template <typename T>                                       \
    static T* mutable_diff(Blob<T>& blob) {                     \
      return blob.mutable_##side##_diff();                      \
    }                                                           \
    template <typename T>                                       \
    static const int* shape(const Blob<T>& blob) {              \
      return side##_shape(blob);                                \
    }                                                           \
    CAFFE_SIDE_FUNCTION_(gemm, caffe_##side##_gemm)             \
    CAFFE_SIDE_FUNCTION_(gemv, caffe_##side##_gemv)             \
    CAFFE_SIDE_FUNCTION_(scale, caffe_##side##_scale)           \
    CAFFE_SIDE_FUNCTION_(sign, caffe_##side##_sign)             \
    CAFFE_SIDE_FUNCTION_(abs, vector_prefix##abs)               \
    CAFFE_SIDE_FUNCTION_(axpy, vector_prefix##axpy)             \
    CAFFE_SIDE_FUNCTION_(scal, vector_prefix##scal)             \
    CAFFE_SIDE_FUNCTION_(set, vector_prefix##set)               \
    CAFFE_SIDE_FUNCTION_(add, vector_prefix##add)               \
    CAFFE_SIDE_FUNCTION_(add_scalar, vector_prefix##add_scalar) \
    CAFFE_SIDE_FUNCTION_(mul, vector_prefix##mul)               \
    CAFFE_SIDE_FUNCTION_(div, vector_prefix##div)               \
    CAFFE_SIDE_FUNCTION_(powx, vector_prefix##powx)             \
    CAFFE_SIDE_FUNCTION_(add_along, side##_add_along)           \
    CAFFE_SIDE_FUNCTION_(mul_along, side##_mul_along)           \
    CAFFE_SIDE_FUNCTION_(max_step, side##_max_step)             \
    CAFFE_SIDE_FUNCTION_(where, side##_where)                   \
    CAFFE_SIDE_FUNCTION_(copy_rows, side##_copy_rows)           \
    CAFFE_SIDE_FUNCTION_(im2col_nd, side##_im2col_nd)           \
    CAFFE_SIDE_FUNCTION_(col2im_nd, side##_col2im_nd)           \
    CAFFE_SIDE_FUNCTION_(im2col, im2col_##side)                 \
    CAFFE_SIDE_FUNCTION_(col2im, col2im_##side)                 \
  };

CAFFE_SIDE_(CpuSide, cpu, caffe_)
CAFFE_SIDE_(GpuSide, gpu, caffe_gpu_)
#undef CAFFE_SIDE_
#undef CAFFE_SIDE_FUNCTION_

// Makes `blob` a vector of `size` ones. It is written only if the size changes, because on the GPU each write
// costs a copy.
template <typename Dtype>
void reshape_to_ones(int size, Blob<Dtype>* blob) {
  const vector<int> shape(1, size);
  if (blob->shape() == shape) return;
  blob->Reshape(shape);
  caffe_set(size, Dtype(1), blob->mutable_cpu_data());
}

// The shape of a blob that spans `num_axes` axes of `blob`, starting at `axis`. -1: all axes from there.
template <typename Dtype>
vector<int> shape_along(const Blob<Dtype>& blob, int axis, int num_axes, const char* what) {
  CHECK_GE(num_axes, -1) << "num_axes must be non-negative, or -1 to extend to the end of bottom[0]";
  const int end = num_axes == -1 ? blob.num_axes() : axis + num_axes;
  CHECK_GE(blob.num_axes(), end) << what
                                 << " blob's shape extends past bottom[0]'s shape when applied starting with "
                                 << "bottom[0] axis = " << axis;
  return vector<int>(blob.shape().begin() + axis, blob.shape().begin() + end);
}

// The axis of `blob` at which `part` begins to span it; a scalar spans it from 0.
template <typename Dtype>
int check_along(const Blob<Dtype>& blob, const Blob<Dtype>& part, int axis, const char* what) {
  const int first = part.num_axes() == 0 ? 0 : blob.CanonicalAxisIndex(axis);
  CHECK_GE(blob.num_axes(), first + part.num_axes())
      << what
      << " blob's shape extends past bottom[0]'s shape when applied starting with bottom[0] axis = " << first;
  for (int i = 0; i < part.num_axes(); ++i)
    CHECK_EQ(blob.shape(first + i), part.shape(i)) << "dimension mismatch between bottom[0]->shape("
                                                   << first + i << ") and " << what << "->shape(" << i << ")";
  return first;
}

}  // namespace caffe

// Defines Forward and Backward of both sides by the class's ForwardOn and BackwardOn.
#define CAFFE_BOTH_SIDES(Class)                                                                         \
  template <typename Dtype>                                                                             \
  void Class<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) { \
    ForwardOn<CpuSide>(bottom, top);                                                                    \
  }                                                                                                     \
  template <typename Dtype>                                                                             \
  void Class<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) { \
    ForwardOn<GpuSide>(bottom, top);                                                                    \
  }                                                                                                     \
  template <typename Dtype>                                                                             \
  void Class<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,  \
                                  const vector<Blob<Dtype>*>& bottom) {                                 \
    BackwardOn<CpuSide>(top, propagate_down, bottom);                                                   \
  }                                                                                                     \
  template <typename Dtype>                                                                             \
  void Class<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,  \
                                  const vector<Blob<Dtype>*>& bottom) {                                 \
    BackwardOn<GpuSide>(top, propagate_down, bottom);                                                   \
  }
