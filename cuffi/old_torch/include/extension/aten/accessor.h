// Accessors: a tensor's memory with its sizes and strides, for loops and for kernels.
#pragma once

#include "types.h"

namespace at {

template <typename T>
struct DefaultPtrTraits {
  typedef T* PtrType;
};
template <typename T>
struct RestrictPtrTraits {
  typedef T* __restrict__ PtrType;
};

template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename I = int64_t>
class TensorAccessor {
  typename Traits<T>::PtrType data_;
  const I *sizes_, *strides_;

 public:
  C10_HOST_DEVICE TensorAccessor(typename Traits<T>::PtrType data, const I* sizes, const I* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  C10_HOST_DEVICE I size(I i) const { return sizes_[i]; }
  C10_HOST_DEVICE I stride(I i) const { return strides_[i]; }
  C10_HOST_DEVICE typename Traits<T>::PtrType data() const { return data_; }
  IntArrayRef sizes() const { return IntArrayRef(sizes_, N); }
  C10_HOST_DEVICE decltype(auto) operator[](I i) const {
    if constexpr (N == 1)
      return static_cast<T&>(data_[strides_[0] * i]);
    else
      return TensorAccessor<T, N - 1, Traits, I>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }
};
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename I = int64_t>
class GenericPackedTensorAccessor {
  typename Traits<T>::PtrType data_;
  I sizes_[N], strides_[N];

 public:
  template <typename S>
  GenericPackedTensorAccessor(typename Traits<T>::PtrType data, const S* sizes, const S* strides)
      : data_(data) {
    for (size_t i = 0; i < N; ++i)
      sizes_[i] = static_cast<I>(sizes[i]), strides_[i] = static_cast<I>(strides[i]);
  }
  C10_HOST_DEVICE I size(I i) const { return sizes_[i]; }
  C10_HOST_DEVICE I stride(I i) const { return strides_[i]; }
  C10_HOST_DEVICE typename Traits<T>::PtrType data() const { return data_; }
  C10_HOST_DEVICE decltype(auto) operator[](I i) const {
    if constexpr (N == 1)
      return static_cast<T&>(data_[strides_[0] * i]);
    else
      return TensorAccessor<T, N - 1, Traits, I>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }
};
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename I = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, I>;

}  // namespace at
