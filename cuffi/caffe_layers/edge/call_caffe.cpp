// A call of a Caffe layer: C reads the tensors, fills in a record (caffe/layer_record.h), and calls the core.
//
// call_module and differentiate get the arguments of a module, or of its autograd node. If in doubt they return None.
// Python then converts the tensors, makes what is missing, or words the error, and calls run_forward or run_backward.
// Only the pool keeps anything between calls.
#include <stddef.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "call_launcher.h"
#include "methods.h"

extern "C" {
#include "caffe/layer_record.h"
}

namespace caffe {

// The parts of cuffi/caffe_layers/call, by the names of _of_caffe in its autograd.py.
struct CaffePackage : Named {
  using Named::Named;
  // By thread: the states of generators before a call draws, and services' exceptions. A function: has this thread one?
  PyObject *drawn = object("drawn"), *failures = object("failures");
  Builtin failed{object("failed")};
  // CaffeCall, and its node's apply. Functions: is a CUDA graph captured; (site, shape) -> an empty tensor.
  PyObject *make_call = object("make_call"), *apply = object("apply"), *empty = object("empty");
  Builtin is_capturing{object("is_capturing")};
  // Torch's functions that make an unfilled tensor on the processor and on a GPU, or None.
  PyObject *empty_cpu = object("empty_cpu"), *empty_cuda = object("empty_cuda");
  PyObject *zeros_like = object("zeros_like"), *set_grad_enabled = object("set_grad_enabled");
  PyObject *host = object("host_name"), *accelerator = object("accelerator");  // the backends' names
  PyObject *cpu = object("cpu"), *gpu = object("gpu");                         // the modes
};
inline CaffePackage package(nullptr);  // until Python has called configure_caffe

inline PyObject* nothing() {
  PyErr_Clear();
  Py_INCREF(Py_None);
  return Py_None;
}
inline Owned attribute(PyObject* object, PyObject* name) { return Owned(PyObject_GetAttr(object, name)); }

// An array on the stack, or on the heap if it is long. malloc is slow for a few kilobytes.
template <typename T, size_t kFew>
class Few {
 public:
  explicit Few(size_t count) : size(count), many_(count > kFew ? new T[count] : nullptr) {}
  const size_t size;
  T* begin() { return many_ ? many_.get() : few_; }
  const T* begin() const { return many_ ? many_.get() : few_; }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }

 private:
  std::unique_ptr<T[]> many_;
  T few_[kFew];
};

// Dense contiguous tensors of float or double, and their properties. The references are borrowed.
struct Tensors {
  explicit Tensors(Py_ssize_t count) : views(count) { objects.reserve(count); }
  std::vector<PyObject*> objects;
  Few<View, 16> views;

  // False if the tensor is anything else.
  bool add(PyObject* one) {
    View& view = views[objects.size()];
    objects.push_back(one);
    return torch.read(one, &view) && view.dtype.code == kDLFloat && view.dtype.bits >= 32 &&
           view.ndim <= CAFFE_MOST_AXES && is_contiguous(view) && !torch.is_negative(one);
  }
  // For tensors that Python has prepared. False with an exception, the instance's if the tensor has no memory.
  bool add_all(PyObject* instance, PyObject* tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
      if (add(PyTuple_GetItem(tuple, i))) continue;
      Py_XDECREF(PyObject_CallMethod(instance, "address", "(O)", objects.back()));
      if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a Caffe layer takes dense tensors of float or double");
      return false;
    }
    return true;
  }
  // Are all of one dtype and on one device?
  bool are_alike() const {
    return std::all_of(views.begin(), views.begin() + views.size, [&](const View& view) {
      return view.dtype.bits == views[0].dtype.bits && view.device_type == views[0].device_type &&
             view.device == views[0].device;
    });
  }
};

// The attributes of modules, their pools and instances, and of their calls.
struct ModuleNames : Names {
#define CAFFE_NAME(name) PyObject* const name = PyUnicode_InternFromString(#name)
  CAFFE_NAME(_mode);
  CAFFE_NAME(_parameters);
  CAFFE_NAME(_pool);
  CAFFE_NAME(blob_names);
  CAFFE_NAME(core);
  CAFFE_NAME(free);
  CAFFE_NAME(host_mode);
  CAFFE_NAME(instance);
  CAFFE_NAME(iteration);
  CAFFE_NAME(mode);
  CAFFE_NAME(pool);
  CAFFE_NAME(lent);
  CAFFE_NAME(site);
  CAFFE_NAME(top_shapes);
  CAFFE_NAME(training);
  CAFFE_NAME(weighs);
  CAFFE_NAME(written);
  // Of a tensor.
  CAFFE_NAME(clone);
  CAFFE_NAME(contiguous);
#undef CAFFE_NAME
  static const ModuleNames& get() {
    static const ModuleNames names;
    return names;
  }
};

inline PyObject* shape_of(const int64_t* shape, int64_t axes) {
  PyObject* const made = PyTuple_New(axes);
  for (int64_t i = 0; made && i < axes; ++i) PyTuple_SetItem(made, i, PyLong_FromLongLong(shape[i]));
  return made;
}

// Records the states of the generators from which the core draws in this scope, like services.watched_draws.
class WatchedDraws {
 public:
  WatchedDraws()
      : states(PyDict_New()),
        thread_(PyLong_FromUnsignedLong(PyThread_get_thread_ident())),
        outer_(Owned::borrowed(PyDict_GetItemWithError(package.drawn, thread_.get()))) {
    PyDict_SetItem(package.drawn, thread_.get(), states.get());
  }
  ~WatchedDraws() {
    const Aside error;
    outer_ ? PyDict_SetItem(package.drawn, thread_.get(), outer_.get())
           : PyDict_DelItem(package.drawn, thread_.get());
  }
  const Owned states;

 private:
  const Owned thread_, outer_;
};

// In its scope torch makes no graph.
class NoGrad {
 public:
  NoGrad() { set(Py_False); }
  ~NoGrad() {
    const Aside error;
    set(Py_True);
  }

 private:
  static void set(PyObject* enabled) {
    Py_XDECREF(PyObject_CallFunctionObjArgs(package.set_grad_enabled, enabled, nullptr));
  }
};

// One call of an instance's Forward or Backward.
class CoreCall {
 public:
  // begin: False, with an exception, if the instance cannot be read.
  explicit CoreCall(PyObject* instance) : names_(ModuleNames::get()), instance_(instance) {}
  bool begin(PyObject* mode, PyObject* iteration) {
    const Owned core(attribute(instance_, names_.core));
    site_ = core ? attribute(instance_, names_.site) : Owned();
    if (!site_ || PyBytes_Size(core.get()) < Py_ssize_t{sizeof(core_)}) return false;
    memcpy(&core_, PyBytes_AsString(core.get()), sizeof(core_));
    const auto number = [&](int i) { return PyLong_AsLongLong(PyTuple_GetItem(site_.get(), i)); };
    dtype_ = PyTuple_GetItem(site_.get(), 3);
    bits_ = torch.code_of(dtype_) & 0xFF;
    const size_t blobs = core_.bottoms + core_.tops + core_.parameters;
    const size_t bytes = offsetof(caffe_call_record, blobs) + blobs * sizeof(caffe_blob_record);
    memset(words_.emplace(bytes / sizeof(int64_t)).begin(), 0, bytes);
    caffe_call_record& head = record();
    head.mode = PyUnicode_Compare(mode, package.cpu) == 0 ? CAFFE_MODE_CPU : CAFFE_MODE_GPU;
    head.device = number(1), head.stream = number(2), head.phase = number(4);
    head.bottoms = core_.bottoms, head.tops = core_.tops, head.parameters = core_.parameters;
    head.iteration = number(5) ? -1 : PyLong_AsLongLong(iteration);  // while a CUDA graph is captured
    for (size_t i = 0; i < blobs; ++i) {
      head.blobs[i].data_token = head.blobs[i].diff_token = CAFFE_NO_TOKEN;
      head.blobs[i].in_place_of = -1;
    }
    const char* const places = PyBytes_AsString(core.get()) + sizeof(core_);
    for (int64_t i = 0; core_.in_place && i < core_.tops; ++i)
      memcpy(&top(i).in_place_of, places + i * sizeof(int64_t), sizeof(int64_t));
    apart_.resize(core_.apart ? core_.tops : 0);
    if (core_.apart)
      memcpy(apart_.data(), places + core_.in_place * sizeof(int64_t), core_.tops * sizeof(int64_t));
    return !PyErr_Occurred();
  }

  // given: for each top its probable shape, or a tensor with its values before Forward; or None: unknown.
  // Returns the tops; None if the layer has no such code; null with an exception. *moved: a result does not
  // lie where it was expected.
  PyObject* forward(const Tensors& inputs, const std::vector<bool>& wanted, PyObject* given, bool* moved) {
    if (!put_inputs(inputs, wanted)) return nullptr;
    std::vector<Made> tops(record().tops);
    for (size_t i = 0; i < tops.size(); ++i)
      if (!put_top(i, inputs, given, &tops[i])) return nullptr;
    const int status = start(core_.forward, "forward");
    if (status) return status == CAFFE_STATUS_NOT_IMPLEMENTED ? nothing() : nullptr;
    if (!report_written()) return nullptr;
    Owned results(PyTuple_New(static_cast<Py_ssize_t>(tops.size())));
    for (size_t i = 0; results && i < tops.size(); ++i) {
      const caffe_blob_record& blob = top(i);
      if (!blob.data && !blob.axes) {
        const Owned none(PyObject_CallMethod(instance_, "without_top", "n", static_cast<Py_ssize_t>(i)));
        return none ? PyTuple_New(0) : nullptr;
      }
      const Made& made = tops[i];
      const bool same = made.tensor && made.at == blob.data;  // then it has the expected shape
      *moved = *moved || !same;
      PyObject* const result =
          same ? Owned::borrowed(made.tensor.get()).release()
               : elsewhere(blob, blob.data, blob.data_token, made.tensor.get(), inputs.objects);
      if (!result) return nullptr;
      PyTuple_SetItem(results.get(), static_cast<Py_ssize_t>(i), result);
    }
    return results.release();
  }

  // all: the inputs, the tops, and the tops' gradients. before: for each input the values of its gradient before
  // Backward, or None: those of bottoms are undefined, those of parameters 0. Returns the gradients of the
  // inputs, each a tensor or None; or as forward does.
  PyObject* backward(const Tensors& all, const std::vector<bool>& wanted, PyObject* before) {
    const size_t count = wanted.size(), tops = static_cast<size_t>(record().tops);
    if (all.objects.size() != count + 2 * tops || !put_inputs(all, wanted)) return mismatch();
    const std::vector<PyObject*> top_diffs(all.objects.begin() + count + tops, all.objects.end());
    std::vector<Made> diffs(count);
    for (size_t i = 0; i < count; ++i)
      if (!put_diff(i, all, top_diffs, before, &diffs[i])) return nullptr;
    for (size_t i = 0; i < tops; ++i)
      if (!put(&top(i), all, count + i) || !address(all.views[count + tops + i], top_diffs[i], &top(i).diff))
        return nullptr;
    const int status = start(core_.backward, "backward");
    if (status) return status == CAFFE_STATUS_NOT_IMPLEMENTED ? nothing() : nullptr;
    Owned results(PyTuple_New(static_cast<Py_ssize_t>(diffs.size())));
    for (size_t i = 0; results && i < diffs.size(); ++i) {
      const caffe_blob_record& blob = input(i);
      PyObject* const diff = !wanted[i] ? Py_None : diffs[i].tensor.get();
      PyObject* const result = !wanted[i] || blob.diff == diffs[i].at
                                   ? Owned::borrowed(diff).release()
                                   : elsewhere(blob, blob.diff, blob.diff_token, diff, top_diffs);
      if (!result) return nullptr;
      PyTuple_SetItem(results.get(), static_cast<Py_ssize_t>(i), result);
    }
    return results.release();
  }

 private:
  // A tensor for a result, and where it was expected.
  struct Made {
    Owned tensor;
    int64_t at = 0;
  };

  caffe_call_record& record() { return *reinterpret_cast<caffe_call_record*>(words_->begin()); }
  caffe_blob_record& top(size_t i) { return record().blobs[record().bottoms + i]; }
  bool is_bottom(size_t input) { return static_cast<int64_t>(input) < record().bottoms; }
  // The inputs are the bottoms, then the parameters.
  caffe_blob_record& input(size_t i) { return record().blobs[is_bottom(i) ? i : i + record().tops]; }

  static std::nullptr_t mismatch() {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_ValueError, "another number of bottoms, tops or blobs than at set up");
    return nullptr;
  }
  // An empty tensor has no address, and a tensor whose memory was freed is an error: Python decides.
  bool address(const View& view, PyObject* tensor, int64_t* at) {
    if (view.data) return *at = memory_of(view), true;
    const Owned said(PyObject_CallMethod(instance_, "address", "(O)", tensor));
    if (said) *at = PyLong_AsLongLong(said.get());
    return !PyErr_Occurred();
  }
  bool put(caffe_blob_record* blob, const Tensors& from, size_t i) {
    const View& view = from.views[i];
    if (view.dtype.bits != bits_ || (view.device_type == kDLCPU) != (record().device < 0))
      return PyErr_SetString(PyExc_TypeError, "a tensor came back with another dtype or device"), false;
    blob->axes = view.ndim;
    std::copy(view.shape, view.shape + view.ndim, blob->shape);
    return address(view, from.objects[i], &blob->data);
  }
  bool put_inputs(const Tensors& inputs, const std::vector<bool>& wanted) {
    const size_t count = record().bottoms + record().parameters;
    if (inputs.objects.size() < count || wanted.size() != count) return mismatch(), false;
    for (size_t i = 0; i < count; ++i) {
      if (!put(&input(i), inputs, i)) return false;
      input(i).flags = wanted[i] ? CAFFE_WANTED : 0;
    }
    return true;
  }
  bool put_top(size_t i, const Tensors& inputs, PyObject* given, Made* made) {
    caffe_blob_record& blob = top(i);
    if (blob.in_place_of >= 0) {
      made->tensor = Owned::borrowed(inputs.objects[blob.in_place_of]);
    } else if (given == Py_None) {
      return true;
    } else {
      PyObject* const one = PyTuple_GetItem(given, static_cast<Py_ssize_t>(i));
      if (!one) return false;
      const bool is_shape = PyTuple_Check(one);
      made->tensor = is_shape ? empty(one) : Owned::borrowed(one);
      blob.flags = is_shape ? CAFFE_DATA_UNDEFINED : 0;
    }
    View view;
    if (!read(made, &view)) return false;
    blob.axes = view.ndim;
    std::copy(view.shape, view.shape + view.ndim, blob.shape);
    blob.data = made->at;
    return true;
  }
  bool put_diff(size_t i, const Tensors& inputs, const std::vector<PyObject*>& top_diffs, PyObject* before,
                Made* made) {
    caffe_blob_record& blob = input(i);
    const bool is_wanted = blob.flags & CAFFE_WANTED;
    for (size_t t = 0; t < top_diffs.size(); ++t)
      if (top(t).in_place_of == static_cast<int64_t>(i) && is_bottom(i))
        made->tensor = Owned::borrowed(top_diffs[t]);
    if (made->tensor) {
    } else if (!is_wanted) {
      return true;
    } else if (before != Py_None) {
      made->tensor = Owned::borrowed(PyTuple_GetItem(before, static_cast<Py_ssize_t>(i)));
    } else if (PyObject* const same = diff_of_its_top(i, inputs, top_diffs)) {
      made->tensor = Owned(PyObject_CallMethodObjArgs(same, names_.clone, nullptr));
    } else if (is_bottom(i)) {
      const Owned shape(shape_of(blob.shape, blob.axes));
      made->tensor = shape ? empty(shape.get()) : Owned();
      blob.flags |= CAFFE_DIFF_UNDEFINED;
    } else {
      made->tensor = Owned(PyObject_CallFunctionObjArgs(package.zeros_like, inputs.objects[i], nullptr));
    }
    View view;
    if (!read(made, &view)) return false;
    blob.diff = made->at;
    return true;
  }
  // In Caffe, a bottom that the file computes in place has its top's diff. Some layers change it, and never write it
  // anew. Null: the bottom is no such.
  PyObject* diff_of_its_top(size_t bottom, const Tensors& all, const std::vector<PyObject*>& top_diffs) {
    const View& own = all.views[bottom];
    for (size_t t = 0; t < apart_.size(); ++t) {
      const View& diff = all.views[all.objects.size() - top_diffs.size() + t];
      if (apart_[t] == static_cast<int64_t>(bottom) && own.ndim == diff.ndim &&
          std::equal(own.shape, own.shape + own.ndim, diff.shape))
        return top_diffs[t];
    }
    return nullptr;
  }
  // Read a result's tensor. False with an exception.
  bool read(Made* made, View* view) {
    if (!made->tensor) return false;
    if (torch.read(made->tensor.get(), view)) return address(*view, made->tensor.get(), &made->at);
    return PyErr_SetString(PyExc_RuntimeError, "a result's tensor cannot be read"), false;
  }
  // A new tensor where the call runs. fills: torch.use_deterministic_algorithms asks for a fill.
  Owned empty(PyObject* shape) {
    PyObject* const quick = record().device < 0 ? package.empty_cpu : package.empty_cuda;
    if (quick == Py_None || Torch::ask(torch.deterministic))
      return Owned(PyObject_CallFunctionObjArgs(package.empty, site_.get(), shape, nullptr));
    const Py_ssize_t axes = PyTuple_Size(shape);
    const Owned strides(PyTuple_New(axes));
    long long stride = 1;
    for (Py_ssize_t i = axes; strides && i-- > 0;) {
      PyTuple_SetItem(strides.get(), i, PyLong_FromLongLong(stride));
      stride *= std::max(1LL, PyLong_AsLongLong(PyTuple_GetItem(shape, i)));
    }
    return Owned(strides ? PyObject_CallFunctionObjArgs(quick, shape, strides.get(), dtype_, nullptr)
                         : nullptr);
  }

  // Call the core's function without Python's lock. Returns its status; CAFFE_STATUS_FAILED comes with an exception.
  int start(Run function, const char* name) {
    const int64_t words[] = {core_.handle, reinterpret_cast<intptr_t>(words_->begin())};
    if (record().device < 0) core_.set_num_threads(torch.threads());
    PyThreadState* const python = PyEval_SaveThread();
    const int status = static_cast<int>(function(words));
    PyEval_RestoreThread(python);
    const bool failed = PyDict_Size(package.failures) && Torch::ask(package.failed);
    if (!failed && (status == CAFFE_STATUS_DONE || status == CAFFE_STATUS_NOT_IMPLEMENTED)) return status;
    Py_XDECREF(PyObject_CallMethod(instance_, "fail", "s", name));
    return CAFFE_STATUS_FAILED;
  }
  // Instance.written: the parameters that Forward wrote to.
  bool report_written() {
    const Owned written(record().parameters ? PyList_New(0) : nullptr);
    for (int64_t i = 0; i < record().parameters; ++i) {
      const Owned index((input(record().bottoms + i).flags & CAFFE_WRITTEN) ? PyLong_FromLongLong(i)
                                                                            : nullptr);
      if (index) PyList_Append(written.get(), index.get());
    }
    return !record().parameters || PyObject_SetAttr(instance_, names_.written, written.get()) == 0;
  }
  // The tensor of a result that is not where it was expected: its shape depends on values, or it shares the memory
  // of one of `others`.
  PyObject* elsewhere(const caffe_blob_record& blob, int64_t at, int64_t token, PyObject* expected,
                      const std::vector<PyObject*>& others) {
    const Owned shape(shape_of(blob.shape, blob.axes)), all(tuple_of(others.data(), others.size()));
    return PyObject_CallMethod(instance_, "result", "OLLOO", shape.get(), static_cast<long long>(at),
                               static_cast<long long>(token), expected ? expected : Py_None, all.get());
  }

  const ModuleNames& names_;
  PyObject* const instance_;
  Owned site_;
  // Instance.core. If tops are computed in place, it goes on with the bottom of each top, or -1. So it does if the
  // file computes tops in place that have memory of their own here.
  struct {
    int64_t handle;
    Run forward, backward;
    SetNumThreads set_num_threads;
    int64_t bottoms, tops, parameters, in_place, apart;
  } core_;
  std::vector<int64_t> apart_;
  PyObject* dtype_;                          // the site's
  int bits_;                                 // of that dtype
  std::optional<Few<int64_t, 1024>> words_;  // the record
};

inline std::vector<bool> truths(PyObject* sequence, Py_ssize_t first = 0) {
  std::vector<bool> found;
  for (Py_ssize_t i = first; i < PySequence_Size(sequence); ++i) {
    const Owned one(PySequence_GetItem(sequence, i));
    found.push_back(one && PyObject_IsTrue(one.get()) == 1);
  }
  return found;
}

// run_forward(instance, mode, iteration, inputs, wanted, given): CoreCall::forward
inline PyObject* run_forward(PyObject*, PyObject* arguments) {
  PyObject *instance, *mode, *iteration, *inputs, *wanted, *given;
  if (!PyArg_ParseTuple(arguments, "OOOO!OO", &instance, &mode, &iteration, &PyTuple_Type, &inputs, &wanted,
                        &given))
    return nullptr;
  Tensors tensors(PyTuple_Size(inputs));
  CoreCall call(instance);
  bool moved;
  return tensors.add_all(instance, inputs) && call.begin(mode, iteration)
             ? call.forward(tensors, truths(wanted), given, &moved)
             : nullptr;
}

// run_backward(instance, mode, iteration, all, wanted, before): CoreCall::backward
inline PyObject* run_backward(PyObject*, PyObject* arguments) {
  PyObject *instance, *mode, *iteration, *all, *wanted, *before;
  if (!PyArg_ParseTuple(arguments, "OOOO!OO", &instance, &mode, &iteration, &PyTuple_Type, &all, &wanted,
                        &before))
    return nullptr;
  Tensors tensors(PyTuple_Size(all));
  CoreCall call(instance);
  return tensors.add_all(instance, all) && call.begin(mode, iteration)
             ? call.backward(tensors, truths(wanted), before)
             : nullptr;
}

// The current stream of the tensor's device. False if a CUDA graph is captured, or torch cannot say.
inline bool stream_to_run_on(const View& view, int64_t* stream) {
  return (view.device_type == kDLCPU || !Torch::ask(package.is_capturing)) && torch.stream_of(view, stream);
}

// A module's call that needs no conversion, and for which the pool has the tops' shapes and an instance.
class ModuleCall {
 public:
  explicit ModuleCall(PyObject* module)
      : names_(ModuleNames::get()), module_(module), pool_(attribute(module, names_._pool)) {}

  // Returns the module's result; None if in doubt.
  PyObject* run(PyObject* bottoms) {
    const Owned blobs(attribute(pool_.get(), names_.blob_names));
    if (!blobs || blobs.get() == Py_None) return nothing();
    Tensors inputs(PyTuple_Size(bottoms) + PyTuple_Size(blobs.get()));
    if (!take(bottoms, blobs.get(), &inputs)) return nothing();
    const Owned shapes(shapes_of(inputs)), known(attribute(pool_.get(), names_.top_shapes));
    const Owned expected(Owned::borrowed(PyDict_GetItemWithError(known.get(), shapes.get())));
    const OnDevice guard(inputs.views[0]);
    const Owned mode(mode_of(inputs.views[0]));
    PyObject* const free = expected && mode ? free_instances(inputs) : nullptr;
    const Py_ssize_t count = free ? PyList_Size(free) : 0;
    if (count <= 0) return nothing();
    const Owned instance(Owned::borrowed(PyList_GetItem(free, count - 1)));
    PyList_SetSlice(free, count - 1, count, nullptr);
    bool moved = false;
    Owned tops(run_here(instance.get(), mode.get(), inputs, expected.get(), &moved));
    if (tops && (tops.get() == Py_None || !wants_)) PyList_Append(free, instance.get());
    if (!tops || tops.get() == Py_None) return tops.release();
    if (moved) Py_XDECREF(PyObject_CallMethod(pool_.get(), "saw", "OO", shapes.get(), tops.get()));
    const Owned weighs(attribute(pool_.get(), names_.weighs));
    if (PyErr_Occurred()) return nullptr;
    if (weighs.get() != Py_False) return PyObject_CallMethod(module_, "_answer", "(O)", tops.get());
    return PyTuple_Size(tops.get()) == 1 ? PySequence_GetItem(tops.get(), 0) : tops.release();
  }

 private:
  bool take(PyObject* bottoms, PyObject* blobs, Tensors* inputs) {
    const Owned parameters(PyTuple_Size(blobs) ? attribute(module_, names_._parameters) : Owned());
    const Py_ssize_t first = PyTuple_Size(bottoms), last = first + PyTuple_Size(blobs);
    for (Py_ssize_t i = 0; i < last; ++i) {
      PyObject* const one =
          i < first ? PyTuple_GetItem(bottoms, i)
                    : PyDict_GetItemWithError(parameters.get(), PyTuple_GetItem(blobs, i - first));
      if (!one || !torch.is_plain(one) || !inputs->add(one)) return false;
      wanted_.push_back(torch.wants_gradient(one));
      wants_ = wants_ || wanted_.back();
    }
    wants_ = wants_ && Torch::ask(torch.grad_enabled);
    return inputs->are_alike();
  }
  static PyObject* shapes_of(const Tensors& inputs) {
    PyObject* const made = PyTuple_New(static_cast<Py_ssize_t>(inputs.views.size));
    for (size_t i = 0; i < inputs.views.size; ++i)
      PyTuple_SetItem(made, static_cast<Py_ssize_t>(i),
                      shape_of(inputs.views[i].shape, inputs.views[i].ndim));
    return made;
  }
  // Null if the pool has to try.
  Owned mode_of(const View& view) {
    const bool on_host = view.device_type == kDLCPU;
    forced_ = attribute(module_, names_._mode);
    if (!on_host) return forced_.get() == package.cpu ? Owned() : Owned::borrowed(package.gpu);
    if (!forced_ || forced_.get() != Py_None) return Owned::borrowed(forced_.get());
    Owned known(attribute(pool_.get(), names_.host_mode));
    return known.get() == Py_None ? Owned::borrowed(package.cpu) : std::move(known);
  }
  // The list in Pool.free of the call's Site, a NamedTuple, which equals a tuple. Borrowed.
  PyObject* free_instances(const Tensors& inputs) {
    const View& view = inputs.views[0];
    int64_t stream;
    if (!stream_to_run_on(view, &stream)) return nullptr;
    const bool on_host = view.device_type == kDLCPU;
    const Owned dtype(attribute(inputs.objects[0], names_.dtype)),
        training(attribute(module_, names_.training)), free(attribute(pool_.get(), names_.free)),
        device(PyLong_FromLong(on_host ? -1 : view.device)), on(PyLong_FromLongLong(stream));
    if (!dtype || !training || !free || !device || !on) return nullptr;
    const Owned phase(
        PyLong_FromLong(PyObject_IsTrue(training.get()) ? CAFFE_PHASE_TRAIN : CAFFE_PHASE_TEST));
    PyObject* const values[] = {on_host ? package.host : package.accelerator,
                                device.get(),
                                on.get(),
                                dtype.get(),
                                phase.get(),
                                Py_False};
    const Owned site(tuple_of(values, 6));
    return site ? PyDict_GetItemWithError(free.get(), site.get()) : nullptr;
  }
  PyObject* run_here(PyObject* instance, PyObject* mode, const Tensors& inputs, PyObject* expected,
                     bool* moved) {
    CoreCall call(instance);
    const Owned iteration(attribute(pool_.get(), names_.iteration));
    if (!iteration || !call.begin(mode, iteration.get())) return nullptr;
    if (!wants_) return call.forward(inputs, std::vector<bool>(wanted_.size()), expected, moved);
    Owned tops, states;
    {
      const NoGrad no_grad;
      const WatchedDraws draws;
      tops = Owned(call.forward(inputs, wanted_, expected, moved));
      states = Owned::borrowed(draws.states.get());
    }
    if (!tops || tops.get() == Py_None) return tops.release();
    const Owned of_call(PyObject_CallFunctionObjArgs(package.make_call, pool_.get(), forced_.get(), mode,
                                                     instance, states.get(), tops.get(), nullptr));
    std::vector<PyObject*> given{of_call.get()};
    given.insert(given.end(), inputs.objects.begin(), inputs.objects.end());
    const Owned all(of_call ? tuple_of(given.data(), static_cast<Py_ssize_t>(given.size())) : nullptr);
    return all ? PyObject_Call(package.apply, all.get(), nullptr) : nullptr;
  }

  const ModuleNames& names_;
  PyObject* const module_;
  const Owned pool_;
  Owned forced_;
  std::vector<bool> wanted_;
  bool wants_ = false;
};

// call_module(module, bottoms): the module's result; None if in doubt.
inline PyObject* call_module(PyObject*, PyObject* const* given, Py_ssize_t count) {
  if (count != 2 || !PyTuple_CheckExact(given[1]) || !PyTuple_Size(given[1]) || torch.is_watching())
    return nothing();
  return ModuleCall(given[0]).run(given[1]);
}

// differentiate(call, saved, top_diffs, wanted): the first Backward of a CaffeCall. Returns the gradients of its
// inputs; None if in doubt. wanted: its first element belongs to the call itself.
inline PyObject* differentiate(PyObject*, PyObject* const* given, Py_ssize_t count) {
  const ModuleNames& names = ModuleNames::get();
  PyObject *const of_call = given[0], *const saved = given[1], *const diffs = given[2];
  const Owned instance(count == 4 ? attribute(of_call, names.instance) : Owned());
  if (!instance || instance.get() == Py_None) return nothing();
  const Owned pool(attribute(of_call, names.pool)), mode(attribute(of_call, names.mode)),
      iteration(attribute(pool.get(), names.iteration)), site(attribute(instance.get(), names.site));
  const Owned blobs(attribute(pool.get(), names.blob_names));
  if (!blobs || blobs.get() == Py_None || !site) return nothing();
  const Py_ssize_t kept = PyTuple_Size(saved), tops = PyTuple_Size(diffs);
  Tensors all(kept + tops);
  std::vector<Owned> dense;  // alive until the call is over
  for (Py_ssize_t i = 0; i < kept + tops; ++i) {
    PyObject* const one = i < kept ? PyTuple_GetItem(saved, i) : PyTuple_GetItem(diffs, i - kept);
    if (!torch.is_plain(one)) return nothing();
    if (all.add(one)) continue;
    if (i < kept) return nothing();
    all.objects.pop_back();
    dense.emplace_back(PyObject_CallMethodObjArgs(one, names.contiguous, nullptr));
    if (!dense.back() || !all.add(dense.back().get())) return nothing();
  }
  const OnDevice guard(all.views[0]);
  int64_t stream;
  if (!all.are_alike() || !stream_to_run_on(all.views[0], &stream)) return nothing();
  if (PyLong_AsLongLong(PyTuple_GetItem(site.get(), 2)) != stream)
    return nothing();  // Python words the error
  CoreCall call(instance.get());
  if (!call.begin(mode.get(), iteration.get())) return nullptr;
  Owned found(call.backward(all, truths(given[3], 1), Py_None));
  if (!found || found.get() == Py_None) return found.release();
  if (PyObject_SetAttr(of_call, names.instance, Py_None)) return nullptr;
  const Owned lent(attribute(pool.get(), names.lent)), free(attribute(pool.get(), names.free));
  PyObject* const list = PyDict_GetItemWithError(free.get(), site.get());
  if (!list) return nullptr;
  if (PySet_Discard(lent.get(), instance.get()) < 0 || PyList_Append(list, instance.get())) return nullptr;
  return found.release();
}

inline PyObject* configure_caffe(PyObject*, PyObject* named) {
  const CaffePackage given(named);
  if (PyErr_Occurred()) return nullptr;
  Py_INCREF(named);  // never released
  package = given;
  Py_RETURN_NONE;
}

PyMethodDef caffe_methods[] = {
    {"configure_caffe", configure_caffe, METH_O,
     "configure_caffe(values): the parts of cuffi/caffe_layers/call, by name"},
    {"call_module", PY_METHOD(call_module), METH_FASTCALL, "call_module(module, bottoms): the tops, or None"},
    {"differentiate", PY_METHOD(differentiate), METH_FASTCALL,
     "differentiate(call, saved, top_diffs, wanted): the inputs' gradients, or None"},
    {"run_forward", run_forward, METH_VARARGS,
     "run_forward(instance, mode, iteration, inputs, wanted, given): the tops, or None"},
    {"run_backward", run_backward, METH_VARARGS,
     "run_backward(instance, mode, iteration, all, wanted, before): the inputs' gradients, or None"},
    {nullptr, nullptr, 0, nullptr}};
const Methods of_caffe_layers(caffe_methods);

}  // namespace caffe
