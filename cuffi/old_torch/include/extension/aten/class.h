// py::class_: a class of C++ as a class of Python. An instance holds a std::shared_ptr.
#pragma once

#include "bind.h"

namespace aten {

// The class of Python for T; None until there is a py::class_<T>. It is never released, as types are not.
template <typename T>
Value& class_of() {
  static Value* const type = new Value;
  return *type;
}

}  // namespace aten

namespace pybind11 {

template <typename... A>
struct init_of {};
template <typename F>
struct factory {
  F make;
};
template <typename... A>
init_of<A...> init() {
  return {};
}
template <typename F>
factory<F> init(F make) {
  return {make};
}

template <typename T, typename... Options>
class class_ {
  const aten::Value type_;

  void put(const char* kind, const char* name, const aten::Value& what) {
    aten::special("put_in_class", {type_, aten::of(kind), aten::of(name), what});
  }
  template <typename... Extra>
  class_& add(const char* kind, const char* name, aten::Bound bound, const Extra&... extra) {
    bound.names.push_back("self"), bound.defaults.emplace_back();
    (describe(bound, extra), ...);
    if (bound.names.size() == 1) bound.names.clear(), bound.defaults.clear();
    return put(kind, name, aten::closure(std::move(bound))), *this;
  }
  template <typename R, typename C, typename... A>
  static auto of_member(R (C::*f)(A...)) {
    return [f](T& self, A... a) -> R { return (self.*f)(std::forward<A>(a)...); };
  }
  template <typename R, typename C, typename... A>
  static auto of_member(R (C::*f)(A...) const) {
    return [f](const T& self, A... a) -> R { return (self.*f)(std::forward<A>(a)...); };
  }
  template <typename F>
  static auto as_function(const F& f) {
    if constexpr (std::is_member_function_pointer<F>::value)
      return of_member(f);
    else
      return f;
  }
  static void hold(const object& self, std::shared_ptr<T> made) {
    aten::special("hold", {self.value(), aten::capsule_of(std::move(made), typeid(T).name())});
  }
  template <typename F, typename R, typename... A>
  static auto maker(const F& make, R (F::*)(A...) const) {
    return [make](object self, A... a) {
      if constexpr (std::is_same<R, T>::value)
        hold(self, std::make_shared<T>(make(std::forward<A>(a)...)));
      else
        hold(self, std::shared_ptr<T>(make(std::forward<A>(a)...)));
    };
  }

 public:
  template <typename... Extra>
  class_(module_& m, const char* name, const Extra&...)
      : type_(aten::special_object("class", {aten::of(name)})) {
    aten::class_of<T>() = type_;
    aten::add_value(m.object(), name, type_);
  }
  template <typename... A, typename... Extra>
  class_& def(init_of<A...>, const Extra&... extra) {
    const auto f = [](object self, A... a) { hold(self, std::make_shared<T>(std::forward<A>(a)...)); };
    return add("method", "__init__", aten::bind("__init__", f), extra...);
  }
  template <typename F, typename... Extra>
  class_& def(factory<F> made, const Extra&... extra) {
    return add("method", "__init__", aten::bind("__init__", maker(made.make, &F::operator())), extra...);
  }
  template <typename F, typename... Extra>
  class_& def(const char* name, const F& f, const Extra&... extra) {
    return add("method", name, aten::bind(name, as_function(f)), extra...);
  }
  template <typename F, typename... Extra>
  class_& def_static(const char* name, const F& f, const Extra&... extra) {
    aten::Bound bound = aten::bind(name, f);
    (describe(bound, extra), ...);
    return put("static", name, aten::closure(std::move(bound))), *this;
  }
  template <typename F, typename... Extra>
  class_& def_property_readonly(const char* name, const F& get, const Extra&...) {
    return add("getter", name, aten::bind(name, as_function(get)));
  }
  template <typename F, typename G, typename... Extra>
  class_& def_property(const char* name, const F& get, const G& set, const Extra&...) {
    add("getter", name, aten::bind(name, as_function(get)));
    return add("setter", name, aten::bind(name, as_function(set)));
  }
  template <typename C, typename M, typename... Extra>
  class_& def_readonly(const char* name, M C::* member, const Extra&...) {
    return def_property_readonly(name, [member](const T& self) -> M { return self.*member; });
  }
  template <typename C, typename M, typename... Extra>
  class_& def_readwrite(const char* name, M C::* member, const Extra&...) {
    return def_property(
        name, [member](const T& self) -> M { return self.*member; },
        [member](T& self, M value) { self.*member = std::move(value); });
  }
};

}  // namespace pybind11

namespace aten {

template <typename T>
struct As<std::shared_ptr<T>> {
  static Value of(const std::shared_ptr<T>& p) {
    if (!p) return Value();
    if (class_of<T>().tag == Value::kNone)
      throw c10::Error(c10::str("there is no py::class_ for the C++ type ", typeid(T).name()),
                       c10::kTypeError);
    return special_object("instance", {class_of<T>(), capsule_of(p, typeid(T).name())});
  }
  static std::shared_ptr<T> to(const Value& v) {
    auto found = std::static_pointer_cast<T>(held_by(v, typeid(T).name()));
    if (!found) {
      const bool known = class_of<T>().tag != Value::kNone;
      wrong_type(known ? call<std::string>("class_name", class_of<T>()).c_str() : typeid(T).name(), v);
    }
    return found;
  }
};
// A class without another conversion.
template <typename T, typename>
struct As {
  static constexpr bool kIsClass = true;
  static Value of(const T& v) { return As<std::shared_ptr<T>>::of(std::make_shared<T>(v)); }
  static T to(const Value& v) { return *As<std::shared_ptr<T>>::to(v); }
};

}  // namespace aten
