// The small types of ATen: dtypes, devices, options, array references, errors. No header of torch is used.
#pragma once

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
#ifndef __CUDACC__  // torch's headers include these, too; kernels' files hardly use them, and nvcc is slow
#include <bitset>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <iomanip>
#include <list>
#include <queue>
#include <stack>
#include <typeindex>
#include <variant>
#endif

#include "complex.h"
#include "float8.h"
#include "half.h"
#include "host_more.h"

struct THCState;
namespace c10 {

using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
using string_view = std::string_view;

// Python's exception for an error.
enum ErrorKind {
  kRuntimeError,
  kIndexError,
  kValueError,
  kTypeError,
  kKeyError,
  kStopIteration,
  kNotImplementedError,
  kAttributeError,
  kImportError
};
// A check that failed.
struct Error : std::runtime_error {
  ErrorKind kind;
  explicit Error(const std::string& text, ErrorKind kind_ = kRuntimeError)
      : std::runtime_error(text), kind(kind_) {}
  std::string what_without_backtrace() const { return what(); }
  std::string msg() const { return what(); }
};
// A part of a text; of a list, as torch has it, its items with blanks between.
template <typename T, typename = void>
struct IsShown : std::false_type {};
template <typename T>
struct IsShown<T, std::void_t<decltype(std::declval<std::ostream&>() << std::declval<const T&>())>>
    : std::true_type {};
template <typename T>
void show(std::ostream& out, const T& part) {
  if constexpr (IsShown<T>::value) {
    out << part;
  } else {
    const char* between = "";
    for (const auto& one : part) out << std::exchange(between, " "), show(out, one);
  }
}
template <typename... T>
std::string str(const T&... parts) {
  std::ostringstream out;
  (show(out, parts), ...);
  return out.str();
}
template <typename... T>
[[noreturn]] __attribute__((cold, noinline)) void fail(ErrorKind kind, const char* file, int line,
                                                       const char* otherwise, const T&... parts) {
  const std::string text = str(parts...);
  throw Error(str(text.empty() ? otherwise : text, " (", file, ":", line, ")"), kind);
}
using IndexError = Error;
using ValueError = Error;

// What `CHECK(x) << "text"` ends with: its destructor throws the text.
struct FailedCheck {
  const char* file;
  int line;
  std::ostringstream text;
  FailedCheck(const char* file, int line) : file(file), line(line) {}
  ~FailedCheck() noexcept(false) { fail(kRuntimeError, file, line, "", text.str()); }
  std::ostream& stream() { return text; }
};
struct NoValue {
  void operator&(std::ostream&) {}
};

// ATen's numbers of the dtypes.
#define AT_FORALL_REAL_TYPES(_) \
  _(c10::Half, Half, 5)         \
  _(float, Float, 6) _(double, Double, 7) _(bool, Bool, 11) _(c10::BFloat16, BFloat16, 15)
#define AT_FORALL_TYPES(_) \
  _(uint8_t, Byte, 0)      \
  _(int8_t, Char, 1)       \
  _(int16_t, Short, 2)     \
  _(int32_t, Int, 3)       \
  _(int64_t, Long, 4)      \
  AT_FORALL_REAL_TYPES(_)
// Those that no dispatch over all types includes.
#define AT_FORALL_FLOAT8_TYPES(_)              \
  _(c10::Float8_e5m2, Float8_e5m2, 23)         \
  _(c10::Float8_e4m3fn, Float8_e4m3fn, 24)     \
  _(c10::Float8_e5m2fnuz, Float8_e5m2fnuz, 25) \
  _(c10::Float8_e4m3fnuz, Float8_e4m3fnuz, 26) \
  _(c10::Float8_e8m0fnu, Float8_e8m0fnu, 44)
#define AT_FORALL_NAMED_TYPES(_)             \
  AT_FORALL_REAL_TYPES(_)                    \
  _(c10::complex<float>, ComplexFloat, 9)    \
  _(c10::complex<double>, ComplexDouble, 10) \
  AT_FORALL_FLOAT8_TYPES(_)
#define AT_FORALL_FURTHER_TYPES(_)           \
  _(c10::complex<float>, ComplexFloat, 9)    \
  _(c10::complex<double>, ComplexDouble, 10) \
  AT_FORALL_FLOAT8_TYPES(_)                  \
  _(uint16_t, UInt16, 27) _(uint32_t, UInt32, 28) _(uint64_t, UInt64, 29)
enum class ScalarType : int8_t {
#define AT_ENUM(type, name, number) name = number,
  AT_FORALL_TYPES(AT_ENUM) AT_FORALL_FURTHER_TYPES(AT_ENUM)
#undef AT_ENUM
      ComplexHalf = 8,
  Undefined = 127
};
#define AT_CONSTANT(type, name, number) constexpr ScalarType k##name = ScalarType::name;
AT_FORALL_TYPES(AT_CONSTANT)
AT_FORALL_FURTHER_TYPES(AT_CONSTANT)
#undef AT_CONSTANT
constexpr ScalarType kFloat16 = kHalf, kFloat32 = kFloat, kFloat64 = kDouble, kInt8 = kChar, kInt16 = kShort,
                     kInt32 = kInt, kInt64 = kLong, kUInt8 = kByte;
inline const char* toString(ScalarType type) {
  switch (type) {
#define AT_NAME(type, name, number) \
  case ScalarType::name:            \
    return #name;
    AT_FORALL_TYPES(AT_NAME)
    AT_FORALL_FURTHER_TYPES(AT_NAME)
#undef AT_NAME
    default:
      return "Undefined";
  }
}
// The dtype's name in Python. torch.double, torch.long and the like are names of dtypes, too.
inline std::string in_python(ScalarType type) {
  if (type == ScalarType::Byte) return "torch.uint8";
  if (type == ScalarType::Char) return "torch.int8";
  std::string name = toString(type);
  for (char& letter : name) letter = static_cast<char>(tolower(letter));
  return "torch." + name;
}
inline size_t elementSize(ScalarType type) {
  switch (type) {
#define AT_SIZE(type, name, number) \
  case ScalarType::name:            \
    return sizeof(type);
    AT_FORALL_TYPES(AT_SIZE)
    AT_FORALL_FURTHER_TYPES(AT_SIZE)
#undef AT_SIZE
    default:
      throw Error("this dtype has no element size");
  }
}
inline std::ostream& operator<<(std::ostream& out, ScalarType type) { return out << toString(type); }
inline bool isFloat8Type(ScalarType t) {
  return (static_cast<int>(t) >= 23 && static_cast<int>(t) <= 26) || t == kFloat8_e8m0fnu;
}
inline bool isReducedFloatingType(ScalarType t) { return t == kHalf || t == kBFloat16 || isFloat8Type(t); }
inline bool isFloatingType(ScalarType t) { return t == kFloat || t == kDouble || isReducedFloatingType(t); }
inline bool isComplexType(ScalarType t) { return t == kComplexFloat || t == kComplexDouble; }
inline bool isIntegralType(ScalarType t, bool with_bool = false) {
  return static_cast<int>(t) <= 4 || (with_bool && t == kBool) || t == kUInt16 || t == kUInt32 ||
         t == kUInt64;
}
template <typename T>
struct CppTypeToScalarType;
#define AT_MAP(type, name, number)                        \
  template <>                                             \
  struct CppTypeToScalarType<type> {                      \
    static constexpr ScalarType value = ScalarType::name; \
  };
AT_FORALL_TYPES(AT_MAP)
AT_FORALL_FURTHER_TYPES(AT_MAP)
#undef AT_MAP
// The same bytes by another name of C++.
template <>
struct CppTypeToScalarType<std::conditional_t<std::is_same<int64_t, long>::value, long long, long>> {
  static constexpr ScalarType value = kLong;
};
template <>
struct CppTypeToScalarType<
    std::conditional_t<std::is_same<uint64_t, unsigned long>::value, unsigned long long, unsigned long>> {
  static constexpr ScalarType value = kUInt64;
};
template <>
struct CppTypeToScalarType<std::complex<float>> : CppTypeToScalarType<complex<float>> {};
template <>
struct CppTypeToScalarType<std::complex<double>> : CppTypeToScalarType<complex<double>> {};
template <typename T>
struct SameBytes {
  static constexpr bool as(ScalarType type) {
    return CppTypeToScalarType<std::remove_cv_t<T>>::value == type;
  }
};
template <>
struct SameBytes<void> {
  static constexpr bool as(ScalarType) { return true; }
};

enum class DeviceType : int8_t { CPU = 0, CUDA = 1, XPU = 12, Meta = 14 };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kXPU = DeviceType::XPU;
using DeviceIndex = int8_t;
inline std::ostream& operator<<(std::ostream& out, DeviceType t) {
  return out << (t == kCPU ? "cpu" : t == kCUDA ? "cuda" : t == DeviceType::Meta ? "meta" : "another device");
}
struct Device {
  using Type = DeviceType;
  DeviceType type_;
  int index_;
  Device(DeviceType type, int index = -1) : type_(type), index_(index) {}
  Device(const std::string& text) : type_(kCPU), index_(-1) {
    const size_t colon = text.find(':');
    const std::string kind = text.substr(0, colon);
    if (kind != "cpu" && kind != "cuda" && kind != "meta")
      throw Error("Invalid device string: '" + text + "': cpu, cuda or cuda:0");
    type_ = kind == "cuda" ? kCUDA : kind == "meta" ? DeviceType::Meta : kCPU;
    if (colon != std::string::npos) index_ = atoi(text.c_str() + colon + 1);
  }
  Device(const char* text) : Device(std::string(text)) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return static_cast<DeviceIndex>(index_); }
  bool has_index() const { return index_ >= 0; }
  bool is_cuda() const { return type_ == kCUDA; }
  bool is_cpu() const { return type_ == kCPU; }
  std::string str() const { return c10::str(type_, has_index() ? ":" + std::to_string(index_) : ""); }
  friend bool operator==(Device a, Device b) { return a.type_ == b.type_ && a.index_ == b.index_; }
  friend bool operator!=(Device a, Device b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& out, const Device& d) { return out << d.str(); }
};
enum class Layout : int8_t { Strided = 0, Sparse = 1 };
constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse;
enum class MemoryFormat : int8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };
enum class Backend { CPU, CUDA };

// What x.dtype() gives.
struct TypeMeta {
  ScalarType type;
  TypeMeta(ScalarType t = ScalarType::Undefined) : type(t) {}
  operator ScalarType() const { return type; }
  ScalarType toScalarType() const { return type; }
  const char* name() const;  // C++'s name of the type
  size_t itemsize() const { return elementSize(type); }
  friend bool operator==(TypeMeta a, TypeMeta b) { return a.type == b.type; }
  friend bool operator!=(TypeMeta a, TypeMeta b) { return a.type != b.type; }
  friend bool operator==(TypeMeta a, ScalarType b) { return a.type == b; }
  friend bool operator!=(TypeMeta a, ScalarType b) { return a.type != b; }
  friend bool operator==(ScalarType a, TypeMeta b) { return a == b.type; }
  friend bool operator!=(ScalarType a, TypeMeta b) { return a != b.type; }
  friend std::ostream& operator<<(std::ostream& out, TypeMeta t) { return out << t.name(); }
};

inline const char* TypeMeta::name() const {
  switch (type) {
#define AT_NAME(type, name, number) \
  case ScalarType::name:            \
    return #type;
    AT_FORALL_NAMED_TYPES(AT_NAME)
#undef AT_NAME
    case kByte:
      return "unsigned char";
    case kChar:
      return "signed char";
    case kShort:
      return "short int";
    case kInt:
      return "int";
    case kLong:
      return "long int";
    case kUInt16:
      return "short unsigned int";
    case kUInt32:
      return "unsigned int";
    case kUInt64:
      return "long unsigned int";
    default:
      return "nullptr (uninitialized)";
  }
}

// A view of an array. The values of a braced list are copied: `IntList size = {n, c};` is used after the list has gone.
template <typename T>
class ArrayRef {
  static constexpr size_t kOwn = std::is_trivially_copyable<T>::value && sizeof(T) <= 8 ? 8 : 0;
  const T* data_ = nullptr;
  size_t size_ = 0;
  std::conditional_t<kOwn != 0, T, char> own_[kOwn ? kOwn : 1];
  void take(const T* data, size_t size, bool copy) {
    data_ = data, size_ = size;
    if constexpr (kOwn != 0)
      if (copy && size <= kOwn) std::copy(data, data + size, own_), data_ = own_;
  }
  bool owns() const { return static_cast<const void*>(data_) == static_cast<const void*>(own_); }

 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  ArrayRef() {}
  ArrayRef(const ArrayRef& other) { take(other.data_, other.size_, other.owns()); }
  ArrayRef& operator=(const ArrayRef& other) { return take(other.data_, other.size_, other.owns()), *this; }
  ArrayRef(const T& one) { take(&one, 1, true); }
  ArrayRef(const T* data, size_t size) { take(data, size, false); }
  ArrayRef(const T* begin, const T* end) { take(begin, static_cast<size_t>(end - begin), false); }
  template <typename A>
  ArrayRef(const std::vector<T, A>& v) {
    take(v.data(), v.size(), false);
  }
  ArrayRef(const std::initializer_list<T>& list) { take(list.begin(), list.size(), true); }
  template <size_t N>
  ArrayRef(const T (&array)[N]) {
    take(array, N, false);
  }
  template <size_t N>
  ArrayRef(const std::array<T, N>& array) {
    take(array.data(), N, false);
  }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return !size_; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const {
    if (i >= size_) throw Error(str("ArrayRef: invalid index: ", i, " of ", size_), kIndexError);
    return data_[i];
  }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  ArrayRef slice(size_t first, size_t count) const { return ArrayRef(data_ + first, count); }
  ArrayRef slice(size_t first) const { return slice(first, size_ - first); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  operator std::vector<T>() const { return vec(); }
  bool equals(const ArrayRef& o) const { return size_ == o.size_ && std::equal(begin(), end(), o.begin()); }
  friend bool operator==(const ArrayRef& a, const ArrayRef& b) { return a.equals(b); }
  friend bool operator!=(const ArrayRef& a, const ArrayRef& b) { return !a.equals(b); }
  friend std::ostream& operator<<(std::ostream& out, const ArrayRef& a) {
    out << '[';
    for (size_t i = 0; i < a.size_; ++i) out << (i ? ", " : "") << a.data_[i];
    return out << ']';
  }
};
using IntArrayRef = ArrayRef<int64_t>;
using IntList = IntArrayRef;
struct OptionalIntArrayRef : optional<IntArrayRef> {
  OptionalIntArrayRef() {}
  OptionalIntArrayRef(nullopt_t) {}
  OptionalIntArrayRef(IntArrayRef list) : optional<IntArrayRef>(list) {}
  OptionalIntArrayRef(int64_t one) : optional<IntArrayRef>(IntArrayRef({one})) {}
  OptionalIntArrayRef(const std::initializer_list<int64_t>& list)
      : optional<IntArrayRef>(IntArrayRef(list)) {}
  OptionalIntArrayRef(const std::vector<int64_t>& list) : optional<IntArrayRef>(IntArrayRef(list)) {}
};
template <typename T, unsigned N = 6>
using SmallVector = std::vector<T>;

// Has T no such number? As in torch, small negative integers become unsigned ones, and a NaN is no integer.
template <typename T, typename F>
bool overflows(F value) {
  using limit = std::numeric_limits<T>;
  const double real = static_cast<double>(value);
  if (std::is_same<T, bool>::value || (limit::has_infinity && std::isinf(real))) return false;
  if (real != real) return !limit::has_quiet_NaN;
  if (std::is_integral<F>::value && std::is_unsigned<T>::value && real < 0)
    return -real > static_cast<double>(limit::max());
  return real < static_cast<double>(limit::lowest()) || real > static_cast<double>(limit::max()) ||
         (std::is_integral<T>::value && real >= std::ldexp(1.0, limit::digits) &&
          std::is_floating_point<F>::value);
}

// A number of either kind.
class Scalar {
  double real_ = 0, imaginary_ = 0;
  int64_t integer_ = 0;
  char kind_ = 'i';  // b, i, d, or z: a complex number

 public:
  Scalar() {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  Scalar(T value)
      : real_(static_cast<double>(value)),
        integer_(std::is_floating_point<T>::value ? 0 : static_cast<int64_t>(value)),
        kind_(std::is_same<T, bool>::value       ? 'b'
              : std::is_floating_point<T>::value ? 'd'
                                                 : 'i') {}
  Scalar(Half value) : Scalar(static_cast<float>(value)) {}
  Scalar(BFloat16 value) : Scalar(static_cast<float>(value)) {}
  template <typename T>
  Scalar(complex<T> value) : real_(value.real_), imaginary_(value.imag_), kind_('z') {}
  bool isComplex() const { return kind_ == 'z'; }
  bool isFloatingPoint() const { return kind_ == 'd'; }
  bool isIntegral(bool with_bool = false) const { return kind_ == 'i' || (with_bool && kind_ == 'b'); }
  bool isBoolean() const { return kind_ == 'b'; }
  template <typename T>
  T to() const {
    if constexpr (std::is_same<T, complex<float>>::value || std::is_same<T, complex<double>>::value) {
      using Part = typename T::value_type;
      return T(static_cast<Part>(kind_ == 'i' || kind_ == 'b' ? static_cast<double>(integer_) : real_),
               static_cast<Part>(imaginary_));
    } else {
      const bool is_real = kind_ == 'd' || kind_ == 'z';
      if (imaginary_ || (is_real ? overflows<T>(real_) : overflows<T>(integer_)))
        throw Error("value cannot be converted without overflow");
      return is_real ? static_cast<T>(real_) : static_cast<T>(integer_);
    }
  }
#define AT_TO(type, name, number) \
  type to##name() const { return to<type>(); }
  AT_FORALL_TYPES(AT_TO)
#undef AT_TO
};

struct TensorOptions {
  optional<ScalarType> type_;
  optional<Device> device_;
  optional<Layout> layout_;
  optional<bool> gradient_, pinned_;
  optional<MemoryFormat> format_;
  TensorOptions() {}
  TensorOptions(ScalarType type) : type_(type) {}
  TensorOptions(TypeMeta type) : type_(type.type) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(Device(device)) {}
  TensorOptions(Layout layout) : layout_(layout) {}
  TensorOptions(MemoryFormat format) : format_(format) {}
#define AT_OPTION(name, parameter, field, value) \
  TensorOptions name(parameter) const {          \
    TensorOptions o(*this);                      \
    o.field = value;                             \
    return o;                                    \
  }
  AT_OPTION(dtype, ScalarType t, type_, t)
  AT_OPTION(dtype, TypeMeta t, type_, t.type)
  AT_OPTION(dtype, optional<ScalarType> t, type_, t)
  AT_OPTION(device, Device d, device_, d)
  AT_OPTION(device, DeviceType d, device_, Device(d))
  AT_OPTION(device, optional<Device> d, device_, d)
  TensorOptions device(DeviceType d, int index) const { return device(Device(d, index)); }
  TensorOptions device_index(int index) const { return device(Device(kCUDA, index)); }
  AT_OPTION(layout, Layout l, layout_, l)
  AT_OPTION(requires_grad, bool g, gradient_, g)
  AT_OPTION(pinned_memory, bool p, pinned_, p)
  AT_OPTION(memory_format, MemoryFormat m, format_, m)
#undef AT_OPTION
  template <typename T>
  TensorOptions dtype() const {
    return dtype(CppTypeToScalarType<T>::value);
  }
  // The format that is given here, or beside these options.
  optional<MemoryFormat> format_or(optional<MemoryFormat> given) const {
    if (format_ && given)
      fail(kRuntimeError, __FILE__, __LINE__, "",
           "Cannot set memory_format both in TensorOptions and explicit argument; please delete the "
           "redundant setter.");
    return given ? given : format_;
  }
  TypeMeta dtype() const { return type_.value_or(kFloat); }
  Device device() const { return device_.value_or(Device(kCPU)); }
  bool requires_grad() const { return gradient_.value_or(false); }
  friend std::ostream& operator<<(std::ostream& out, const TensorOptions& o) {
    return out << "TensorOptions(dtype=" << o.dtype() << ", device=" << o.device() << ")";
  }
};

}  // namespace c10

// What x.type() gives: a dtype on a device.
namespace at {
struct DeprecatedTypeProperties {
  c10::ScalarType type;
  c10::Device where;
  bool is_cuda() const { return where.is_cuda(); }
  bool is_sparse() const { return false; }
  c10::ScalarType scalarType() const { return type; }
  c10::DeviceType device_type() const { return where.type(); }
  c10::Backend backend() const { return is_cuda() ? c10::Backend::CUDA : c10::Backend::CPU; }
  DeprecatedTypeProperties toScalarType(c10::ScalarType t) const { return {t, where}; }
  DeprecatedTypeProperties toBackend(c10::Backend b) const {
    return {type, c10::Device(b == c10::Backend::CUDA ? c10::kCUDA : c10::kCPU)};
  }
  DeprecatedTypeProperties cpu() const { return {type, c10::kCPU}; }
  c10::TensorOptions options() const { return c10::TensorOptions(type).device(where); }
  operator c10::TensorOptions() const { return options(); }
  std::string toString() const {
    return std::string(is_cuda() ? "CUDA" : "CPU") + c10::toString(type) + "Type";
  }
  friend bool operator==(const DeprecatedTypeProperties& a, const DeprecatedTypeProperties& b) {
    return a.type == b.type && a.where.type() == b.where.type();
  }
  friend bool operator!=(const DeprecatedTypeProperties& a, const DeprecatedTypeProperties& b) {
    return !(a == b);
  }
  friend std::ostream& operator<<(std::ostream& out, const DeprecatedTypeProperties& t) {
    return out << t.toString();
  }
};
using namespace c10;
using c10::Error;
using c10::ScalarType;
using c10::str;
using Type = DeprecatedTypeProperties;
namespace detail {
inline ScalarType scalar_type(ScalarType t) { return t; }
inline ScalarType scalar_type(TypeMeta t) { return t.type; }
inline ScalarType scalar_type(const DeprecatedTypeProperties& t) { return t.type; }
}  // namespace detail
}  // namespace at

#define TORCH_CHECK_KIND(kind, condition, ...)                                        \
  if (C10_UNLIKELY(!(condition))) {                                                   \
    ::c10::fail(kind, __FILE__, __LINE__,                                             \
                "Expected " #condition " to be true, but got false.", ##__VA_ARGS__); \
  }
#define TORCH_CHECK(condition, ...) TORCH_CHECK_KIND(::c10::kRuntimeError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) TORCH_CHECK_KIND(::c10::kIndexError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) TORCH_CHECK_KIND(::c10::kValueError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) TORCH_CHECK_KIND(::c10::kTypeError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  TORCH_CHECK_KIND(::c10::kNotImplementedError, condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...)
#define AT_CHECK TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_ERROR(...)                                                              \
  {                                                                                \
    ::c10::fail(::c10::kRuntimeError, __FILE__, __LINE__, "error", ##__VA_ARGS__); \
  }
#define C10_THROW_ERROR(kind, text) ::c10::fail(::c10::kRuntimeError, __FILE__, __LINE__, "error", text)
#define TORCH_CHECK_STREAM(condition) \
  C10_LIKELY(condition) ? (void)0 : ::c10::NoValue() & ::c10::FailedCheck(__FILE__, __LINE__).stream()
#define TORCH_CHECK_OP(a, op, b) \
  TORCH_CHECK_STREAM((a)op(b)) << "Check failed: " #a " " #op " " #b " (" << (a) << " vs. " << (b) << ") "
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK_OP(a, ==, b)
#define TORCH_CHECK_NE(a, b) TORCH_CHECK_OP(a, !=, b)
#define TORCH_CHECK_LT(a, b) TORCH_CHECK_OP(a, <, b)
#define TORCH_CHECK_LE(a, b) TORCH_CHECK_OP(a, <=, b)
#define TORCH_CHECK_GT(a, b) TORCH_CHECK_OP(a, >, b)
#define TORCH_CHECK_GE(a, b) TORCH_CHECK_OP(a, >=, b)
#ifndef CHECK
#define CHECK(condition) TORCH_CHECK_STREAM(condition) << "Check failed: " #condition " "
#endif
#ifndef CHECK_EQ
#define CHECK_EQ TORCH_CHECK_EQ
#define CHECK_NE TORCH_CHECK_NE
#define CHECK_LT TORCH_CHECK_LT
#define CHECK_LE TORCH_CHECK_LE
#define CHECK_GT TORCH_CHECK_GT
#define CHECK_GE TORCH_CHECK_GE
#endif
#define TORCH_WARN(...) (std::cerr << ::c10::str("Warning: ", ##__VA_ARGS__) << std::endl)
#define TORCH_WARN_ONCE TORCH_WARN
#define AT_WARN TORCH_WARN
#define AT_COLD __attribute__((cold))
#define C10_UNUSED __attribute__((unused))
#define C10_LIKELY(x) (__builtin_expect(static_cast<bool>(x), 1))
#define C10_UNLIKELY(x) (__builtin_expect(static_cast<bool>(x), 0))
#ifdef __CUDACC__
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#endif
#define C10_MAX_THREADS_PER_BLOCK(n) ((n) <= 1024 ? (n) : 256)
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(C10_MAX_THREADS_PER_BLOCK(threads))
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(C10_MAX_THREADS_PER_BLOCK(threads), blocks)
#define LEGACY_CONTIGUOUS_MEMORY_FORMAT ::c10::MemoryFormat::Contiguous
#define C10_ALWAYS_INLINE __attribute__((always_inline)) inline
#define C10_RESTRICT __restrict__
#define TORCH_API
#define C10_EXPORT
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 5
#define TORCH_VERSION_PATCH 0
