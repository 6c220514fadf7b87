// A Short: the short way of a call of an operator.
//
// It is a builtin function, which finds the plan for its arguments by their properties, and runs it. If in doubt, it
// calls the careful way in Python with these arguments.
#pragma once

#include <ctype.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "call_table.h"

namespace caffe {

// The kind of a parameter: anything else, a tensor, a tensor or None. Python passes T and O for tensors that autocast
// leaves in float32.
enum Letter : char { kOther = 'p', kRequired = 't', kOptional = 'o' };
enum Casts : int { kPromote, kToLower, kToFloat, kToNothing };

// The Python objects that a Short holds. A call is clear if its tensors are plain, no torch mode is active and it needs
// no gradient.
enum Role {
  // A tuple: the defaults of the last parameters.
  kDefaults,
  // Functions. They run any call; run a clear call; run a clear call and plan it; cast arguments as autocast does.
  kCareful,
  kPlain,
  kPlanning,
  kCast,
  // The autograd node: its apply; what it saves for backward (a function that saves, the positions of arguments, or
  // None); its backward in Python; the Short that computes the gradients, or None.
  kApply,
  kSave,
  kBackward,
  kBy,
  // What runs a call in torch.ops that is not clear: the kernel in Python; torch's kernel of the key Autograd; torch's
  // own builtin of the operator.
  kRegistered,
  kAutograd,
  kOp,
  kRoles
};

constexpr const char* kRoleNames[] = {"defaults", "careful",  "plain", "planning",   "cast",     "apply",
                                      "save",     "backward", "by",    "registered", "autograd", "op"};

struct Short {
  std::vector<char> parameters;
  std::vector<bool> stays_float;  // tensors that autocast leaves in float32
  long long casts;
  PyObject* python[kRoles];
  Table table;

  // Operator in cuffi/runtime/operator.py passes the values. If one is wrong, there is an exception.
  explicit Short(const Named& values) : casts(values.number("casts")) {
    for (PyObject*& one : python) Py_INCREF(one = Py_None);
    PyObject* const letters = values.object("parameters");
    Py_ssize_t count = 0;
    const char* letter = letters ? PyUnicode_AsUTF8AndSize(letters, &count) : nullptr;
    for (; letter && *letter; ++letter) {
      stays_float.push_back(*letter == 'T' || *letter == 'O');
      parameters.push_back(static_cast<char>(stays_float.back() ? tolower(*letter) : *letter));
    }
    if (!take(kDefaults, kApply, values)) return;
    if (count > Py_ssize_t{kMostArguments} || PyTuple_Size(python[kDefaults]) > count)
      PyErr_Format(PyExc_ValueError, "at most %d parameters", static_cast<int>(kMostArguments));
  }

  // Take the objects of these roles. False if one is missing.
  bool take(int first, int end, const Named& values) {
    for (int role = first; role < end; ++role) {
      PyObject* const given = values.object(kRoleNames[role]);
      if (!given) return false;
      Py_INCREF(given);
      Py_DECREF(std::exchange(python[role], given));
    }
    return true;
  }
  int traverse(visitproc visit, void* arg) const {
    for (PyObject* one : python) Py_VISIT(one);
    return table.traverse(visit, arg);
  }
  void clear() {
    for (PyObject*& one : python) Py_CLEAR(one);
    table.clear();
  }

  Py_ssize_t count() const { return static_cast<Py_ssize_t>(parameters.size()); }
  // The default of a parameter, by its index.
  PyObject* default_of(Py_ssize_t i) const {
    return PyTuple_GetItem(python[kDefaults], i - count() + PyTuple_Size(python[kDefaults]));
  }
  // Are these arguments enough, with the defaults of the last parameters?
  bool fits(Py_ssize_t given) const {
    return given <= count() && count() - given <= PyTuple_Size(python[kDefaults]);
  }
};

inline PyObject* call(PyObject* function, PyObject* const* arguments, Py_ssize_t count) {
  const Owned given(tuple_of(arguments, count));
  return given ? PyObject_Call(function, given.get(), nullptr) : nullptr;
}

// Read the properties of a call. False if a tensor is not plain and dense, or a parameter cannot be remembered.
inline bool describe(const Short& s, PyObject* const* arguments, Signature* signature) {
  for (size_t i = 0; i < s.parameters.size(); ++i) {
    PyObject* const argument = arguments[i];
    const char kind = s.parameters[i];
    if (kind == kOther) {
      if (!signature->add_other(argument)) return false;
    } else if (argument == Py_None && kind == kOptional) {
      signature->add_none();
    } else if (!torch.is_plain(argument) || !signature->add_tensor(argument, i)) {
      return false;
    }
  }
  return true;
}

// Have all tensors memory? Those of functionalization have none.
inline bool has_memory(const Short& s, PyObject* const* arguments, const Signature& signature) {
  for (size_t i = 0; i < s.parameters.size(); ++i) {
    if (s.parameters[i] == kOther || arguments[i] == Py_None || signature.tensors[i].data) continue;
    if (has_elements(signature.tensors[i]) || Torch::ask(torch.transforms)) return false;
  }
  return true;
}

// Is a tensor passed twice? Then a plan cannot tell from which argument an address comes.
inline bool has_twins(const Short& s, PyObject* const* arguments) {
  for (size_t i = 0; i < s.parameters.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (s.parameters[i] != kOther && arguments[i] != Py_None && arguments[i] == arguments[j]) return true;
  return false;
}

// Run a clear call by its plan. If it has none, Python runs it, and plans it the second time.
inline PyObject* run(Short& s, PyObject* const* arguments, const Signature& signature,
                     uint32_t unwanted = 0) {
  const Py_ssize_t count = s.count();
  const uint64_t hash = signature.hash();
  Entry* entry = s.table.find(hash, signature);
  if (entry && entry->plan) {
    const Owned plan = Owned::borrowed(entry->plan);  // another thread may clear the table
    PyObject* result = self_of<Plan>(plan.get())->run(arguments, signature.tensors, unwanted);
    return result || PyErr_Occurred() ? result : call(s.python[kPlain], arguments, count);
  }
  if (!entry) {
    s.table.add(hash, signature);
    return call(s.python[kPlain], arguments, count);
  }
  if (entry->planned || has_twins(s, arguments)) return call(s.python[kPlain], arguments, count);
  entry->planned = true;
  PyObject* result = call(s.python[kPlanning], arguments, count);
  if (result == nullptr) {  // this call failed, and the next one may not
    const Aside error;
    entry = s.table.find(hash, signature);
    if (entry) entry->planned = false;
  }
  return result;
}

inline bool wants_gradient(const Short& s, PyObject* const* arguments) {
  if (!Torch::ask(torch.grad_enabled)) return false;
  for (size_t i = 0; i < s.parameters.size(); ++i)
    if (s.parameters[i] != kOther && arguments[i] != Py_None && torch.wants_gradient(arguments[i]))
      return true;
  return false;
}

// The dtype to which autocast casts the tensors, a new reference. Null: off for their device, or an error.
inline PyObject* autocast_target(const Short& s, const Signature& signature) {
  if (s.casts == kPromote || s.casts == kToNothing || !Torch::ask(torch.autocasting)) return nullptr;
  PyObject* target = torch.autocast_dtype(signature.device_type);
  if (target && s.casts == kToFloat) {
    Py_DECREF(target);
    Py_INCREF(target = torch.float32);
  }
  return target;
}

// Does autocast cast this tensor?
inline bool is_cast(const Short& s, const Signature& signature, PyObject* const* arguments, Py_ssize_t i,
                    long target) {
  if (s.parameters[i] == kOther || arguments[i] == Py_None) return false;
  const DLDataType& type = signature.tensors[i].dtype;
  const int64_t dtype = type.code << 8 | type.bits;
  return is_floating(type) && dtype != kDouble && dtype != target && !(s.stays_float[i] && dtype == kFloat);
}

inline PyObject* call_operator(Short& s, PyObject* const* arguments, bool may_cast, uint32_t unwanted = 0);

// True if autocast casts arguments. Then `result` is the result of the call with the cast arguments.
inline bool cast_and_call(Short& s, PyObject* const* arguments, const Signature& signature,
                          PyObject** result) {
  const Py_ssize_t count = s.count();
  PyObject* cast[kMostArguments] = {};
  if (s.casts == kPromote && signature.mixed()) {  // Python promotes the dtypes
    const Owned given(call(s.python[kCast], arguments, count));
    for (Py_ssize_t i = 0; given && i < count; ++i) cast[i] = PyTuple_GetItem(given.get(), i);
    *result = given ? call_operator(s, cast, false) : nullptr;
    return true;
  }
  const Owned target(autocast_target(s, signature));
  if (!target) {
    *result = nullptr;
    const bool in_doubt = PyErr_Occurred() != nullptr;
    PyErr_Clear();
    return in_doubt;
  }
  const long code = torch.code_of(target.get());
  bool any = false, failed = false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (is_cast(s, signature, arguments, i, code)) {
      cast[i] = PyObject_CallFunctionObjArgs(torch.to, arguments[i], target.get(), nullptr);
      failed |= cast[i] == nullptr;
      any = true;
    } else {
      Py_INCREF(cast[i] = arguments[i]);
    }
  }
  *result = any && !failed ? call_operator(s, cast, false) : nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) Py_XDECREF(cast[i]);
  return any;
}

// A call on the way to the forward of its autograd node, by way of torch. What was asked about it is still true there.
struct OnItsWay {
  const Short* s;
  PyObject* const* arguments;
  const Signature* signature;

  bool is(const Short& other, PyObject* const* given) const {
    return s == &other && std::equal(given, given + s->count(), arguments);
  }
};
inline thread_local const OnItsWay* on_its_way = nullptr;

inline PyObject* call_with_node(const Short& s, PyObject* const* arguments, const Signature& signature) {
  const OnItsWay here{&s, arguments, &signature};
  on_its_way = &here;
  PyObject* const result = call(s.python[kApply], arguments, s.count());
  on_its_way = nullptr;
  return result;
}

// Run a call with an argument for each parameter. Null without an error: in doubt.
inline PyObject* call_operator(Short& s, PyObject* const* arguments, bool may_cast, uint32_t unwanted) {
  Signature signature;
  if (torch.is_watching() || !describe(s, arguments, &signature) || !has_memory(s, arguments, signature))
    return nullptr;
  if (may_cast) {
    PyObject* result;
    if (cast_and_call(s, arguments, signature, &result)) return result;
  }
  if (wants_gradient(s, arguments)) return call_with_node(s, arguments, signature);
  return run(s, arguments, signature, unwanted);
}

inline PyObject* short_call(PyObject* object, PyObject* given, PyObject* named) {
  Short& s = *self_of<Short>(object);
  const Py_ssize_t count = PyTuple_Size(given);
  if ((named == nullptr || PyDict_Size(named) == 0) && s.fits(count)) {
    PyObject* arguments[kMostArguments];
    for (Py_ssize_t i = 0; i < s.count(); ++i)
      arguments[i] = i < count ? PyTuple_GetItem(given, i) : s.default_of(i);
    PyObject* result = call_operator(s, arguments, true);
    if (result || PyErr_Occurred()) return result;
  }
  return PyObject_Call(s.python[kCareful], given, named);
}

// Arguments as torch.ops passes them: without the last defaults, and with lists where Python has tuples.
struct Given {
  PyObject* arguments[kMostArguments];
  std::vector<Owned> tuples;
  Given(const Short& s, PyObject* tuple, Py_ssize_t first, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < s.count(); ++i) {
      arguments[i] = i < count ? PyTuple_GetItem(tuple, first + i) : s.default_of(i);
      if (s.parameters[i] != kOther || !PyList_Check(arguments[i])) continue;
      if (tuples.empty()) tuples.reserve(s.count());
      tuples.emplace_back(PyList_AsTuple(arguments[i]));
      arguments[i] = tuples.back().get();
    }
  }
};

// A call in torch.ops, whose arguments begin at `first`. Autocast casts nothing there. If it is clear, it is run here;
// else by `other`. may_want_gradient: it is above autograd, so that a call that needs a gradient is not clear.
inline PyObject* call_of_torch(PyObject* object, PyObject* given, PyObject* named, Py_ssize_t first,
                               bool may_want_gradient, Role other) {
  Short& s = *self_of<Short>(object);
  const Py_ssize_t count = PyTuple_Size(given) - first;
  if ((named == nullptr || PyDict_Size(named) == 0) && count >= 0 && s.fits(count)) {
    const Given all(s, given, first, count);
    Signature signature;
    // Modes of Python functions and profilers see a call of the operator itself.
    const bool is_seen = other == kOp && (Torch::ask(torch.function_modes) || Torch::ask(torch.profiling) ||
                                          torch.is_before_dispatch());
    if (!is_seen && !torch.is_watching() && describe(s, all.arguments, &signature) &&
        has_memory(s, all.arguments, signature) && !(may_want_gradient && wants_gradient(s, all.arguments))) {
      PyObject* result = run(s, all.arguments, signature);
      if (result || PyErr_Occurred()) return result;
    }
  }
  return PyObject_Call(s.python[other], given, named);
}
// The kernel of a device's key.
inline PyObject* short_kernel(PyObject* object, PyObject* given, PyObject* named) {
  return call_of_torch(object, given, named, 0, false, kRegistered);
}
// The kernel of the key Autograd: (keyset, *arguments).
inline PyObject* short_autograd(PyObject* object, PyObject* given, PyObject* named) {
  return call_of_torch(object, given, named, 1, true, kAutograd);
}
// What torch's OpOverload calls: compiled code calls that.
inline PyObject* short_op(PyObject* object, PyObject* given, PyObject* named) {
  return call_of_torch(object, given, named, 0, true, kOp);
}

// Save what backward needs in ctx. False on error.
inline bool keep(const Short& s, PyObject* ctx, PyObject* const* arguments, PyObject* result) {
  PyObject* const save = s.python[kSave];
  if (save == Py_None) return true;
  if (!PyTuple_Check(save)) {
    const Owned inputs(tuple_of(arguments, s.count()));
    return inputs && Owned(PyObject_CallFunctionObjArgs(save, ctx, inputs.get(), result, nullptr));
  }
  PyObject *tensors[kMostArguments], *given[kMostArguments];
  const Py_ssize_t tensor_count = PyTuple_Size(save);
  for (Py_ssize_t i = 0; i < tensor_count; ++i)
    tensors[i] = arguments[PyLong_AsLong(PyTuple_GetItem(save, i))];
  for (Py_ssize_t i = 0; i < s.count(); ++i)
    given[i] = s.parameters[i] == kOther || arguments[i] == Py_None ? arguments[i] : Py_True;
  // Like ctx.save_for_backward. `given` has the parameters, and True in the place of each tensor.
  const Owned saved(tuple_of(tensors, tensor_count)), kept(tuple_of(given, s.count()));
  const Names& names = Names::get();
  return saved && kept && PyObject_SetAttr(ctx, names.to_save, saved.get()) == 0 &&
         PyObject_SetAttr(ctx, names.given, kept.get()) == 0;
}

// Call `by`, which computes a gradient for each tensor of s. saved: the saved tensors. given: as in keep. wanted: for
// each argument whether its gradient is wanted. Returns a tuple of the arguments' gradients.
inline PyObject* differentiate_by(const Short& s, Short& by, PyObject* const* top_diffs, Py_ssize_t tops,
                                  PyObject* saved, PyObject* given, PyObject* wanted) {
  PyObject *arguments[kMostArguments], *wishes[kMostArguments];
  Py_ssize_t count = 0, tensors = 0;
  const auto pass = [&](PyObject* one) {
    if (count < Py_ssize_t{kMostArguments}) arguments[count] = one;
    ++count;
  };
  uint32_t unwanted = 0;
  for (Py_ssize_t i = 0; i < tops; ++i) pass(top_diffs[i]);
  for (Py_ssize_t i = 0; i < PyTuple_Size(saved); ++i) pass(PyTuple_GetItem(saved, i));
  for (Py_ssize_t i = 0; i < s.count(); ++i) {
    if (s.parameters[i] == kOther) {
      pass(PyTuple_GetItem(given, i));
    } else {
      if (PyTuple_GetItem(wanted, i) != Py_True) unwanted |= uint32_t{1} << tensors;
      wishes[tensors++] = PyTuple_GetItem(wanted, i);
    }
  }
  for (Py_ssize_t i = 0; i < tensors; ++i) pass(wishes[i]);
  if (PyErr_Occurred()) return nullptr;
  if (count != by.count())
    return PyErr_SetString(PyExc_TypeError, "the operator of the gradient takes other arguments"), nullptr;
  PyObject* gave = call_operator(by, arguments, true, unwanted);
  if (gave == nullptr && !PyErr_Occurred()) gave = call(by.python[kCareful], arguments, count);
  const Owned found(gave);
  if (!found) return nullptr;
  PyObject* diffs[kMostArguments];
  Py_ssize_t tensor = 0;
  for (Py_ssize_t i = 0; i < s.count(); ++i) {
    diffs[i] = Py_None;
    if (s.parameters[i] == kOther) continue;
    if (wishes[tensor] == Py_True) diffs[i] = PyTuple_Check(gave) ? PyTuple_GetItem(gave, tensor) : gave;
    ++tensor;
  }
  return PyErr_Occurred() ? nullptr : tuple_of(diffs, s.count());
}

// The forward of the autograd node: (ctx, *arguments).
inline PyObject* short_forward(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  Short& s = *self_of<Short>(object);
  if (count != s.count() + 1) {
    PyErr_SetString(PyExc_TypeError, "forward takes ctx and the operator's arguments");
    return nullptr;
  }
  PyObject* const* arguments = given + 1;
  const OnItsWay* const known = std::exchange(on_its_way, nullptr);
  Signature signature;
  PyObject* result;
  if (known && known->is(s, arguments))
    result = run(s, arguments, *known->signature);
  else if (!torch.is_watching() && describe(s, arguments, &signature))
    result = run(s, arguments, signature);
  else
    result = call(s.python[kPlain], arguments, s.count());
  if (result && !keep(s, given[0], arguments, result)) Py_CLEAR(result);
  return result;
}

// The backward of the autograd node: (ctx, *top_diffs). Another operator's results are the gradients.
inline PyObject* short_backward(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  Short& s = *self_of<Short>(object);
  if (count < 1) {
    PyErr_SetString(PyExc_TypeError, "backward takes ctx and the gradients of the results");
    return nullptr;
  }
  if (s.python[kBy] == Py_None || Torch::ask(torch.grad_enabled))
    return call(s.python[kBackward], given, count);
  Short& by = *self_of<Short>(s.python[kBy]);
  const Names& names = Names::get();
  // One after the other: a later one would clear the error of an earlier one.
  const Owned saved(PyObject_GetAttr(given[0], names.saved_tensors));
  const Owned kept(saved ? PyObject_GetAttr(given[0], names.given) : nullptr);
  const Owned wanted(kept ? PyObject_GetAttr(given[0], names.needs_input_grad) : nullptr);
  return wanted ? differentiate_by(s, by, given + 1, count - 1, saved.get(), kept.get(), wanted.get())
                : nullptr;
}

}  // namespace caffe
