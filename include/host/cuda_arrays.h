// CUDA's arrays, which textures and surfaces read, and copies to and from them.
#pragma once

#include "cuda_api_more.h"

enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned,
  cudaChannelFormatKindUnsigned,
  cudaChannelFormatKindFloat,
  cudaChannelFormatKindNone
};
struct cudaChannelFormatDesc {
  int x, y, z, w;  // bits
  cudaChannelFormatKind f;
};
enum {
  cudaArrayDefault = 0,
  cudaArrayLayered = 1,
  cudaArraySurfaceLoadStore = 2,
  cudaArrayTextureGather = 8
};
// Texels row by row. A dimension that an array does not have is 0.
struct cudaArray {
  cudaChannelFormatDesc format;
  cudaExtent extent;
  unsigned flags;
  char* data;
  size_t rows() const { return extent.height ? extent.height : 1; }
  size_t planes() const { return extent.depth ? extent.depth : 1; }
  size_t texel() const { return (format.x + format.y + format.z + format.w) / 8; }
  size_t pitch() const { return extent.width * texel(); }
  size_t slice() const { return pitch() * rows(); }
};

namespace cuda_host {
// The numbers in a texel of a C type. float4 has 4 floats.
template <typename T>
struct Texel {
  typedef decltype(T::x) Number;
};
#define CAFFE_HOST_TEXEL(T) \
  template <>               \
  struct Texel<T> {         \
    typedef T Number;       \
  };
CAFFE_HOST_TEXEL(float)
CAFFE_HOST_TEXEL(char)
CAFFE_HOST_TEXEL(signed char)
CAFFE_HOST_TEXEL(unsigned char)
CAFFE_HOST_TEXEL(short)
CAFFE_HOST_TEXEL(unsigned short)
CAFFE_HOST_TEXEL(int)
CAFFE_HOST_TEXEL(unsigned)
CAFFE_HOST_TEXEL(long)
CAFFE_HOST_TEXEL(unsigned long)
#undef CAFFE_HOST_TEXEL

template <typename T>
constexpr cudaChannelFormatKind kind_of() {
  typedef typename Texel<T>::Number Number;
  return Number(0.5f) != 0        ? cudaChannelFormatKindFloat
         : Number(-1) < Number(0) ? cudaChannelFormatKindSigned
                                  : cudaChannelFormatKindUnsigned;
}
}  // namespace cuda_host

inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
template <typename T>
inline cudaChannelFormatDesc cudaCreateChannelDesc() {
  constexpr int bits = sizeof(typename cuda_host::Texel<T>::Number) * 8, n = sizeof(T) * 8 / bits;
  return {bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0, cuda_host::kind_of<T>()};
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf() { return {16, 0, 0, 0, cudaChannelFormatKindFloat}; }

inline cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format,
                                     cudaExtent extent, unsigned flags = 0) {
  if (flags & ~cudaArraySurfaceLoadStore) return cuda_host::refused(cudaErrorNotSupported);
  cudaArray made = {*format, extent, flags, nullptr};
  if (!made.pitch() || (format->y && format->y != format->x))
    return cuda_host::refused(cudaErrorInvalidValue);
  const cudaError_t status = cudaMalloc(&made.data, made.slice() * made.planes());
  return *array = status ? nullptr : new cudaArray(made), status;
}
inline cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width,
                                   size_t height = 0, unsigned flags = 0) {
  return cudaMalloc3DArray(array, format, {width, height, 0}, flags);
}
CAFFE_HOST_CALLED cudaError_t cudaFreeArray(cudaArray_t array) {
  if (!array) return cudaSuccess;
  const cudaError_t status = cudaFree(array->data);
  return delete array, status;
}
inline cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                                    cudaArray_t array) {
  if (format) *format = array->format;
  if (extent) *extent = array->extent;
  if (flags) *flags = array->flags;
  return cudaSuccess;
}
inline cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_t array) {
  return *format = array->format, cudaSuccess;
}
namespace cuda_host {
// Does a part of an array, in bytes and rows, lie in it?
inline bool is_in(const cudaArray& array, size_t x, size_t y, size_t width, size_t height) {
  const size_t rows = array.rows() * array.planes();
  return width <= array.pitch() && x <= array.pitch() - width && height <= rows && y <= rows - height;
}
}  // namespace cuda_host
CAFFE_HOST_CALLED cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from,
                                                  size_t pitch, size_t width, size_t height,
                                                  cudaMemcpyKind kind) {
  if (!cuda_host::is_in(*to, x, y, width, height)) return cuda_host::refused(cudaErrorInvalidValue);
  return cudaMemcpy2D(to->data + y * to->pitch() + x, to->pitch(), from, pitch, width, height, kind);
}
CAFFE_HOST_CALLED cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_t from, size_t x,
                                                    size_t y, size_t width, size_t height,
                                                    cudaMemcpyKind kind) {
  if (!cuda_host::is_in(*from, x, y, width, height)) return cuda_host::refused(cudaErrorInvalidValue);
  return cudaMemcpy2D(to, pitch, from->data + y * from->pitch() + x, from->pitch(), width, height, kind);
}
CAFFE_HOST_CALLED cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from,
                                                       size_t pitch, size_t width, size_t height,
                                                       cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy2DToArray(to, x, y, from, pitch, width, height, kind);
}
// Bytes in a row from a place on, beyond the end of a row, too. CUDA 13 does not have these two.
CAFFE_HOST_CALLED cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from,
                                                size_t bytes, cudaMemcpyKind kind) {
  const size_t at = y * to->pitch() + x;
  if (y >= to->rows() || x > to->pitch() || bytes > to->slice() - at)
    return cuda_host::refused(cudaErrorInvalidValue);
  return cudaMemcpy(to->data + at, from, bytes, kind);
}
CAFFE_HOST_CALLED cudaError_t cudaMemcpyFromArray(void* to, cudaArray_t from, size_t x, size_t y,
                                                  size_t bytes, cudaMemcpyKind kind) {
  const size_t at = y * from->pitch() + x;
  if (y >= from->rows() || x > from->pitch() || bytes > from->slice() - at)
    return cuda_host::refused(cudaErrorInvalidValue);
  return cudaMemcpy(to, from->data + at, bytes, kind);
}

namespace cuda_host {
inline cudaPitchedPtr pitched(const cudaPitchedPtr& memory, cudaArray_t array) {
  return array ? cudaPitchedPtr{array->data, array->pitch(), array->pitch(), array->rows()} : memory;
}
}  // namespace cuda_host
// With an array the width is in its texels, and so is the array's own x.
inline cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  const size_t from_x = p->srcArray ? p->srcArray->texel() : 1, to_x = p->dstArray ? p->dstArray->texel() : 1;
  const size_t width = p->extent.width * (from_x > to_x ? from_x : to_x);
  const cudaPitchedPtr from = cuda_host::pitched(p->srcPtr, p->srcArray),
                       to = cuda_host::pitched(p->dstPtr, p->dstArray);
  if (!from.ptr || !to.ptr || p->srcPos.x * from_x + width > from.pitch ||
      p->dstPos.x * to_x + width > to.pitch)
    return cuda_host::refused(cudaErrorInvalidValue);
  for (const cudaArray* array : {p->srcArray, p->dstArray}) {
    const cudaPos& at = array == p->srcArray ? p->srcPos : p->dstPos;
    if (array && (at.y + p->extent.height > array->rows() || at.z + p->extent.depth > array->planes()))
      return cuda_host::refused(cudaErrorInvalidValue);
  }
  for (size_t z = 0; z < p->extent.depth; ++z)
    for (size_t y = 0; y < p->extent.height; ++y)
      cudaMemcpy(cuda_host::row_of(to, p->dstPos.x * to_x, p->dstPos.y + y, p->dstPos.z + z),
                 cuda_host::row_of(from, p->srcPos.x * from_x, p->srcPos.y + y, p->srcPos.z + z), width);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t = nullptr) {
  return cudaMemcpy3D(p);
}
