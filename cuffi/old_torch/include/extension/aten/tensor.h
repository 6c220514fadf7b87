// at::Tensor: a handle to a tensor of Python. Its fields are read once; any operation is a call into Python's torch.
#pragma once

#include "accessor.h"
#include "value.h"

namespace at {

using TensorList = ArrayRef<Tensor>;
using ITensorListRef = TensorList;
struct Storage {
  void* memory;
  size_t bytes;
  void* data() const { return memory; }
  const void* data_ptr() const { return memory; }
  size_t nbytes() const { return bytes; }
};
// Random numbers are torch's: an operation takes its default generator.
struct Generator {};
namespace indexing {
enum class EllipsisIndexType { Ellipsis };
constexpr EllipsisIndexType Ellipsis = EllipsisIndexType::Ellipsis;
constexpr nullopt_t None = nullopt;
struct Slice {
  optional<int64_t> start, stop, step;
  Slice(optional<int64_t> a = nullopt, optional<int64_t> b = nullopt, optional<int64_t> c = nullopt)
      : start(a), stop(b), step(c) {}
};
struct TensorIndex {
  aten::Value value;
  template <typename T>
  TensorIndex(const T& index) : value(aten::of(index)) {}
  TensorIndex(const char* text) : value(aten::Value::kEllipsis) {
    if (std::string_view(text) != "...")
      throw Error(str("Expected \"...\" to represent an ellipsis index, but got \"", text, "\""));
  }
};
}  // namespace indexing

class Tensor {
  aten::Handle handle_;

  // torch's error for a wrong dtype, as data_ptr<T>() has it, and which tensor it is.
  void check_dtype(ScalarType wanted, bool fits) const {
    if (!fits)
      throw Error(str("expected scalar type ", c10::toString(wanted), " but found ",
                      c10::toString(scalar_type()), ": the C++ code asks a tensor of shape ",
                      IntArrayRef(handle_->sizes, handle_->axes), " for data of ", c10::toString(wanted),
                      ": pass it as .to(", c10::in_python(wanted), "), or let the code ask for ",
                      c10::toString(scalar_type())));
  }
  void check_dims(size_t n) const {
    if (handle_->axes != n)
      throw Error(str("TensorAccessor expected ", n, " dims but tensor has ", handle_->axes));
  }
  void* memory() const {
    if (handle_->hidden) throw Error(str("data_ptr(): the tensor ", handle_->hidden));
    // Code that takes it for contiguous would leave its memory.
    if (handle_->overlaps && !handle_->layout_known)
      throw Error(str(
          "data_ptr(): elements of the tensor share memory, as after expand(), and the code has not asked "
          "for its strides: pass contiguous() (sizes ",
          IntArrayRef(handle_->sizes, handle_->axes), ", strides ",
          IntArrayRef(handle_->strides, handle_->axes), ")"));
    return handle_->data;
  }
  const int64_t* known_strides() const { return handle_->layout_known = true, handle_->strides; }

 public:
  using Indices = std::initializer_list<indexing::TensorIndex>;

  Tensor() {}
  Tensor(aten::Handle handle) : handle_(std::move(handle)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  Tensor& operator=(const Tensor& other) & { return handle_ = other.handle_, *this; }
  Tensor& operator=(Tensor&& other) & { return handle_ = std::move(other.handle_), *this; }
  // x[i] = y writes into x.
  Tensor& operator=(const Tensor& other) && { return aten::call("copy_", *this, other), *this; }
  Tensor& operator=(Tensor&& other) && { return std::move(*this) = static_cast<const Tensor&>(other); }
  Tensor& operator=(const Scalar& value) && { return aten::call("fill_", *this, value), *this; }
  const aten::Handle& handle() const { return handle_; }

  bool defined() const { return handle_.get() != nullptr; }
  void reset() { handle_ = aten::Handle(); }
  IntArrayRef sizes() const { return IntArrayRef(handle_->sizes, handle_->axes); }
  IntArrayRef strides() const { return IntArrayRef(known_strides(), handle_->axes); }
  IntArrayRef sym_sizes() const { return sizes(); }
  int64_t dim() const { return static_cast<int64_t>(handle_->axes); }
  int64_t ndimension() const { return dim(); }
  size_t axis(int64_t i) const {
    const int64_t most = std::max<int64_t>(dim(), 1);
    if (i < -most || i >= most)
      throw Error(str("Dimension out of range (expected to be in range of [", -most, ", ", most - 1,
                      "], but got ", i, ")"),
                  c10::kIndexError);
    if (!dim()) throw Error("dimension specified as 0 but tensor has no dimensions", c10::kIndexError);
    return static_cast<size_t>(i < 0 ? i + dim() : i);
  }
  int64_t size(int64_t i) const { return handle_->sizes[axis(i)]; }
  int64_t stride(int64_t i) const { return known_strides()[axis(i)]; }
  int64_t sym_size(int64_t i) const { return size(i); }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t s : sizes()) n *= s;
    return n;
  }
  int64_t sym_numel() const { return numel(); }
  int64_t storage_offset() const { return aten::call<int64_t>("storage_offset", *this); }
  size_t element_size() const { return elementSize(scalar_type()); }
  size_t itemsize() const { return element_size(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * element_size(); }
  Storage storage() const {
    const auto [address, bytes] = aten::call<std::tuple<int64_t, size_t>>("storage", *this);
    return {reinterpret_cast<void*>(address), bytes};
  }
  bool is_alias_of(const Tensor& other) const { return storage().data() == other.storage().data(); }
  bool has_storage() const { return !handle_->hidden; }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    if (format != MemoryFormat::Contiguous) return aten::call<bool>("is_contiguous", *this, format);
    int64_t step = 1;
    known_strides();
    for (size_t i = handle_->axes; i-- > 0;) {
      if (handle_->sizes[i] != 1 && handle_->strides[i] != step) return !numel();
      step *= handle_->sizes[i];
    }
    return true;
  }
  // torch returns a contiguous tensor as it is, also if its values are negated or conjugated on reading.
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    return is_contiguous(format) && !handle_->hidden ? *this
                                                     : aten::call<Tensor>("contiguous", *this, format);
  }
  Tensor expect_contiguous() const { return contiguous(); }
  // Each element of the memory between the first and the last belongs to one index.
  bool is_non_overlapping_and_dense() const {
    std::vector<std::pair<int64_t, int64_t>> axes;
    for (size_t i = 0; i < handle_->axes; ++i)
      if (handle_->sizes[i] != 1) axes.push_back({known_strides()[i], handle_->sizes[i]});
    std::sort(axes.begin(), axes.end());
    int64_t step = 1;
    for (const auto& [stride, size] : axes) {
      if (stride != step) return !numel();
      step *= size;
    }
    return true;
  }
  MemoryFormat suggest_memory_format() const {
    if (dim() != 4 && dim() != 5) return MemoryFormat::Contiguous;
    int64_t least = 0;
    for (int64_t i = dim(); i-- > 0;) {
      const int64_t axis = i == dim() - 1 ? 1 : i ? i + 1 : 0;  // channels first, the batch last
      if (stride(axis) < std::max<int64_t>(least, axis == 1) || !size(axis) || (!axis && least == stride(1)))
        return MemoryFormat::Contiguous;
      least = stride(axis) * size(axis);
    }
    return dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  }
  ScalarType scalar_type() const { return handle_->dtype; }
  TypeMeta dtype() const { return handle_->dtype; }
  Device device() const { return Device(handle_->device, handle_->index); }
  int64_t get_device() const { return handle_->device == kCPU ? -1 : handle_->index; }
  DeprecatedTypeProperties type() const { return {scalar_type(), device()}; }
  std::string toString() const { return type().toString(); }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()).layout(layout()); }
  Layout layout() const { return kStrided; }
  bool is_cuda() const { return handle_->device == kCUDA; }
  bool is_cpu() const { return handle_->device == kCPU; }
  bool is_sparse() const { return defined() && handle_->hidden && aten::call<bool>("is_sparse", *this); }
  bool is_hip() const { return false; }
  bool is_xpu() const { return false; }
  bool is_mps() const { return false; }
  bool is_meta() const { return handle_->device == DeviceType::Meta; }
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  bool is_complex() const { return isComplexType(scalar_type()); }
  bool is_same(const Tensor& other) const {
    return handle_.get() == other.handle_.get() ||
           (defined() && other.defined() && handle_->object == other.handle_->object);
  }
  bool requires_grad() const { return aten::call<bool>("requires_grad", *this); }
  const Tensor& requires_grad_(bool on = true) const {
    return aten::call("requires_grad_", *this, on), *this;
  }
  const Tensor& set_requires_grad(bool on) const { return requires_grad_(on); }
  bool is_leaf() const { return aten::call<bool>("is_leaf", *this); }
  Tensor grad() const { return aten::call<Tensor>("grad", *this); }
  Tensor mutable_grad() const { return grad(); }
  void backward(const optional<Tensor>& gradient = {}) const { aten::call("backward", *this, gradient); }

  void* data_ptr() const { return memory(); }
  const void* const_data_ptr() const { return memory(); }
  void* mutable_data_ptr() const { return memory(); }
  template <typename T>
  T* data_ptr() const {
    check_dtype(CppTypeToScalarType<std::remove_cv_t<T>>::value, SameBytes<T>::as(scalar_type()));
    return static_cast<T*>(memory());
  }
  template <typename T>
  T* data() const {
    return data_ptr<T>();
  }
  template <typename T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  template <typename T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  Tensor data() const { return aten::call<Tensor>("detach", *this); }
  Tensor tensor_data() const { return data(); }
  Tensor variable_data() const { return data(); }

  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() const {
    check_dims(N);
    const int64_t* const strides = known_strides();
    return {data_ptr<T>(), handle_->sizes, strides};
  }
#define AT_PACKED(name, index)                                    \
  GenericPackedTensorAccessor<T, N, Traits, index> name() const { \
    check_dims(N);                                                \
    check_index<index>();                                         \
    const int64_t* const strides = known_strides();               \
    return {data_ptr<T>(), handle_->sizes, strides};              \
  }
  template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
  AT_PACKED(packed_accessor32, int32_t)
  template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
  AT_PACKED(packed_accessor64, int64_t)
  template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename I = int64_t>
  AT_PACKED(packed_accessor, I)
  template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename I = int64_t>
  AT_PACKED(generic_packed_accessor, I)
#undef AT_PACKED

  Scalar item() const {
    return aten::call<Scalar>("item", *this);
  }
  template <typename T>
  T item() const {
    return item().to<T>();
  }
  Tensor to(const TensorOptions& o, bool non_blocking = false, bool copy = false,
            optional<MemoryFormat> format = {}) const {
    return aten::call<Tensor>("to", *this, o.type_, o.device_, non_blocking, copy, o.format_or(format));
  }
  Tensor to(Device d, ScalarType t, bool non_blocking = false, bool copy = false,
            optional<MemoryFormat> format = {}) const {
    return to(TensorOptions(t).device(d), non_blocking, copy, format);
  }
  Tensor to(const Tensor& like, bool non_blocking = false, bool copy = false) const {
    return to(like.options(), non_blocking, copy);
  }
  Tensor toType(ScalarType t) const { return to(TensorOptions(t)); }
  Tensor toType(const DeprecatedTypeProperties& t) const { return to(t.options()); }
  Tensor type(ScalarType t) const { return toType(t); }
  Tensor toBackend(Backend b) const { return to(b == Backend::CUDA ? kCUDA : kCPU); }
  Tensor cuda() const { return to(kCUDA); }
  Tensor cpu() const { return to(kCPU); }
  Tensor index(ArrayRef<indexing::TensorIndex> at) const { return aten::call<Tensor>("getitem", *this, at); }
  Tensor index(const Indices& at) const {
    return index(ArrayRef<indexing::TensorIndex>(at.begin(), at.size()));
  }
  Tensor index(TensorList at) const { return aten::call<Tensor>("getitem", *this, at); }
  template <typename V>
  const Tensor& index_put_(const Indices& at, const V& value) const {
    return aten::call("setitem", *this, ArrayRef<indexing::TensorIndex>(at.begin(), at.size()), value), *this;
  }
  template <typename V>
  const Tensor& index_put_(TensorList at, const V& value, bool accumulate = false) const {
    return aten::call("index_put_", *this, at, value, accumulate), *this;
  }
  Tensor operator[](int64_t i) const { return aten::call<Tensor>("select", *this, i); }
  Tensor operator[](const Tensor& i) const { return index({i}); }

#define AT_METHODS
#include "operations.h"
#undef AT_METHODS

#define AT_IN_PLACE(op, name)                                                                    \
  const Tensor& operator op(const Tensor& b) const { return aten::call(name, *this, b), *this; } \
  const Tensor& operator op(const Scalar& b) const { return aten::call(name, *this, b), *this; }
  AT_IN_PLACE(+=, "iadd")
  AT_IN_PLACE(-=, "isub")
  AT_IN_PLACE(*=, "imul")
  AT_IN_PLACE(/=, "itruediv")
#undef AT_IN_PLACE

 private:
  template <typename I>
  void check_index() const {
    if (sizeof(I) < 8 && numel() > std::numeric_limits<int32_t>::max())
      throw Error("numel needs to be smaller than int32_t max; otherwise, please use packed_accessor64");
  }
};

#define AT_BINARY(op, name)                                                                              \
  inline Tensor operator op(const Tensor& a, const Tensor& b) { return aten::call<Tensor>(name, a, b); } \
  inline Tensor operator op(const Tensor& a, const Scalar& b) { return aten::call<Tensor>(name, a, b); } \
  inline Tensor operator op(const Scalar& a, const Tensor& b) { return aten::call<Tensor>(name, a, b); }
AT_BINARY(+, "add")
AT_BINARY(-, "sub")
AT_BINARY(*, "mul")
AT_BINARY(/, "truediv")
AT_BINARY(%, "mod")
AT_BINARY(<, "lt")
AT_BINARY(>, "gt")
AT_BINARY(<=, "le")
AT_BINARY(>=, "ge")
AT_BINARY(==, "eq")
AT_BINARY(!=, "ne")
AT_BINARY(&, "and_")
AT_BINARY(|, "or_")
AT_BINARY(^, "xor")
#undef AT_BINARY
inline Tensor operator-(const Tensor& a) { return aten::call<Tensor>("neg", a); }
inline Tensor operator~(const Tensor& a) { return aten::call<Tensor>("invert", a); }
inline Tensor operator!(const Tensor& a) { return aten::call<Tensor>("logical_not", a); }
inline std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  return t.defined() ? out << aten::special("repr", {aten::of(t)}).text : out << "[ Tensor (undefined) ]";
}

}  // namespace at
