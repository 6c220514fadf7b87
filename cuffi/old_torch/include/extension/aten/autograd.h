// torch::autograd::Function of C++: a Function of Python runs it (Node in aten_service.py).
#pragma once

#include "bind.h"

namespace c10 {

template <typename T>
struct List : std::vector<T> {
  using std::vector<T>::vector;
  List(std::vector<T> list) : std::vector<T>(std::move(list)) {}
  std::vector<T> vec() const { return *this; }
};

// Any value, as AutogradContext's saved_data has it.
class IValue {
  aten::Value value_;

 public:
  IValue() {}
  template <typename T, typename = std::enable_if_t<!std::is_same<std::decay_t<T>, IValue>::value>>
  IValue(const T& value) : value_(aten::of(value)) {}
  const aten::Value& value() const { return value_; }
  template <typename T>
  T to() const {
    return aten::to<T>(value_);
  }
  bool isNone() const { return value_.tag == aten::Value::kNone; }
  bool isTensor() const { return value_.tag == aten::Value::kTensor; }
  int64_t toInt() const { return to<int64_t>(); }
  double toDouble() const { return to<double>(); }
  bool toBool() const { return to<bool>(); }
  at::Tensor toTensor() const { return to<at::Tensor>(); }
  std::string toStringRef() const { return to<std::string>(); }
  Scalar toScalar() const { return to<Scalar>(); }
  List<int64_t> toIntList() const { return to<std::vector<int64_t>>(); }
  std::vector<int64_t> toIntVector() const { return to<std::vector<int64_t>>(); }
  List<double> toDoubleList() const { return to<std::vector<double>>(); }
  std::vector<double> toDoubleVector() const { return to<std::vector<double>>(); }
  List<at::Tensor> toTensorList() const { return to<std::vector<at::Tensor>>(); }
  std::vector<at::Tensor> toTensorVector() const { return to<std::vector<at::Tensor>>(); }
};

}  // namespace c10

namespace torch {
using IValue = c10::IValue;
namespace autograd {

inline bool any_variable_requires_grad(const variable_list& all) {
  return std::any_of(all.begin(), all.end(),
                     [](const at::Tensor& x) { return x.defined() && x.requires_grad(); });
}

// What forward keeps for backward.
class AutogradContext {
  friend struct Call;
  std::vector<at::Tensor> saved_, dirty_, not_differentiable_;
  std::vector<bool> needed_;
  bool materialize_ = true;

 public:
  std::unordered_map<std::string, c10::IValue> saved_data;

  void save_for_backward(variable_list tensors) { saved_ = std::move(tensors); }
  variable_list get_saved_variables() const { return saved_; }
  void mark_dirty(const variable_list& tensors) { dirty_ = tensors; }
  void mark_non_differentiable(const variable_list& tensors) { not_differentiable_ = tensors; }
  void set_materialize_grads(bool on) { materialize_ = on; }
  bool needs_input_grad(size_t i) const { return i < needed_.size() && needed_[i]; }
};

// Tensors, some of which may be None.
using Undefined = std::vector<std::optional<at::Tensor>>;
inline variable_list defined(const Undefined& all) {
  variable_list found;
  for (const auto& one : all) found.push_back(one.value_or(at::Tensor()));
  return found;
}

// One call: which of forward's arguments are tensors, and the functions that Python calls.
struct Call {
  std::shared_ptr<AutogradContext> context = std::make_shared<AutogradContext>();
  std::vector<at::Tensor> tensors;
  std::vector<size_t> places;  // of the tensors among all arguments
  size_t arguments = 0;

  void take(const at::Tensor& t) {
    tensors.push_back(t), places.push_back(arguments);
    ++arguments;
  }
  void take(const std::optional<at::Tensor>& t) { t ? take(*t) : void(++arguments); }
  void take(const variable_list& all) {
    for (const at::Tensor& t : all) take(t);
  }
  template <typename T>
  void take(const T&) {
    ++arguments;
  }
  void set_needed(const std::vector<bool>& needed) {
    context->needed_.assign(arguments, false);
    for (size_t i = 0; i < places.size(); ++i) context->needed_[places[i]] = needed[i];
  }
  // What Node.forward returns to torch and keeps.
  aten::Value kept(const variable_list& outputs) {
    AutogradContext& c = *context;
    aten::Value made(aten::Value::kTuple, {aten::of(outputs), aten::of(c.saved_), aten::of(c.dirty_),
                                           aten::of(c.not_differentiable_), aten::of(c.materialize_)});
    c.saved_.clear();  // torch keeps them
    return made;
  }
  // The gradients of the tensors among those of all arguments.
  variable_list of_tensors(const variable_list& gradients) const {
    variable_list found;
    for (size_t place : places) found.push_back(place < gradients.size() ? gradients[place] : at::Tensor());
    return found;
  }
  template <typename T>
  aten::Value backward() const {
    const Call call(*this);
    return aten::closure(aten::bind("backward", [call](Undefined saved, Undefined given) {
      call.context->saved_ = defined(saved);
      const variable_list found = T::backward(call.context.get(), defined(given));
      call.context->saved_.clear();
      return call.of_tensors(found);
    }));
  }
};

inline variable_list listed(const at::Tensor& t) { return {t}; }
inline variable_list listed(const variable_list& all) { return all; }

template <typename T>
struct Function {
  template <typename... A>
  static auto apply(A&&... given) {
    using Result = decltype(T::forward(static_cast<AutogradContext*>(nullptr), given...));
    Call call;
    (call.take(given), ...);
    const auto forward = [&](std::vector<bool> needed) {
      call.set_needed(needed);
      return call.kept(listed(T::forward(call.context.get(), given...)));
    };
    const aten::Value outputs = aten::special("autograd", {aten::closure(aten::bind("forward", forward)),
                                                           call.backward<T>(), aten::of(call.tensors)});
    if constexpr (std::is_same<Result, at::Tensor>::value)
      return aten::to<variable_list>(outputs).at(0);
    else
      return aten::to<variable_list>(outputs);
  }
};

}  // namespace autograd
}  // namespace torch
