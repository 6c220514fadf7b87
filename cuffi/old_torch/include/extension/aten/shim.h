// The C functions of torch's stable ABI that files call beside its classes, and functions that are boxed by hand.
#pragma once

#include "stable.h"

using AOTITorchError = int32_t;
#define TORCH_SUCCESS 0
#define TORCH_FAILURE 1
#define TORCH_ERROR_CODE_CHECK(call)                                                     \
  if ((call) != TORCH_SUCCESS) {                                                         \
    ::c10::fail(::c10::kRuntimeError, __FILE__, __LINE__, "", #call " API call failed"); \
  }
#define STABLE_TORCH_ERROR_CODE_CHECK TORCH_ERROR_CODE_CHECK
#define AOTI_TORCH_ERROR_CODE_CHECK TORCH_ERROR_CODE_CHECK
#define TORCH_ABI_VERSION TORCH_FEATURE_VERSION
// An argument or a result of the dispatcher. torch's is a number of 64 bits; the code may only pass it on.
struct StableIValue {
  aten::Value value;
};

namespace aten {
template <>
struct As<AtenTensorHandle> {
  static Value of(AtenTensorHandle handle) { return As<at::Tensor>::of(torch::stable::Tensor(handle)); }
  static AtenTensorHandle to(const Value& v) {
    return reinterpret_cast<AtenTensorHandle>(new at::Tensor(As<at::Tensor>::to(v)));
  }
};
template <>
struct Binder<void(StableIValue*, uint64_t, uint64_t)> {
  static Bound bound(const char* name, void (*f)(StableIValue*, uint64_t, uint64_t)) {
    Bound made;
    made.name = name, made.count = Bound::kOfSchema, made.results = std::make_shared<size_t>(1);
    made.run = [f, results = made.results](Values& given) {
      std::vector<StableIValue> stack(std::max(given.size(), *results));
      for (size_t i = 0; i < given.size(); ++i) stack[i].value = given[i];
      f(stack.data(), given.size(), *results);
      Value all(Value::kTuple);
      for (size_t i = 0; i < *results; ++i) all.list.push_back(stack[i].value);
      return all.list.empty() ? Value() : all.list.size() == 1 ? all.list[0] : all;
    };
    return made;
  }
};
}  // namespace aten
namespace torch {
namespace stable {
namespace detail {
template <typename T>
StableIValue from(const T& v) {
  return {aten::of(v)};
}
template <typename T>
T to(const StableIValue& v) {
  return aten::to<T>(v.value);
}
}  // namespace detail
}  // namespace stable
}  // namespace torch
using torch::stable::detail::from;
using torch::stable::detail::to;

inline AOTITorchError aoti_torch_call_dispatcher(const char* name, const char* overload,
                                                 StableIValue* stack) {
  aten::Value given(aten::Value::kList);
  const auto count = aten::call<int64_t>("arity", name, overload);
  for (int64_t i = 0; i < count; ++i) given.list.push_back(stack[i].value);
  const aten::Value made = aten::special("dispatch", {aten::of(name), aten::of(overload), given});
  for (size_t i = 0; i < made.list.size(); ++i) stack[i].value = made.list[i];
  return TORCH_SUCCESS;
}
inline AOTITorchError torch_call_dispatcher(const char* name, const char* overload, StableIValue* stack,
                                            uint64_t) {
  return aoti_torch_call_dispatcher(name, overload, stack);
}

namespace aten {
inline at::Tensor& of_handle(AtenTensorHandle handle) { return *reinterpret_cast<at::Tensor*>(handle); }
template <typename T, typename V>
AOTITorchError given(T* out, V value) {
  return *out = static_cast<T>(value), TORCH_SUCCESS;
}
}  // namespace aten
#define ATEN_SHIM extern "C" inline AOTITorchError
ATEN_SHIM aoti_torch_get_data_ptr(AtenTensorHandle t, void** out) {
  return *out = aten::of_handle(t).data_ptr(), TORCH_SUCCESS;
}
ATEN_SHIM aoti_torch_get_dim(AtenTensorHandle t, int64_t* out) {
  return aten::given(out, aten::of_handle(t).dim());
}
ATEN_SHIM aoti_torch_get_numel(AtenTensorHandle t, int64_t* out) {
  return aten::given(out, aten::of_handle(t).numel());
}
ATEN_SHIM aoti_torch_get_size(AtenTensorHandle t, int64_t i, int64_t* out) {
  return aten::given(out, aten::of_handle(t).size(i));
}
ATEN_SHIM aoti_torch_get_stride(AtenTensorHandle t, int64_t i, int64_t* out) {
  return aten::given(out, aten::of_handle(t).stride(i));
}
ATEN_SHIM aoti_torch_get_sizes(AtenTensorHandle t, int64_t** out) {
  return *out = const_cast<int64_t*>(aten::of_handle(t).sizes().data()), TORCH_SUCCESS;
}
ATEN_SHIM aoti_torch_get_strides(AtenTensorHandle t, int64_t** out) {
  return *out = const_cast<int64_t*>(aten::of_handle(t).strides().data()), TORCH_SUCCESS;
}
ATEN_SHIM aoti_torch_get_storage_offset(AtenTensorHandle t, int64_t* out) {
  return aten::given(out, aten::of_handle(t).storage_offset());
}
ATEN_SHIM aoti_torch_get_dtype(AtenTensorHandle t, int32_t* out) {
  return aten::given(out, aten::of_handle(t).scalar_type());
}
ATEN_SHIM aoti_torch_get_device_type(AtenTensorHandle t, int32_t* out) {
  return aten::given(out, aten::of_handle(t).device().type());
}
ATEN_SHIM aoti_torch_get_device_index(AtenTensorHandle t, int32_t* out) {
  return aten::given(out, aten::of_handle(t).get_device());
}
ATEN_SHIM aoti_torch_is_contiguous(AtenTensorHandle t, bool* out) {
  return aten::given(out, aten::of_handle(t).is_contiguous());
}
ATEN_SHIM aoti_torch_is_defined(AtenTensorHandle t, bool* out) {
  return aten::given(out, aten::of_handle(t).defined());
}
ATEN_SHIM aoti_torch_new_tensor_handle(AtenTensorHandle t, AtenTensorHandle* out) {
  return *out = reinterpret_cast<AtenTensorHandle>(new at::Tensor(aten::of_handle(t))), TORCH_SUCCESS;
}
ATEN_SHIM aoti_torch_delete_tensor_object(AtenTensorHandle t) {
  return delete &aten::of_handle(t), TORCH_SUCCESS;
}
ATEN_SHIM aoti_torch_get_current_cuda_stream(int32_t device, void** stream) {
  return *stream = c10::cuda::getCurrentCUDAStream(device).stream(), TORCH_SUCCESS;
}
#undef ATEN_SHIM
#define ATEN_NUMBER(name, value) \
  extern "C" inline int32_t aoti_torch_##name() { return static_cast<int32_t>(value); }
ATEN_NUMBER(device_type_cuda, c10::kCUDA)
ATEN_NUMBER(device_type_cpu, c10::kCPU)
ATEN_NUMBER(dtype_float32, c10::kFloat)
ATEN_NUMBER(dtype_float64, c10::kDouble)
ATEN_NUMBER(dtype_float16, c10::kHalf)
ATEN_NUMBER(dtype_bfloat16, c10::kBFloat16)
ATEN_NUMBER(dtype_int8, c10::kChar)
ATEN_NUMBER(dtype_uint8, c10::kByte)
ATEN_NUMBER(dtype_int32, c10::kInt)
ATEN_NUMBER(dtype_int64, c10::kLong)
ATEN_NUMBER(dtype_bool, c10::kBool)
ATEN_NUMBER(dtype_float8_e4m3fn, c10::kFloat8_e4m3fn)
ATEN_NUMBER(dtype_float8_e5m2, c10::kFloat8_e5m2)
#undef ATEN_NUMBER
