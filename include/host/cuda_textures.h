// Textures on the host: arrays and linear memory that are read by an address rule and a filter (CUDA C++ Programming
// Guide, "Texture Fetching"). A filter's weights have 8 bits behind the point, as on a GPU. Without mipmaps, layers and
// cubes: tools/cuda refuses their names, and the other calls return cudaErrorNotSupported.
#pragma once

#include <float.h>
#include <math.h>

#include <new>
#include <type_traits>

#include "cuda_arrays.h"

enum cudaTextureAddressMode {
  cudaAddressModeWrap,
  cudaAddressModeClamp,
  cudaAddressModeMirror,
  cudaAddressModeBorder
};
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaResourceType {
  cudaResourceTypeArray,
  cudaResourceTypeMipmappedArray,
  cudaResourceTypeLinear,
  cudaResourceTypePitch2D
};
struct cudaResourceDesc {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
  unsigned flags;
};
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
};
struct cudaResourceViewDesc;
typedef unsigned long long cudaTextureObject_t;

namespace cuda_host {
inline double of_half(unsigned bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                      : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                     : ldexp(fraction, -24);
  return bits >> 15 ? -size : size;
}

// A coordinate in texels, and whether it counts from the other end.
struct Coordinate {
  double at;
  bool is_mirrored;
};

// What a texture reads: memory, its size in texels (1 where it has no such dimension), and how.
struct Image {
  char* data;
  size_t pitch, slice;  // bytes from row to row, and from plane to plane
  long size[3];
  cudaChannelFormatDesc format;
  int bytes;  // of a texel
  bool is_linear;
  cudaTextureDesc how;

  char* at(long x, long y, long z) const { return data + z * slice + y * pitch + x * bytes; }

  // A channel of a texel. An integer is a fraction of the largest one where the texture reads it so.
  double number(long x, long y, long z, int channel) const {
    const int bits = format.x;
    const char* const place = at(x, y, z) + channel * bits / 8;
    const bool is_fraction = how.readMode == cudaReadModeNormalizedFloat;
    if (format.f == cudaChannelFormatKindFloat) {
      float value;
      if (bits == 16) return of_half(*reinterpret_cast<const unsigned short*>(place));
      return memcpy(&value, place, 4), value;
    }
    const bool has_sign = format.f == cudaChannelFormatKindSigned;
    long value = bits == 8    ? (has_sign ? *reinterpret_cast<const signed char*>(place)
                                          : static_cast<unsigned char>(*place))
                 : bits == 16 ? (has_sign ? *reinterpret_cast<const short*>(place)
                                          : *reinterpret_cast<const unsigned short*>(place))
                              : (has_sign ? *reinterpret_cast<const int*>(place)
                                          : long(*reinterpret_cast<const unsigned*>(place)));
    if (!is_fraction) return value;
    const double fraction = static_cast<double>(value) / ((1L << (bits - has_sign)) - 1);
    return fraction < -1 ? -1 : fraction;
  }

  // A coordinate in texels. One between 0 and 1 has 21 bits behind the point, as on an H200.
  Coordinate texels(float x, int axis) const {
    if (!(fabsf(x) >= FLT_MIN)) return {0, false};
    if (!how.normalizedCoords) return {x, false};
    const double cut = floor(ldexp(x, 21)) * ldexp(1, -21), part = cut - floor(cut), n = size[axis];
    const auto mode = how.addressMode[axis];
    const bool is_mirrored = mode == cudaAddressModeMirror && fmod(floor(cut), 2) != 0;
    const bool repeats = mode == cudaAddressModeWrap || mode == cudaAddressModeMirror;
    return {(is_mirrored ? 1 - part : repeats ? part : cut) * n, is_mirrored};
  }
  // The texel of an index, by the address rule; -1 beyond a border. Only places between 0 and 1 can wrap.
  long address(long index, int axis) const {
    const long n = size[axis];
    if (index >= 0 && index < n) return index;
    if (how.addressMode[axis] == cudaAddressModeBorder) return -1;
    if (how.addressMode[axis] == cudaAddressModeWrap && how.normalizedCoords) return (index % n + n) % n;
    return index < 0 ? 0 : n - 1;
  }
  double value(const long* i, int channel) const {
    if (i[0] >= 0 && i[1] >= 0 && i[2] >= 0) return number(i[0], i[1], i[2], channel);
    const float border = how.borderColor[channel];
    if (format.f == cudaChannelFormatKindFloat) return border;
    if (how.readMode == cudaReadModeElementType) {  // its bits
      int bits;
      return memcpy(&bits, &border, 4), format.x == 32 ? bits : bits & ((1 << format.x) - 1);
    }
    const double most = (1 << (format.x - (format.f == cudaChannelFormatKindSigned))) - 1;
    return ceil(border * most - 0.5) / most;
  }
  // A channel at a place. The filter's weights are whole 256ths, in a plane, too. A tie is rounded away from zero.
  template <typename Number>
  Number sampled(const Coordinate* place, int channel) const {
    const bool is_filtered = how.filterMode == cudaFilterModeLinear;
    long low[3] = {0, 0, 0}, high[3] = {0, 0, 0}, part[3] = {0, 0, 0};
    for (int axis = 0; axis < 3; ++axis) {
      if (axis == 2 && size[2] == 1) break;
      const double x = place[axis].at;
      const double near = x > 1e9 ? 1e9 : x > -1e9 ? x : x <= -1e9 ? -1e9 : 0;  // 0 for what is no number
      // A half is rounded up, as the coordinate counts.
      const double places = (near - 0.5) * 256;
      const long fixed =
          static_cast<long>(place[axis].is_mirrored ? ceil(places - 0.5) : floor(places + 0.5));
      part[axis] = is_filtered ? fixed & 255 : 0;
      low[axis] = address(is_filtered ? fixed >> 8 : static_cast<long>(floor(near)), axis);
      high[axis] = is_filtered ? address((fixed >> 8) + 1, axis) : 0;
    }
    if (!is_filtered) return static_cast<Number>(value(low, channel));
    const bool is_one = place[0].is_mirrored != place[1].is_mirrored;
    const long both = (part[0] * part[1] + 128 - is_one) >> 8;
    const long plane[4] = {256 - part[0] - part[1] + both, part[0] - both, part[1] - both, both};
    double sum = 0;
    for (int corner = 0; corner < 8; ++corner) {
      const long share = plane[corner & 3] * (corner & 4 ? part[2] : 256 - part[2]);
      const long i[3] = {corner & 1 ? high[0] : low[0], corner & 2 ? high[1] : low[1],
                         corner & 4 ? high[2] : low[2]};
      if (share) sum += share * value(i, channel);
    }
    sum /= 65536;
    const float rounded = static_cast<float>(sum), away = nextafterf(rounded, sum < 0 ? -INFINITY : INFINITY);
    return static_cast<Number>(sum != rounded && sum - rounded == away - sum ? away : rounded);
  }
  template <typename T>
  T texel(Coordinate x, Coordinate y, Coordinate z) const {
    typedef typename Texel<T>::Number Number;
    const Coordinate place[3] = {x, y, z};
    T result;
    Number numbers[sizeof(T) / sizeof(Number)];
    for (size_t i = 0; i < sizeof(T) / sizeof(Number); ++i) numbers[i] = sampled<Number>(place, i);
    return memcpy(&result, numbers, sizeof(T)), result;
  }
  // Is T what this texture gives?
  template <typename T>
  void check() const {
    typedef typename Texel<T>::Number Number;
    const bool gives_floats =
        format.f == cudaChannelFormatKindFloat || how.readMode == cudaReadModeNormalizedFloat;
    const bool fits = gives_floats ? kind_of<T>() == cudaChannelFormatKindFloat
                                   : kind_of<T>() == format.f && int(sizeof(Number)) * 8 == format.x;
    if (!fits || int(sizeof(T) / sizeof(Number)) * format.x > bytes * 8)
      trap("a texture read as another type");
  }
};

inline const Image& image_of(unsigned long long object) {
  if (!object) trap("a texture or surface that was not made");
  return *reinterpret_cast<const Image*>(object);
}
inline int bytes_of(const cudaChannelFormatDesc& f) { return (f.x + f.y + f.z + f.w) / 8; }
inline cudaError_t image_of(const cudaResourceDesc& resource, Image* image) {
  *image = {};
  image->size[1] = image->size[2] = 1;
  if (resource.resType == cudaResourceTypeArray && resource.res.array.array) {
    const cudaArray& array = *resource.res.array.array;
    image->data = array.data, image->format = array.format;
    image->size[0] = array.extent.width, image->size[1] = array.rows(), image->size[2] = array.planes();
    image->pitch = array.pitch(), image->slice = array.slice();
  } else if (resource.resType == cudaResourceTypeLinear && resource.res.linear.devPtr) {
    image->data = static_cast<char*>(resource.res.linear.devPtr), image->format = resource.res.linear.desc;
    image->is_linear = true;
    const int bytes = bytes_of(image->format);
    image->size[0] = bytes ? resource.res.linear.sizeInBytes / bytes : 0;
  } else if (resource.resType == cudaResourceTypePitch2D && resource.res.pitch2D.devPtr) {
    image->data = static_cast<char*>(resource.res.pitch2D.devPtr), image->format = resource.res.pitch2D.desc;
    image->size[0] = resource.res.pitch2D.width, image->size[1] = resource.res.pitch2D.height;
    image->pitch = resource.res.pitch2D.pitchInBytes;
  } else {
    return refused(cudaErrorInvalidValue);
  }
  image->bytes = bytes_of(image->format);
  return image->bytes && image->size[0] ? cudaSuccess : refused(cudaErrorInvalidValue);
}
struct Index {
  int i;
};
template <typename T>
T fetched(const Image& image, float x, float y = 0, float z = 0) {
  image.check<T>();
  if (image.is_linear) trap("a filter or an address rule for linear memory");
  return image.texel<T>(image.texels(x, 0), image.texels(y, 1), image.texels(z, 2));
}
template <typename T>
T fetched(const Image& image, Index index) {
  const long i = index.i;
  image.check<T>();
  if (!image.is_linear) trap("tex1Dfetch() of an array");
  return i < 0 || i >= image.size[0] ? T{} : image.texel<T>({double(i), false}, {}, {});
}
}  // namespace cuda_host

// Texture references, which CUDA has had until CUDA 12: tools/cuda writes this in place of `texture<`.
enum { cudaTextureType1D = 1, cudaTextureType2D, cudaTextureType3D };
struct textureReference {
  int normalized;
  cudaTextureFilterMode filterMode;
  cudaTextureAddressMode addressMode[3];
  cudaChannelFormatDesc channelDesc;
};
namespace cuda_host {
// What a fetch gives: the texel, or as many floats.
template <typename T, cudaTextureReadMode mode, int n = sizeof(T) / sizeof(typename Texel<T>::Number)>
using Fetched =
    std::conditional_t<mode == cudaReadModeElementType, T,
                       std::conditional_t<n == 1, float, std::conditional_t<n == 2, float2, float4>>>;

template <typename T, int dimensions = 1, cudaTextureReadMode mode = cudaReadModeElementType>
struct texture : textureReference {
  mutable Image bound = {};
  texture(int normalized = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
          cudaTextureAddressMode address = cudaAddressModeClamp)
      : textureReference{normalized, filter, {address, address, address}, cudaCreateChannelDesc<T>()} {}
  Image image() const {
    if (!bound.data) trap("a texture that nothing is bound to");
    Image image = bound;
    for (int axis = 0; axis < 3; ++axis) image.how.addressMode[axis] = addressMode[axis];
    image.how.filterMode = filterMode, image.how.normalizedCoords = normalized, image.how.readMode = mode;
    return image;
  }
};
}  // namespace cuda_host
namespace cuda_host {
// CUDA takes a reference, or a pointer to it, and so a format.
template <typename T, int n, cudaTextureReadMode mode>
const texture<T, n, mode>& by_reference(const texture<T, n, mode>& t) {
  return t;
}
template <typename T, int n, cudaTextureReadMode mode>
const texture<T, n, mode>& by_reference(const texture<T, n, mode>* t) {
  return *t;
}
inline const cudaChannelFormatDesc& by_reference(const cudaChannelFormatDesc& format) { return format; }
inline const cudaChannelFormatDesc& by_reference(const cudaChannelFormatDesc* format) { return *format; }
}  // namespace cuda_host
template <typename Texture, typename Format>
inline auto cudaBindTexture(size_t* offset, const Texture& t, const void* memory, const Format& format,
                            size_t bytes = 0xffffffffu)
    -> decltype(cuda_host::by_reference(format), cudaError_t()) {
  cudaResourceDesc resource = {cudaResourceTypeLinear, {}, 0};
  resource.res.linear = {const_cast<void*>(memory), cuda_host::by_reference(format), bytes};
  if (offset) *offset = 0;
  return cuda_host::image_of(resource, &cuda_host::by_reference(t).bound);
}
template <typename Texture>
inline cudaError_t cudaBindTexture(size_t* offset, const Texture& t, const void* memory,
                                   size_t bytes = 0xffffffffu) {
  return cudaBindTexture(offset, t, memory, cuda_host::by_reference(t).channelDesc, bytes);
}
template <typename Texture, typename Format>
inline auto cudaBindTexture2D(size_t* offset, const Texture& t, const void* memory, const Format& format,
                              size_t width, size_t height, size_t pitch)
    -> decltype(cuda_host::by_reference(format), cudaError_t()) {
  cudaResourceDesc resource = {cudaResourceTypePitch2D, {}, 0};
  resource.res.pitch2D = {const_cast<void*>(memory), cuda_host::by_reference(format), width, height, pitch};
  if (offset) *offset = 0;
  return cuda_host::image_of(resource, &cuda_host::by_reference(t).bound);
}
template <typename Texture>
inline cudaError_t cudaBindTexture2D(size_t* offset, const Texture& t, const void* memory, size_t width,
                                     size_t height, size_t pitch) {
  return cudaBindTexture2D(offset, t, memory, cuda_host::by_reference(t).channelDesc, width, height, pitch);
}
template <typename Texture, typename... Format>
inline cudaError_t cudaBindTextureToArray(const Texture& t, const cudaArray* array, const Format&...) {
  cudaResourceDesc resource = {cudaResourceTypeArray, {}, 0};
  resource.res.array = {const_cast<cudaArray*>(array)};
  return cuda_host::image_of(resource, &cuda_host::by_reference(t).bound);
}
template <typename Texture>
inline cudaError_t cudaUnbindTexture(const Texture& t) {
  return cuda_host::by_reference(t).bound = {}, cudaSuccess;
}

inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                           const cudaTextureDesc* how, const cudaResourceViewDesc* view) {
  cuda_host::Image image;
  if (const cudaError_t status = cuda_host::image_of(*resource, &image)) return status;
  image.how = *how;
  // A filter gives reals. Linear memory has neither a filter nor places between 0 and 1.
  const bool is_filtered = how->filterMode == cudaFilterModeLinear;
  const bool is_fraction = how->readMode == cudaReadModeNormalizedFloat;
  if ((is_filtered && image.format.f != cudaChannelFormatKindFloat && !is_fraction) ||
      (image.is_linear && (is_filtered || how->normalizedCoords)) || (is_fraction && image.format.x > 16))
    return cuda_host::refused(cudaErrorInvalidValue);
  if (view || how->sRGB || how->maxAnisotropy > 1) return cuda_host::refused(cudaErrorNotSupported);
  // Kernels read it, so it lies in memory that a GPU reaches, too.
  void* const memory = cuda_host::make_memory(sizeof image, cuda_host::kManagedMemory);
  if (!memory) return cudaErrorMemoryAllocation;
  return *object = reinterpret_cast<unsigned long long>(new (memory) cuda_host::Image(image)), cudaSuccess;
}
inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return cuda_host::free_memory(reinterpret_cast<void*>(object), false);
}

// Each fetch of an object has a form that returns a texel, and one that stores it.
#define CAFFE_HOST_UNPACKED(...) __VA_ARGS__
#define CAFFE_HOST_FETCH(name, parameters, arguments)                                                 \
  template <typename T>                                                                               \
  inline T name(cudaTextureObject_t t, CAFFE_HOST_UNPACKED parameters) {                              \
    return cuda_host::fetched<T>(cuda_host::image_of(t), CAFFE_HOST_UNPACKED arguments);              \
  }                                                                                                   \
  template <typename T>                                                                               \
  inline void name(T* result, cudaTextureObject_t t, CAFFE_HOST_UNPACKED parameters) {                \
    *result = cuda_host::fetched<T>(cuda_host::image_of(t), CAFFE_HOST_UNPACKED arguments);           \
  }                                                                                                   \
  template <typename T, int dimensions, cudaTextureReadMode mode>                                     \
  inline cuda_host::Fetched<T, mode> name(const cuda_host::texture<T, dimensions, mode>& t,           \
                                          CAFFE_HOST_UNPACKED parameters) {                           \
    return cuda_host::fetched<cuda_host::Fetched<T, mode>>(t.image(), CAFFE_HOST_UNPACKED arguments); \
  }
CAFFE_HOST_FETCH(tex1Dfetch, (int i), (cuda_host::Index{i}))
CAFFE_HOST_FETCH(tex1D, (float x), (x))
CAFFE_HOST_FETCH(tex2D, (float x, float y), (x, y))
CAFFE_HOST_FETCH(tex3D, (float x, float y, float z), (x, y, z))
#undef CAFFE_HOST_FETCH
#undef CAFFE_HOST_UNPACKED
