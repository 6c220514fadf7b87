// py::array and py::array_t<T>: arrays of numpy, whose memory C++ reads and writes.
#pragma once

#include "bind.h"

namespace pybind11 {

using ssize_t = std::ptrdiff_t;

struct buffer_info {
  void* ptr;
  ssize_t itemsize;
  std::string format;  // numpy's name of the dtype, such as f4
  ssize_t ndim;
  std::vector<ssize_t> shape, strides;  // in bytes
  ssize_t size;
};

// Elements by N indices. They are not checked.
template <typename T, size_t N>
class unchecked_reference {
  char* data_;
  const std::vector<ssize_t> shape_, strides_;

 public:
  unchecked_reference(char* data, std::vector<ssize_t> shape, std::vector<ssize_t> strides)
      : data_(data), shape_(std::move(shape)), strides_(std::move(strides)) {}
  ssize_t shape(ssize_t axis) const { return shape_[static_cast<size_t>(axis)]; }
  ssize_t ndim() const { return N; }
  template <typename... I>
  T& operator()(I... indices) const {
    static_assert(sizeof...(I) == N, "one index for each axis");
    const ssize_t all[] = {static_cast<ssize_t>(indices)...};
    char* at = data_;
    for (size_t i = 0; i < N; ++i) at += all[i] * strides_[i];
    return *reinterpret_cast<T*>(at);
  }
  T& operator[](ssize_t i) const { return (*this)(i); }
};

class array : public object {
 protected:
  char* data_ = nullptr;
  bool writeable_ = false;
  std::string kind_;
  std::vector<ssize_t> shape_, strides_;

  // `kind`: numpy's name of the dtype to convert to, or "" for any.
  void take(const aten::Value& given, const std::string& kind, int flags) {
    value_ =
        aten::special_object("array", {given, aten::of(kind), aten::of(flags), aten::of(aten::converts())});
    const aten::Value fields = aten::special("array_fields", {value_});
    if (fields.tag == aten::Value::kNone)
      aten::wrong_type(kind.empty() ? "numpy.ndarray of numbers in the processor's order of bytes"
                                    : ("numpy.ndarray " + kind).c_str(),
                       given);
    int64_t address;
    std::tie(address, writeable_, kind_, shape_, strides_) =
        aten::to<std::tuple<int64_t, bool, std::string, std::vector<ssize_t>, std::vector<ssize_t>>>(fields);
    data_ = reinterpret_cast<char*>(address);
  }
  void make(const std::string& kind, const std::vector<ssize_t>& shape) {
    take(aten::special_object("new_array", {aten::of(shape), aten::of(kind)}), kind, 0);
  }
  char* writeable_data() const {
    if (!writeable_) throw std::domain_error("array is not writeable");
    return data_;
  }
  template <typename... I>
  char* place(I... indices) const {
    const ssize_t all[] = {static_cast<ssize_t>(indices)..., 0};
    if (sizeof...(I) > shape_.size()) throw index_error("too many indices for an array");
    char* at = data_;
    for (size_t i = 0; i < sizeof...(I); ++i) {
      if (all[i] < 0 || all[i] >= shape_[i])
        throw index_error(
            c10::str("index ", all[i], " is out of bounds for axis ", i, " with size ", shape_[i]));
      at += all[i] * strides_[i];
    }
    return at;
  }

 public:
  enum { c_style = 1, f_style = 2, forcecast = 16 };
  array() { make("f8", {0}); }
  explicit array(const aten::Value& given) { take(given, "", 0); }
  ssize_t ndim() const { return static_cast<ssize_t>(shape_.size()); }
  const ssize_t* shape() const { return shape_.data(); }
  const ssize_t* strides() const { return strides_.data(); }
  ssize_t shape(ssize_t axis) const { return axis_of(shape_, axis); }
  ssize_t strides(ssize_t axis) const { return axis_of(strides_, axis); }
  ssize_t size() const {
    return std::accumulate(shape_.begin(), shape_.end(), ssize_t{1}, std::multiplies<ssize_t>());
  }
  ssize_t itemsize() const { return atoi(kind_.c_str() + 1); }
  ssize_t nbytes() const { return size() * itemsize(); }
  bool writeable() const { return writeable_; }
  template <typename... I>
  const void* data(I... indices) const {
    return place(indices...);
  }
  template <typename... I>
  void* mutable_data(I... indices) {
    return writeable_data(), place(indices...);
  }
  buffer_info request(bool writable = false) const {
    if (writable) writeable_data();
    return {data_, itemsize(), kind_, ndim(), shape_, strides_, size()};
  }

 private:
  static ssize_t axis_of(const std::vector<ssize_t>& list, ssize_t axis) {
    if (axis < 0 || axis >= static_cast<ssize_t>(list.size())) throw index_error("invalid axis");
    return list[static_cast<size_t>(axis)];
  }
};

// The values of a list or of an array of another dtype are converted, as numpy does it.
template <typename T, int flags = array::forcecast>
class array_t : public array {
  static std::string kind() {
    constexpr bool complex = c10::is_complex<T>::value || std::is_same<T, std::complex<float>>::value ||
                             std::is_same<T, std::complex<double>>::value;
    static_assert(complex || std::is_arithmetic<T>::value, "array_t has no halves and no structures");
    const char letter = std::is_same<T, bool>::value       ? 'b'
                        : complex                          ? 'c'
                        : std::is_floating_point<T>::value ? 'f'
                        : std::is_signed<T>::value         ? 'i'
                                                           : 'u';
    return letter + std::to_string(sizeof(T));
  }

 public:
  using value_type = T;
  array_t() { make(kind(), {0}); }
  explicit array_t(const aten::Value& given) { take(given, kind(), flags); }
  array_t(const object& other) : array_t(other.value()) {}
  explicit array_t(ssize_t count, const T* values = nullptr) : array_t(std::vector<ssize_t>{count}, values) {}
  explicit array_t(std::vector<ssize_t> shape, const T* values = nullptr) {
    make(kind(), shape);
    if (values) std::copy(values, values + size(), mutable_data());
  }
  template <typename... I>
  const T* data(I... indices) const {
    return reinterpret_cast<const T*>(place(indices...));
  }
  template <typename... I>
  T* mutable_data(I... indices) {
    return writeable_data(), reinterpret_cast<T*>(place(indices...));
  }
  template <typename... I>
  const T& at(I... indices) const {
    check_axes(sizeof...(I));
    return *data(indices...);
  }
  template <typename... I>
  T& mutable_at(I... indices) {
    check_axes(sizeof...(I));
    return *mutable_data(indices...);
  }
  template <size_t N>
  unchecked_reference<const T, N> unchecked() const {
    check_axes(N);
    return {data_, shape_, strides_};
  }
  template <size_t N>
  unchecked_reference<T, N> mutable_unchecked() {
    check_axes(N);
    return {writeable_data(), shape_, strides_};
  }

 private:
  void check_axes(size_t n) const {
    if (n != shape_.size())
      throw std::domain_error(
          c10::str("array has incorrect number of dimensions: ", shape_.size(), "; expected ", n));
  }
};

}  // namespace pybind11
