// A C++ type <-> a Value: As<T>.
#pragma once

#include "tensor.h"

namespace aten {

template <>
struct As<Value> {
  static Value of(const Value& v) { return v; }
  static Value to(const Value& v) { return v; }
};
template <>
struct As<bool> {
  static Value of(bool v) { return {Value::kBool, v}; }
  // As pybind11 has it: an int, a tensor, a numpy.bool_.
  static bool to(const Value& v) {
    if (v.tag == Value::kBool || (v.tag == Value::kInt && converts())) return v.integer != 0;
    if (v.tag == Value::kNone && converts()) return false;
    const Value truth = v.tag == Value::kTensor && converts() ? special("truth", {v}) : v;
    return truth.tag == Value::kBool ? truth.integer != 0 : (wrong_type("bool", v), false);
  }
};
// A tensor of one element is a number, as in Python.
inline Value number(const Value& v) {
  if (v.tag != Value::kTensor || !converts() || at::Tensor(v.tensor).numel() != 1) return v;
  Value found = special("item", {v});
  return found.whole = true, found;
}
// A letter is a text of one.
template <>
struct As<char> {
  static Value of(char v);
  static char to(const Value& v) {
    if (v.tag != Value::kText || v.text.size() != 1) wrong_type("a str of one letter", v);
    return v.text[0];
  }
};
template <typename T>
struct As<T, std::enable_if_t<std::is_integral<T>::value>> {
  static Value of(T v) { return {Value::kInt, static_cast<int64_t>(v)}; }
  static T to(const Value& given) {
    Value v = number(given);
    if (v.tag == Value::kReal && v.whole && converts() && std::abs(v.real) < 0x1p63)
      v = {Value::kInt, static_cast<int64_t>(v.real)};
    if (v.tag != Value::kInt && v.tag != Value::kBool) wrong_type("int", given);
    const T found = static_cast<T>(v.integer);
    if (static_cast<int64_t>(found) != v.integer || (std::is_unsigned<T>::value && v.integer < 0))
      throw c10::Error(c10::str(v.integer, " does not fit into the function's integer type"),
                       c10::kTypeError);
    return found;
  }
};
template <typename T>
struct As<T, std::enable_if_t<std::is_floating_point<T>::value>> {
  static Value of(T v) {
    Value made(Value::kReal);
    return made.real = v, made;
  }
  static T to(const Value& given) {
    const Value v = number(given);
    if (v.tag == Value::kReal) return static_cast<T>(v.real);
    if (!(v.tag == Value::kInt || v.tag == Value::kBool) || !converts()) wrong_type("float", given);
    return static_cast<T>(v.integer);
  }
};
template <typename T>
struct As<T, std::enable_if_t<std::is_enum<T>::value && !std::is_same<T, ScalarType>::value>> {
  static Value of(T v) { return {Value::kInt, static_cast<int64_t>(v)}; }
  static T to(const Value& v) { return static_cast<T>(As<int64_t>::to(v)); }
};
// Are a function's arguments taken? An operation's result may be an undefined tensor, as None, or a dtype by its number.
inline thread_local bool taking_arguments = false;
#define ATEN_TAGGED(type, tag_)                                                              \
  template <>                                                                                \
  struct As<type> {                                                                          \
    static Value of(type v) { return {Value::tag_, static_cast<int64_t>(v)}; }               \
    static type to(const Value& v) {                                                         \
      const bool fits = v.tag == Value::tag_ || (v.tag == Value::kInt && !taking_arguments); \
      return fits ? static_cast<type>(v.integer) : (wrong_type(#type, v), type());           \
    }                                                                                        \
  };
ATEN_TAGGED(ScalarType, kType)
ATEN_TAGGED(c10::Layout, kLayout)
ATEN_TAGGED(c10::MemoryFormat, kFormat)
#undef ATEN_TAGGED
template <>
struct As<c10::TypeMeta> : As<ScalarType> {};
template <>
struct As<at::indexing::EllipsisIndexType> {
  static Value of(at::indexing::EllipsisIndexType) { return Value(Value::kEllipsis); }
};
template <>
struct As<at::indexing::TensorIndex> {
  static Value of(const at::indexing::TensorIndex& v) { return v.value; }
};
template <>
struct As<std::nullopt_t> {
  static Value of(std::nullopt_t) { return Value(); }
};
template <>
struct As<c10::Device> {
  static Value of(c10::Device v) {
    return {Value::kDevice, static_cast<int64_t>(v.type_) << 8 | (v.index_ + 1)};
  }
  static c10::Device to(const Value& v) {
    if (v.tag == Value::kText) return c10::Device(v.text);
    if (v.tag != Value::kDevice) wrong_type("torch.device", v);
    return c10::Device(static_cast<c10::DeviceType>(v.integer >> 8), static_cast<int>(v.integer & 255) - 1);
  }
};
template <>
struct As<c10::DeviceType> {
  static Value of(c10::DeviceType v) { return As<c10::Device>::of(v); }
};
template <typename T>
struct As<c10::complex<T>> {
  static Value of(const c10::complex<T>& v) {
    return Value(Value::kComplex, {As<double>::of(v.real_), As<double>::of(v.imag_)});
  }
  static c10::complex<T> to(const Value& v) {
    if (v.tag != Value::kComplex) return As<T>::to(v);
    return c10::complex<T>(static_cast<T>(v.list[0].real), static_cast<T>(v.list[1].real));
  }
};
template <typename T>
struct As<std::complex<T>> : As<c10::complex<T>> {};
template <>
struct As<c10::Scalar> {
  static Value of(const c10::Scalar& v) {
    if (v.isComplex()) return As<c10::complex<double>>::of(v.to<c10::complex<double>>());
    return v.isFloatingPoint() ? As<double>::of(v.to<double>())
           : v.isBoolean()     ? As<bool>::of(v.to<bool>())
                               : As<int64_t>::of(v.to<int64_t>());
  }
  static c10::Scalar to(const Value& given) {
    const Value v = number(given);
    if (v.tag == Value::kReal) return v.real;
    if (v.tag == Value::kBool) return v.integer != 0;
    if (v.tag == Value::kComplex) return As<c10::complex<double>>::to(v);
    return As<int64_t>::to(v);
  }
};
template <>
struct As<std::string> {
  static Value of(const std::string& v) {
    Value made(Value::kText);
    return made.text = v, made;
  }
  static std::string to(const Value& v) {
    if (v.tag == Value::kText) return v.text;
    std::string text;
    if (!bytes_of(v, &text)) wrong_type("str", v);
    return text;
  }
};
inline Value As<char>::of(char v) { return As<std::string>::of(std::string(1, v)); }
template <>
struct As<const char*> : As<std::string> {
  static Value of(const char* v) { return v ? As<std::string>::of(v) : Value(); }
};
template <>
struct As<char*> : As<const char*> {};
template <>
struct As<std::string_view> {
  static Value of(std::string_view v) { return As<std::string>::of(std::string(v)); }
};
template <>
struct As<at::Tensor> {
  static Value of(const at::Tensor& v) {
    if (!v.defined()) return Value();
    Value made(Value::kTensor);
    return made.tensor = v.handle(), made;
  }
  static at::Tensor to(const Value& v) {
    if (v.tag == Value::kNone && !taking_arguments) return at::Tensor();
    return v.tag == Value::kTensor ? at::Tensor(v.tensor) : (wrong_type("Tensor", v), at::Tensor());
  }
};
template <>
struct As<at::Generator> {
  static Value of(at::Generator) { return Value(); }
  static at::Generator to(const Value& v) {
    if (v.tag != Value::kNone) wrong_type("None for torch's default generator", v);
    return {};
  }
};
template <>
struct As<at::indexing::Slice> {
  static Value of(const at::indexing::Slice& s) {
    return Value(Value::kSlice, {aten::of(s.start), aten::of(s.stop), aten::of(s.step)});
  }
};
template <typename T>
struct As<std::optional<T>> {
  static Value of(const std::optional<T>& v) { return v ? aten::of(*v) : Value(); }
  static std::optional<T> to(const Value& v) {
    return v.tag == Value::kNone ? std::optional<T>() : std::optional<T>(As<T>::to(v));
  }
};
template <>
struct As<c10::OptionalIntArrayRef> {
  static Value of(const c10::OptionalIntArrayRef& v) { return v ? aten::of(*v) : Value(); }
};
template <typename L>
Value list_of(const L& list) {
  Value made(Value::kList);
  for (size_t i = 0; i < list.size(); ++i) made.list.push_back(aten::of(list[i]));
  return made;
}
template <typename T>
struct As<c10::ArrayRef<T>> {
  static Value of(const c10::ArrayRef<T>& v) { return list_of(v); }
};
template <typename T>
struct As<std::vector<T>> {
  static Value of(const std::vector<T>& v) {
    Value made(Value::kList);
    for (const auto& one : v) made.list.push_back(aten::of(static_cast<T>(one)));
    return made;
  }
  // Any sequence of Python is a list: a range, a numpy array. A tensor is none, as with pybind11.
  static std::vector<T> to(const Value& v) {
    if (v.tag == Value::kObject && converts()) {
      const Value list = special("sequence", {v});
      if (list.tag == Value::kList) return to(list);
    }
    if (v.tag != Value::kList && v.tag != Value::kTuple) wrong_type("list", v);
    std::vector<T> made;
    made.reserve(v.list.size());
    for (const Value& one : v.list) made.push_back(As<T>::to(one));
    return made;
  }
};
template <typename T, size_t N>
struct As<std::array<T, N>> {
  static Value of(const std::array<T, N>& v) { return list_of(v); }
  static std::array<T, N> to(const Value& v) {
    std::vector<T> list = As<std::vector<T>>::to(v);
    if (list.size() != N) wrong_type(c10::str("a list of ", N).c_str(), v);
    std::array<T, N> made;
    std::move(list.begin(), list.end(), made.begin());
    return made;
  }
};
template <typename... T>
struct As<std::tuple<T...>> {
  static Value of(const std::tuple<T...>& v) {
    return std::apply([](const auto&... one) { return Value(Value::kTuple, {aten::of(one)...}); }, v);
  }
  static std::tuple<T...> to(const Value& v) {
    if (v.list.size() != sizeof...(T)) wrong_type(c10::str("a tuple of ", sizeof...(T)).c_str(), v);
    return from(v, std::index_sequence_for<T...>());
  }
  template <size_t... I>
  static std::tuple<T...> from(const Value& v, std::index_sequence<I...>) {
    return std::tuple<T...>(As<std::decay_t<T>>::to(v.list[I])...);
  }
};
template <typename A, typename B>
struct As<std::pair<A, B>> {
  static Value of(const std::pair<A, B>& v) {
    return Value(Value::kTuple, {aten::of(v.first), aten::of(v.second)});
  }
  static std::pair<A, B> to(const Value& v) {
    if (v.list.size() != 2) wrong_type("a pair", v);
    return {As<A>::to(v.list[0]), As<B>::to(v.list[1])};
  }
};
// A set.
template <typename S>
struct AsSet {
  static Value of(const S& v) {
    Value made(Value::kList);
    for (const auto& one : v) made.list.push_back(aten::of(one));
    return special_object("set", {made});
  }
  static S to(const Value& v) {
    const Value list = v.tag == Value::kObject ? special("items_of_set", {v}) : v;
    if (list.tag != Value::kList || v.tag != Value::kObject) wrong_type("set", v);
    S made;
    for (const Value& one : list.list) made.insert(As<typename S::value_type>::to(one));
    return made;
  }
};
template <typename T>
struct As<std::set<T>> : AsSet<std::set<T>> {};
template <typename T>
struct As<std::unordered_set<T>> : AsSet<std::unordered_set<T>> {};
// A map is a dict; a list of pairs on its way to Python.
template <typename M>
struct AsMap {
  static Value of(const M& v) {
    Value made(Value::kDict);
    for (const auto& [key, one] : v)
      made.list.push_back(Value(Value::kTuple, {aten::of(key), aten::of(one)}));
    return made;
  }
  static M to(const Value& v) {
    if (v.tag != Value::kDict) wrong_type("dict", v);
    M made;
    for (const Value& pair : v.list)
      made.emplace(As<typename M::key_type>::to(pair.list[0]), As<typename M::mapped_type>::to(pair.list[1]));
    return made;
  }
};
template <typename K, typename V>
struct As<std::map<K, V>> : AsMap<std::map<K, V>> {};
template <typename K, typename V>
struct As<std::unordered_map<K, V>> : AsMap<std::unordered_map<K, V>> {};
inline at::Tensor made(const Value& v, const c10::TensorOptions& o) {
  at::Tensor t = to<at::Tensor>(v);
  if (o.requires_grad()) t.requires_grad_();
  return t;
}

}  // namespace aten
