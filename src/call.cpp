// The short way of a call, for every layer: a Python extension of its own (layers/_runtime/_call.abi3.so).
// This file has the calls of operators and C functions, call_caffe.h those of Caffe layers.
//
// An operator's function allocates and launches. Python records a call of it as a Plan
// (layers/_runtime/recording.py). A `Short` is a builtin function that finds the plan for its arguments by their
// properties, and runs it. If in doubt, it calls the careful way in Python with these arguments. The extension uses
// neither torch's C++ nor a layer's library: it reads tensors through DLPack's C exchange API (from torch 2.10 on),
// and calls C functions by their addresses.
#include <string.h>

#include <algorithm>

#include "call_caffe.h"
#include "call_table.h"

namespace caffe {

// ------------------------------------------------------------------------------------------------ plans

struct PlanObject {
  PyObject_HEAD Plan* plan;
};
PyTypeObject* plan_type;

// -------------------------------------------------------------------------------------------- the call

// The kind of a parameter: anything else, a tensor, a tensor or None. Python passes T and O for tensors that autocast
// leaves in float32.
enum Parameter : char { kOther = 'p', kTensor = 't', kOptional = 'o' };
enum Casts : int { kPromote, kToLower, kToFloat, kToNothing };

// The Python objects that a Short holds. A call is clear if its tensors are plain, no torch mode is active and it needs
// no gradient.
enum Role {
  // A tuple: the defaults of the last parameters.
  kDefaults,
  // Functions. They run any call; run a clear call; run a clear call and record it; cast arguments as autocast does.
  kCareful,
  kPlain,
  kRecord,
  kCast,
  // The autograd node: its apply; what it saves for backward (a function that saves, the positions of arguments, or
  // None); its backward in Python; the Short that computes the gradients, or None.
  kApply,
  kSave,
  kBackward,
  kBy,
  kRoles
};

struct Short {
  std::vector<char> parameters;
  std::vector<bool> stays_float;  // tensors that autocast leaves in float32
  bool launches_only;             // no operator, so gradients and autocast do not matter
  int casts;
  PyObject* python[kRoles] = {};
  Table table;
};
struct ShortObject {
  PyObject_HEAD Short* self;
};

PyObject* call(PyObject* function, PyObject* const* arguments, size_t count) {
  const Owned given(tuple_of(arguments, count));
  return given ? PyObject_Call(function, given.get(), nullptr) : nullptr;
}

// Read the properties of a call. False if a tensor is not plain and dense, or a parameter cannot be remembered.
bool describe(const Short& s, PyObject* const* arguments, Signature* signature) {
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

// Is a tensor passed twice? Then a recording cannot tell from which argument an address comes.
bool has_twins(const Short& s, PyObject* const* arguments) {
  for (size_t i = 0; i < s.parameters.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (s.parameters[i] != kOther && arguments[i] != Py_None && arguments[i] == arguments[j]) return true;
  return false;
}

// Run a clear call by its plan. If it has none, Python runs it, and records it the second time.
PyObject* run(Short& s, PyObject* const* arguments, const Signature& signature) {
  const size_t count = s.parameters.size();
  const uint64_t hash = signature.hash();
  Entry* entry = s.table.find(hash, signature);
  if (entry && entry->plan) {
    const Owned plan = Owned::borrowed(entry->plan);  // another thread may clear the table
    PyObject* result = reinterpret_cast<PlanObject*>(plan.get())->plan->run(arguments, signature.tensors);
    return result || PyErr_Occurred() ? result : call(s.python[kPlain], arguments, count);
  }
  if (!entry) {
    s.table.add(hash, signature);
    return call(s.python[kPlain], arguments, count);
  }
  if (entry->recorded || has_twins(s, arguments)) return call(s.python[kPlain], arguments, count);
  entry->recorded = true;
  PyObject* result = call(s.python[kRecord], arguments, count);
  if (result == nullptr) {  // this call failed, and the next one may not
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    entry = s.table.find(hash, signature);
    if (entry) entry->recorded = false;
    PyErr_Restore(type, value, trace);
  }
  return result;
}

bool in_doubt(const Short& s) {
  if (Torch::ask(torch.modes)) return true;
  return !s.launches_only && (Torch::ask(torch.tracing) || torch.has_tangents());
}

bool wants_gradient(const Short& s, PyObject* const* arguments) {
  if (s.launches_only || !Torch::ask(torch.grad_enabled)) return false;
  for (size_t i = 0; i < s.parameters.size(); ++i)
    if (s.parameters[i] != kOther && arguments[i] != Py_None && torch.wants_gradient(arguments[i]))
      return true;
  return false;
}

// The dtype to which autocast casts the tensors, a new reference. Null: off for their device, or an error.
PyObject* autocast_target(const Short& s, const Signature& signature) {
  if (s.launches_only || s.casts == kPromote || s.casts == kToNothing || !Torch::ask(torch.autocasting))
    return nullptr;
  PyObject* target = torch.autocast_dtype(signature.device_type);
  if (target && s.casts == kToFloat) {
    Py_DECREF(target);
    Py_INCREF(target = torch.float32);
  }
  return target;
}

// Does autocast cast this tensor?
bool is_cast(const Short& s, const Signature& signature, PyObject* const* arguments, size_t i, long target) {
  if (s.parameters[i] == kOther || arguments[i] == Py_None) return false;
  const DLDataType& type = signature.tensors[i].dtype;
  const int64_t dtype = type.code << 8 | type.bits;
  return is_floating(type) && dtype != kDouble && dtype != target && !(s.stays_float[i] && dtype == kFloat);
}

PyObject* call_operator(Short& s, PyObject* const* arguments, bool may_cast);

// True if autocast casts arguments. Then `result` is the result of the call with the cast arguments.
bool cast_and_call(Short& s, PyObject* const* arguments, const Signature& signature, PyObject** result) {
  const size_t count = s.parameters.size();
  PyObject* cast[kMostArguments] = {};
  if (s.casts == kPromote && !s.launches_only && signature.mixed()) {  // Python promotes the dtypes
    const Owned given(call(s.python[kCast], arguments, count));
    for (size_t i = 0; given && i < count; ++i)
      cast[i] = PyTuple_GetItem(given.get(), static_cast<Py_ssize_t>(i));
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
  for (size_t i = 0; i < count; ++i) {
    if (is_cast(s, signature, arguments, i, code)) {
      cast[i] = PyObject_CallFunctionObjArgs(torch.to, arguments[i], target.get(), nullptr);
      failed |= cast[i] == nullptr;
      any = true;
    } else {
      Py_INCREF(cast[i] = arguments[i]);
    }
  }
  *result = any && !failed ? call_operator(s, cast, false) : nullptr;
  for (size_t i = 0; i < count; ++i) Py_XDECREF(cast[i]);
  return any;
}

// Run a call with an argument for each parameter. Null without an error: in doubt.
PyObject* call_operator(Short& s, PyObject* const* arguments, bool may_cast) {
  Signature signature;
  if (in_doubt(s) || !describe(s, arguments, &signature)) return nullptr;
  if (may_cast) {
    PyObject* result;
    if (cast_and_call(s, arguments, signature, &result)) return result;
  }
  if (wants_gradient(s, arguments)) return call(s.python[kApply], arguments, s.parameters.size());
  return run(s, arguments, signature);
}

PyObject* short_call(PyObject* object, PyObject* given, PyObject* named) {
  Short& s = *reinterpret_cast<ShortObject*>(object)->self;
  const size_t wanted = s.parameters.size(), count = static_cast<size_t>(PyTuple_Size(given));
  const size_t defaults = static_cast<size_t>(PyTuple_Size(s.python[kDefaults]));
  if ((named == nullptr || PyDict_Size(named) == 0) && count <= wanted && count + defaults >= wanted) {
    PyObject* arguments[kMostArguments];
    for (size_t i = 0; i < wanted; ++i)
      arguments[i] =
          i < count ? PyTuple_GetItem(given, static_cast<Py_ssize_t>(i))
                    : PyTuple_GetItem(s.python[kDefaults], static_cast<Py_ssize_t>(i + defaults - wanted));
    PyObject* result = call_operator(s, arguments, true);
    if (result || PyErr_Occurred()) return result;
  }
  return PyObject_Call(s.python[kCareful], given, named);
}

// Are so many arguments enough, with the defaults of the last parameters?
bool fits(const Short& s, Py_ssize_t count) {
  const Py_ssize_t wanted = static_cast<Py_ssize_t>(s.parameters.size());
  return count <= wanted && wanted - count <= PyTuple_Size(s.python[kDefaults]);
}

// The arguments from torch's dispatcher, which leaves out defaults and passes lists for tuples.
class Dispatched {
 public:
  Dispatched(const Short& s, PyObject* const* given, Py_ssize_t count) {
    const Py_ssize_t wanted = static_cast<Py_ssize_t>(s.parameters.size());
    const Py_ssize_t defaults = PyTuple_Size(s.python[kDefaults]);
    if (!fits(s, count)) {
      PyErr_Format(PyExc_TypeError, "the operator takes %zd arguments, %zd came", wanted, count);
      return;
    }
    good_ = true;
    for (; count_ < wanted; ++count_) {
      PyObject* const one =
          count_ < count ? given[count_] : PyTuple_GetItem(s.python[kDefaults], defaults - wanted + count_);
      if (!PyList_Check(one)) {
        Py_INCREF(items[count_] = one);
      } else if (!(items[count_] = PyList_AsTuple(one))) {
        good_ = false;
        return;
      }
    }
  }
  ~Dispatched() {
    while (count_ > 0) Py_DECREF(items[--count_]);
  }
  explicit operator bool() const { return good_; }

  PyObject* items[kMostArguments];

 private:
  Py_ssize_t count_ = 0;
  bool good_ = false;
};

// The implementation for torch.ops, after autograd and autocast.
PyObject* short_registered(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  Short& s = *reinterpret_cast<ShortObject*>(object)->self;
  const Dispatched arguments(s, given, count);
  Signature signature;
  if (!arguments) return nullptr;
  if (in_doubt(s) || !describe(s, arguments.items, &signature))
    return call(s.python[kPlain], arguments.items, s.parameters.size());
  return run(s, arguments.items, signature);
}

// (dispatcher, *arguments): a call by torch.ops, as compiled code makes it. torch's dispatcher runs the call if it is
// in doubt or needs a gradient.
PyObject* short_dispatched(PyObject* object, PyObject* given, PyObject* named) {
  Short& s = *reinterpret_cast<ShortObject*>(object)->self;
  PyObject* items[kMostArguments + 1];
  const Py_ssize_t count = PyTuple_Size(given);
  if (count < 1) return PyErr_SetString(PyExc_TypeError, "dispatched takes torch's function first"), nullptr;
  const bool plain = named == nullptr || PyDict_Size(named) == 0;
  if (plain && fits(s, count - 1)) {
    for (Py_ssize_t i = 1; i < count; ++i) items[i] = PyTuple_GetItem(given, i);
    const Dispatched arguments(s, items + 1, count - 1);
    Signature signature;
    if (!arguments) return nullptr;
    if (!in_doubt(s) && describe(s, arguments.items, &signature) && !wants_gradient(s, arguments.items))
      return run(s, arguments.items, signature);
  }
  const Owned rest(PyTuple_GetSlice(given, 1, count));
  return rest ? PyObject_Call(PyTuple_GetItem(given, 0), rest.get(), named) : nullptr;
}

// Save what backward needs in ctx. False on error.
bool keep(const Short& s, PyObject* ctx, PyObject* const* arguments, PyObject* result) {
  PyObject* const save = s.python[kSave];
  if (save == Py_None) return true;
  const size_t count = s.parameters.size();
  if (!PyTuple_Check(save)) {
    const Owned inputs(tuple_of(arguments, count));
    return inputs && Owned(PyObject_CallFunctionObjArgs(save, ctx, inputs.get(), result, nullptr));
  }
  PyObject *tensors[kMostArguments], *others[kMostArguments];
  const size_t tensor_count = static_cast<size_t>(PyTuple_Size(save));
  size_t other_count = 0;
  for (size_t i = 0; i < tensor_count; ++i)
    tensors[i] = arguments[PyLong_AsLong(PyTuple_GetItem(save, static_cast<Py_ssize_t>(i)))];
  for (size_t i = 0; i < count; ++i)
    if (s.parameters[i] == kOther) others[other_count++] = arguments[i];
  // As ctx.save_for_backward does it.
  const Owned saved(tuple_of(tensors, tensor_count)), parameters(tuple_of(others, other_count));
  return saved && parameters && PyObject_SetAttrString(ctx, "to_save", saved.get()) == 0 &&
         PyObject_SetAttrString(ctx, "parameters", parameters.get()) == 0;
}

// Call `by`, which computes a gradient for each tensor of s. held: the saved tensors, the parameters, and for each
// argument whether its gradient is wanted.
PyObject* differentiate_by(const Short& s, Short& by, PyObject* const* top_diffs, Py_ssize_t count,
                           PyObject* const* held) {
  PyObject* arguments[kMostArguments];
  size_t given = 0;
  const auto give = [&](PyObject* one) {
    if (given < kMostArguments) arguments[given] = one;
    ++given;
  };
  for (Py_ssize_t i = 0; i < count; ++i) give(top_diffs[i]);
  for (int part = 0; part < 2; ++part)
    for (Py_ssize_t i = 0; i < PyTuple_Size(held[part]); ++i) give(PyTuple_GetItem(held[part], i));
  for (size_t i = 0; i < s.parameters.size(); ++i)
    if (s.parameters[i] != kOther) give(PyTuple_GetItem(held[2], static_cast<Py_ssize_t>(i)));
  if (given != by.parameters.size())
    return PyErr_SetString(PyExc_TypeError, "the operator of the gradient takes other arguments"), nullptr;
  PyObject* gave = call_operator(by, arguments, true);
  if (gave == nullptr && !PyErr_Occurred()) gave = call(by.python[kCareful], arguments, given);
  const Owned found(gave);
  if (!found) return nullptr;
  PyObject* diffs[kMostArguments];
  Py_ssize_t next = 0;
  for (size_t i = 0; i < s.parameters.size(); ++i) {
    diffs[i] = Py_None;
    if (s.parameters[i] == kOther) continue;
    PyObject* const diff = PyTuple_Check(gave) ? PyTuple_GetItem(gave, next) : gave;
    if (PyTuple_GetItem(held[2], static_cast<Py_ssize_t>(i)) == Py_True) diffs[i] = diff;
    ++next;
  }
  return PyErr_Occurred() ? nullptr : tuple_of(diffs, s.parameters.size());
}

// The forward of the autograd node: (ctx, *arguments). call_operator has checked that the call is not in doubt.
PyObject* short_forward(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  Short& s = *reinterpret_cast<ShortObject*>(object)->self;
  const size_t wanted = s.parameters.size();
  if (static_cast<size_t>(count) != wanted + 1) {
    PyErr_SetString(PyExc_TypeError, "forward takes ctx and the operator's arguments");
    return nullptr;
  }
  PyObject* const* arguments = given + 1;
  Signature signature;
  PyObject* result = describe(s, arguments, &signature) ? run(s, arguments, signature)
                                                        : call(s.python[kPlain], arguments, wanted);
  if (result && !keep(s, given[0], arguments, result)) Py_CLEAR(result);
  return result;
}

// The backward of the autograd node: (ctx, *top_diffs). Another operator's results are the gradients.
PyObject* short_backward(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  Short& s = *reinterpret_cast<ShortObject*>(object)->self;
  if (count < 1) {
    PyErr_SetString(PyExc_TypeError, "backward takes ctx and the gradients of the results");
    return nullptr;
  }
  if (s.python[kBy] == Py_None || Torch::ask(torch.grad_enabled))
    return call(s.python[kBackward], given, static_cast<size_t>(count));
  Short& by = *reinterpret_cast<ShortObject*>(s.python[kBy])->self;
  // One after the other: a later one would clear the error of an earlier one.
  const Owned saved(PyObject_GetAttrString(given[0], "saved_tensors"));
  const Owned parameters(saved ? PyObject_GetAttrString(given[0], "parameters") : nullptr);
  const Owned wanted(parameters ? PyObject_GetAttrString(given[0], "needs_input_grad") : nullptr);
  PyObject* const held[] = {saved.get(), parameters.get(), wanted.get()};
  return wanted ? differentiate_by(s, by, given + 1, count - 1, held) : nullptr;
}

// add(arguments, plan): run calls with such arguments by this plan from now on.
PyObject* short_add(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  Short& s = *reinterpret_cast<ShortObject*>(object)->self;
  if (count != 2 || !PyTuple_Check(given[0]) || Py_TYPE(given[1]) != plan_type ||
      static_cast<size_t>(PyTuple_Size(given[0])) != s.parameters.size()) {
    PyErr_SetString(PyExc_TypeError, "add takes the arguments and a Plan");
    return nullptr;
  }
  PyObject* arguments[kMostArguments];
  for (size_t i = 0; i < s.parameters.size(); ++i)
    arguments[i] = PyTuple_GetItem(given[0], static_cast<Py_ssize_t>(i));
  Signature signature;
  if (describe(s, arguments, &signature)) {
    const uint64_t hash = signature.hash();
    Entry* entry = s.table.find(hash, signature);
    if (!entry) entry = s.table.add(hash, signature);
    Py_INCREF(given[1]);
    PyObject* old = entry->plan;
    entry->plan = given[1];
    entry->recorded = true;
    Py_XDECREF(old);
  }
  Py_RETURN_NONE;
}

// The number of plans.
Py_ssize_t short_length(PyObject* object) {
  return static_cast<Py_ssize_t>(reinterpret_cast<ShortObject*>(object)->self->table.size());
}

PyObject* short_plans(PyObject* object, PyObject*) {
  return PyLong_FromSize_t(reinterpret_cast<ShortObject*>(object)->self->table.plans());
}

PyObject* short_clear_plans(PyObject* object, PyObject*) {
  reinterpret_cast<ShortObject*>(object)->self->table.clear();
  Py_RETURN_NONE;
}

// ----------------------------------------------------------------------------------------- Python's types

Short*& self_of(ShortObject* object) { return object->self; }
Plan*& self_of(PlanObject* object) { return object->plan; }

int traverse_all(const Short& s, visitproc visit, void* arg) {
  for (PyObject* reference : s.python) Py_VISIT(reference);
  return s.table.traverse(visit, arg);
}
int traverse_all(const Plan& plan, visitproc visit, void* arg) { return plan.traverse(visit, arg); }

void forget(Short* s) {
  for (PyObject*& reference : s->python) Py_CLEAR(reference);
  s->table.clear();
}
void forget(Plan* plan) { plan->clear(); }

template <typename Object>
int traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  const auto* self = self_of(reinterpret_cast<Object*>(object));
  return self ? traverse_all(*self, visit, arg) : 0;
}

template <typename Object>
int clear(PyObject* object) {
  auto* self = self_of(reinterpret_cast<Object*>(object));
  if (self) forget(self);
  return 0;
}

template <typename Object>
void deallocate(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear<Object>(object);
  delete self_of(reinterpret_cast<Object*>(object));
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

// Short(parameters, defaults, launches_only, casts, careful, plain, record, cast)
PyObject* short_new(PyTypeObject* type, PyObject* given, PyObject*) {
  const char* parameters;
  int launches_only, casts;
  PyObject* python[kRoles];
  if (!PyArg_ParseTuple(given, "sO!iiOOOO", &parameters, &PyTuple_Type, &python[kDefaults], &launches_only,
                        &casts, &python[kCareful], &python[kPlain], &python[kRecord], &python[kCast]))
    return nullptr;
  const size_t count = strlen(parameters);
  if (count > kMostArguments || static_cast<size_t>(PyTuple_Size(python[kDefaults])) > count) {
    PyErr_Format(PyExc_ValueError, "at most %d parameters", static_cast<int>(kMostArguments));
    return nullptr;
  }
  for (int role = kApply; role < kRoles; ++role) python[role] = Py_None;
  PyObject* object = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (object == nullptr) return nullptr;
  Short* s = self_of(reinterpret_cast<ShortObject*>(object)) = new Short();
  for (const char* letter = parameters; *letter; ++letter) {
    s->parameters.push_back(*letter == 'T' ? kTensor : *letter == 'O' ? kOptional : *letter);
    s->stays_float.push_back(*letter != s->parameters.back());
  }
  s->launches_only = launches_only;
  s->casts = casts;
  for (int role = 0; role < kRoles; ++role) {
    Py_INCREF(python[role]);
    s->python[role] = python[role];
  }
  return object;
}

// differentiate(apply, save, backward, by): set the autograd node of calls that need a gradient.
PyObject* short_differentiate(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  if (count != kRoles - kApply || (given[3] != Py_None && Py_TYPE(given[3]) != Py_TYPE(object))) {
    PyErr_SetString(PyExc_TypeError, "differentiate takes apply, save, backward and a Short or None");
    return nullptr;
  }
  Short& s = *reinterpret_cast<ShortObject*>(object)->self;
  for (int i = 0; i < kRoles - kApply; ++i) {
    PyObject* old = s.python[kApply + i];
    Py_INCREF(given[i]);
    s.python[kApply + i] = given[i];
    Py_XDECREF(old);
  }
  Py_RETURN_NONE;
}

bool read_allocations(PyObject* list, Plan* plan) {
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    Allocation a;
    if (!a.take(PyList_GetItem(list, i))) return false;
    for (PyObject* held : a.all()) Py_INCREF(held);
    plan->allocations.push_back(a);
  }
  return true;
}

bool read_launches(PyObject* list, Plan* plan) {
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    unsigned long long run, set_num_threads;
    PyObject *fail, *words;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "KKOO!", &run, &set_num_threads, &fail, &PyList_Type,
                          &words))
      return false;
    Launch launch{reinterpret_cast<Run>(static_cast<uintptr_t>(run)),
                  reinterpret_cast<SetNumThreads>(static_cast<uintptr_t>(set_num_threads)),
                  fail,
                  {}};
    for (Py_ssize_t j = 0; j < PyList_Size(words); ++j) {
      int kind;
      long long value;
      if (!PyArg_ParseTuple(PyList_GetItem(words, j), "iL", &kind, &value)) return false;
      launch.words.push_back({static_cast<SourceKind>(kind), value});
      if (kind == kArgument) plan->read.push_back(static_cast<int>(value));
    }
    Py_INCREF(fail);
    plan->launches.push_back(launch);
    if (launch.words.size() > kMostWords) return PyErr_SetString(PyExc_ValueError, "too many words"), false;
  }
  return plan->allocations.size() <= kMostAllocations ||
         (PyErr_SetString(PyExc_ValueError, "too many allocations"), false);
}

// Plan(device_type, device, allocations, launches, results, returns_tuple), as recording.py makes them.
PyObject* plan_new(PyTypeObject* type, PyObject* given, PyObject*) {
  int device_type, device, returns_tuple;
  PyObject *allocations, *launches, *results;
  if (!PyArg_ParseTuple(given, "iiO!O!O!i", &device_type, &device, &PyList_Type, &allocations, &PyList_Type,
                        &launches, &PyList_Type, &results, &returns_tuple))
    return nullptr;
  PyObject* object = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (object == nullptr) return nullptr;
  Plan* plan = self_of(reinterpret_cast<PlanObject*>(object)) = new Plan();
  plan->device_type = device_type;
  plan->device = device;
  plan->returns_tuple = returns_tuple;
  bool good = read_allocations(allocations, plan) && read_launches(launches, plan);
  for (Py_ssize_t i = 0; good && i < PyList_Size(results); ++i) {
    const long at = PyLong_AsLong(PyList_GetItem(results, i));
    good = at >= 0 && static_cast<size_t>(at) < plan->allocations.size();
    plan->results.push_back(static_cast<int>(at));
  }
  std::sort(plan->read.begin(), plan->read.end());
  plan->read.erase(std::unique(plan->read.begin(), plan->read.end()), plan->read.end());
  if (good) return object;
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no such allocation");
  Py_DECREF(object);
  return nullptr;
}

// configure({name: value}): the values of struct Torch. False if this torch cannot be used.
PyObject* configure(PyObject*, PyObject* named) {
  const Torch given(named);
  if (PyErr_Occurred()) return nullptr;
  if (!given.api) Py_RETURN_FALSE;
  Py_INCREF(named);  // never released
  torch = given;
  Py_RETURN_TRUE;
}

PyMethodDef short_methods[] = {
    {"add", PY_METHOD(short_add), METH_FASTCALL,
     "add(arguments, plan): such calls are that plan from now on"},
    {"registered", PY_METHOD(short_registered), METH_FASTCALL, "registered(*arguments): what torch.ops runs"},
    {"dispatched", PY_METHOD(short_dispatched), METH_VARARGS | METH_KEYWORDS,
     "dispatched(torchs, *arguments): a call by torch.ops"},
    {"forward", PY_METHOD(short_forward), METH_FASTCALL, "forward(ctx, *arguments): of the autograd node"},
    {"backward", PY_METHOD(short_backward), METH_FASTCALL, "backward(ctx, *top_diffs): of the autograd node"},
    {"differentiate", PY_METHOD(short_differentiate), METH_FASTCALL,
     "differentiate(apply, save, backward, by)"},
    {"plans", short_plans, METH_NOARGS, "How many of them have a plan."},
    {"clear", short_clear_plans, METH_NOARGS, "Forget all plans."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot short_slots[] = {{Py_tp_new, reinterpret_cast<void*>(short_new)},
                             {Py_tp_call, reinterpret_cast<void*>(short_call)},
                             {Py_tp_methods, short_methods},
                             {Py_mp_length, reinterpret_cast<void*>(short_length)},
                             {Py_tp_traverse, reinterpret_cast<void*>(traverse<ShortObject>)},
                             {Py_tp_clear, reinterpret_cast<void*>(clear<ShortObject>)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(deallocate<ShortObject>)},
                             {0, nullptr}};
PyType_Slot plan_slots[] = {{Py_tp_new, reinterpret_cast<void*>(plan_new)},
                            {Py_tp_traverse, reinterpret_cast<void*>(traverse<PlanObject>)},
                            {Py_tp_clear, reinterpret_cast<void*>(clear<PlanObject>)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(deallocate<PlanObject>)},
                            {0, nullptr}};
constexpr unsigned kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
// A base of a Python class, whose objects have a name and a signature.
PyType_Spec short_spec = {"_call.Short", sizeof(ShortObject), 0, kFlags | Py_TPFLAGS_BASETYPE, short_slots};
PyType_Spec plan_spec = {"_call.Plan", sizeof(PlanObject), 0, kFlags, plan_slots};
PyMethodDef module_methods[] = {
    {"configure", configure, METH_O, "configure(values): the parts of torch, by name"},
    {"record_caffe_call", record_caffe_call, METH_O,
     "record_caffe_call(values): forward, differentiable and backward"},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_call",
                          "The short way of a call.",
                          -1,
                          module_methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace caffe

PyMODINIT_FUNC PyInit__call() {
  PyObject* module = PyModule_Create(&caffe::definition);
  PyObject* plan = module ? PyType_FromSpec(&caffe::plan_spec) : nullptr;
  PyObject* one = plan ? PyType_FromSpec(&caffe::short_spec) : nullptr;
  if (one == nullptr) return nullptr;
  caffe::plan_type = reinterpret_cast<PyTypeObject*>(plan);
  Py_INCREF(plan);
  if (PyModule_AddObject(module, "Plan", plan) || PyModule_AddObject(module, "Short", one) ||
      PyModule_AddStringConstant(module, "EDGE", CAFFE_EDGE))
    return nullptr;
  return module;
}
