// The functions of ATen: operations, factories, guards and checks.
#pragma once

#include "convert.h"

namespace at {
#define AT_FUNCTIONS
#include "operations.h"
#undef AT_FUNCTIONS

// torch::tensor({1, 2}), torch::tensor(3.0), from_blob.
namespace detail {
template <typename T>
Tensor tensor_of(const std::vector<T>& list, const TensorOptions& o) {
  // As in Python: whole numbers are int64, others float32.
  const ScalarType plain = CppTypeToScalarType<T>::value;
  const ScalarType wide = plain == kInt ? kLong : plain == kDouble ? kFloat : plain;
  const ScalarType type = o.type_ ? *o.type_ : wide;
  Tensor t = aten::call<Tensor>("tensor", list, type, o.device_);
  return o.requires_grad() ? t.requires_grad_() : t;
}
}  // namespace detail
template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
inline Tensor tensor(T value, const TensorOptions& o = {}) {
  return aten::call<Tensor>("as_number", detail::tensor_of<T>({value}, o));
}
template <typename T>
inline Tensor tensor(std::initializer_list<T> list, const TensorOptions& o = {}) {
  return detail::tensor_of(std::vector<T>(list), o);
}
template <typename T>
inline Tensor tensor(const std::vector<T>& list, const TensorOptions& o = {}) {
  return detail::tensor_of(list, o);
}
template <typename T>
inline Tensor tensor(ArrayRef<T> list, const TensorOptions& o = {}) {
  return detail::tensor_of(list.vec(), o);
}
// Rows: {{1, 2}, {3, 4}}, and so on.
template <typename T>
using Rows = std::initializer_list<std::initializer_list<T>>;
template <typename T>
inline Tensor tensor(Rows<T> rows, const TensorOptions& o = {}) {
  const int64_t count = static_cast<int64_t>(rows.size()), each = static_cast<int64_t>(rows.begin()->size());
  std::vector<T> all;
  for (const auto& row : rows) {
    TORCH_CHECK(static_cast<int64_t>(row.size()) == each, "Expected all sub-lists to have sizes: ", each,
                " (e.g. ", each, "), but got sub-list with sizes: ", row.size());
    all.insert(all.end(), row.begin(), row.end());
  }
  const Tensor flat = detail::tensor_of(all, TensorOptions(o).requires_grad(false));
  const Tensor made = aten::call<Tensor>("view", flat, IntArrayRef({count, each}));
  return o.requires_grad() ? made.requires_grad_() : made;
}
template <typename T>
inline Tensor tensor(std::initializer_list<Rows<T>> blocks, const TensorOptions& o = {}) {
  std::vector<Tensor> all;
  for (const Rows<T>& rows : blocks) all.push_back(tensor(rows, TensorOptions(o).requires_grad(false)));
  const Tensor made = aten::call<Tensor>("stack", all);
  return o.requires_grad() ? made.requires_grad_() : made;
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& o = {}) {
  const int64_t address = reinterpret_cast<int64_t>(data);
  return aten::call<Tensor>("from_blob", address, sizes, strides, o.dtype().type, o.device_);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& o = {}) {
  const int64_t address = reinterpret_cast<int64_t>(data);
  return aten::call<Tensor>("from_blob", address, sizes, nullopt, o.dtype().type, o.device_);
}
// A copy, so that the deleter can be called at once.
template <typename Deleter>
inline Tensor from_blob(void* data, IntArrayRef sizes, const Deleter& deleter, const TensorOptions& o) {
  Tensor t = aten::call<Tensor>("clone", from_blob(data, sizes, o));
  deleter(data);
  return t;
}
inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions layout(Layout l) { return TensorOptions(l); }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }
inline DeprecatedTypeProperties CUDA(ScalarType t) { return {t, Device(kCUDA)}; }
inline DeprecatedTypeProperties CPU(ScalarType t) { return {t, Device(kCPU)}; }

// Sets whether operations are recorded for a gradient, until the end of its scope.
class AutoGradMode {
  const bool before_;

 public:
  explicit AutoGradMode(bool on) : before_(aten::call<bool>("set_grad", on)) {}
  ~AutoGradMode() { aten::call("set_grad", before_); }
  AutoGradMode(const AutoGradMode&) = delete;
};
struct GradMode {
  static bool is_enabled() { return aten::call<bool>("is_grad_enabled"); }
  static void set_enabled(bool on) { aten::call("set_grad", on); }
};
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
struct InferenceMode : AutoGradMode {
  explicit InferenceMode(bool on = true) : AutoGradMode(!on) {}
};
using AutoDispatchBelowAutograd = NoGradGuard;
using AutoNonVariableTypeMode = NoGradGuard;

// Checks of ATen/TensorUtils.h.
using CheckedFrom = const char*;
struct TensorArg {
  Tensor tensor;
  const char* name;
  int position;
  TensorArg(const Tensor& t, const char* n, int p) : tensor(t), name(n), position(p) {}
  const Tensor* operator->() const { return &tensor; }
};
inline std::ostream& operator<<(std::ostream& out, const TensorArg& a) {
  return a.position ? out << "argument #" << a.position << " '" << a.name << "'"
                    : out << "'" << a.name << "'";
}
#define AT_CHECK_ARGUMENT(condition, ...) \
  if (!(condition)) throw Error(str(__VA_ARGS__, " (while checking arguments for ", c, ")"));
inline void checkDefined(CheckedFrom c, const TensorArg& t) {
  AT_CHECK_ARGUMENT(t.tensor.defined(), "Expected tensor for ", t, " to be non-null, but it was undefined")
}
inline void checkDim(CheckedFrom c, const TensorArg& t, int64_t dim) {
  AT_CHECK_ARGUMENT(t->dim() == dim, "Expected ", dim, "-dimensional tensor, but got ", t->dim(),
                    "-dimensional tensor for ", t)
}
inline void checkDimRange(CheckedFrom c, const TensorArg& t, int64_t first, int64_t last) {
  AT_CHECK_ARGUMENT(t->dim() >= first && t->dim() < last, "Expected ", first, " to ", last - 1,
                    " dimensions, but got ", t->dim(), "-dimensional tensor for ", t)
}
inline void checkSameDim(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  AT_CHECK_ARGUMENT(a->dim() == b->dim(), "Expected tensor for ", a, " to have same dimension as tensor for ",
                    b, "; but ", a->dim(), " does not equal ", b->dim())
}
inline void checkContiguous(CheckedFrom c, const TensorArg& t) {
  AT_CHECK_ARGUMENT(t->is_contiguous(), "Expected contiguous tensor, but got non-contiguous tensor for ", t)
}
inline void checkSize(CheckedFrom c, const TensorArg& t, IntArrayRef sizes) {
  checkDim(c, t, static_cast<int64_t>(sizes.size()));
  AT_CHECK_ARGUMENT(t->sizes().equals(sizes), "Expected tensor of size ", sizes, ", but got tensor of size ",
                    t->sizes(), " for ", t)
}
inline void checkSize(CheckedFrom c, const TensorArg& t, int64_t dim, int64_t size) {
  AT_CHECK_ARGUMENT(t->size(dim) == size, "Expected tensor to have size ", size, " at dimension ", dim,
                    ", but got size ", t->size(dim), " for ", t)
}
inline void checkSameSize(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  AT_CHECK_ARGUMENT(a->sizes().equals(b->sizes()), "Expected tensor for ", a,
                    " to have same size as tensor for ", b, "; but ", a->sizes(), " does not equal ",
                    b->sizes())
}
inline void checkNumel(CheckedFrom c, const TensorArg& t, int64_t numel) {
  AT_CHECK_ARGUMENT(t->numel() == numel, "Expected tensor for ", t, " to have ", numel,
                    " elements; but it actually has ", t->numel(), " elements")
}
inline void checkSameNumel(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  AT_CHECK_ARGUMENT(a->numel() == b->numel(), "Expected tensor for ", a,
                    " to have same number of elements as tensor for ", b, "; but ", a->numel(),
                    " does not equal ", b->numel())
}
inline void checkScalarType(CheckedFrom c, const TensorArg& t, ScalarType type) {
  AT_CHECK_ARGUMENT(t->scalar_type() == type, "Expected tensor for ", t, " to have scalar type ", type,
                    "; but got ", t->toString(), " instead")
}
inline void checkScalarTypes(CheckedFrom c, const TensorArg& t, ArrayRef<ScalarType> types) {
  AT_CHECK_ARGUMENT(std::count(types.begin(), types.end(), t->scalar_type()), "Expected tensor for ", t,
                    " to have one of the following scalar types: ", types, "; but got ", t->toString(),
                    " instead")
}
inline void checkSameType(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  AT_CHECK_ARGUMENT(a->options().type_ == b->options().type_ && a->is_cuda() == b->is_cuda(),
                    "Expected tensor for ", a, " to have the same type as tensor for ", b, "; but type ",
                    a->toString(), " does not equal ", b->toString())
}
inline void checkSameGPU(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  AT_CHECK_ARGUMENT(a->is_cuda() && b->is_cuda() && a->get_device() == b->get_device(),
                    "Expected tensor for ", a, " to be on the GPU of tensor for ", b)
}
inline void checkDeviceType(CheckedFrom c, ArrayRef<Tensor> all, DeviceType type) {
  for (const Tensor& t : all)
    AT_CHECK_ARGUMENT(!t.defined() || t.device().type() == type, "Expected tensor to have ", type,
                      " DeviceType, but got tensor with ", t.device().type(), " DeviceType")
}
#undef AT_CHECK_ARGUMENT
inline void checkAllSameGPU(CheckedFrom c, ArrayRef<TensorArg> list) {
  for (const TensorArg& a : list)
    if (!a->is_cuda() || a->get_device() != list[0]->get_device())
      throw Error(str(c, ": tensor '", a.name, "' is not on the GPU of '", list[0].name, "'"));
}
inline void checkAllSameType(CheckedFrom c, ArrayRef<TensorArg> list) {
  for (const TensorArg& a : list)
    if (a->scalar_type() != list[0]->scalar_type())
      throw Error(str(c, ": tensor '", a.name, "' has another dtype than '", list[0].name, "'"));
}
inline void checkAllContiguous(CheckedFrom c, ArrayRef<TensorArg> list) {
  for (const TensorArg& a : list)
    if (!a->is_contiguous()) throw Error(str(c, ": tensor '", a.name, "' is not contiguous"));
}

// The type in which a sum of T is kept: on a processor, double for float.
template <typename T, bool on_gpu>
struct AccumulateType {
  using Whole = std::conditional_t<std::is_integral<T>::value, int64_t, float>;
  using type =
      std::conditional_t<std::is_same<T, double>::value || c10::is_complex<T>::value, T,
                         std::conditional_t<std::is_same<T, float>::value && !on_gpu, double, Whole>>;
};
template <>
struct AccumulateType<bool, true> {
  using type = bool;
};
template <>
struct AccumulateType<bool, false> {
  using type = bool;
};
template <typename T, bool on_gpu>
using acc_type = typename AccumulateType<T, on_gpu>::type;
template <typename T>
using opmath_type = std::conditional_t<sizeof(T) == 2 && !std::is_integral<T>::value, float, T>;

namespace internal {
constexpr int64_t GRAIN_SIZE = 32768;
}
inline int get_num_threads() { return aten::call<int>("num_threads"); }
inline int get_thread_num() { return aten::thread_number(); }
inline bool in_parallel_region() { return aten::thread_number() > 0; }
// f(begin, end) for parts of a range, each with at least `grain` numbers, by several threads.
template <typename F>
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  if (begin >= end) return;
  aten::parallel(
      begin, end, std::max<int64_t>(grain, 1),
      [](const void* body, int64_t first, int64_t last) { (*static_cast<const F*>(body))(first, last); }, &f);
}
template <typename T, typename F, typename Join>
inline T parallel_reduce(int64_t begin, int64_t end, int64_t, const T& identity, const F& f,
                         const Join& join) {
  return begin < end ? join(identity, f(begin, end, identity)) : identity;
}
inline int64_t maybe_wrap_dim(int64_t dim, int64_t count) { return dim < 0 ? dim + count : dim; }
template <typename T>
C10_HOST_DEVICE inline bool _isnan(T x) {
  return x != x;
}
template <typename T>
C10_HOST_DEVICE inline constexpr T divup(T a, T b) {
  return (a + b - 1) / b;
}
template <typename A, typename B>
C10_HOST_DEVICE inline constexpr A ceil_div(A a, B b) {
  return (a + b - 1) / b;
}
}  // namespace at

namespace c10 {
using at::Tensor;
// for (const auto i : c10::irange(n)).
template <typename T>
struct integer_range {
  struct Iterator {
    T i;
    C10_HOST_DEVICE T operator*() const { return i; }
    C10_HOST_DEVICE Iterator& operator++() { return ++i, *this; }
    C10_HOST_DEVICE bool operator!=(const Iterator& other) const { return i != other.i; }
  };
  T first, last;
  C10_HOST_DEVICE Iterator begin() const { return {first}; }
  C10_HOST_DEVICE Iterator end() const { return {last < first ? first : last}; }
};
template <typename T>
C10_HOST_DEVICE inline integer_range<T> irange(T last) {
  return {T(), last};
}
template <typename A, typename B>
C10_HOST_DEVICE inline integer_range<B> irange(A first, B last) {
  return {static_cast<B>(first), last};
}
namespace cuda {
// Makes a GPU the current one until the end of its scope. The processor is none.
class CUDAGuard {
  int before_ = -1;
  bool set_ = false;

 public:
  CUDAGuard() {}
  explicit CUDAGuard(int device) { set_index(device); }
  explicit CUDAGuard(Device device) { set_device(device); }
  explicit CUDAGuard(const optional<Device>& device) {
    if (device) set_device(*device);
  }
  CUDAGuard(const CUDAGuard&) = delete;
  ~CUDAGuard() {
    if (set_ && before_ >= 0) aten::exchange_device(before_);
  }
  void set_device(Device device) {
    if (device.is_cuda()) set_index(device.index());
  }
  void reset_device(Device device) { set_device(device); }
  void set_index(int device) {
    if (device < 0) return;
    const int before = aten::exchange_device(device);
    if (!set_) before_ = before, set_ = true;
  }
};
using OptionalCUDAGuard = CUDAGuard;
}  // namespace cuda
using DeviceGuard = cuda::CUDAGuard;
using OptionalDeviceGuard = cuda::CUDAGuard;
inline optional<Device> device_of(const at::Tensor& t) {
  return t.defined() ? optional<Device>(t.device()) : nullopt;
}
}  // namespace c10
namespace at {
using c10::device_of;
using c10::DeviceGuard;
using c10::OptionalDeviceGuard;
struct Context {
  ::THCState* lazyInitCUDA() const { return nullptr; }
  ::THCState* getTHCState() const { return nullptr; }
  bool deterministicAlgorithms() const { return aten::call<bool>("deterministic"); }
  void alertNotDeterministic(const char* what) const { aten::call("not_deterministic", what); }
  bool hasCUDA() const { return true; }
  // The current stream, until torch 1.0: a cudaStream_t.
  struct Stream {
    template <typename T>
    operator T*() const {
      return static_cast<T*>(aten::stream_of(-1));
    }
  };
  Stream getCurrentCUDAStream() const { return {}; }
  bool allowTF32CuBLAS() const { return false; }
};
inline Context& globalContext() {
  static Context context;
  return context;
}
inline void manual_seed(uint64_t seed) { aten::call("manual_seed", static_cast<int64_t>(seed)); }
inline ScalarType promote_types(ScalarType a, ScalarType b) {
  return aten::call<ScalarType>("promote_types", a, b);
}
inline ScalarType promoteTypes(ScalarType a, ScalarType b) { return promote_types(a, b); }
inline bool can_cast(ScalarType from, ScalarType to) { return aten::call<bool>("can_cast", from, to); }
}  // namespace at

namespace torch {
using namespace at;
using at::manual_seed;
namespace indexing {
using namespace at::indexing;
}
namespace autograd {
using Variable = at::Tensor;
using variable_list = std::vector<at::Tensor>;
using tensor_list = variable_list;
using at::AutoGradMode;
using at::GradMode;
// The gradients of outputs by inputs: undefined for one that the outputs do not use, if that is allowed.
inline variable_list grad(const variable_list& outputs, const variable_list& inputs,
                          const variable_list& gradients = {}, std::optional<bool> retain_graph = {},
                          bool create_graph = false, bool allow_unused = false) {
  return aten::call<variable_list>("gradients", outputs, inputs, gradients, retain_graph, create_graph,
                                   allow_unused);
}
inline void backward(const variable_list& tensors, const variable_list& gradients = {},
                     std::optional<bool> retain_graph = {}, bool create_graph = false,
                     const variable_list& inputs = {}) {
  aten::call("backward_of", tensors, gradients, retain_graph, create_graph, inputs);
}
inline Variable make_variable(const at::Tensor& t, bool requires_grad = false) {
  return requires_grad ? t.requires_grad_() : t;
}
}  // namespace autograd
using autograd::Variable;
}  // namespace torch
