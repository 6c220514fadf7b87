// PYBIND11_MODULE: the functions of a module, by the types that C++ deduces. No pybind11 is used.
#pragma once

#include "object.h"

namespace aten {

// A function for Python. run() converts the arguments, calls it and converts the result.
struct Bound {
  std::string name, doc;
  std::vector<std::string> names;  // of the parameters, if py::arg gave them
  std::vector<std::optional<Value>> defaults;
  std::vector<bool> exact;  // has a parameter noconvert()?
  static constexpr size_t kOfSchema = ~size_t{0} - 1;
  size_t count;                     // of the parameters; kOfSchema: those of the operator's schema
  std::shared_ptr<size_t> results;  // how many the schema has, for a function that is boxed by hand
  std::function<Value(Values&)> run;
  const char* types = "";     // as a compiler writes those of the parameters: [with A = {at::Tensor, double}]
  std::vector<bool> objects;  // is a parameter py::object or the like, which gets Python's own object?
  bool on_cpu = false;  // an operator's implementation for the processor, which sees tensors of the processor
};
// The arguments do not fit: another overload may. index: of the argument; kNone: their number or names.
struct Mismatch : std::runtime_error {
  static constexpr size_t kNone = ~size_t{0};
  size_t index;
  explicit Mismatch(const std::string& text, size_t index_ = kNone)
      : std::runtime_error(text), index(index_) {}
};

void add(void* module, Bound bound);
// A function of Python that lives as long as Python holds it.
Value closure(Bound bound);
void add_value(void* module, const char* name, const Value& value);
void* add_module(void* module, const char* name, const char* doc);
// Wait for an operator's definition or implementation until Python loads the library.
void library(const char* space, const char* key, const char* action, const char* name,
             std::optional<Bound> bound);

// What keeps an argument until its call ends. An array reference, for example, needs an array.
template <typename T, typename = void>
struct Held {
  using Kept = T;
  static T& pass(Kept& kept) { return kept; }
};
// A class of py::class_ is Python's instance, not a copy.
template <typename T>
struct Held<T, std::enable_if_t<As<T>::kIsClass && !std::is_pointer<T>::value>> {
  using Kept = std::shared_ptr<T>;
  static T& pass(Kept& kept) { return *kept; }
};
template <typename T>
struct Held<T*, std::enable_if_t<std::is_class<T>::value>> {
  using Kept = std::shared_ptr<T>;
  static T* pass(Kept& kept) { return kept.get(); }
};
template <typename T>
struct Held<c10::ArrayRef<T>> {
  using Kept = std::vector<T>;
  static c10::ArrayRef<T> pass(Kept& kept) { return kept; }
};
template <>
struct Held<std::string_view> {
  using Kept = std::string;
  static std::string_view pass(Kept& kept) { return kept; }
};
template <>
struct Held<const char*> {
  using Kept = std::string;
  static const char* pass(Kept& kept) { return kept.c_str(); }
};
template <typename A>
using HeldBy = Held<std::conditional_t<std::is_pointer<std::decay_t<A>>::value, A, std::decay_t<A>>>;

template <typename A>
auto converted(const Values& given, size_t i) {
  struct Taking {
    const bool outer = std::exchange(taking_arguments, true), converting = converts();
    ~Taking() { taking_arguments = outer, set_converts(converting); }
  } taking;
  if (given[i].exact) set_converts(false);
  try {
    return to<typename HeldBy<A>::Kept>(given[i]);
  } catch (const pybind11::error_already_set&) {
    throw;
  } catch (const c10::Error& e) {
    throw Mismatch{e.what(), i};
  }
}
template <typename A, typename K>
decltype(auto) passed(K& kept) {
  if constexpr (std::is_same<K, std::decay_t<A>>::value)
    return static_cast<A&&>(kept);
  else
    return HeldBy<A>::pass(kept);
}
template <typename R, typename... A, typename F, size_t... I>
Value call_with(const F& f, Values& given, std::index_sequence<I...>) {
  std::tuple<typename HeldBy<A>::Kept...> kept{converted<A>(given, I)...};
  set_converts(true);  // the arguments are taken
  if constexpr (std::is_void<R>::value) {
    f(passed<A>(std::get<I>(kept))...);
    return Value();
  } else {
    return aten::of(f(passed<A>(std::get<I>(kept))...));
  }
}
template <typename... A>
const char* types_of() {
  return __PRETTY_FUNCTION__;
}
template <typename R, typename... A, typename F>
Bound bound_as(const char* name, const F& f) {
  Bound made;
  made.name = name, made.count = sizeof...(A), made.types = types_of<A...>();
  if constexpr ((std::is_base_of<pybind11::object, std::decay_t<A>>::value || ...))
    made.objects = {std::is_base_of<pybind11::object, std::decay_t<A>>::value...};
  made.run = [f](Values& given) { return call_with<R, A...>(f, given, std::index_sequence_for<A...>()); };
  return made;
}
template <typename Signature>
struct Binder;
template <typename R, typename... A>
struct Binder<R(A...)> {
  static Bound bound(const char* name, R (*f)(A...)) { return bound_as<R, A...>(name, f); }
};
template <typename R, typename... A>
Bound bind(const char* name, R (*f)(A...)) {
  return Binder<R(A...)>::bound(name, f);
}
template <typename F, typename R, typename... A>
Bound bind_lambda(const char* name, const F& f, R (F::*)(A...)) {
  return bound_as<R, A...>(name, [f](A... given) mutable { return f(std::forward<A>(given)...); });
}
template <typename F, typename R, typename... A>
Bound bind_lambda(const char* name, const F& f, R (F::*)(A...) const) {
  return bound_as<R, A...>(name, f);
}
template <typename F, typename = decltype(&F::operator())>
Bound bind(const char* name, const F& f) {
  return bind_lambda(name, f, &F::operator());
}

}  // namespace aten

namespace pybind11 {

// Gives the interpreter's lock back until the end of its scope.
class gil_scoped_release {
  void* const state_ = aten::unlock();

 public:
  gil_scoped_release() = default;
  gil_scoped_release(const gil_scoped_release&) = delete;
  ~gil_scoped_release() { aten::relock(state_); }
};
struct gil_scoped_acquire {};  // each operation takes the lock
template <typename... T>
struct call_guard {};
enum class return_value_policy {
  automatic,
  automatic_reference,
  move,
  copy,
  reference,
  reference_internal,
  take_ownership
};
#define ATEN_ERROR(name, kind)                                                   \
  struct name : c10::Error {                                                     \
    explicit name(const std::string& text = "") : c10::Error(text, c10::kind) {} \
  };
ATEN_ERROR(value_error, kValueError)
ATEN_ERROR(type_error, kTypeError)
ATEN_ERROR(index_error, kIndexError)
ATEN_ERROR(key_error, kKeyError)
ATEN_ERROR(stop_iteration, kStopIteration)
ATEN_ERROR(attribute_error, kAttributeError)
ATEN_ERROR(import_error, kImportError)
ATEN_ERROR(cast_error, kRuntimeError)
#undef ATEN_ERROR

// The facts that m.def has beside the function.
inline void describe(aten::Bound& b, const char* text) { b.doc = text; }
inline void describe(aten::Bound& b, const std::string& text) { b.doc = text; }
inline void describe(aten::Bound& b, const arg& a) {
  b.names.push_back(a.name);
  b.defaults.resize(b.names.size());
  b.defaults.back() = a.value;
  b.exact.push_back(a.exact);
}
template <typename T>
void describe(aten::Bound&, const T&) {}

class module_ {
  void* object_;

 public:
  struct Attribute {
    void* owner;
    std::string name;
    template <typename T>
    void operator=(const T& value) {
      aten::add_value(owner, name.c_str(), aten::of(value));
    }
  };

  explicit module_(void* object) : object_(object) {}
  template <typename F, typename... Extra>
  module_& def(const char* name, F&& f, const Extra&... extra) {
    aten::Bound b = aten::bind(name, std::forward<F>(f));
    (describe(b, extra), ...);
    aten::add(object_, std::move(b));
    return *this;
  }
  module_ def_submodule(const char* name, const char* doc = "") {
    return module_(aten::add_module(object_, name, doc));
  }
  Attribute attr(const char* name) { return {object_, name}; }
  void* object() const { return object_; }
  Attribute doc() { return {object_, "__doc__"}; }
};
using module = module_;

// An enum becomes an IntEnum of Python.
template <typename T>
class enum_ {
  void* module_object;
  std::string name_;
  aten::Value members_{aten::Value::kList};

 public:
  template <typename... Extra>
  enum_(module_& m, const char* name, const Extra&...) : module_object(m.object()), name_(name) {}
  ~enum_() {
    aten::add_value(module_object, name_.c_str(), aten::special("enum", {aten::of(name_), members_}));
  }
  enum_& value(const char* name, T v, const char* = "") {
    members_.list.push_back(
        aten::Value(aten::Value::kTuple, {aten::of(name), aten::of(static_cast<int64_t>(v))}));
    return *this;
  }
  enum_& export_values() { return *this; }
};

}  // namespace pybind11
namespace py = pybind11;
#include "class.h"

// A library has one module. Its PyInit function (cuffi/old_torch/make/torch_library.py) calls aten_fill.
#define PYBIND11_MODULE(name, m)                                                  \
  static void aten_functions(::pybind11::module_& m);                             \
  extern "C" __attribute__((visibility("hidden"))) void aten_fill(void* object) { \
    ::pybind11::module_ made(object);                                             \
    aten_functions(made);                                                         \
  }                                                                               \
  static void aten_functions([[maybe_unused]] ::pybind11::module_& m)

namespace torch {
template <typename R, typename... A>
auto wrap_pybind_function(R (*f)(A...)) {
  return f;
}
}  // namespace torch
