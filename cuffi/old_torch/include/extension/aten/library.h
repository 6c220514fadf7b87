// TORCH_LIBRARY and RegisterOperators: operators go to torch.library when Python loads the library.
#pragma once

#include "bind.h"

namespace c10 {
enum class DispatchKey {
  CatchAll,
  CPU,
  CUDA,
  Meta,
  Autograd,
  AutogradCPU,
  AutogradCUDA,
  CompositeImplicitAutograd,
  CompositeExplicitAutograd
};
inline const char* toString(DispatchKey key) {
  static const char* const names[] = {"",
                                      "CPU",
                                      "CUDA",
                                      "Meta",
                                      "Autograd",
                                      "AutogradCPU",
                                      "AutogradCUDA",
                                      "CompositeImplicitAutograd",
                                      "CompositeExplicitAutograd"};
  return names[static_cast<int>(key)];
}
inline const char* toString(DeviceType type) {
  return type == kCUDA ? "CUDA" : type == DeviceType::Meta ? "Meta" : "CPU";
}
}  // namespace c10
namespace torch {

// A function with the key that it is registered by: torch::dispatch(key, f).
template <typename F>
struct Dispatched {
  std::string key;
  F f;
};

// The schema of a function, from its C++ types.
template <typename T>
std::string schema_type() {
  using D = std::decay_t<T>;
  if constexpr (std::is_same<D, at::Tensor>::value)
    return "Tensor";
  else if constexpr (std::is_same<D, bool>::value)
    return "bool";
  else if constexpr (std::is_integral<D>::value)
    return "int";
  else if constexpr (std::is_floating_point<D>::value)
    return "float";
  else if constexpr (std::is_same<D, c10::Scalar>::value)
    return "Scalar";
  else if constexpr (std::is_same<D, std::string>::value || std::is_same<D, std::string_view>::value)
    return "str";
  else
    return D::no_type_of_a_schema;
}
template <typename T>
struct SchemaType {
  static std::string text() { return schema_type<T>(); }
};
template <typename T>
struct SchemaType<std::optional<T>> {
  static std::string text() { return SchemaType<T>::text() + "?"; }
};
template <typename T>
struct SchemaType<std::vector<T>> {
  static std::string text() { return SchemaType<T>::text() + "[]"; }
};
template <typename T>
struct SchemaType<c10::ArrayRef<T>> : SchemaType<std::vector<T>> {};
template <>
struct SchemaType<void> {
  static std::string text() { return "()"; }
};
template <typename... T>
struct SchemaType<std::tuple<T...>> {
  static std::string text() {
    std::string s;
    ((s += (s.empty() ? "" : ", ") + SchemaType<T>::text()), ...);
    return "(" + s + ")";
  }
};
template <typename R, typename... A>
std::string schema_of(const std::string& name, R (*)(A...)) {
  std::string s;
  int i = 0;
  ((s += (i ? ", " : "") + SchemaType<std::decay_t<A>>::text() + " a" + std::to_string(i), ++i), ...);
  return name + "(" + s + ") -> " + SchemaType<R>::text();
}

class Library {
  std::string space_, key_;

 public:
  Library(const char* space, const char* key) : space_(space), key_(key) {}
  template <typename... Extra>
  Library& def(const char* schema, const std::vector<Extra>&... /* tags */) {
    return aten::library(space_.c_str(), "", "define", schema, {}), *this;
  }
  template <typename... Extra>
  Library& def(const std::string& schema, const std::vector<Extra>&... tags) {
    return def(schema.c_str(), tags...);
  }
  template <typename R, typename... A>
  Library& def(const char* schema, R (*f)(A...)) {
    const std::string text(schema), name = text.substr(0, text.find('('));
    def((name == text ? schema_of(name, f) : text).c_str());
    return impl(name.c_str(), f);
  }
  template <typename F>
  Library& impl(const char* name, F&& f) {
    return add(name, key_, std::forward<F>(f));
  }
  template <typename F>
  Library& impl(const char* name, Dispatched<F> by_key) {
    return add(name, by_key.key, by_key.f);
  }
  template <typename Key, typename F>
  Library& impl(const char* name, Key key, F&& f) {
    return add(name, c10::toString(key), std::forward<F>(f));
  }
  Library& set_python_module(const char*, const char* = "") { return *this; }
  Library& impl_abstract_pystub(const char*, const char* = "") { return *this; }

 private:
  template <typename F>
  Library& add(const char* name, const std::string& key, F&& f) {
    aten::Bound bound = aten::bind(name, std::forward<F>(f));
    bound.on_cpu = key == "CPU";
    return aten::library(space_.c_str(), key.c_str(), "impl", name, std::move(bound)), *this;
  }
};

// torch::RegisterOperators().op("space::name", &f).
class RegisterOperators {
 public:
  RegisterOperators() {}
  template <typename F>
  RegisterOperators(const char* name, const F& f) {
    op(name, f);
  }
  template <typename R, typename... A>
  RegisterOperators& op(const std::string& name, R (*f)(A...)) {
    const size_t colon = name.find("::"), bracket = name.find('(');
    const std::string space = name.substr(0, colon), rest = name.substr(colon + 2);
    const std::string plain = rest.substr(0, rest.find('('));
    const std::string schema = bracket == std::string::npos ? schema_of(plain, f) : rest;
    aten::library(space.c_str(), "", "define", schema.c_str(), {});
    aten::library(space.c_str(), "", "impl", plain.c_str(), aten::bind(plain.c_str(), f));
    return *this;
  }
  template <typename F, typename = decltype(&F::operator())>
  RegisterOperators& op(const std::string& name, const F& f) {
    return of_lambda(name, f, &F::operator());
  }

 private:
  template <typename F, typename R, typename... A>
  RegisterOperators& of_lambda(const std::string& name, const F& f, R (F::*)(A...) const) {
    return op(name, static_cast<R (*)(A...)>(f));
  }
};
namespace jit {
using torch::RegisterOperators;
}
struct LibraryBlock {
  LibraryBlock(const char* space, const char* key, void (*fill)(Library&)) {
    Library library(space, key);
    fill(library);
  }
};
inline const char* schema(const char* text) { return text; }
template <typename Key, typename F>
Dispatched<F> dispatch(Key key, F f) {
  return {c10::toString(key), f};
}

}  // namespace torch

#define ATEN_LIBRARY(space, key, m, n)                                                               \
  static void aten_library_##space##_##key##n(::torch::Library& m);                                  \
  static const ::torch::LibraryBlock aten_block_##space##_##key##n(#space, #key,                     \
                                                                   aten_library_##space##_##key##n); \
  static void aten_library_##space##_##key##n([[maybe_unused]] ::torch::Library& m)
#define ATEN_LIBRARY_(space, key, m, n) ATEN_LIBRARY(space, key, m, n)
#define TORCH_LIBRARY(space, m) ATEN_LIBRARY_(space, , m, whole)
#define TORCH_LIBRARY_FRAGMENT(space, m) ATEN_LIBRARY_(space, , m, __COUNTER__)
#define TORCH_LIBRARY_IMPL(space, key, m) ATEN_LIBRARY_(space, key, m, __COUNTER__)
#define TORCH_FN(f) &f
#define TORCH_BOX(f) f
#define TORCH_SELECTIVE_SCHEMA(schema) schema
#define TORCH_SELECTIVE_NAME(name) name
