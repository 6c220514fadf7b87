// The Python side of the headers in include/aten: values, operations of torch, and modules. It is compiled once for
// all extensions, by Python's stable ABI, and reads tensors through call_torch.h.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>

#include <deque>
#include <exception>
#include <thread>

#include "aten/bind.h"
#include "aten/module.h"
#include "aten/signature.h"
#include "call_torch.h"

// The host launcher's (src/host/host_launch.cpp). A library for CUDA has none.
extern "C" {
__attribute__((weak, visibility("hidden"))) const char* caffe_take_launch_problem();
extern __attribute__((weak, visibility("hidden"))) void* (*caffe_unlock)();
extern __attribute__((weak, visibility("hidden"))) void (*caffe_relock)(void* state);
}

namespace aten {
namespace {

using caffe::Owned;

// ------------------------------------------------------------------------------------------------ Python's side

// What aten_service.py gives: of_python.
struct Python : caffe::Named {
  using caffe::Named::Named;
  // {name: function}; operation, names -> see resolve; the fields of a tensor that C cannot read.
  PyObject *special = object("special"), *resolve = object("resolve"), *describe = object("describe");
  PyObject* is_conj = object("is_conj");
  // {code: dtype} and back, {code: layout}, {code: memory format}; (type, index) -> device, and back.
  PyObject *dtypes = object("dtypes"), *codes = object("codes"), *layouts = object("layouts"),
           *formats = object("formats"), *device = object("device"), *place = object("place");
  PyObject *library = object("library"), *join = object("join");
  PyObject* parameters = object("parameters");
};
Python* python = nullptr;

// Within it this thread has the interpreter's lock.
class Locked {
  const PyGILState_STATE state_ = PyGILState_Ensure();

 public:
  Locked() = default;
  Locked(const Locked&) = delete;
  ~Locked() { PyGILState_Release(state_); }
};
// Is this thread in a call from Python, and its state while it has given the lock back?
thread_local bool in_call = false;
thread_local PyThreadState* given_back = nullptr;

// A call from Python, perhaps within another call of this thread.
class InCall {
  const bool outer_ = std::exchange(in_call, true);
  PyThreadState* const outer_given_back_ = std::exchange(given_back, nullptr);

 public:
  InCall() = default;
  InCall(const InCall&) = delete;
  ~InCall() {
    if (given_back) PyEval_RestoreThread(given_back);  // the call was left, by exit() for example
    given_back = outer_given_back_, in_call = outer_;
  }
};

using Raised = pybind11::error_already_set;
struct Fetched {
  PyObject *type, *value, *trace;
  Fetched() { PyErr_Fetch(&type, &value, &trace); }
  Fetched(const Fetched&) = delete;
  ~Fetched() {
    const Locked lock;
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
  }
};
[[noreturn]] void raise() { throw Raised(); }
PyObject* sure(PyObject* made) { return made ? made : (raise(), nullptr); }

void raise_in_python(const std::exception& e) {
  if (auto* const r = dynamic_cast<const Raised*>(&e)) return r->restore();
  PyObject* const kinds[] = {PyExc_RuntimeError,        PyExc_IndexError,     PyExc_ValueError,
                             PyExc_TypeError,           PyExc_KeyError,       PyExc_StopIteration,
                             PyExc_NotImplementedError, PyExc_AttributeError, PyExc_ImportError};
  PyObject* kind = PyExc_RuntimeError;
  if (auto* const c = dynamic_cast<const c10::Error*>(&e))
    kind = kinds[c->kind];
  else if (dynamic_cast<const Mismatch*>(&e))
    kind = PyExc_TypeError;
  else if (dynamic_cast<const std::bad_alloc*>(&e))
    kind = PyExc_MemoryError;
  else if (dynamic_cast<const std::out_of_range*>(&e))
    kind = PyExc_IndexError;
  else if (dynamic_cast<const std::overflow_error*>(&e))
    kind = PyExc_OverflowError;
  else if (dynamic_cast<const std::domain_error*>(&e) || dynamic_cast<const std::invalid_argument*>(&e) ||
           dynamic_cast<const std::length_error*>(&e) || dynamic_cast<const std::range_error*>(&e))
    kind = PyExc_ValueError;  // as pybind11 has it
  PyErr_SetString(kind, e.what());
}

// ------------------------------------------------------------------------------------------------------ tensors

// May an argument be converted, such as an int to a float?
thread_local bool may_convert = true;
// An operator's implementation for the processor runs: then the processor is no GPU.
thread_local bool on_cpu = false;

ScalarType dtype_of(const caffe::DLDataType& type) {
  switch (caffe::key_of(type)) {
    case 0 << 8 | 8:
      return c10::kChar;
    case 0 << 8 | 16:
      return c10::kShort;
    case 0 << 8 | 32:
      return c10::kInt;
    case 0 << 8 | 64:
      return c10::kLong;
    case 1 << 8 | 8:
      return c10::kByte;
    case 1 << 8 | 16:
      return c10::kUInt16;
    case 1 << 8 | 32:
      return c10::kUInt32;
    case 1 << 8 | 64:
      return c10::kUInt64;
    case 2 << 8 | 16:
      return c10::kHalf;
    case 2 << 8 | 32:
      return c10::kFloat;
    case 2 << 8 | 64:
      return c10::kDouble;
    case 4 << 8 | 16:
      return c10::kBFloat16;
    case 5 << 8 | 64:
      return c10::kComplexFloat;
    case 5 << 8 | 128:
      return c10::kComplexDouble;
    case 6 << 8 | 8:
      return c10::kBool;
    case 10 << 8 | 8:
      return c10::kFloat8_e4m3fn;
    case 11 << 8 | 8:
      return c10::kFloat8_e4m3fnuz;
    case 12 << 8 | 8:
      return c10::kFloat8_e5m2;
    case 13 << 8 | 8:
      return c10::kFloat8_e5m2fnuz;
    case 14 << 8 | 8:
      return c10::kFloat8_e8m0fnu;
    default:
      return ScalarType::Undefined;
  }
}
constexpr int32_t kPinned = 3;  // DLPack's number for memory of the processor that GPUs can read

void set_place(Lent* t, c10::DeviceType type, int index) {
  const bool as_gpu = aten_module.processor_is_gpu && !on_cpu && type == c10::kCPU;
  t->device = as_gpu ? c10::kCUDA : type;
  t->index = as_gpu ? 0 : type == c10::kCPU ? -1 : index;
}
// A tensor that C cannot read, such as a sparse one: Python tells its fields.
const char kNowhere[] = "has no memory of its own here: it is sparse, quantized, fake, or of torch.func";
void describe(Lent* t) {
  PyErr_Clear();
  const Owned all(
      sure(PyObject_CallFunctionObjArgs(python->describe, static_cast<PyObject*>(t->object), nullptr)));
  PyObject *sizes, *strides;
  int dtype, type, index;
  if (!PyArg_ParseTuple(all.get(), "OOiii", &sizes, &strides, &dtype, &type, &index)) raise();
  t->set_axes(static_cast<size_t>(PyTuple_Size(sizes)));
  for (size_t i = 0; i < t->axes; ++i) {
    t->sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(sizes, static_cast<Py_ssize_t>(i)));
    t->strides[i] = PyLong_AsLongLong(PyTuple_GetItem(strides, static_cast<Py_ssize_t>(i)));
  }
  if (PyErr_Occurred()) raise();
  t->dtype = static_cast<ScalarType>(dtype);
  set_place(t, static_cast<c10::DeviceType>(type), index);
  t->hidden = kNowhere;
}
void fill(Lent* t) {
  caffe::View view;
  PyObject* const object = static_cast<PyObject*>(t->object);
  t->data = nullptr, t->hidden = nullptr;
  if (!caffe::torch.read(object, &view)) return describe(t);
  t->data = reinterpret_cast<void*>(caffe::memory_of(view));
  t->set_axes(static_cast<size_t>(view.ndim));
  for (size_t i = 0; i < t->axes; ++i) t->sizes[i] = view.shape[i];
  int64_t dense = 1;
  for (size_t i = t->axes; i-- > 0; dense *= t->sizes[i])
    t->strides[i] = view.strides ? view.strides[i] : dense;
  t->find_overlap();
  t->dtype = dtype_of(view.dtype);
  const bool on_processor = view.device_type == caffe::kDLCPU || view.device_type == kPinned;
  set_place(t, on_processor ? c10::kCPU : c10::kCUDA, view.device);
  if (aten_module.processor_is_gpu && !on_processor)
    t->hidden = "is on a GPU, and these kernels were built for the processor alone: build them with nvcc";
  if (!t->data && dense) t->hidden = kNowhere;  // dense: the number of elements
  if (caffe::torch.is_negative(object)) t->hidden = "is a negative view: call resolve_neg() first";
  if (!c10::isComplexType(t->dtype)) return;
  const Owned conjugate(sure(PyObject_CallFunctionObjArgs(python->is_conj, object, nullptr)));
  if (conjugate.get() == Py_True) t->hidden = "is a conjugate view: call resolve_conj() first";
}
Handle lend(PyObject* object) {
  Lent* const t = new Lent;
  Py_INCREF(object);
  t->object = object;
  Handle made(t);
  fill(t);
  return made;
}

// ------------------------------------------------------------------------------------------------------- values

PyObject* python_of(const Value& v);
PyObject* tuple_of(const Values& list, size_t first = 0) {
  Owned made(sure(PyTuple_New(static_cast<Py_ssize_t>(list.size() - first))));
  for (size_t i = first; i < list.size(); ++i)
    PyTuple_SetItem(made.get(), static_cast<Py_ssize_t>(i - first), python_of(list[i]));
  return made.release();
}
PyObject* dict_of(const Values& pairs) {
  Owned made(sure(PyDict_New()));
  for (const Value& pair : pairs) {
    const Owned key(python_of(pair.list[0])), value(python_of(pair.list[1]));
    if (PyDict_SetItem(made.get(), key.get(), value.get())) raise();
  }
  return made.release();
}
PyObject* entry(PyObject* table, int64_t key) {
  const Owned number(PyLong_FromLongLong(key));
  return sure(PyObject_GetItem(table, number.get()));
}
PyObject* device_of(int64_t code) {
  int type = static_cast<int>(code >> 8), index = static_cast<int>(code & 255) - 1;
  if (aten_module.processor_is_gpu && type == static_cast<int>(c10::kCUDA)) type = 0, index = -1;
  return sure(PyObject_CallFunction(python->device, "ii", type, index));
}
PyObject* new_reference(PyObject* object) {
  Py_INCREF(object);
  return object;
}
PyObject* python_of(const Value& v) {
  switch (v.tag) {
    case Value::kNone:
      return new_reference(Py_None);
    case Value::kBool:
      return PyBool_FromLong(v.integer != 0);
    case Value::kInt:
      return PyLong_FromLongLong(v.integer);
    case Value::kReal:
      return PyFloat_FromDouble(v.real);
    case Value::kText:
      return sure(PyUnicode_DecodeUTF8(v.text.data(), static_cast<Py_ssize_t>(v.text.size()), nullptr));
    case Value::kTensor:
      return new_reference(static_cast<PyObject*>(v.tensor->object));
    case Value::kTuple:
      return tuple_of(v.list);
    case Value::kList: {
      const Owned tuple(tuple_of(v.list));
      return sure(PySequence_List(tuple.get()));
    }
    case Value::kDict:
      return dict_of(v.list);
    case Value::kType:
      return entry(python->dtypes, v.integer);
    case Value::kLayout:
      return entry(python->layouts, v.integer);
    case Value::kFormat:
      return entry(python->formats, v.integer);
    case Value::kDevice:
      return device_of(v.integer);
    case Value::kSlice: {
      const Owned parts(tuple_of(v.list));
      return sure(PySlice_New(PyTuple_GetItem(parts.get(), 0), PyTuple_GetItem(parts.get(), 1),
                              PyTuple_GetItem(parts.get(), 2)));
    }
    case Value::kEllipsis:
      return new_reference(Py_Ellipsis);
    case Value::kComplex:
      return sure(PyComplex_FromDoubles(v.list[0].real, v.list[1].real));
    case Value::kObject:
      return new_reference(static_cast<PyObject*>(v.object.get()));
  }
  return new_reference(Py_None);
}

bool is_tensor(PyObject* o) {
  if (caffe::torch.is_plain(o)) return true;
  const int found = PyObject_IsInstance(o, caffe::torch.tensor);
  return found < 0 ? (raise(), false) : found == 1;
}
Value value_of(PyObject* o);
// An object may be a part of itself. Python's own limit may be more than the stack holds of these calls.
struct Deeper {
  static constexpr int kDeepest = 500;
  static inline thread_local int depth = 0;
  Deeper() {
    if (depth == kDeepest) {
      PyErr_Format(PyExc_RecursionError, "an argument of an extension has lists in lists, more than %d",
                   kDeepest);
      raise();
    }
    ++depth;
  }
  Deeper(const Deeper&) = delete;
  ~Deeper() { --depth; }
};
Value list_of(PyObject* o, Value::Tag tag) {
  const Deeper deeper;
  Value v(tag);
  for (Py_ssize_t i = 0, n = PySequence_Size(o); i < n; ++i) {
    const Owned one(sure(PySequence_GetItem(o, i)));
    v.list.push_back(value_of(one.get()));
  }
  return v;
}
Value pairs_of(PyObject* dict) {
  const Deeper deeper;
  Value v(Value::kDict);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);)
    v.list.push_back(Value(Value::kTuple, {value_of(key), value_of(value)}));
  return v;
}
Value object_of(PyObject* o) {
  Value v(Value::kObject);
  v.object = std::shared_ptr<void>(new_reference(o), [](void* held) {
    if (!Py_IsInitialized()) return;
    const Locked lock;
    Py_DECREF(static_cast<PyObject*>(held));
  });
  return v;
}
Value integer_of(PyObject* number, PyObject* otherwise) {
  const Value v(Value::kInt, PyLong_AsLongLong(number));
  if (!PyErr_Occurred()) return v;
  PyErr_Clear();
  return object_of(otherwise);  // more than 64 bits
}
std::string type_name(PyObject* o) {
  const Owned name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__name__"));
  return name ? PyUnicode_AsUTF8AndSize(name.get(), nullptr) : "an object";
}
// torch's own small types, and numbers of other libraries, such as numpy.float32.
Value other_of(PyObject* o) {
  if (PyObject* const code = PyDict_GetItemWithError(python->codes, o)) {
    const long number =
        PyLong_AsLong(code);  // of a dtype, else 1000 + a layout's, else 2000 + a memory format's
    return number < 1000   ? Value(Value::kType, number)
           : number < 2000 ? Value(Value::kLayout, number - 1000)
                           : Value(Value::kFormat, number - 2000);
  }
  PyErr_Clear();  // not hashable
  const Owned place(sure(PyObject_CallFunctionObjArgs(python->place, o, nullptr)));
  if (place.get() != Py_None) return Value(Value::kDevice, PyLong_AsLongLong(place.get()));
  if (const Owned whole{PyNumber_Index(o)}) return integer_of(whole.get(), o);
  PyErr_Clear();
  const std::string kind = type_name(o);
  if (kind == "bool" || kind == "bool_") return {Value::kBool, PyObject_IsTrue(o)};  // numpy's
  Value v(Value::kReal);
  v.real = PyFloat_AsDouble(o), v.whole = true;
  if (!PyErr_Occurred()) return v;
  PyErr_Clear();
  return object_of(o);
}
Value value_of(PyObject* o) {
  Value v;
  if (o == Py_None) return v;
  if (is_tensor(o)) return v.tag = Value::kTensor, v.tensor = lend(o), v;
  if (PyBool_Check(o)) return {Value::kBool, o == Py_True};
  if (PyLong_Check(o)) return integer_of(o, o);
  if (PyFloat_Check(o)) return v.tag = Value::kReal, v.real = PyFloat_AsDouble(o), v;
  if (PyUnicode_Check(o)) {
    Py_ssize_t size;
    const char* const text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) raise();
    return v.tag = Value::kText, v.text.assign(text, static_cast<size_t>(size)), v;
  }
  if (PyTuple_Check(o)) return list_of(o, Value::kTuple);
  if (PyList_Check(o)) return list_of(o, Value::kList);
  if (PyDict_Check(o)) return pairs_of(o);
  if (PyComplex_Check(o)) {
    v = Value(Value::kComplex, {Value(Value::kReal), Value(Value::kReal)});
    return v.list[0].real = PyComplex_RealAsDouble(o), v.list[1].real = PyComplex_ImagAsDouble(o), v;
  }
  return other_of(o);
}

// In-place operations change the fields of their first argument, and keep its handle.
bool is_in_place(const char* name) {
  const size_t n = strlen(name);
  return n > 1 && name[n - 1] == '_' && name[n - 2] != '_';
}
// So do operations with an `out`, which is passed first.
bool has_out(const char* overload) {
  const size_t n = strlen(overload);
  return n >= 3 && !strcmp(overload + n - 3, "out");
}
Value answer(PyObject* found, const Values& arguments, bool changes) {
  const Owned keep(sure(found));
  if (!changes || arguments.empty() || !arguments[0].tensor.get()) return value_of(found);
  fill(arguments[0].tensor.get());
  return arguments[0];
}

// --------------------------------------------------------------------------------------------------------- calls

// Functions of one name.
struct Overloads {
  std::vector<Bound> all;
  PyMethodDef method;
  PyObject* other = nullptr;  // the function of another backend's library, for tensors of its device
};
std::deque<Overloads>& overloads() {
  static std::deque<Overloads> all;
  return all;
}

std::string expected(const Bound& b, Py_ssize_t got) {
  return "expected " + std::to_string(b.count) + (b.count == 1 ? " argument" : " arguments") + ", got " +
         std::to_string(got);
}
// Arguments by name go to their places, and defaults fill the rest.
Values placed(const Bound& b, PyObject* args, PyObject* named) {
  Values given;
  const Py_ssize_t n = PyTuple_Size(args), by_name = named ? PyDict_Size(named) : 0;
  given.reserve(b.count);
  if (static_cast<size_t>(n) > b.count) throw Mismatch(expected(b, n + by_name));
  const auto take = [&](PyObject* one) {
    const bool whole = given.size() < b.objects.size() && b.objects[given.size()];
    given.push_back(whole ? object_of(one) : value_of(one));
    given.back().exact = given.size() <= b.exact.size() && b.exact[given.size() - 1];
  };
  for (Py_ssize_t i = 0; i < n; ++i) take(PyTuple_GetItem(args, i));
  Py_ssize_t used = 0;
  for (size_t i = given.size(); i < b.count; ++i) {
    PyObject* const one =
        named && i < b.names.size() ? PyDict_GetItemString(named, b.names[i].c_str()) : nullptr;
    used += one != nullptr;
    if (one)
      take(one);
    else if (i < b.defaults.size() && b.defaults[i])
      given.push_back(*b.defaults[i]);
    else
      throw Mismatch(expected(b, n + by_name) +
                     (i < b.names.size() ? ": `" + b.names[i] + "` is missing"
                      : by_name          ? ", and none by its name"
                                         : ": argument " + std::to_string(i + 1) + " is missing"));
  }
  if (used != by_name) {
    const Owned all(sure(PyObject_Repr(Owned(sure(PyDict_Keys(named))).get())));
    throw Mismatch("an argument has a name that no parameter has, or is given twice: " +
                   std::string(PyUnicode_AsUTF8AndSize(all.get(), nullptr)));
  }
  return given;
}

struct Running {
  const Overloads& functions;
  PyObject *args, *named, *result;
};
std::string place_of(const Bound& b, size_t index) {
  if (index == Mismatch::kNone) return "";
  const std::string name = index < b.names.size() ? " `" + b.names[index] + "`" : "";
  return "argument " + std::to_string(index + 1) + name + ": ";
}
// Tries one overload. False, with the reason, if the arguments do not fit.
bool attempt(const Bound& b, Running& r, std::string* why) {
  try {
    Values given = placed(b, r.args, r.named);
    const Value found = b.run(given);
    if (const char* const problem = caffe_take_launch_problem ? caffe_take_launch_problem() : nullptr)
      throw c10::Error(b.name + "(): " + problem);
    r.result = python_of(found);
  } catch (const Mismatch& e) {
    *why += (why->empty() ? "" : "\n") + b.name + "(): " + place_of(b, e.index) + e.what() + signature(b);
    return false;
  } catch (const std::exception& e) {
    raise_in_python(e);
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception that is not a std::exception");
  }
  return true;
}
void run_all(void* data) {
  Running& r = *static_cast<Running*>(data);
  std::string why;
  for (const bool strictly : {true, false}) {
    if (strictly && r.functions.all.size() == 1) continue;
    why.clear();
    for (const Bound& b : r.functions.all) {
      on_cpu = b.on_cpu, may_convert = !strictly;
      if (attempt(b, r, &why)) return;
    }
  }
  may_convert = true;
  PyErr_SetString(PyExc_TypeError, why.c_str());
}
// The classes of both libraries, py::class_: is it that of the library for GPUs? They are never released.
std::map<PyObject*, int>& classes() {
  static std::map<PyObject*, int> all;
  return all;
}
// Of the tensors in an object, its lists and tuples: 1 if one is on a GPU, 0 if none is, -1 if there is no tensor. An
// instance of a library's class decides as a tensor does.
int on_gpu(PyObject* o, int depth = 0) {
  for (const auto& [type, is_of_gpus] : classes())
    if (PyType_IsSubtype(Py_TYPE(o), reinterpret_cast<PyTypeObject*>(type))) return is_of_gpus;
  if (PyObject_IsInstance(o, caffe::torch.tensor) == 1)
    return Owned(PyObject_GetAttrString(o, "is_cuda")).get() == Py_True;
  int found = -1;
  if (depth < 3 && (PyTuple_Check(o) || PyList_Check(o)))
    for (Py_ssize_t i = 0; i < PySequence_Size(o); ++i)
      found = std::max(found, on_gpu(Owned(PySequence_GetItem(o, i)).get(), depth + 1));
  return found;
}
// Is the call for the library for GPUs? Without a tensor it is: there "cuda" is the GPU.
bool belongs_elsewhere(const Overloads& f, PyObject* args, PyObject* named) {
  if (!f.other) return false;
  const Owned by_name(named ? PyDict_Values(named) : nullptr);
  const int found = std::max(on_gpu(args), named ? on_gpu(by_name.get()) : -1);
  PyErr_Clear();
  return found != 0;
}
PyObject* run(PyObject* self, PyObject* args, PyObject* named) {
  auto* const f = static_cast<Overloads*>(PyCapsule_GetPointer(self, nullptr));
  if (belongs_elsewhere(*f, args, named)) return PyObject_Call(f->other, args, named);
  Running running{*f, args, named, nullptr};
  const bool outer = on_cpu;
  int left;
  {
    const InCall here;
    left = aten_guarded(run_all, &running);
  }
  on_cpu = outer;
  if (!left) return running.result;
  PyErr_Clear();
  PyErr_Format(PyExc_RuntimeError, "%s(): %s", f->method.ml_name, aten_left_by());
  return nullptr;
}
PyObject* function_of(std::vector<Bound> all) {
  overloads().push_back({std::move(all), {}});
  Overloads& made = overloads().back();
  made.method = {made.all[0].name.c_str(), PY_METHOD(run), METH_VARARGS | METH_KEYWORDS,
                 made.all[0].doc.c_str()};
  const Owned self(PyCapsule_New(&made, nullptr, nullptr));
  return sure(PyCFunction_NewEx(&made.method, self.get(), nullptr));
}

// A function that goes when Python drops it. Its PyMethodDef is in its `self`, which CPython releases last.
PyObject* closure_of(Bound bound) {
  auto* const made = new Overloads{{std::move(bound)}, {}};
  made->method = {made->all[0].name.c_str(), PY_METHOD(run), METH_VARARGS | METH_KEYWORDS, nullptr};
  const Owned self(sure(PyCapsule_New(made, nullptr, [](PyObject* capsule) {
    delete static_cast<Overloads*>(PyCapsule_GetPointer(capsule, nullptr));
  })));
  return sure(PyCFunction_NewEx(&made->method, self.get(), nullptr));
}

// ------------------------------------------------------------------------------------------------------- modules

struct Waiting {
  std::string space, key, action, name;
  std::optional<Bound> bound;
};
std::vector<Waiting>& waiting() {
  static std::vector<Waiting> all;
  return all;
}
// Tensors on a GPU go to `other`, a function of the library for GPUs, and so do instances of its class. False if
// `function` is not one of ours.
bool connect_functions(PyObject* function, PyObject* other) {
  if (Py_IS_TYPE(function, &PyType_Type)) {
    classes()[new_reference(function)] = 0;
    classes()[new_reference(other)] = 1;
    return true;
  }
  PyObject* const self = PyCFunction_Check(function) ? PyCFunction_GetSelf(function) : nullptr;
  if (!self || !PyCapsule_IsValid(self, nullptr)) return false;
  auto* const f = static_cast<Overloads*>(PyCapsule_GetPointer(self, nullptr));
  Py_XDECREF(std::exchange(f->other, new_reference(other)));
  return true;
}
// The names and defaults of a schema: torch leaves out arguments that have their defaults. A function that is boxed by hand
// has as many as its schema.
void take_parameters(Waiting& w) {
  Bound& b = *w.bound;
  const Owned all(sure(PyObject_CallFunction(python->parameters, "ss", w.space.c_str(), w.name.c_str())));
  if (all.get() == Py_None) {
    if (b.count == Bound::kOfSchema)
      throw c10::Error(w.name + ": a boxed function is registered before its operator is defined");
    return;
  }
  PyObject* arguments;
  Py_ssize_t results;
  if (!PyArg_ParseTuple(all.get(), "On", &arguments, &results)) raise();
  const auto count = static_cast<size_t>(PyTuple_Size(arguments));
  if (b.results) *b.results = static_cast<size_t>(results);
  if (b.count == Bound::kOfSchema) b.count = count;
  if (b.count != count)
    throw c10::Error(
        c10::str(w.space, "::", w.name, ": the schema has ", count, " arguments, the function ", b.count));
  for (size_t i = 0; i < count; ++i) {
    PyObject *name, *value = nullptr;  // (name) or (name, default)
    if (!PyArg_ParseTuple(PyTuple_GetItem(arguments, static_cast<Py_ssize_t>(i)), "O|O", &name, &value))
      raise();
    b.names.push_back(PyUnicode_AsUTF8AndSize(name, nullptr));
    b.defaults.push_back(value ? std::optional<Value>(value_of(value)) : std::nullopt);
  }
}
// Static initialisers have no order. Definitions are first, and kernels last: in a host library they serve the
// processor's tensors where nothing else does.
void register_libraries() {
  const auto turn = [](const Waiting& w) { return w.action == "define" ? 0 : w.key == "CUDA" ? 2 : 1; };
  for (const int now : {0, 1, 2})
    for (Waiting& w : waiting()) {
      if (turn(w) != now) continue;
      if (w.bound) take_parameters(w);
      const Owned f(w.bound ? function_of({*w.bound}) : new_reference(Py_None));
      const Owned earlier(sure(PyObject_CallFunction(
          python->library, "sssssOi", aten_module.name, w.space.c_str(), w.key.c_str(), w.action.c_str(),
          w.name.c_str(), f.get(), int{aten_module.processor_is_gpu})));
      if (earlier.get() != Py_None) connect_functions(earlier.get(), f.get());
    }
  waiting().clear();
}

struct Pending {
  PyObject* module;
  std::vector<Bound> functions;
};
std::deque<Pending>& pending() {
  static std::deque<Pending> all;
  return all;
}
void put(PyObject* module, const char* name, PyObject* owned) {
  if (PyModule_AddObject(module, name, owned)) Py_DECREF(owned), raise();
}
// Functions of one name become one function of Python.
void add_functions(Pending& p) {
  std::map<std::string, std::vector<Bound>> by_name;
  for (Bound& b : p.functions) by_name[b.name].push_back(std::move(b));
  for (auto& [name, all] : by_name) put(p.module, name.c_str(), function_of(std::move(all)));
}

// import aten_service; configure this library.
void configure() {
  if (python) return;
  const Owned service(sure(PyImport_ImportModule(aten_module.service)));
  Owned dict(sure(PyObject_CallMethod(service.get(), "of_python", "ss", aten_module.name, aten_module.edge)));
  auto* const made = new Python(dict.get());
  if (PyErr_Occurred()) raise();
  caffe::torch = caffe::Torch(made->object("torch"));
  if (PyErr_Occurred()) raise();
  python = made;
  dict.release();  // never released: the values are borrowed from it
}
// connect(function, other): the function or class of the cuda library of the same name.
PyObject* connect(PyObject*, PyObject* arguments) {
  PyObject *function, *other;
  if (!PyArg_ParseTuple(arguments, "OO", &function, &other)) return nullptr;
  return PyBool_FromLong(connect_functions(function, other));
}
void fill_module(void* data) {
  PyObject* const module = *static_cast<PyObject**>(data);
  try {
    pending().push_back({module, {}});
    if (aten_module.fill) aten_module.fill(module);
    for (Pending& p : pending()) add_functions(p);
    register_libraries();
    put(module, "_aten", PyLong_FromLong(aten_module.processor_is_gpu));
    static PyMethodDef method = {"_connect", connect, METH_VARARGS, nullptr};
    put(module, method.ml_name, sure(PyCFunction_NewEx(&method, nullptr, nullptr)));
    // While it is imported, a module has no __file__.
    Dl_info library;
    if (dladdr(&aten_module, &library))
      Owned(sure(PyObject_CallFunction(python->join, "Os", module, library.dli_fname)));
  } catch (const std::exception& e) {
    raise_in_python(e);
  } catch (...) {
    PyErr_SetString(PyExc_ImportError, "an exception that is not a std::exception");
  }
  pending().clear();
}
}  // namespace

// --------------------------------------------------------------------------------- what include/aten/*.h declare

}  // namespace aten
pybind11::error_already_set::error_already_set() : c10::Error("an error of Python") {
  const aten::Locked lock;
  const auto fetched = std::make_shared<aten::Fetched>();
  fetched_ = fetched;
  if (!fetched->type) return;
  PyErr_NormalizeException(&fetched->type, &fetched->value, &fetched->trace);
  const caffe::Owned name(PyObject_GetAttrString(fetched->type, "__name__")),
      text(PyObject_Str(fetched->value));
  const char* const words[] = {name ? PyUnicode_AsUTF8AndSize(name.get(), nullptr) : nullptr,
                               text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr};
  if (words[0] && words[1]) text_ = std::make_shared<std::string>(std::string(words[0]) + ": " + words[1]);
  PyErr_Clear();  // such as of a text that is not UTF-8
}
void pybind11::error_already_set::restore() const {
  auto* const fetched = static_cast<aten::Fetched*>(fetched_.get());
  PyErr_Restore(fetched->type, fetched->value, fetched->trace);
  fetched->type = fetched->value = fetched->trace = nullptr;
}
namespace aten {

void drop(Lent* t) {
  if (Py_IsInitialized()) {
    const Locked lock;
    Py_XDECREF(static_cast<PyObject*>(t->object));
  }
  delete t;
}
void wrong_type(const char* wanted, const Value& got) {
  static const char* const kinds[] = {"None",  "bool",     "int",     "float",  "str",    "Tensor",
                                      "list",  "tuple",    "dtype",   "device", "layout", "memory_format",
                                      "slice", "Ellipsis", "complex", "dict"};
  std::string kind;
  if (got.tag == Value::kObject) {
    const Locked lock;
    kind = type_name(static_cast<PyObject*>(got.object.get()));
  } else {
    kind = kinds[got.tag];
  }
  if (kind == wanted) kind += kind == "int" ? " of more than 64 bits" : " that its __init__ has not made";
  const char* const step = !strcmp(wanted, "float")    ? ": give a number such as 2.0"
                           : !strcmp(wanted, "int")    ? ": give a number such as 2"
                           : !strcmp(wanted, "Tensor") ? ": torch.as_tensor(x) makes one of numbers"
                                                       : "";
  throw c10::Error(c10::str("expected ", wanted, ", got ", kind, step), c10::kTypeError);
}

// resolve() in aten_service.py returns (function, the number of arguments that it takes by place, names of the rest).
Value ask(const Operation& operation, const Values& arguments) {
  const Locked lock;
  if (!operation.resolved)
    operation.resolved = sure(PyObject_CallFunction(python->resolve, "sss", operation.name,
                                                    operation.overload, operation.arguments));
  PyObject* const resolved = static_cast<PyObject*>(operation.resolved);
  PyObject *const function = PyTuple_GetItem(resolved, 0), *const names = PyTuple_GetItem(resolved, 2);
  const size_t by_place = PyLong_AsSize_t(PyTuple_GetItem(resolved, 1));
  const Owned given(tuple_of(Values(arguments.begin(), arguments.begin() + static_cast<long>(by_place))));
  Owned named;
  for (size_t i = by_place; i < arguments.size(); ++i) {
    if (arguments[i].tag == Value::kNone) continue;
    if (!named) named = Owned(sure(PyDict_New()));
    const Owned one(python_of(arguments[i]));
    if (PyDict_SetItem(named.get(), PyTuple_GetItem(names, static_cast<Py_ssize_t>(i - by_place)), one.get()))
      raise();
  }
  return answer(PyObject_Call(function, given.get(), named.get()), arguments,
                is_in_place(operation.name) || has_out(operation.overload));
}
static Owned call_special(const char* what, const Values& arguments) {
  PyObject* const function = PyDict_GetItemString(python->special, what);
  if (!function) throw c10::Error(c10::str("the toolkit's aten_service.py has no ", what));
  const Owned given(tuple_of(arguments));
  return Owned(sure(PyObject_CallObject(function, given.get())));
}
Value special(const char* what, const Values& arguments) {
  const Locked lock;
  return value_of(call_special(what, arguments).get());
}
Value special_object(const char* what, const Values& arguments) {
  const Locked lock;
  return object_of(call_special(what, arguments).get());
}
Value capsule_of(std::shared_ptr<void> held, const char* type) {
  const Locked lock;
  auto* const owned = new std::shared_ptr<void>(std::move(held));
  const Owned made(sure(PyCapsule_New(owned, type, [](PyObject* capsule) {
    delete static_cast<std::shared_ptr<void>*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
  })));
  return object_of(made.get());
}
bool bytes_of(const Value& object, std::string* text) {
  if (object.tag != Value::kObject) return false;
  const Locked lock;
  auto* const o = static_cast<PyObject*>(object.object.get());
  const Owned bytes(PyByteArray_Check(o) ? PyBytes_FromObject(o)
                    : PyBytes_Check(o)   ? new_reference(o)
                                         : nullptr);
  char* memory;
  Py_ssize_t size;
  if (!bytes || PyBytes_AsStringAndSize(bytes.get(), &memory, &size)) return PyErr_Clear(), false;
  return text->assign(memory, static_cast<size_t>(size)), true;
}
std::shared_ptr<void> held_by(const Value& object, const char* type) {
  if (object.tag != Value::kObject) return nullptr;
  const Locked lock;
  const Owned capsule(PyObject_GetAttrString(static_cast<PyObject*>(object.object.get()), "_held"));
  PyErr_Clear();
  if (!capsule || !PyCapsule_IsValid(capsule.get(), type)) return nullptr;
  return *static_cast<std::shared_ptr<void>*>(PyCapsule_GetPointer(capsule.get(), type));
}
void* stream_of(int device) {
  if (aten_module.processor_is_gpu) return nullptr;
  return reinterpret_cast<void*>(call<int64_t>("stream", device));
}
int exchange_device(int device) {
  return aten_module.processor_is_gpu ? -1 : call<int>("exchange_device", device);
}
bool converts() { return may_convert; }
void set_converts(bool on) { may_convert = on; }
void* unlock() {
  if (given_back || !in_call) return nullptr;
  return given_back = PyEval_SaveThread();
}
void relock(void* state) {
  if (!state) return;
  given_back = nullptr;
  PyEval_RestoreThread(static_cast<PyThreadState*>(state));
}

static thread_local int this_thread = 0;
int thread_number() { return this_thread; }
void parallel(int64_t begin, int64_t end, int64_t grain, void (*run)(const void*, int64_t, int64_t),
              const void* body) {
  const int64_t parts =
      std::min<int64_t>((end - begin + grain - 1) / grain, this_thread ? 1 : call<int64_t>("num_threads"));
  if (parts <= 1) return run(body, begin, end);
  const int64_t share = (end - begin + parts - 1) / parts;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(parts));
  const auto part = [&](int64_t i) {
    const int64_t first = begin + i * share, last = std::min(end, first + share);
    std::exception_ptr& error = errors[static_cast<size_t>(i)];
    auto work = [&] {
      try {
        if (first < last) run(body, first, last);
      } catch (...) {
        error = std::current_exception();
      }
    };
    this_thread = static_cast<int>(i);
    // A part that is left, as by a wild address, does not leave this function, which the other threads use.
    if (aten_guarded([](void* w) { (*static_cast<decltype(work)*>(w))(); }, &work))
      error = std::make_exception_ptr(c10::Error(aten_left_by()));
    this_thread = 0;
  };
  {
    const pybind11::gil_scoped_release unlocked;
    std::vector<std::thread> threads;
    for (int64_t i = 1; i < parts; ++i) threads.emplace_back(part, i);
    part(0);
    for (std::thread& one : threads) one.join();
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

void add(void* module, Bound bound) {
  for (Pending& p : pending())
    if (p.module == module) return p.functions.push_back(std::move(bound));
}
Value closure(Bound bound) {
  const Locked lock;
  const Owned made(closure_of(std::move(bound)));
  return object_of(made.get());
}
void add_value(void* module, const char* name, const Value& value) {
  put(static_cast<PyObject*>(module), name, python_of(value));
}
void* add_module(void* module, const char* name, const char* doc) {
  const Owned full(sure(PyObject_GetAttrString(static_cast<PyObject*>(module), "__name__")));
  const std::string path = std::string(PyUnicode_AsUTF8AndSize(full.get(), nullptr)) + "." + name;
  // Not that of another library, or of an earlier build, which has the same name.
  PyObject* const modules = PyImport_GetModuleDict();
  PyObject* made = PyObject_GetAttrString(static_cast<PyObject*>(module), name);
  if (made && PyModule_Check(made)) return Py_DECREF(made), made;
  PyErr_Clear(), Py_XDECREF(made);
  made = sure(PyModule_New(path.c_str()));
  put(made, "__doc__", sure(PyUnicode_FromString(doc)));
  put(static_cast<PyObject*>(module), name, made);
  if (PyDict_SetItemString(modules, path.c_str(), made)) raise();
  pending().push_back({made, {}});
  return made;
}
void library(const char* space, const char* key, const char* action, const char* name,
             std::optional<Bound> bound) {
  waiting().push_back({space, key, action, name, std::move(bound)});
}

}  // namespace aten

extern "C" {
static bool made_a_module = false;
int aten_open(void*) {  // before the static initialisers have run
  Dl_info library;
  if (made_a_module || !dladdr(&aten_module, &library)) return 0;
  const caffe::Owned service(PyImport_ImportModule(aten_module.service));
  const caffe::Owned done(
      service ? PyObject_CallMethod(service.get(), "opened", "ss", aten_module.name, library.dli_fname)
              : nullptr);
  return done ? 0 : -1;
}
void* aten_make_module() {
  made_a_module = true;
  if (&caffe_unlock) caffe_unlock = aten::unlock, caffe_relock = aten::relock;
  static PyModuleDef definition = {
      PyModuleDef_HEAD_INIT, aten_module.name, nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
  if (const char* const reason = aten_unsupported())
    return PyErr_SetString(PyExc_ImportError, reason), nullptr;
  try {
    aten::configure();
  } catch (const std::exception& e) {
    return aten::raise_in_python(e), nullptr;
  }
  PyObject* module = static_cast<PyObject*>(aten_module.own_init ? aten_module.own_init() : nullptr);
  if (aten_module.own_init && module && !PyModule_Check(module))
    return module;  // initialised in several phases
  if (!module && !PyErr_Occurred()) module = PyModule_Create(&definition);
  if (!module) return nullptr;
  if (aten_guarded(aten::fill_module, &module)) PyErr_SetString(PyExc_ImportError, aten_left_by());
  if (PyErr_Occurred()) Py_CLEAR(module);
  return module;
}
}
