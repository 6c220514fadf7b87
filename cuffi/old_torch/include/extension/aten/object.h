// py::object, dict, list, tuple and the like: Python's own objects. py::class_: a class of C++ for Python.
#pragma once

#include "functions.h"

namespace pybind11 {

class object;
struct handle_tag {};

// An error of Python, which passes through C++. That of an operation is torch's own kind there.
class error_already_set : public c10::Error {
  std::shared_ptr<void> fetched_;
  std::shared_ptr<std::string> text_;

 public:
  error_already_set();  // Python's current error
  const char* what() const noexcept override { return text_ ? text_->c_str() : c10::Error::what(); }
  void restore() const;  // it becomes Python's current error again
};

// What obj.attr("x") and obj[key] give: read on use, written by `=`.
class accessor;

class object : public handle_tag {
 protected:
  aten::Value value_;

 public:
  object() {}
  explicit object(aten::Value value) : value_(std::move(value)) {}
  const aten::Value& value() const { return value_; }
  bool is_none() const { return value_.tag == aten::Value::kNone; }
  explicit operator bool() const { return !is_none(); }
  accessor attr(const char* name) const;
  template <typename K>
  accessor operator[](const K& key) const;
  template <typename... A>
  object operator()(const A&... arguments) const;
  template <typename T>
  T cast() const {
    return aten::to<T>(aten::call("same", value_));
  }
  template <typename K>
  bool contains(const K& key) const {
    return aten::call<bool>("contains", value_, key);
  }
  size_t size() const { return aten::call<size_t>("len", value_); }
  bool empty() const { return !size(); }
  bool is(const object& other) const { return aten::call<bool>("is", value_, other.value_); }
  std::vector<object> items() const;
};
using handle = object;

// The object as one of a kind: list(x) as Python has it, and the same object if it is one.
inline aten::Value as_kind(const char* kind, const object& o) {
  return aten::special_object("as_kind", {aten::of(kind), o.value()});
}

// A parameter, with its default or its value: "x"_a, "x"_a = 1.
struct arg {
  std::string name;
  std::optional<aten::Value> value;
  explicit arg(const char* n) : name(n) {}
  template <typename T>
  arg operator=(const T& v) const {
    arg made(*this);
    return made.value = aten::of(v), made;
  }
  bool exact = false;  // it is not converted
  arg& noconvert(bool on = true) { return exact = on, *this; }
  arg& none(bool = true) { return *this; }
};
inline namespace literals {
inline arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals
// The arguments of a call, those with names apart.
struct Arguments {
  aten::Value placed{aten::Value::kTuple}, named{aten::Value::kDict};
  template <typename T>
  void take(const T& v) {
    placed.list.push_back(aten::of(v));
  }
  void take(const arg& a) {
    if (!a.value) throw c10::Error("the argument \"" + a.name + "\"_a of a call has no value");
    named.list.push_back(aten::Value(aten::Value::kTuple, {aten::of(a.name), *a.value}));
  }
};
template <typename... A>
object object::operator()(const A&... arguments) const {
  Arguments all;
  (all.take(arguments), ...);
  return object(aten::special_object("call", {value_, all.placed, all.named}));
}

class accessor : public object {
  aten::Value owner_, key_;
  const char* set_;

 public:
  accessor(aten::Value owner, aten::Value key, const char* get, const char* set)
      : object(aten::special_object(get, {owner, key})), owner_(owner), key_(key), set_(set) {}
  template <typename T>
  void operator=(const T& value) {
    aten::special(set_, {owner_, key_, value_ = aten::of(value)});
  }
};
inline accessor object::attr(const char* name) const {
  return {value_, aten::of(name), "getattr", "setattr"};
}
template <typename K>
accessor object::operator[](const K& key) const {
  return {value_, aten::of(key), "getentry", "setentry"};
}
inline std::vector<object> object::items() const {
  std::vector<object> found;
  for (size_t i = 0, n = size(); i < n; ++i)
    found.push_back(object(aten::special_object("nth", {value_, aten::of(i)})));
  return found;
}

struct none : object {};
struct dict : object {
  dict() : object(aten::special_object("dict", {})) {}
  explicit dict(aten::Value value) : object(std::move(value)) {}
  dict(const object& o) : object(as_kind("dict", o)) {}
  template <typename... A>
  explicit dict(const arg& first, const A&... others) : dict() {
    Arguments all;
    all.take(first), (all.take(others), ...);
    aten::special("update", {value_, all.named});
  }
  // Pairs of a key and a value.
  auto begin() const { return iterated()->begin(); }
  auto end() const { return pairs_->end(); }

 private:
  mutable std::shared_ptr<std::vector<std::pair<object, object>>> pairs_;
  std::vector<std::pair<object, object>>* iterated() const {
    pairs_ = std::make_shared<std::vector<std::pair<object, object>>>();
    for (const object& key : object(aten::special_object("list", {value_})).items())
      pairs_->emplace_back(key, (*this)[key]);
    return pairs_.get();
  }
};
struct sequence : object {
  using object::object;
  auto begin() const { return (held_ = std::make_shared<std::vector<object>>(items()))->begin(); }
  auto end() const { return held_->end(); }

 private:
  mutable std::shared_ptr<std::vector<object>> held_;
};
struct list : sequence {
  list() : sequence(aten::special_object("list", {})) {}
  explicit list(aten::Value value) : sequence(std::move(value)) {}
  list(const object& o) : sequence(as_kind("list", o)) {}
  template <typename T>
  void append(const T& value) {
    aten::special("append", {value_, aten::of(value)});
  }
};
struct tuple : sequence {
  using sequence::sequence;
  tuple(const object& o) : sequence(as_kind("tuple", o)) {}
};
struct function : object {
  using object::object;
};
struct str : object {
  str(const std::string& text) : object(aten::of(text)) {}
  str(const char* text) : object(aten::of(text)) {}
  str(const object& o) : object(as_kind("str", o)) {}
  explicit str(aten::Value value) : object(std::move(value)) {}
  operator std::string() const { return cast<std::string>(); }
};
struct int_ : object {
  int_(int64_t number) : object(aten::of(number)) {}
  explicit int_(aten::Value value) : object(std::move(value)) {}
  int_(const object& o) : object(as_kind("int", o)) {}
  operator int64_t() const { return cast<int64_t>(); }
};
struct float_ : object {
  float_(double number) : object(aten::of(number)) {}
  explicit float_(aten::Value value) : object(std::move(value)) {}
  float_(const object& o) : object(as_kind("float", o)) {}
  operator double() const { return cast<double>(); }
};
struct bool_ : object {
  bool_(bool truth) : object(aten::of(truth)) {}
  explicit bool_(aten::Value value) : object(std::move(value)) {}
  bool_(const object& o) : object(as_kind("bool", o)) {}
  operator bool() const { return cast<bool>(); }
};

template <typename T>
T cast(const object& o) {
  return o.cast<T>();
}
template <typename T>
object cast(const T& value) {
  return object(aten::of(value));
}
template <typename... A>
tuple make_tuple(const A&... items) {
  return tuple(aten::Value(aten::Value::kTuple, {aten::of(items)...}));
}
inline size_t len(const object& o) { return o.size(); }
inline bool hasattr(const object& o, const char* name) {
  return aten::call<bool>("hasattr", o.value(), name);
}
template <typename... A>
void print(const A&... items) {
  aten::special("print", {aten::of(items)...});
}

}  // namespace pybind11

namespace aten {

template <typename T>
struct As<T, std::enable_if_t<std::is_base_of<pybind11::object, T>::value>> {
  static Value of(const T& v) { return v.value(); }
  static T to(const Value& v) { return T(v); }
};

}  // namespace aten
