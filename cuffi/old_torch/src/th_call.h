// Calls the C functions of an extension of torch.utils.ffi from Python: the body of the Python module that
// cuffi/old_torch/make/wrapper.py writes for each. cuffi/old_torch/include/TH and cuffi/old_torch/include/THC declare tensors for the extension's C code.
//
// A call reads its tensors through call_torch.h, passes each as a THTensor, and runs the function inside caffe_guard
// without the interpreter's lock. If C calls a torch operation (th_torch), Python does it on the tensor itself, so a
// resize changes the caller's tensor, and torch counts its version. Any error leaves C as an exception, and becomes a
// Python exception that names the extension, the function and the argument.
#pragma once

#include <TH/TH.h>
#include <stdarg.h>

#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "call_torch.h"
#include "ffi_guard.h"

namespace th {

using caffe::DLTensor;
using caffe::Owned;

// The functions that Python passes once (of_python in cuffi/old_torch/ffi/ffi_library.py).
struct Python : caffe::Named {
  using caffe::Named::Named;
  // Functions. Do an operation of TH; raise the error for an argument; raise that of a failed call; make a dense copy;
  // give a copy's values back; the address of a pointer of cffi.
  PyObject *service = object("service"), *refuse = object("refuse"), *fail = object("fail"),
           *dense = object("dense"), *restore = object("restore"), *address_of = object("address_of");
};
inline Python* python = nullptr;

// kTensor: of a family of TH. kMemory: any other pointer. Writes: the function is known to write through its data.
enum Kind : char { kTensor, kInteger, kReal, kText, kMemory, kNothing };
struct Parameter {
  const char* name;
  Kind kind;
  const char* type;    // as error messages have it
  uint8_t code, bits;  // DLPack's, of a tensor's elements
  bool on_gpu;         // a tensor of THC
  bool any_layout;     // C reads its strides
  bool writes;
  long long least, most;  // of an integer
};
union Word {
  long long integer;
  double real;
  const void* address;
  THTensor* tensor;
};
struct Function {
  const char* name;
  const Parameter* parameters;
  size_t count;
  Kind returns;
  void (*run)(const Word* words, Word* result);
};
#ifdef CAFFE_HOST_BACKEND
constexpr int32_t kGpu = caffe::kDLCPU;
#else
constexpr int32_t kGpu = caffe::kDLCUDA;
#endif
constexpr size_t kMostParameters = 64;

// A tensor as C sees it. It begins with the THTensor, so that a THTensor's address is its own.
struct Lent {
  THTensor view;
  THStorage storage;
  PyObject* object;    // owned
  PyObject* original;  // owned: the caller's tensor, if `object` is a dense copy of it
  caffe::View tensor;

  explicit Lent(PyObject* given) : view(), storage(), object(given), original(nullptr) { Py_INCREF(given); }
  Lent(const Lent&) = delete;
  ~Lent() {
    Py_XDECREF(object);
    Py_XDECREF(original);
  }
  // Fill in the view. False if it is not a tensor in the memory of a processor or a GPU.
  bool read() {
    if (!caffe::torch.read(object, &tensor)) return false;
    static long one[] = {1};  // TH had no tensors without dimensions: a number was a row of one
    storage.data = reinterpret_cast<void*>(caffe::memory_of(tensor));
    view.nDimension = tensor.ndim ? tensor.ndim : 1;
    view.size = tensor.ndim ? reinterpret_cast<long*>(tensor.shape) : one;
    view.stride = tensor.ndim ? reinterpret_cast<long*>(tensor.strides) : one;
    view.device = tensor.device_type == caffe::kDLCPU ? -1 : tensor.device;
    view.storage = &storage;
    storage.size = th_elements(&view);
    return true;
  }
};

// The call that this thread is in. C's temporaries live until it ends.
struct Call {
  std::deque<Lent> lent;
  int32_t device = -1;  // of the GPU's tensors; -1 if there is none
  void* stream = nullptr;
  PyThreadState* thread = nullptr;
  PyObject *error_type = nullptr, *error = nullptr,
           *error_trace = nullptr;  // Python's exception during the call
  Call* const outer;

  static Call*& current() {
    static thread_local Call* call = nullptr;
    return call;
  }
  Call() : outer(std::exchange(current(), this)) {}
  ~Call() {
    current() = outer;
    Py_XDECREF(error_type);
    Py_XDECREF(error);
    Py_XDECREF(error_trace);
  }
  Call(const Call&) = delete;
  static Call& here() {
    if (!current())
      throw std::runtime_error("a function of TH was called by a thread that Python did not call");
    return *current();
  }
  // Keep Python's exception, and leave C.
  [[noreturn]] void raise(const char* operation) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the result's memory cannot be read");
    PyErr_Fetch(&error_type, &error, &error_trace);
    PyErr_NormalizeException(&error_type, &error, &error_trace);
    throw std::runtime_error(operation);
  }
};

// Within it this thread has the interpreter's lock, in the middle of a call.
class Locked {
 public:
  explicit Locked(Call& call) : call_(call) { PyEval_RestoreThread(call.thread); }
  ~Locked() { call_.thread = PyEval_SaveThread(); }

 private:
  Call& call_;
};

inline Lent& lent_of(THTensor* t) {
  if (!t) throw std::runtime_error("a tensor of TH is NULL");
  return *reinterpret_cast<Lent*>(t);
}

// The tensor whose storage it is.
inline THTensor* tensor_of(THStorage* s) {
  return s ? reinterpret_cast<THTensor*>(reinterpret_cast<char*>(s) - offsetof(Lent, storage)) : nullptr;
}

// Let Python do an operation on C's arguments. Returns its result: a tensor, a number or None.
inline PyObject* ask(Call& call, const char* operation, const char* kinds, va_list list) {
  std::vector<PyObject*> given{PyUnicode_FromString(operation)};
  std::vector<Lent*> used;
  for (; *kinds; ++kinds) {
    if (*kinds == 't' || *kinds == 'S') {
      used.push_back(&lent_of(*kinds == 't' ? va_arg(list, THTensor*) : tensor_of(va_arg(list, THStorage*))));
      Py_INCREF(used.back()->object);
      given.push_back(used.back()->object);
    } else if (*kinds == 'l') {
      given.push_back(PyLong_FromLong(va_arg(list, long)));
    } else if (*kinds == 'd') {
      given.push_back(PyFloat_FromDouble(va_arg(list, double)));
    } else if (*kinds == 's') {
      given.push_back(PyUnicode_FromString(va_arg(list, const char*)));
    } else {
      given.push_back(PyLong_FromVoidPtr(va_arg(list, void*)));
    }
  }
  const Owned arguments(caffe::tuple_of(given.data(), static_cast<Py_ssize_t>(given.size())));
  for (PyObject* one : given) Py_XDECREF(one);
  PyObject* const found = arguments ? PyObject_CallObject(python->service, arguments.get()) : nullptr;
  if (!found) call.raise(operation);
  // Only the first changes. A result that replaces it, such as a view, takes its place.
  if (!used.empty() && found != Py_None && strncmp(operation, "new", 3)) {
    Py_INCREF(found);
    Py_DECREF(std::exchange(used[0]->object, found));
  }
  for (Lent* one : used)
    if (!one->read()) {
      Py_DECREF(found);
      call.raise(operation);
    }
  return found;
}

}  // namespace th

// Does a resize leave the tensor as it is?
static bool th_has_size(const THTensor* t, const char* kinds, va_list list) {
  if (strlen(kinds) != static_cast<size_t>(t->nDimension) + 1) return false;
  for (int i = 0; i < t->nDimension; ++i)
    if (va_arg(list, long) != t->size[i]) return false;
  return th_is_contiguous(t);
}
static bool th_is_like(const THTensor* t, const THTensor* like) {
  return like && th_same_size(t, like) && th_is_contiguous(t);
}

struct THCState {};
static THCState th_only_state;
extern "C" {
__attribute__((weak)) THCState* state = &th_only_state;  // an extension in C++ may define it itself

void th_fail(const char* format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof(text), format, list);
  va_end(list);
  throw std::runtime_error(text);
}
THTensor* th_torch(const char* operation, const char* kinds, ...) {
  th::Call& call = th::Call::here();
  va_list list;
  if (!strcmp(operation, "resize") || !strcmp(operation, "resizeAs")) {  // most often to the size that it has
    va_start(list, kinds);
    const THTensor* const t = va_arg(list, THTensor*);
    const bool same =
        t && (kinds[1] == 't' ? th_is_like(t, va_arg(list, THTensor*)) : th_has_size(t, kinds, list));
    va_end(list);
    if (same) return nullptr;
  }
  const th::Locked lock(call);
  va_start(list, kinds);
  const caffe::Owned found(th::ask(call, operation, kinds, list));
  va_end(list);
  if (strncmp(operation, "new", 3)) return nullptr;
  call.lent.emplace_back(found.get());
  if (!call.lent.back().read()) call.raise(operation);
  return &call.lent.back().view;
}
void* th_stream(void) { return th::Call::here().stream; }
int th_device(void) { return th::Call::here().device; }
void* th_allocate(size_t bytes) {
  return th_torch("new", "sl", "THCudaByteTensor", static_cast<long>(bytes))->storage->data;
}
}

namespace th {

// The `self` of a function's builtin.
struct Bound {
  const Function* function;
  PyObject* other;  // the same function of another backend's library, for tensors of its device; or null
  PyMethodDef method;
};

// Ask Python for the error about an argument. index -1: their number.
inline bool refuse(const Function& f, Py_ssize_t index, PyObject* value) {
  const Parameter* const p = index < 0 ? nullptr : &f.parameters[index];
  const Owned done(PyObject_CallFunction(
      python->refuse, "ssssnLLO", f.name, p ? p->name : "", p ? p->type : "",
      p && p->kind == kTensor ? p->on_gpu ? "gpu" : "cpu" : "", p ? index : static_cast<Py_ssize_t>(f.count),
      p ? p->least : 0LL, p ? p->most : 0LL, value));
  return false;
}

inline bool fits(const Parameter& p, const DLTensor& t) {
  const bool is_byte = p.bits == 8 && t.dtype.code == caffe::kDLBool && t.dtype.bits == 8;
  return t.device_type == (p.on_gpu ? kGpu : int32_t{caffe::kDLCPU}) &&
         (is_byte || (t.dtype.code == p.code && t.dtype.bits == p.bits));
}

// Lend a tensor. False, with an exception, if it does not fit.
inline bool lend(Call& call, const Function& f, size_t index, PyObject* value, Word* word) {
  const Parameter& p = f.parameters[index];
  call.lent.emplace_back(value);
  Lent& lent = call.lent.back();
  const DLTensor& t = lent.tensor;
  const bool readable = lent.read() && (lent.storage.data || !lent.storage.size);
  if (!readable || !fits(p, t) || (p.on_gpu && call.device >= 0 && call.device != t.device))
    return refuse(f, static_cast<Py_ssize_t>(index), value);
  if (p.on_gpu && call.device < 0) {
    int64_t stream;
    if (!caffe::torch.stream_of(t, &stream)) return false;
    call.device = t.device;
    call.stream = reinterpret_cast<void*>(stream);
  }
  if ((!p.any_layout && !th_is_contiguous(&lent.view)) || caffe::torch.is_negative(value)) {
    PyObject* const copy = PyObject_CallFunctionObjArgs(python->dense, value, nullptr);
    if (!copy) return false;
    lent.original = std::exchange(lent.object, copy);
    if (!lent.read()) return refuse(f, static_cast<Py_ssize_t>(index), value);
  }
  word->tensor = &lent.view;
  return true;
}

// Convert an argument. False, with an exception, if it does not fit.
inline bool convert(Call& call, const Function& f, size_t index, PyObject* value, Word* word) {
  const Parameter& p = f.parameters[index];
  if (p.kind == kTensor) return lend(call, f, index, value, word);
  if (p.kind == kReal) {
    word->real = PyFloat_AsDouble(value);
  } else if (p.kind == kInteger) {
    const Owned number(PyNumber_Index(value));
    word->integer = number ? PyLong_AsLongLong(number.get()) : 0;
    if (!PyErr_Occurred() && (word->integer < p.least || word->integer > p.most))
      return refuse(f, static_cast<Py_ssize_t>(index), value);
  } else if (p.kind == kText) {
    word->address = PyBytes_Check(value) ? PyBytes_AsString(value) : PyUnicode_AsUTF8AndSize(value, nullptr);
  } else if (value == Py_None || PyLong_Check(value)) {
    word->address = value == Py_None ? nullptr : PyLong_AsVoidPtr(value);
  } else {
    call.lent.emplace_back(value);
    if (call.lent.back().read()) {
      word->address = call.lent.back().storage.data;
    } else {
      PyErr_Clear();
      const Owned number(PyObject_CallFunctionObjArgs(python->address_of, value, nullptr));
      word->address = number ? PyLong_AsVoidPtr(number.get()) : nullptr;
    }
  }
  if (!PyErr_Occurred()) return true;
  PyErr_Clear();
  return refuse(f, static_cast<Py_ssize_t>(index), value);
}

// Run the C function, on the tensors' device, without the interpreter's lock. False, with an exception, if it failed.
inline bool run(Call& call, const Function& f, const Word* words, Word* result) {
  const caffe::OnDevice here(call.device < 0 ? int32_t{caffe::kDLCPU} : kGpu, call.device);
  caffe_set_num_threads(caffe::torch.threads());
  call.thread = PyEval_SaveThread();
  const int status = caffe_guard([&] { return f.run(words, result), 0; });
  PyEval_RestoreThread(call.thread);
  if (status)
    Owned(PyObject_CallFunction(python->fail, "ssO", f.name, caffe_error_text,
                                call.error ? call.error : Py_None));
  return !status;
}

// Copy dense copies back, and tell torch which tensors were written to through their memory.
inline bool settle(Call& call, const Function& f, PyObject* const* given) {
  for (Lent& lent : call.lent)
    if (lent.original &&
        !Owned(PyObject_CallFunctionObjArgs(python->restore, lent.original, lent.object, nullptr)))
      return false;
  PyObject* written[kMostParameters];
  Py_ssize_t count = 0;
  for (size_t i = 0; i < f.count; ++i)
    if (f.parameters[i].writes) written[count++] = given[i];
  if (count) caffe::torch.written(written, count);
  return true;
}

// Are the tensors on another device, for which there is another library?
inline bool belongs_elsewhere(const Bound& bound, PyObject* const* given) {
  const Function& f = *bound.function;
  for (size_t i = 0; bound.other && i < f.count; ++i)
    if (f.parameters[i].kind == kTensor && f.parameters[i].on_gpu) {
      caffe::View t;
      return caffe::torch.read(given[i], &t) && t.device_type != kGpu;
    }
  return false;
}

inline PyObject* call(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  Bound& bound = *static_cast<Bound*>(PyCapsule_GetPointer(self, nullptr));
  const Function& f = *bound.function;
  if (count != static_cast<Py_ssize_t>(f.count)) {
    const Owned number(PyLong_FromSsize_t(count));
    return refuse(f, -1, number.get()), nullptr;
  }
  if (belongs_elsewhere(bound, given)) {
    const Owned arguments(caffe::tuple_of(given, count));
    return arguments ? PyObject_CallObject(bound.other, arguments.get()) : nullptr;
  }
  Call here;
  Word words[kMostParameters], result{};
  for (size_t i = 0; i < f.count; ++i)
    if (!convert(here, f, i, given[i], &words[i])) return nullptr;
  if (!run(here, f, words, &result) || !settle(here, f, given)) return nullptr;
  if (f.returns == kInteger) return PyLong_FromLongLong(result.integer);
  if (f.returns == kReal) return PyFloat_FromDouble(result.real);
  if (f.returns == kText && result.address)
    return PyUnicode_FromString(static_cast<const char*>(result.address));
  if (f.returns == kMemory) return PyLong_FromVoidPtr(const_cast<void*>(result.address));
  Py_RETURN_NONE;
}

// configure(dict): what of_python gives. Before the first call.
inline PyObject* configure(PyObject*, PyObject* dict) {
  Py_INCREF(dict);
  auto* const made = new Python(dict);
  PyObject* const torch = made->object("torch");
  if (torch) caffe::torch = caffe::Torch(torch);
  if (PyErr_Occurred()) return delete made, nullptr;
  python = made;
  Py_RETURN_NONE;
}

// The module: `configure`, `unsupported`, `edge`, and a dict of its functions, and `connect(name, function)`, the
// function of another library for tensors of another device.
inline std::deque<Bound>& bounds() {
  static std::deque<Bound> all;  // Python may load a library twice
  return all;
}
inline PyObject* connect(PyObject*, PyObject* arguments) {
  const char* name;
  PyObject* function;
  if (!PyArg_ParseTuple(arguments, "sO", &name, &function)) return nullptr;
  for (Bound& one : bounds())
    if (!strcmp(one.function->name, name)) {
      Py_INCREF(function);
      Py_XDECREF(std::exchange(one.other, function));
    }
  Py_RETURN_NONE;
}

inline PyObject* make_module(const char* name, const Function* functions, size_t count) {
  static PyMethodDef methods[] = {{"configure", configure, METH_O, nullptr},
                                  {"connect", connect, METH_VARARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
  static PyModuleDef definition = {
      PyModuleDef_HEAD_INIT, name, nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
  PyObject* const module = PyModule_Create(&definition);
  PyObject* const all = PyDict_New();
  for (size_t i = 0; module && all && i < count; ++i) {
    bounds().push_back(
        {&functions[i], nullptr, {functions[i].name, PY_METHOD(call), METH_FASTCALL, nullptr}});
    const Owned self(PyCapsule_New(&bounds().back(), nullptr, nullptr));
    const Owned made(PyCFunction_NewEx(&bounds().back().method, self.get(), nullptr));
    if (PyDict_SetItemString(all, functions[i].name, made.get())) return nullptr;
  }
  PyModule_AddObject(module, "functions", all);
  PyModule_AddStringConstant(module, "edge", caffe_edge());
  const char* const reason = caffe_unsupported();
  PyModule_AddStringConstant(module, "unsupported", reason ? reason : "");
  return module;
}

}  // namespace th
