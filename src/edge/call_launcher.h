// A Launcher: one exported C function as a Python builtin, made from the function's declaration.
//
// It checks each call by the declaration: the tensors' dtypes, devices, layouts, alignments and extents, and the ranges
// of numbers. Then the function runs on the current stream of the tensors' device. If in doubt, the builtin passes the
// call to Python (cuffi/runtime/launcher.py), which converts the arguments or words the error.
#pragma once

#include <math.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "call_kernels.h"
#include "call_torch.h"

namespace caffe {

using Run = Function::Run;
using SetNumThreads = void (*)(int);

constexpr size_t kMostParameters = 64, kMostTensors = 32;

// The kinds of C parameters. kLike is not a parameter, but a tensor that gives the device and the dtype.
enum ParameterKind : int {
  kTensor,
  kLike,
  kDtype,
  kStream,
  kInteger,
  kUnsigned64,
  kFloat32,
  kFloat64,
  kTruth
};
enum TensorFlags : int { kIsWritten = 1, kMayBeNull = 2 };

// Arithmetic on a call's numbers, such as a tensor's size, in the order of a stack machine.
class Formula {
 public:
  enum Step : int { kNumber, kParameter, kAdd, kSubtract, kMultiply, kDivide, kNegate };
  static constexpr size_t kMostSteps = 64;
  std::vector<std::pair<int, int64_t>> steps;

  // False if a number overflows, or something is divided by 0.
  bool value(const int64_t* parameters, int64_t* result) const {
    int64_t stack[kMostSteps + 1] = {};
    size_t count = 0;
    for (const auto& [step, number] : steps) {
      if (step == kNumber || step == kParameter) {
        stack[count++] = step == kNumber ? number : parameters[number];
        continue;
      }
      const int64_t last = stack[--count];
      if (step == kNegate) {
        if (__builtin_sub_overflow(int64_t{0}, last, &stack[count++])) return false;
      } else if (!apply(step, last, &stack[count - 1])) {
        return false;
      }
    }
    *result = stack[0];
    return true;
  }

 private:
  static bool apply(int step, int64_t last, int64_t* to) {
    if (step == kAdd) return !__builtin_add_overflow(*to, last, to);
    if (step == kSubtract) return !__builtin_sub_overflow(*to, last, to);
    if (step == kMultiply) return !__builtin_mul_overflow(*to, last, to);
    if (last == 0 || (last == -1 && *to == INT64_MIN)) return false;
    const int64_t rounded = *to / last;  // Python rounds down, C++ towards 0
    *to = rounded - (*to % last != 0 && (*to < 0) != (last < 0));
    return true;
  }
};

// The elements of memory between a tensor's first and last element. False if unknown.
template <typename Size, typename Stride>
bool reach(size_t axes, const Size& size, const Stride& stride, bool is_contiguous, int64_t* elements) {
  int64_t found = 1;
  for (size_t i = 0; i < axes; ++i)
    if (size(i) == 0) return *elements = 0, true;
  for (size_t i = 0; i < axes; ++i) {
    int64_t step;
    if (is_contiguous ? __builtin_mul_overflow(found, size(i), &found)
                      : __builtin_mul_overflow(size(i) - 1, stride(i), &step) ||
                            __builtin_add_overflow(found, step, &found))
      return false;
  }
  return *elements = found, true;
}

struct Parameter {
  ParameterKind kind;
  // Of a `void *` and of a dtype: tensors of one group have one dtype. Group 0 is that of `int dtype`. A typed
  // pointer has none, -1.
  int group;
  int flags;
  long long alignment;
  // Of an integer.
  long long least, most;
  // Of a tensor: the allowed dtypes. Of a dtype: its value if its group has no tensor; if empty, that of group 0.
  std::vector<int64_t> dtypes;
  // Of a tensor: the least size that the declaration's comment asks for.
  bool has_extents = false;
  std::vector<Formula> sizes, strides;

  bool is_passed() const { return kind != kDtype && kind != kStream; }
};

// The function in the library for one type of device.
struct Target {
  int32_t device_type = 0;
  Function run;
  SetNumThreads set_num_threads = nullptr;
};

struct Launcher {
  // Python's: runs a call in doubt; raises the last error of the library for a type of device.
  PyObject *careful, *fail;
  bool any_layout, returns_number;
  std::vector<Parameter> parameters;
  std::vector<std::pair<int64_t, int64_t>> codes;  // (dtype, its code in C)
  std::vector<Target> targets;                     // those that were needed so far

  // Launcher in cuffi/runtime/launcher.py passes the values. If one is wrong, there is an exception.
  explicit Launcher(const Named& values)
      : careful(values.object("careful")),
        fail(values.object("fail")),
        any_layout(values.number("any_layout")),
        returns_number(values.number("returns_number")) {
    Py_XINCREF(careful);
    Py_XINCREF(fail);
    PyObject *const listed = values.object("parameters"), *const known = values.object("codes");
    for (Py_ssize_t i = 0; listed && i < PyTuple_Size(listed); ++i)
      if (!add_parameter(PyTuple_GetItem(listed, i))) return;
    for (Py_ssize_t i = 0; known && i < PyTuple_Size(known); ++i) {
      long long key, code;
      if (!PyArg_ParseTuple(PyTuple_GetItem(known, i), "LL", &key, &code)) return;
      codes.emplace_back(key, code);
    }
    if (parameters.size() > kMostParameters) PyErr_SetString(PyExc_ValueError, "too many parameters");
  }
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(careful);
    Py_VISIT(fail);
    return 0;
  }
  void clear() {
    Py_CLEAR(careful);
    Py_CLEAR(fail);
  }
  const int64_t* code_of(int64_t key) const {
    for (const auto& known : codes)
      if (known.first == key) return &known.second;
    return nullptr;
  }

 private:
  bool add_parameter(PyObject* tuple) {
    int kind;
    PyObject *dtypes, *sizes, *strides;
    Parameter p;
    if (!PyArg_ParseTuple(tuple, "iiiLLLOOO", &kind, &p.group, &p.flags, &p.alignment, &p.least, &p.most,
                          &dtypes, &sizes, &strides))
      return false;
    p.kind = static_cast<ParameterKind>(kind);
    for (Py_ssize_t i = 0; i < PyTuple_Size(dtypes); ++i)
      p.dtypes.push_back(PyLong_AsLongLong(PyTuple_GetItem(dtypes, i)));
    p.has_extents = sizes != Py_None;
    if (p.has_extents && !(add_formulas(sizes, &p.sizes) && add_formulas(strides, &p.strides))) return false;
    parameters.push_back(std::move(p));
    return !PyErr_Occurred();
  }
  static bool add_formulas(PyObject* tuple, std::vector<Formula>* to) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
      PyObject* const steps = PyTuple_GetItem(tuple, i);
      to->emplace_back();
      for (Py_ssize_t j = 0; j < PyTuple_Size(steps); ++j) {
        int step;
        long long number;
        if (!PyArg_ParseTuple(PyTuple_GetItem(steps, j), "iL", &step, &number)) return false;
        to->back().steps.emplace_back(step, number);
      }
      if (to->back().steps.size() > Formula::kMostSteps)
        return PyErr_SetString(PyExc_ValueError, "a size of too many steps"), false;
    }
    return !PyErr_Occurred();
  }
};

// One call of a Launcher.
class Launching {
 public:
  explicit Launching(const Launcher& launcher) : l_(launcher) {}

  // Check the arguments, and convert them to words. False if in doubt.
  bool take(PyObject* const* given, Py_ssize_t count) {
    Py_ssize_t next = 0;
    for (size_t i = 0; i < l_.parameters.size(); ++i) {
      const Parameter& p = l_.parameters[i];
      if (!p.is_passed()) continue;
      if (next == count) return false;
      PyObject* const one = given[next++];
      const bool is_tensor = p.kind == kTensor || p.kind == kLike;
      if (is_tensor ? !take_tensor(i, one) : !take_number(p, one, &words_[i])) return false;
    }
    return next == count && views_used_ > 0 && take_dtypes() && are_large_enough();
  }

  // Run the function. NotImplemented: in doubt; null: with an exception.
  PyObject* run() {
    if (writes_ && !written_count_) return answer(Py_None);  // all outputs are empty or unwanted
    const Target* const target = target_of(views_[0].device_type);
    if (!target || breaks_a_graph()) return answer(Py_NotImplemented);
    const OnDevice guard(views_[0]);
    int64_t stream;
    if (!torch.stream_of(views_[0], &stream)) return nullptr;
    for (size_t i = 0; i < l_.parameters.size(); ++i)
      if (l_.parameters[i].kind == kStream) words_[i] = stream;
    if (target->device_type == kDLCPU && target->set_num_threads) target->set_num_threads(torch.threads());
    const Function function = target->run;  // another thread may add a target at the same time
    PyThreadState* const python = PyEval_SaveThread();
    const int64_t result = function(words_ + l_.returns_number, views_[0].device);  // C does not get `like`
    PyEval_RestoreThread(python);
    if (written_count_) torch.written(written_, written_count_);
    if (l_.returns_number ? result < 0 : result != 0) {
      Py_XDECREF(PyObject_CallFunction(l_.fail, "i", views_[0].device_type));
      return nullptr;
    }
    return l_.returns_number ? PyLong_FromLongLong(result) : answer(Py_None);
  }

  // After take: (the number of the parameter whose tensor is too small, the sizes that it should have), or None. A
  // size is -1 if its formula has no value.
  PyObject* too_small() const {
    if (!small_) return answer(Py_None);
    PyObject* const sizes = PyTuple_New(static_cast<Py_ssize_t>(small_->sizes.size()));
    for (size_t i = 0; sizes && i < small_->sizes.size(); ++i) {
      int64_t size = -1;
      if (!small_->sizes[i].value(words_, &size)) size = -1;
      PyTuple_SetItem(sizes, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(size));
    }
    return sizes ? Py_BuildValue("(nN)", small_ - l_.parameters.data(), sizes) : nullptr;
  }

 private:
  static PyObject* answer(PyObject* one) {
    Py_INCREF(one);
    return one;
  }

  const Target* target_of(int32_t device_type) const {
    for (const Target& known : l_.targets)
      if (known.device_type == device_type) return &known;
    return nullptr;
  }

  bool take_tensor(size_t at, PyObject* one) {
    const Parameter& p = l_.parameters[at];
    words_[at] = 0;
    writes_ = writes_ || p.flags & kIsWritten;
    view_of_[at] = -1;
    if (one == Py_None && p.kind == kTensor) return p.flags & kMayBeNull;
    if (views_used_ == kMostTensors || !torch.is_plain(one)) return false;
    View& view = views_[views_used_];
    if (!torch.read(one, &view) || view.dtype.lanes != 1 || !has_right_dtype(p, view)) return false;
    if (view.device_type != views_[0].device_type || view.device != views_[0].device) return false;
    view_of_[at] = static_cast<int>(views_used_++);
    if (p.kind == kLike) return true;
    if (!l_.any_layout && !is_contiguous(view)) return false;
    if (!has_elements(view)) return true;
    const int64_t address = memory_of(view);
    if (!view.data || address % std::max<int64_t>(p.alignment, view.dtype.bits / 8)) return false;
    if (torch.is_lazy(one, view)) return false;
    words_[at] = address;
    if (p.flags & kIsWritten) written_[written_count_++] = one;
    return true;
  }

  bool has_right_dtype(const Parameter& p, const View& view) {
    const int64_t key = key_of(view.dtype);
    if (std::find(p.dtypes.begin(), p.dtypes.end(), key) == p.dtypes.end()) return false;
    if (p.group < 0) return true;
    if (!leads_[p.group]) leads_[p.group] = key;
    return leads_[p.group] == key;
  }

  static bool take_number(const Parameter& p, PyObject* one, int64_t* word) {
    if (p.kind == kTruth) {
      *word = one == Py_True;
      return *word || one == Py_False;
    }
    if (p.kind == kFloat32 || p.kind == kFloat64) {
      if (!PyFloat_CheckExact(one) && !PyLong_CheckExact(one)) return false;
      const double value = PyFloat_AsDouble(one);
      if (p.kind == kFloat32 && isinf(static_cast<float>(value)) && !isinf(value)) return false;
      memcpy(word, &value, sizeof(value));
    } else if (!PyLong_Check(one)) {
      return false;
    } else if (p.kind == kUnsigned64) {
      *word = static_cast<int64_t>(PyLong_AsUnsignedLongLong(one));
    } else {
      *word = PyLong_AsLongLong(one);
      if (*word < p.least || *word > p.most) return PyErr_Clear(), false;
    }
    if (!PyErr_Occurred()) return true;
    PyErr_Clear();  // the number is too large
    return false;
  }

  bool take_dtypes() {
    for (size_t i = 0; i < l_.parameters.size(); ++i) {
      if (l_.parameters[i].kind != kDtype) continue;
      const Parameter& p = l_.parameters[i];
      const int64_t own = leads_[p.group];
      const int64_t* const code = l_.code_of(own ? own : p.dtypes.empty() ? leads_[0] : p.dtypes[0]);
      if (!code) return false;
      words_[i] = *code;
    }
    return true;
  }

  // Is each tensor at least as large as in the declaration's comment?
  bool are_large_enough() {
    for (size_t at = 0; at < l_.parameters.size(); ++at) {
      const Parameter& p = l_.parameters[at];
      if (p.kind == kTensor && p.has_extents && view_of_[at] >= 0 &&
          !is_large_enough(p, views_[view_of_[at]]))
        return small_ = &p, false;
    }
    return true;
  }
  bool is_large_enough(const Parameter& p, const View& view) const {
    int64_t sizes[View::kMostAxes], strides[View::kMostAxes], wanted, there;
    if (p.sizes.size() > View::kMostAxes || p.strides.size() > p.sizes.size()) return false;
    for (size_t i = 0; i < p.sizes.size(); ++i)
      if (!p.sizes[i].value(words_, &sizes[i]) || sizes[i] < 0) return false;
    for (size_t i = 0; i < p.strides.size(); ++i)
      if (!p.strides[i].value(words_, &strides[i])) return false;
    return reach(
               p.sizes.size(), [&](size_t i) { return sizes[i]; }, [&](size_t i) { return strides[i]; },
               p.strides.empty(), &wanted) &&
           reach(
               view.ndim, [&](size_t i) { return view.shape[i]; }, [&](size_t i) { return view.strides[i]; },
               !l_.any_layout || !view.strides, &there) &&
           wanted <= there;
  }

  // Would C write to a tensor of an autograd graph, which would not notice it?
  bool breaks_a_graph() const {
    for (Py_ssize_t i = 0; i < written_count_; ++i)
      if (torch.wants_gradient(written_[i])) return Torch::ask(torch.grad_enabled);
    return false;
  }

  const Launcher& l_;
  int64_t words_[kMostParameters];
  int64_t leads_[kMostParameters] = {};  // the dtype of each group
  int view_of_[kMostParameters];
  View views_[kMostTensors];
  size_t views_used_ = 0;
  const Parameter* small_ = nullptr;  // of the tensor that is too small
  bool writes_ = false;               // has the function outputs?
  PyObject* written_[kMostTensors];
  Py_ssize_t written_count_ = 0;
};

// attempt(*arguments): the function's result, or NotImplemented if in doubt.
inline PyObject* launcher_attempt(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  Launching call(*self_of<Launcher>(object));
  if (call.take(given, count)) return call.run();
  Py_INCREF(Py_NotImplemented);
  return Py_NotImplemented;
}

// too_small(*arguments): why attempt says NotImplemented, if a tensor is too small (Launching::too_small).
inline PyObject* launcher_too_small(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  Launching call(*self_of<Launcher>(object));
  call.take(given, count);
  return call.too_small();
}

inline PyObject* launcher_call(PyObject* object, PyObject* given, PyObject* named) {
  const Py_ssize_t count = PyTuple_Size(given);
  if ((!named || PyDict_Size(named) == 0) && count <= Py_ssize_t{kMostParameters} && !torch.is_watching()) {
    PyObject* items[kMostParameters];
    for (Py_ssize_t i = 0; i < count; ++i) items[i] = PyTuple_GetItem(given, i);
    PyObject* const result = launcher_attempt(object, items, count);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
  }
  return PyObject_Call(self_of<Launcher>(object)->careful, given, named);
}

// attach(device_type, run, is_program, set_num_threads): the function for that type of device.
inline PyObject* launcher_attach(PyObject* object, PyObject* given) {
  unsigned long long run, set_num_threads;
  int is_program;
  Target target;
  if (!PyArg_ParseTuple(given, "iKpK", &target.device_type, &run, &is_program, &set_num_threads))
    return nullptr;
  target.run = Function(run, is_program);
  target.set_num_threads = reinterpret_cast<SetNumThreads>(static_cast<uintptr_t>(set_num_threads));
  self_of<Launcher>(object)->targets.push_back(target);
  Py_RETURN_NONE;
}

}  // namespace caffe
