// Reads torch's state and tensors: by DLPack's C exchange API (from torch 2.10 on) or by the tensors' attributes, and
// by a few of torch's functions.
#pragma once

#include <Python.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "dlpack.h"

#define PY_METHOD(function) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function))

namespace caffe {

// An owned reference to a Python object. The destructor releases it.
class Owned {
 public:
  explicit Owned(PyObject* object = nullptr) : object_(object) {}
  Owned(Owned&& other) : object_(other.release()) {}
  Owned& operator=(Owned&& other) {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() { Py_XDECREF(object_); }
  static Owned borrowed(PyObject* object) {
    Py_XINCREF(object);
    return Owned(object);
  }
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  PyObject* release() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  PyObject* object_;
};

// Saves the current exception until the end of its scope, while Python code is called.
class Aside {
 public:
  Aside() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~Aside() { PyErr_Restore(type_, value_, trace_); }
  Aside(const Aside&) = delete;

 private:
  PyObject *type_, *value_, *trace_;
};

inline PyObject* tuple_of(PyObject* const* items, Py_ssize_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple && i < count; ++i) {
    Py_INCREF(items[i]);
    PyTuple_SetItem(tuple, i, items[i]);
  }
  return tuple;
}

inline int64_t memory_of(const DLTensor& t) {
  return reinterpret_cast<intptr_t>(t.data) + static_cast<int64_t>(t.byte_offset);
}
inline bool has_elements(const DLTensor& t) {
  for (int32_t i = 0; i < t.ndim; ++i)
    if (t.shape[i] == 0) return false;
  return true;
}
inline bool is_contiguous(const DLTensor& t) {
  if (!t.strides || !has_elements(t)) return true;
  int64_t elements = 1;
  for (int32_t i = t.ndim; i-- > 0;) {
    if (t.shape[i] != 1 && t.strides[i] != elements) return false;
    elements *= t.shape[i];
  }
  return true;
}
// A dtype as one number.
inline int64_t key_of(const DLDataType& type) { return type.code << 8 | type.bits; }

// The properties of a tensor. Its sizes and strides belong to torch or, if they came from Python, to the View.
struct View : DLTensor {
  static constexpr int32_t kMostAxes = 64;
  int64_t own[2 * kMostAxes];
};

// A torch function that makes an empty tensor, and a quicker one, or None, that never fills it. Python makes them:
// allocation in cuffi/runtime/planning.py.
struct Allocation {
  PyObject *function, *arguments, *named, *quick, *quick_arguments;
  std::array<PyObject*, 5> all() const { return {function, arguments, named, quick, quick_arguments}; }

  // False, with an exception, if the tuple is no allocation. The references are borrowed.
  bool take(PyObject* tuple) {
    return PyArg_ParseTuple(tuple, "OOOOO", &function, &arguments, &named, &quick, &quick_arguments);
  }
  // fills: torch.use_deterministic_algorithms asks for a fill.
  PyObject* make(bool fills) const {
    return fills || quick == Py_None ? PyObject_Call(function, arguments, named)
                                     : PyObject_Call(quick, quick_arguments, nullptr);
  }
};

// A dict that Python passes once. It reads each value once, and owns none of them.
class Named {
 public:
  explicit Named(PyObject* dict) : dict_(dict) {}

  // Null, with a TypeError, if there is no such value.
  PyObject* object(const char* name) const {
    if (!dict_) return nullptr;
    const Owned key(PyUnicode_FromString(name));
    PyObject* const found = key ? PyDict_GetItemWithError(dict_, key.get()) : nullptr;
    if (!found && !PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "no value '%s'", name);
    return found;
  }
  long long number(const char* name) const {
    PyObject* const found = object(name);
    return found ? PyLong_AsLongLong(found) : 0;
  }
  // A function's address.
  template <typename Function>
  Function address(const char* name) const {
    PyObject* const found = object(name);
    return reinterpret_cast<Function>(found ? PyLong_AsVoidPtr(found) : nullptr);
  }
  std::vector<Allocation> allocations(const char* name) const {
    PyObject* const tuple = object(name);
    std::vector<Allocation> found;
    Allocation one;
    for (Py_ssize_t i = 0; tuple && i < PyTuple_Size(tuple) && one.take(PyTuple_GetItem(tuple, i)); ++i)
      found.push_back(one);
    return found;
  }

 private:
  PyObject* dict_;
};

// A builtin of torch that takes nothing, or one object. Its C function is called itself, which takes half the time.
class Builtin {
 public:
  explicit Builtin(PyObject* function) : function_(function) {
    if (!function || !PyObject_TypeCheck(function, &PyCFunction_Type)) return;
    flags_ = PyCFunction_GetFlags(function);
    self_ = PyCFunction_GetSelf(function);
    quick_ = PyCFunction_GetFunction(function);
  }
  PyObject* operator()() const {
    return flags_ == METH_NOARGS ? quick_(self_, nullptr) : PyObject_CallNoArgs(function_);
  }
  PyObject* operator()(PyObject* argument) const {
    return flags_ == METH_O ? quick_(self_, argument)
                            : PyObject_CallFunctionObjArgs(function_, argument, nullptr);
  }
  // It is a method of an object, and is called as that of another one of its type.
  PyObject* of(PyObject* object) const {
    if (flags_ == METH_NOARGS) return quick_(object, nullptr);
    const Owned name(PyObject_GetAttrString(function_, "__name__"));
    return name ? PyObject_CallMethodObjArgs(object, name.get(), nullptr) : nullptr;
  }

 private:
  PyObject *function_, *self_ = nullptr;
  PyCFunction quick_ = nullptr;
  int flags_ = -1;
};

// Names of attributes. Each is made once, because Python finds an attribute faster by an interned name.
struct Names {
#define CAFFE_NAME(name) PyObject* const name = PyUnicode_InternFromString(#name)
  // Of a node of torch's autograd.
  CAFFE_NAME(needs_input_grad);
  CAFFE_NAME(saved_tensors);
  CAFFE_NAME(to_save);
  // Attributes that our nodes have there.
  CAFFE_NAME(given);
  // Of a tensor.
  CAFFE_NAME(data_ptr);
  CAFFE_NAME(device);
  CAFFE_NAME(dtype);
  CAFFE_NAME(shape);
  CAFFE_NAME(stride);
#undef CAFFE_NAME
  static const Names& get() {
    static const Names names;
    return names;
  }
};

// The parts of torch that a call needs, by the names of of_torch in cuffi/runtime/extension.py.
struct Torch : Named {
  using Named::Named;
  // The plain types of tensors.
  PyObject *tensor = object("tensor"), *parameter = object("parameter");
  // Methods of some tensor, and the name of an attribute.
  Builtin is_neg{object("is_neg")}, is_conj{object("is_conj")};
  // Where a tensor's dispatch keys are, and those of negative and conjugate views. 0: unknown, C asks.
  struct Keys {
    long long pointer = 0, set = 0;
    unsigned long long negative = 0, conjugate = 0;
  } keys = keys_in(object("lazy_keys"));
  // Where a tensor's implementation has its version counter's address, and the counter its number; and a word that is 0
  // if it wants no gradient (cuffi/runtime/places.py). -1: unknown, C asks.
  struct Places {
    long long counter = -1, number = -1, autograd = -1;
  } places = places_in(object("version_counter"), object("autograd_place"));
  PyObject* requires_grad = object("requires_grad");
  // Functions: is there any?
  Builtin modes{object("modes")}, tracing{object("tracing")}, autocasting{object("autocasting")};
  // Functions: does a profiler run? Is there a mode of torch's Python functions?
  Builtin profiling{object("profiling")}, function_modes{object("function_modes")};
  // A function of a dispatch key: is it included in this thread? And the key of tracers before the dispatcher.
  PyObject *is_included = object("is_included"), *pre_dispatch = object("pre_dispatch");
  // A function: is a transform of torch.func active?
  Builtin transforms{object("transforms")};
  // A function: may empty tensors have to be filled?
  Builtin deterministic{object("deterministic")};
  // Functions.
  Builtin grad_enabled{object("grad_enabled")}, get_num_threads{object("get_num_threads")};
  // A module's dict, and the name of its int.
  PyObject *forward_ad = object("forward_ad"), *current_level = object("current_level");
  // Functions of a device type's name.
  PyObject *is_autocast_enabled = object("is_autocast_enabled"),
           *get_autocast_dtype = object("get_autocast_dtype");
  // A method of a tensor, and a dtype.
  PyObject *to = object("to"), *float32 = object("float32");
  // {torch's dtype: DLPack's code << 8 | bits}, and {torch's device: DLPack's type << 32 | index}, which grows.
  PyObject *dtypes = object("dtypes"), *devices = object("devices");
  // Functions: makes another GPU the current one; the number of GPUs; a GPU's current stream as an int.
  PyObject *exchange_device = object("exchange_device"), *device_count = object("device_count"),
           *raw_stream = object("raw_stream");
  long devices_there = -1;  // unknown yet
  // A function: these tensors were written to.
  Builtin increment_version{object("increment_version")};
  // Null if this torch has no such API, or one of another version.
  const DLPackExchangeAPI* api = version_1(object("exchange_api"));

  bool is_plain(PyObject* object) const {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    return type == tensor || type == parameter;
  }
  // False if it is not a dense tensor, or its memory is hidden, as in torch.func's transforms.
  bool read(PyObject* object, View* out) const {
    if (api ? api->from_python(object, out) == 0 : read_attributes(object, out)) return true;
    PyErr_Clear();
    return false;
  }
  // The current stream of the tensor's device, 0 for the processor. False, with an exception, if torch raises one.
  bool stream_of(const DLTensor& t, int64_t* stream) const {
    *stream = 0;
    if (t.device_type == kDLCPU) return true;
    void* found = nullptr;
    if (api) {
      if (api->current_stream(t.device_type, t.device, &found)) return false;
      *stream = reinterpret_cast<intptr_t>(found);
      return true;
    }
    const Owned answer(PyObject_CallFunction(raw_stream, "i", t.device));
    if (answer) *stream = PyLong_AsLongLong(answer.get());
    return !PyErr_Occurred();
  }
  // The tensors' memory has changed: a backward that saved one of them must not use it.
  void written(PyObject* const* tensors, Py_ssize_t count) const {
    if (places.counter >= 0 && std::all_of(tensors, tensors + count,
                                           [&](PyObject* t) { return knows_keys(t) && implementation(t); })) {
      for (Py_ssize_t i = 0; i < count; ++i)
        if (char* const counter = *reinterpret_cast<char**>(implementation(tensors[i]) + places.counter))
          __atomic_fetch_add(reinterpret_cast<uint32_t*>(counter + places.number), 1, __ATOMIC_SEQ_CST);
      return;
    }
    const Owned all(tuple_of(tensors, count));
    const Owned done(all ? increment_version(all.get()) : nullptr);
    if (!done) PyErr_Clear();  // an inference tensor, which no backward uses
  }
  bool is_negative(PyObject* object) const {
    return knows_keys(object) ? has_key(object, keys.negative) : truth(is_neg.of(object));
  }
  // Does its memory hold the negatives or the conjugates of its values? DLPack does not show it.
  bool is_lazy(PyObject* object, const View& view) const {
    if (knows_keys(object)) return has_key(object, keys.negative | keys.conjugate);
    const bool is_complex = view.dtype.code == kDLComplex;
    return is_negative(object) || (is_complex && truth(is_conj.of(object)));
  }
  bool wants_gradient(PyObject* object) const {
    const bool is_known = places.autograd >= 0 && knows_keys(object) && implementation(object);
    if (is_known && !*reinterpret_cast<void**>(implementation(object) + places.autograd)) return false;
    return truth(PyObject_GetAttr(object, requires_grad));
  }
  bool has_tangents() const {
    PyObject* level = PyDict_GetItemWithError(forward_ad, current_level);
    return level == nullptr || PyLong_AsLong(level) >= 0;
  }
  // The dtype that autocast casts to on that type of device. Null if autocast is off, or after an error.
  PyObject* autocast_dtype(int32_t device_type) const {
    PyObject* const name = PyUnicode_InternFromString(device_type == kDLCPU ? "cpu" : "cuda");
    PyObject* found = nullptr;
    if (truth(PyObject_CallFunctionObjArgs(is_autocast_enabled, name, nullptr)))
      found = PyObject_CallFunctionObjArgs(get_autocast_dtype, name, nullptr);
    Py_DECREF(name);
    return found;
  }
  // DLPack's code of a dtype; -1 for one that is not known.
  long code_of(PyObject* dtype) const {
    PyObject* code = PyDict_GetItemWithError(dtypes, dtype);
    const long found = code ? PyLong_AsLong(code) : -1;
    PyErr_Clear();
    return found;
  }
  // Does torch do more with a call than to run it?
  bool is_watching() const {
    return ask(modes) || ask(tracing) || has_tangents() || (ask(function_modes) && is_before_dispatch());
  }
  // Does a tracer watch before the dispatcher does? It has a mode of Python functions, too, except while that mode
  // calls an operator.
  bool is_before_dispatch() const {
    return truth(PyObject_CallFunctionObjArgs(is_included, pre_dispatch, nullptr));
  }
  static bool ask(const Builtin& function) { return truth(function()); }
  // torch.get_num_threads(); 1 if it failed.
  int threads() const {
    const long count = number(get_num_threads());
    return count > 0 ? static_cast<int>(count) : 1;
  }
  // The number that a function returned. -1 if it failed; then the error is cleared.
  static long number(PyObject* answer) {
    const long value = answer ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    if (PyErr_Occurred()) PyErr_Clear();
    return value;
  }

 private:
  bool knows_keys(PyObject* object) const { return keys.negative && is_plain(object); }
  char* implementation(PyObject* object) const {
    return *reinterpret_cast<char**>(reinterpret_cast<char*>(object) + keys.pointer);
  }
  bool has_key(PyObject* object, uint64_t wanted) const {
    const char* const impl = implementation(object);
    return !impl || (*reinterpret_cast<const uint64_t*>(impl + keys.set) & wanted) != 0;
  }
  static Keys keys_in(PyObject* tuple) {
    Keys found;
    const bool known =
        tuple && tuple != Py_None &&
        PyArg_ParseTuple(tuple, "LLKK", &found.pointer, &found.set, &found.negative, &found.conjugate);
    return known ? found : Keys();
  }
  static Places places_in(PyObject* counter, PyObject* autograd) {
    Places found;
    if (counter && counter != Py_None && !PyArg_ParseTuple(counter, "LL", &found.counter, &found.number))
      return Places();
    if (autograd && autograd != Py_None) found.autograd = PyLong_AsLongLong(autograd);
    return found;
  }
  bool read_attributes(PyObject* object, View* out) const {
    const Names& names = Names::get();
    const Owned address(PyObject_CallMethodObjArgs(object, names.data_ptr, nullptr));
    const Owned shape(address ? PyObject_GetAttr(object, names.shape) : nullptr);
    const Owned strides(shape ? PyObject_CallMethodObjArgs(object, names.stride, nullptr) : nullptr);
    const Owned device(strides ? PyObject_GetAttr(object, names.device) : nullptr);
    const Owned dtype(device ? PyObject_GetAttr(object, names.dtype) : nullptr);
    const Owned place(dtype ? PyObject_GetItem(devices, device.get()) : nullptr);
    const Owned key(place ? PyObject_GetItem(dtypes, dtype.get()) : nullptr);
    if (!key) return false;
    const Py_ssize_t axes = PyTuple_Size(shape.get());
    if (axes < 0 || axes > View::kMostAxes || PyTuple_Size(strides.get()) != axes) return false;
    const long long where = PyLong_AsLongLong(place.get()), kind = PyLong_AsLongLong(key.get());
    *static_cast<DLTensor*>(out) = {PyLong_AsVoidPtr(address.get()),
                                    static_cast<int32_t>(where >> 32),
                                    static_cast<int32_t>(where & 0x7FFFFFFF),
                                    static_cast<int32_t>(axes),
                                    {static_cast<uint8_t>(kind >> 8), static_cast<uint8_t>(kind & 0xFF), 1},
                                    out->own,
                                    out->own + axes,
                                    0};
    for (Py_ssize_t i = 0; i < axes; ++i) {
      out->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape.get(), i));
      out->strides[i] = PyLong_AsLongLong(PyTuple_GetItem(strides.get(), i));
    }
    return !PyErr_Occurred();
  }
  static const DLPackExchangeAPI* version_1(PyObject* capsule) {
    if (!capsule || capsule == Py_None) return nullptr;
    auto* api = static_cast<DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
    if (!api) PyErr_Clear();
    while (api && api->major > 1) api = api->older;
    return api && api->from_python ? api : nullptr;
  }
  // An error counts as true: if in doubt, the call goes the careful way.
  static bool truth(PyObject* answer) {
    if (answer == Py_False || answer == Py_True) {
      Py_DECREF(answer);
      return answer == Py_True;
    }
    return number(answer) != 0;
  }
};

inline Torch torch(nullptr);  // until Python has called configure

// Makes the tensor's GPU the current one until the end of its scope.
class OnDevice {
 public:
  explicit OnDevice(const DLTensor& t) : OnDevice(t.device_type, t.device) {}
  OnDevice(int32_t device_type, int32_t device) : device_(device) {
    if (device_type != kDLCPU && are_several()) before_ = exchange(device);
  }
  ~OnDevice() {
    if (before_ < 0 || before_ == device_) return;
    const Aside the_calls_error;
    exchange(before_);
  }
  OnDevice(const OnDevice&) = delete;

 private:
  static bool are_several() {
    if (torch.devices_there < 0) torch.devices_there = Torch::number(PyObject_CallNoArgs(torch.device_count));
    return torch.devices_there != 1 && torch.exchange_device != Py_None;
  }
  static long exchange(long device) {
    return Torch::number(PyObject_CallFunction(torch.exchange_device, "l", device));
  }
  const long device_;
  long before_ = -1;
};

// A Python object that holds a C++ object.
template <typename T>
struct Holder {
  PyObject_HEAD T* self;
};
template <typename T>
T*& self_of(PyObject* object) {
  return reinterpret_cast<Holder<T>*>(object)->self;
}

}  // namespace caffe
