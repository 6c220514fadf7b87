// torch's stable ABI: torch::stable and torch::headeronly, on the same handle to a tensor of Python.
#pragma once

#include "cuda.h"
#include "dispatch.h"
#include "library.h"

#define TORCH_VERSION_2_9_0 (2ull << 56 | 9ull << 48)
#define TORCH_VERSION_2_10_0 (2ull << 56 | 10ull << 48)
#define TORCH_VERSION_2_11_0 (2ull << 56 | 11ull << 48)
#define TORCH_VERSION_2_12_0 (2ull << 56 | 12ull << 48)
#define TORCH_VERSION_2_13_0 (2ull << 56 | 13ull << 48)
#ifndef TORCH_FEATURE_VERSION
#ifdef TORCH_TARGET_VERSION
#define TORCH_FEATURE_VERSION TORCH_TARGET_VERSION
#else
#define TORCH_FEATURE_VERSION TORCH_VERSION_2_13_0
#endif
#endif
#define HIDDEN_NAMESPACE_BEGIN(...) \
  ATEN_SPACE_N(__VA_ARGS__, ATEN_SPACE3, ATEN_SPACE2, ATEN_SPACE1)(__VA_ARGS__)
#define ATEN_SPACE_N(a, b, c, n, ...) n
#define ATEN_SPACE1(a) namespace a {
#define ATEN_SPACE2(a, b) \
  namespace a {           \
  namespace b {
#define ATEN_SPACE3(a, b, c) \
  namespace a {              \
  namespace b {              \
  namespace c {

// A check with or without a semicolon behind it.
#define STD_TORCH_CHECK(condition, ...)                                               \
  if (!(condition)) {                                                                 \
    ::c10::fail(::c10::kRuntimeError, __FILE__, __LINE__,                             \
                "Expected " #condition " to be true, but got false.", ##__VA_ARGS__); \
  }
#define STD_CUDA_CHECK C10_CUDA_CHECK
#define STD_CUDA_KERNEL_LAUNCH_CHECK C10_CUDA_KERNEL_LAUNCH_CHECK

// A tensor of C: an at::Tensor.
using AtenTensorHandle = struct AtenTensorOpaque*;

namespace torch {
namespace headeronly {
using namespace c10;
template <typename T>
using HeaderOnlyArrayRef = c10::ArrayRef<T>;
using IntHeaderOnlyArrayRef = c10::IntArrayRef;
template <typename T, size_t N, template <typename> class Traits = at::DefaultPtrTraits, typename I = int64_t>
using HeaderOnlyTensorAccessor = at::TensorAccessor<T, N, Traits, I>;
template <typename T, size_t N, template <typename> class Traits = at::DefaultPtrTraits, typename I = int64_t>
using HeaderOnlyGenericPackedTensorAccessor = at::GenericPackedTensorAccessor<T, N, Traits, I>;
using at::DefaultPtrTraits;
using at::RestrictPtrTraits;
template <typename T>
__device__ inline void fastAtomicAdd(T* p, size_t i, size_t, T x, bool = true) {
  atomicAdd(p + i, x);
}
namespace impl {
template <ScalarType type>
using ScalarTypeToCPPTypeT = typename at::detail::OfType<type>::type;
}
}  // namespace headeronly

namespace stable {
using c10::DeviceType;
using headeronly::IntHeaderOnlyArrayRef;
using headeronly::Layout;
using headeronly::ScalarType;
using DeviceIndex = int32_t;
struct Device : c10::Device {
  using c10::Device::Device;
  Device(c10::Device d) : c10::Device(d) {}
  DeviceIndex index() const { return index_; }
  void set_index(DeviceIndex i) { index_ = i; }
};

// A type of its own, so that torch::stable's functions and not ATen's are found by their argument.
class Tensor : public at::Tensor {
 public:
  using at::Tensor::Tensor;
  Tensor() {}
  Tensor(at::Tensor t) : at::Tensor(std::move(t)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  // Also to a result of an operation: it binds the name, and writes nothing.
  Tensor& operator=(const Tensor& o) { return bind(o); }
  Tensor& operator=(Tensor&& o) { return bind(o); }
  DeviceIndex get_device_index() const { return static_cast<DeviceIndex>(get_device()); }
  Device device() const { return at::Tensor::device(); }
  const Tensor& set_requires_grad(bool on) const { return requires_grad_(on), *this; }
  // The tensor of a handle, which is this object's own from now on; the handle of this object, as long as it lives.
  explicit Tensor(AtenTensorHandle owned) : at::Tensor(*reinterpret_cast<at::Tensor*>(owned)) {
    delete reinterpret_cast<at::Tensor*>(owned);
  }
  AtenTensorHandle get() const {
    return reinterpret_cast<AtenTensorHandle>(const_cast<at::Tensor*>(static_cast<const at::Tensor*>(this)));
  }

 private:
  Tensor& bind(const at::Tensor& o) {
    at::Tensor& self = *this;
    return self = o, *this;
  }
};

template <typename T>
using Maybe = std::optional<T>;
using Size = IntHeaderOnlyArrayRef;
using headeronly::MemoryFormat;
#define ATEN_STABLE(name, overload, names, parameters, ...)                          \
  inline Tensor name parameters {                                                    \
    static const aten::Operation operation{#name, overload, names};                  \
    return aten::to<at::Tensor>(aten::ask(operation, aten::values_of(__VA_ARGS__))); \
  }
}  // namespace stable
}  // namespace torch
namespace aten {
template <typename... A>
Values values_of(const A&... a) {
  return {aten::of(a)...};
}
template <>
struct As<torch::stable::Tensor> {
  static Value of(const torch::stable::Tensor& t) { return As<at::Tensor>::of(t); }
  static torch::stable::Tensor to(const Value& v) { return As<at::Tensor>::to(v); }
};
template <>
struct As<torch::stable::Device> : As<c10::Device> {
  static torch::stable::Device to(const Value& v) { return As<c10::Device>::to(v); }
};
}  // namespace aten
namespace torch {
namespace stable {
#define T_ const Tensor& t
ATEN_STABLE(empty_like, "", "self", (T_), t)
ATEN_STABLE(fill_, "Scalar", "self,value", (T_, double v), t, v)
ATEN_STABLE(zero_, "", "self", (T_), t)
ATEN_STABLE(narrow, "", "self,dim,start,length", (T_, int64_t d, int64_t a, int64_t n), t, d, a, n)
ATEN_STABLE(pad, "", "self,pad,mode,value", (T_, Size p, const std::string& m = "constant", double v = 0), t,
            p, m, v)
ATEN_STABLE(amax, "", "self,dim,keepdim", (T_, Size d, bool k = false), t, d, k)
inline Tensor amax(T_, int64_t d, bool k = false) { return amax(t, Size({d}), k); }
ATEN_STABLE(transpose, "int", "self,dim0,dim1", (T_, int64_t a, int64_t b), t, a, b)
ATEN_STABLE(copy_, "", "self,src,non_blocking", (T_, const Tensor& s, Maybe<bool> n = std::nullopt), t, s,
            n.value_or(false))
ATEN_STABLE(clone, "", "self", (T_), t)
ATEN_STABLE(flatten, "using_ints", "self,start_dim,end_dim", (T_, int64_t a = 0, int64_t b = -1), t, a, b)
ATEN_STABLE(unsqueeze, "", "self,dim", (T_, int64_t d), t, d)
ATEN_STABLE(squeeze, "dim", "self,dim", (T_, int64_t d), t, d)
ATEN_STABLE(select, "int", "self,dim,index", (T_, int64_t d, int64_t i), t, d, i)
ATEN_STABLE(matmul, "", "self,other", (T_, const Tensor& o), t, o)
ATEN_STABLE(reshape, "", "self,shape", (T_, Size s), t, s)
ATEN_STABLE(view, "", "self,size", (T_, Size s), t, s)
ATEN_STABLE(subtract, "Tensor", "self,other,alpha", (T_, const Tensor& o, double a = 1), t, o, a)
#define NEW_                                                                                          \
  Maybe<ScalarType> d = std::nullopt, Maybe<Layout> l = std::nullopt, Maybe<Device> v = std::nullopt, \
                    Maybe<bool> p = std::nullopt
#define OPTIONS_ "dtype,layout,device,pin_memory"
ATEN_STABLE(new_empty, "", "self,size," OPTIONS_, (T_, Size s, NEW_), t, s, d, l, v, p)
ATEN_STABLE(new_zeros, "", "self,size," OPTIONS_, (T_, Size s, NEW_), t, s, d, l, v, p)
ATEN_STABLE(full, "", "size,fill_value," OPTIONS_, (Size s, double x, NEW_), s, x, d, l, v, p)
ATEN_STABLE(empty, "memory_format", "size," OPTIONS_ ",memory_format",
            (Size s, NEW_, Maybe<MemoryFormat> m = std::nullopt), s, d, l, v, p, m)
ATEN_STABLE(sum, "dim_IntList", "self,dim,keepdim,dtype",
            (T_, Maybe<Size> x = std::nullopt, bool k = false, Maybe<ScalarType> d = std::nullopt), t, x, k,
            d)
inline Tensor contiguous(T_, MemoryFormat m = MemoryFormat::Contiguous) {
  return t.at::Tensor::contiguous(m);
}
ATEN_STABLE(_to_copy, "", "self," OPTIONS_ ",non_blocking,memory_format",
            (T_, NEW_, bool n = false, Maybe<MemoryFormat> m = std::nullopt), t, d, l, v, p, n, m)
inline Tensor to(T_, NEW_, bool n = false, bool copy = false, Maybe<MemoryFormat> m = std::nullopt) {
  const bool same = (!d || *d == t.scalar_type()) && (!v || v->type() == t.device().type()) && !m;
  return same && !copy ? t : _to_copy(t, d, l, v, p, n, m);
}
inline Tensor to(T_, Device v, bool n = false, bool copy = false) {
  return to(t, std::nullopt, std::nullopt, v, std::nullopt, n, copy);
}
inline Tensor from_blob(void* data, Size sizes, Size strides, Device v, ScalarType d, int64_t = 0,
                        Layout = Layout::Strided) {
  return at::from_blob(data, sizes, strides, at::TensorOptions(d).device(v));
}
using at::parallel_for;
inline uint32_t get_num_threads() { return static_cast<uint32_t>(at::get_num_threads()); }
#undef T_
#undef NEW_
#undef OPTIONS_

namespace accelerator {
using DeviceIndex = int32_t;
using StreamId = int64_t;
struct DeviceGuard : c10::cuda::CUDAGuard {
  explicit DeviceGuard(DeviceIndex i) : CUDAGuard(static_cast<int>(i)) {}
};
class Stream {
  void* handle_;

 public:
  explicit Stream(void* handle) : handle_(handle) {}
  StreamId id() const { return reinterpret_cast<StreamId>(handle_); }
  void* nativeHandle() const { return handle_; }
};
inline Stream getCurrentStream(DeviceIndex i) { return Stream(c10::cuda::getCurrentCUDAStream(i).stream()); }
inline DeviceIndex getCurrentDeviceIndex() { return c10::cuda::current_device(); }
}  // namespace accelerator
}  // namespace stable
}  // namespace torch

#define STABLE_TORCH_LIBRARY TORCH_LIBRARY
#define STABLE_TORCH_LIBRARY_FRAGMENT TORCH_LIBRARY_FRAGMENT
#define STABLE_TORCH_LIBRARY_IMPL TORCH_LIBRARY_IMPL

#define THO_PRIVATE_CASE_TYPE_USING_HINT(number, name, ...) AT_PRIVATE_CASE(name, number, __VA_ARGS__)
#define THO_DISPATCH_CASE(number, ...) AT_PRIVATE_CASE(scalar_t, number, __VA_ARGS__)
#define THO_DISPATCH_SWITCH(TYPE, NAME, ...)                                                              \
  [&] {                                                                                                   \
    const ::c10::ScalarType at_type = ::at::detail::scalar_type(TYPE);                                    \
    switch (at_type) {                                                                                    \
      __VA_ARGS__                                                                                         \
      default:                                                                                            \
        ::c10::fail(::c10::kRuntimeError, __FILE__, __LINE__, "", "\"", NAME, "\" not implemented for '", \
                    ::c10::toString(at_type), "'");                                                       \
    }                                                                                                     \
  }()
#define STD_TORCH_CHECK_NOT_IMPLEMENTED STD_TORCH_CHECK
#define AT_WRAP(...) __VA_ARGS__
#define AT_EXPAND(...) __VA_ARGS__
#define THO_DISPATCH_V2(TYPE, NAME, BODY, ...) \
  THO_DISPATCH_SWITCH(TYPE, NAME, ATEN_EACH(AT_WRAP(BODY), __VA_ARGS__))
#define AT_FLOATING_TYPES ::c10::ScalarType::Double, ::c10::ScalarType::Float
#define AT_REDUCED_FLOATING_TYPES ::c10::ScalarType::Half, ::c10::ScalarType::BFloat16
#define AT_INTEGRAL_TYPES                                                                            \
  ::c10::ScalarType::Byte, ::c10::ScalarType::Char, ::c10::ScalarType::Int, ::c10::ScalarType::Long, \
      ::c10::ScalarType::Short
#define AT_ALL_TYPES AT_INTEGRAL_TYPES, AT_FLOATING_TYPES
#define AT_COMPLEX_TYPES ::c10::ScalarType::ComplexDouble, ::c10::ScalarType::ComplexFloat
#define AT_ALL_TYPES_AND_COMPLEX AT_ALL_TYPES, AT_COMPLEX_TYPES
#define ATEN_EACH(body, ...)                                                                                \
  ATEN_NTH(__VA_ARGS__, ATEN_EACH16, ATEN_EACH15, ATEN_EACH14, ATEN_EACH13, ATEN_EACH12, ATEN_EACH11,       \
           ATEN_EACH10, ATEN_EACH9, ATEN_EACH8, ATEN_EACH7, ATEN_EACH6, ATEN_EACH5, ATEN_EACH4, ATEN_EACH3, \
           ATEN_EACH2, ATEN_EACH1, )(AT_WRAP(body), __VA_ARGS__)
#define ATEN_NTH(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define ATEN_EACH1(body, t) THO_DISPATCH_CASE(t, body)
#define ATEN_EACH2(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH1(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH3(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH2(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH4(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH3(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH5(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH4(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH6(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH5(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH7(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH6(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH8(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH7(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH9(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH8(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH10(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH9(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH11(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH10(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH12(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH11(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH13(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH12(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH14(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH13(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH15(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH14(AT_WRAP(body), __VA_ARGS__)
#define ATEN_EACH16(body, t, ...) THO_DISPATCH_CASE(t, body) ATEN_EACH15(AT_WRAP(body), __VA_ARGS__)

#include "shim.h"
