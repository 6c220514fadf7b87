// A layer's C functions as Python builtins: tensors in, no Python code on the way.
//
// The library knows nothing of torch. It reads tensors through DLPack's C exchange API, a table of functions
// that torch (from 2.10 on) hands out. For each declared function build_ffi.py writes a `foo_call` made of
// the class below. It takes the clear case alone: plain dense tensors of the right kind on this library's
// device. In any doubt it hands its arguments on to `otherwise`, in the end the Python launcher of
// layers/_runtime.py, which knows what to do and what to say.
#ifndef CAFFE_FFI_CALL_H_
#define CAFFE_FFI_CALL_H_

#include <Python.h>
#include <string.h>

#include <type_traits>

#include "ffi_guard.h"

namespace caffe {

// Of dlpack.h, version 1, whose authors promise that its layout stays.
enum DLDeviceType : int32_t { kDLCPU = 1, kDLCUDA = 2 };
enum DLDataTypeCode : uint8_t { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 };
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  int32_t device_type, device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLPackExchangeAPI {
  uint32_t major, minor;
  DLPackExchangeAPI* older;
  void *allocate, *managed_from_python, *managed_to_python;
  int (*from_python)(void* object, DLTensor* out);  // owns nothing, allocates nothing
  int (*current_stream)(int32_t device_type, int32_t device, void** stream);
};

// What Python hands over once for each function, to `bind` below.
struct Binding {
  PyObject *otherwise, *fail, *tensor, *parameter, *is_neg, *get_num_threads, *current_device;
  int device_type, dtypes, any_layout;  // dtypes: bit c is set if the layer computes in caffe_dtype c
  const DLPackExchangeAPI* torch;
};

class Call {
 public:
  Call(PyObject* self, PyObject* const* given, Py_ssize_t count, Py_ssize_t wanted)
      : binding_(*static_cast<Binding*>(PyCapsule_GetPointer(self, nullptr))),
        given_(given),
        count_(count),
        clear_(count == wanted) {}

  int dtype = -1;  // of the `void *` tensors
  void* stream = nullptr;

  // The next argument's address: 0 for None and for a tensor without elements. C declares it as `T *`.
  template <typename T>
  uintptr_t tensor() {
    constexpr bool is_input = std::is_const_v<T>;
    PyObject* object = next();
    if (!is_input) has_outputs_ = true;
    if (!clear_ || object == Py_None) return 0;
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    if (type != binding_.tensor && type != binding_.parameter) return unclear();
    DLTensor t;
    if (binding_.torch->from_python(object, &t)) return unclear();
    if (device_ < 0) device_ = t.device;
    if (t.device_type != binding_.device_type || t.device != device_ || !fits<T>(t.dtype)) return unclear();
    int64_t elements = 1;
    bool contiguous = true;
    for (int32_t i = t.ndim; i-- > 0;) {
      contiguous &= t.shape[i] == 1 || t.strides == nullptr || t.strides[i] == elements;
      elements *= t.shape[i];
    }
    if (!elements) return 0;
    if (!is_input) writes_ = true;
    if (t.data == nullptr || !(contiguous || binding_.any_layout)) return unclear();
    // A view like z.conj().imag: its memory holds -value, which DLPack does not tell.
    if (is_input && number_from(binding_.is_neg, object) != 0) return unclear();
    return reinterpret_cast<uintptr_t>(t.data) + t.byte_offset;
  }

  // The next argument as a number.
  template <typename T>
  T number() {
    PyObject* object = next();
    if (!clear_) return T();
    if (std::is_floating_point_v<T>) {
      const double value = PyFloat_AsDouble(object);
      if (value == -1 && PyErr_Occurred()) unclear();
      return static_cast<T>(value);
    }
    const long long value = PyLong_Check(object) ? PyLong_AsLongLong(object) : unclear();
    if ((value == -1 && PyErr_Occurred()) || static_cast<long long>(static_cast<T>(value)) != value)
      unclear();
    return static_cast<T>(value);
  }

  // All arguments are taken: run `function`, which returns a status.
  template <typename Function>
  PyObject* run(const Function& function) {
    if (!clear_ || device_ < 0) return otherwise();  // below 0: no tensor came
    if (has_outputs_ && !writes_) return none();     // all outputs are empty or unwanted
    if (!prepare()) return otherwise();
    PyThreadState* const python = PyEval_SaveThread();
    const int status = function();
    PyEval_RestoreThread(python);
    return status ? PyObject_CallFunctionObjArgs(binding_.fail, nullptr) : none();
  }

  static PyObject* none() {
    Py_INCREF(Py_None);
    return Py_None;
  }

 private:
  PyObject* next() { return clear_ ? given_[next_++] : nullptr; }

  int unclear() {
    clear_ = false;
    return 0;
  }

  // Is a tensor's dtype what a `T *` takes? `void *` takes those of the layer, one dtype in all of a call.
  template <typename T>
  bool fits(DLDataType type) {
    if constexpr (!std::is_void_v<T>) {
      const uint8_t code = std::is_same_v<std::remove_const_t<T>, bool> ? kDLBool
                           : std::is_floating_point_v<T>                ? kDLFloat
                           : std::is_signed_v<T>                        ? kDLInt
                                                                        : kDLUInt;
      return type.code == code && type.bits == 8 * sizeof(T);
    }
    const int kind = type.code << 8 | type.bits;
    const int found = kind == (kDLFloat << 8 | 32)    ? CAFFE_FLOAT32
                      : kind == (kDLFloat << 8 | 64)  ? CAFFE_FLOAT64
                      : kind == (kDLFloat << 8 | 16)  ? CAFFE_FLOAT16
                      : kind == (kDLBfloat << 8 | 16) ? CAFFE_BFLOAT16
                                                      : -1;
    if (found < 0 || (dtype >= 0 && dtype != found)) return false;
    dtype = found;
    return binding_.dtypes >> found & 1;
  }

  // The stream on a GPU, the number of threads on the host. False: not this way.
  bool prepare() {
    if (binding_.device_type == kDLCPU) {
      const long count = number_from(binding_.get_num_threads);
      if (count > 0) caffe_set_num_threads(static_cast<int>(count));
      return count > 0;
    }
    if (binding_.current_device != Py_None && number_from(binding_.current_device) != device_) return false;
    return binding_.torch->current_stream(binding_.device_type, device_, &stream) == 0;
  }

  // What a Python function answers; -1 if it is an error.
  static long number_from(PyObject* function, PyObject* argument = nullptr) {
    PyObject* answer = PyObject_CallFunctionObjArgs(function, argument, nullptr);
    const long number = answer ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    return number;
  }

  PyObject* otherwise() {
    PyErr_Clear();
    PyObject* arguments = PyTuple_New(count_);
    for (Py_ssize_t i = 0; arguments && i < count_; ++i) {
      Py_INCREF(given_[i]);
      PyTuple_SetItem(arguments, i, given_[i]);
    }
    PyObject* result = arguments ? PyObject_Call(binding_.otherwise, arguments, nullptr) : nullptr;
    Py_XDECREF(arguments);
    return result;
  }

  const Binding& binding_;
  PyObject* const* given_;
  const Py_ssize_t count_;
  Py_ssize_t next_ = 0;
  int32_t device_ = -1;
  bool clear_, has_outputs_ = false, writes_ = false;
};

// The builtin of one of `methods`; None if there is none, or torch's table is of an unknown kind. Called by
// Python, through ctypes, once for each function.
inline PyObject* bind(PyMethodDef* methods, PyObject* all) {
  Binding b;
  const char* name;
  PyObject* capsule;
  if (!PyArg_ParseTuple(all, "sOOOOOOOiiiO", &name, &b.otherwise, &b.fail, &b.tensor, &b.parameter, &b.is_neg,
                        &b.get_num_threads, &b.current_device, &b.device_type, &b.dtypes, &b.any_layout,
                        &capsule))
    return nullptr;
  b.torch = static_cast<DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  PyErr_Clear();
  while (b.torch && b.torch->major > 1) b.torch = b.torch->older;
  while (methods->ml_name && strcmp(methods->ml_name, name)) ++methods;
  if (!b.torch || !b.torch->from_python || !methods->ml_name) return Call::none();
  Py_INCREF(all);  // for ever, with what it holds: launchers live as long as the process
  PyObject* self = PyCapsule_New(new Binding(b), nullptr, nullptr);
  PyObject* launcher = self ? PyCFunction_NewEx(methods, self, nullptr) : nullptr;
  Py_XDECREF(self);
  return launcher;
}

// As PyMethodDef wants it.
inline PyCFunction builtin(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace caffe

#endif  // CAFFE_FFI_CALL_H_
