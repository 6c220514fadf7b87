// A Caffe layer's recorded call: C repeats a call with the same shapes, dtype, device, stream and phase, but
// with other tensors. Only the addresses in its record change.
//
// Two Python builtins share a RecordedCall: the module's forward and the backward of its autograd node. A third is
// the forward of every node. They read tensors by DLPack's C exchange API, as launchers do (call_torch.h). If in doubt, the
// call goes the careful way, which handles every case and explains errors.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "call_launcher.h"

extern "C" {
#include "caffe/layer_record.h"
}

namespace caffe {

inline PyObject* nothing() {
  PyErr_Clear();
  Py_INCREF(Py_None);
  return Py_None;
}

// What stays the same in each call, by the names of layers/_caffe/recorded.py, which says what each value is.
struct RecordedCall : Named {
  explicit RecordedCall(PyObject* values) : Named(values), held(Owned::borrowed(values)) {}
  const Owned held;
  // The pool, and parts of it.
  PyObject *pool = object("pool"), *free_instances = object("free_instances"), *lent = object("lent");
  const long long changes = number("changes");
  // The services.
  PyObject *drawn = object("drawn"), *failures = object("failures"), *failed = object("failed"),
           *take_failure = object("take_failure");
  // The call.
  const long long training = number("training"), device_type = number("device_type"), bits = number("bits");
  PyObject *current_device = object("current_device"), *is_capturing = object("is_capturing");
  const std::vector<Allocation> tops = allocations("tops"), bottom_diffs = allocations("bottom_diffs");
  PyObject *blob_names = object("blob_names"), *zeros_like = object("zeros_like");
  PyObject *fail = object("fail"), *top_elsewhere = object("top_elsewhere");
  // A function that answers with the tops times their loss weights, or None.
  PyObject* weighted = object("weighted");
  // The autograd node.
  PyObject *apply = object("apply"), *make_call = object("make_call"), *placement = object("placement");
  PyObject* mode = object("mode");  // of Forward, as Python names it
  // Of the layer's library.
  const Run run_forward = address<Run>("run_forward"), run_backward = address<Run>("run_backward");
  const SetNumThreads set_num_threads = address<SetNumThreads>("set_num_threads");
  // The bytes of a caffe_call_record, which each call copies.
  const std::vector<char> record = bytes("record");

  const caffe_call_record& head() const { return *reinterpret_cast<const caffe_call_record*>(record.data()); }
  int inputs() const { return static_cast<int>(head().bottoms + head().parameters); }
  int top_count() const { return static_cast<int>(head().tops); }
  // The index of an input's record. The inputs are the bottoms, then the parameters.
  int place(int input) const {
    return static_cast<int>(input < head().bottoms ? input : input + head().tops);
  }
  int place_of_top(int top) const { return static_cast<int>(head().bottoms + top); }

 private:
  std::vector<char> bytes(const char* name) const {
    char* first;
    Py_ssize_t size;
    PyObject* const found = object(name);
    if (!found || PyBytes_AsStringAndSize(found, &first, &size)) return {};
    return {first, first + size};
  }
};

// A call's copy of the record.
class Running {
 public:
  explicit Running(const RecordedCall& recorded) : bytes_(recorded.record) {}
  caffe_blob_record& blob(int place) {
    return reinterpret_cast<caffe_call_record*>(bytes_.data())->blobs[place];
  }
  int64_t address() { return reinterpret_cast<intptr_t>(bytes_.data()); }

 private:
  std::vector<char> bytes_;
};

class CallRunner {
 public:
  explicit CallRunner(const RecordedCall& recorded) : r_(recorded), names_(Names::get()) {}

  // The recorded call of this thread whose autograd node is being made, until the node's forward takes it; or null.
  static const RecordedCall*& pending() {
    static thread_local const RecordedCall* call = nullptr;
    return call;
  }

  // Takes (recorded, module, bottoms): the RecordedCall in Python that has this builtin, and what was called.
  // Returns what the module does: the tops, or the only one; or None.
  PyObject* forward(PyObject* recorded, PyObject* module, PyObject* bottoms) {
    if (PyTuple_Size(bottoms) != r_.head().bottoms || !is_like_before(module)) return nothing();
    Owned parameters(r_.head().parameters ? PyObject_GetAttr(module, names_._parameters) : nullptr);
    std::vector<PyObject*> inputs;  // borrowed: the caller owns the bottoms, and the module the parameters
    Running running(r_);
    bool wanted = false;
    for (int i = 0; i < r_.inputs(); ++i) {
      const Py_ssize_t parameter = i - static_cast<Py_ssize_t>(r_.head().bottoms);
      PyObject* input =
          parameter < 0 ? PyTuple_GetItem(bottoms, i)
          : parameters  ? PyDict_GetItemWithError(parameters.get(), PyTuple_GetItem(r_.blob_names, parameter))
                        : nullptr;
      if (!input || !read(input, &running.blob(r_.place(i)))) return nothing();
      inputs.push_back(input);
      wanted = wanted || torch.wants_gradient(input);
    }
    if (!on_its_stream()) return nothing();
    if (wanted && Torch::ask(torch.grad_enabled)) {
      const Owned of_call(PyObject_CallNoArgs(r_.make_call));
      if (!of_call || PyObject_SetAttr(of_call.get(), names_.placement, r_.placement) ||
          PyObject_SetAttr(of_call.get(), names_.recorded, recorded))
        return nullptr;
      inputs.insert(inputs.begin(), of_call.get());
      const Owned given(tuple_of(inputs.data(), static_cast<Py_ssize_t>(inputs.size())));
      const RecordedCall* const outer = std::exchange(pending(), &r_);
      Owned tops(given ? PyObject_Call(r_.apply, given.get(), nullptr) : nullptr);
      pending() = outer;
      return answer(std::move(tops));
    }
    bool moved;
    Owned instance(take_instance());
    if (!instance) return nothing();
    Owned tops(run(instance.get(), inputs, &running, &moved));
    if (tops) PyList_Append(r_.free_instances, instance.get());
    return answer(std::move(tops));
  }

  // Takes what the node's forward does: (ctx, call, *inputs). Runs Forward for autograd, and returns the tops, or
  // None. The call keeps the instance for Backward.
  PyObject* differentiable(PyObject* ctx, PyObject* of_call, PyObject* const* given) {
    const std::vector<PyObject*> inputs(given, given + r_.inputs());
    Running running(r_);
    const Owned wanted(PyObject_GetAttr(ctx, names_.needs_input_grad));
    if (!wanted) return nullptr;
    for (int i = 0; i < r_.inputs(); ++i) {
      caffe_blob_record& blob = running.blob(r_.place(i));
      if (!address_of(inputs[i], &blob.data)) return nothing();  // forward has looked at the rest
      // The first element belongs to the call.
      if (PyTuple_GetItem(wanted.get(), i + 1) == Py_True) blob.flags |= CAFFE_WANTED;
    }
    Owned instance(take_instance());
    if (!instance) return nothing();
    // Here the core saves the state of each random generator before it draws from it.
    const Owned states(PyDict_New()), thread(PyLong_FromUnsignedLong(PyThread_get_thread_ident()));
    const Owned outer(Owned::borrowed(PyDict_GetItemWithError(r_.drawn, thread.get())));
    if (PyObject_SetAttr(of_call, names_.states, states.get()) ||
        PyDict_SetItem(r_.drawn, thread.get(), states.get()))
      return nullptr;
    bool moved = false;
    PyObject* tops = run(instance.get(), inputs, &running, &moved);
    {
      const Aside error;
      outer ? PyDict_SetItem(r_.drawn, thread.get(), outer.get()) : PyDict_DelItem(r_.drawn, thread.get());
    }
    if (!tops) return nullptr;
    if (tops == Py_None) {
      PyList_Append(r_.free_instances, instance.get());
      return tops;
    }
    // A top has another shape or address than recorded, so Backward must go the careful way.
    if ((!moved || !PyObject_SetAttr(of_call, names_.recorded, Py_None)) &&
        !PyObject_SetAttr(of_call, names_.mode, r_.mode) &&
        !PyObject_SetAttr(of_call, names_.instance, instance.get()) && !PySet_Add(r_.lent, instance.get()) &&
        save(ctx, of_call, inputs, tops))
      return tops;
    Py_DECREF(tops);
    return nullptr;
  }

  // Takes (call, saved, diffs, wanted). Runs the first Backward of the call. Returns a tuple of None (for the
  // call itself) and the inputs' gradients, or None.
  PyObject* backward(PyObject* of_call, PyObject* saved, PyObject* given, PyObject* wanted) {
    Owned instance(PyObject_GetAttr(of_call, names_.instance));
    if (!instance || instance.get() == Py_None || !on_its_stream()) return nothing();
    Running running(r_);
    std::vector<Owned> diffs;  // alive until the call is over
    for (int i = 0; i < r_.top_count(); ++i) {
      caffe_blob_record& blob = running.blob(r_.place_of_top(i));
      blob.flags = 0;
      diffs.push_back(Owned::borrowed(PyTuple_GetItem(given, i)));
      if (!torch.is_plain(diffs[i].get())) return nothing();
      if (!read(diffs[i].get(), &blob, &blob.diff)) {
        PyErr_Clear();
        Owned dense(PyObject_CallMethodObjArgs(diffs[i].get(), names_.contiguous, nullptr));
        diffs.pop_back();
        diffs.push_back(std::move(dense));
        if (!diffs[i] || !read(diffs[i].get(), &blob, &blob.diff)) return nothing();
      }
      if (!read(PyTuple_GetItem(saved, r_.inputs() + i), &blob)) return nothing();
    }
    const bool fills = Torch::ask(torch.deterministic);
    Owned results(PyTuple_New(r_.inputs() + 1));
    Py_INCREF(Py_None);
    PyTuple_SetItem(results.get(), 0, Py_None);  // for the call itself
    for (int i = 0; i < r_.inputs(); ++i) {
      caffe_blob_record& blob = running.blob(r_.place(i));
      PyObject* input = PyTuple_GetItem(saved, i);
      if (!read(input, &blob)) return nothing();
      if (PyTuple_GetItem(wanted, i + 1) == Py_True) {
        const bool bottom = i < r_.head().bottoms;
        PyObject* made = bottom ? r_.bottom_diffs[i].make(fills)
                                : PyObject_CallFunctionObjArgs(r_.zeros_like, input, nullptr);
        if (!made || !address_of(made, &blob.diff)) {
          Py_XDECREF(made);
          return nothing();
        }
        blob.flags = CAFFE_WANTED | (bottom ? CAFFE_DIFF_UNDEFINED : 0);
        PyTuple_SetItem(results.get(), i + 1, made);
      } else {
        Py_INCREF(Py_None);
        PyTuple_SetItem(results.get(), i + 1, Py_None);
      }
    }
    if (start(instance.get(), &running, r_.run_backward)) {
      // Forget the error: the careful way fails again, and explains it.
      Owned forgotten(PyObject_CallNoArgs(r_.take_failure));
      return nothing();
    }
    if (PyObject_SetAttr(of_call, names_.instance, Py_None)) return nullptr;
    PySet_Discard(r_.lent, instance.get());
    PyList_Append(r_.free_instances, instance.get());
    return results.release();
  }

 private:
  bool is_like_before(PyObject* module) {
    Owned changes(PyObject_GetAttr(r_.pool, names_.changes)),
        training(PyObject_GetAttr(module, names_.training));
    if (!changes || PyLong_AsLongLong(changes.get()) != r_.changes) return false;
    if (training.get() != (r_.training ? Py_True : Py_False)) return false;
    return !torch.is_watching();
  }

  // What the module returns for these tops; None and null stay as they are.
  PyObject* answer(Owned tops) {
    if (!tops || tops.get() == Py_None) return tops.release();
    if (r_.weighted != Py_None) return PyObject_CallFunctionObjArgs(r_.weighted, tops.get(), nullptr);
    return r_.top_count() == 1 ? PySequence_GetItem(tops.get(), 0) : tops.release();
  }

  // As the node's forward in layers/_caffe/autograd.py does it. False on error.
  bool save(PyObject* ctx, PyObject* of_call, const std::vector<PyObject*>& inputs, PyObject* tops) {
    const Py_ssize_t count = static_cast<Py_ssize_t>(inputs.size());
    const Owned saved(PyTuple_New(count + r_.top_count()));
    for (Py_ssize_t i = 0; saved && i < count + r_.top_count(); ++i) {
      PyObject* const one = i < count ? inputs[i] : PyTuple_GetItem(tops, i - count);
      Py_INCREF(one);
      PyTuple_SetItem(saved.get(), i, one);
    }
    return saved && PyObject_SetAttr(ctx, names_.call, of_call) == 0 &&
           PyObject_SetAttr(ctx, names_.to_save, saved.get()) == 0;
  }

  // Is the object a plain dense tensor of the recorded shape, dtype and device? Then its address goes to
  // `at`, or to the record's data.
  bool read(PyObject* object, caffe_blob_record* expected, int64_t* at = nullptr) {
    View t;
    if (!torch.is_plain(object) || !torch.read(object, &t)) return false;
    if (t.device_type != r_.device_type || (r_.device_type != kDLCPU && t.device != r_.head().device))
      return false;
    if (t.dtype.code != kDLFloat || t.dtype.bits != r_.bits || t.ndim != expected->axes || !t.data)
      return false;
    int64_t elements = 1;
    for (int32_t i = t.ndim; i-- > 0;) {
      if (t.shape[i] != expected->shape[i]) return false;
      if (t.shape[i] != 1 && t.strides && t.strides[i] != elements) return false;
      elements *= t.shape[i];
    }
    // The memory of a view like z.conj().imag holds the negated values, and DLPack does not say so.
    if (torch.is_negative(object)) return false;
    *(at ? at : &expected->data) = memory_of(t);
    return true;
  }

  bool address_of(PyObject* made, int64_t* at) {
    View t;
    if (!torch.read(made, &t) || !t.data) return false;
    *at = memory_of(t);
    return true;
  }

  bool on_its_stream() {
    if (r_.device_type == kDLCPU) return true;
    const auto device = static_cast<int32_t>(r_.head().device);
    if (r_.current_device != Py_None && Torch::number(PyObject_CallNoArgs(r_.current_device)) != device)
      return false;
    if (Torch::ask(r_.is_capturing)) return false;
    DLTensor here{};
    here.device_type = static_cast<int32_t>(r_.device_type);
    here.device = device;
    int64_t stream;
    return torch.stream_of(here, &stream) && stream == r_.head().stream;
  }

  // Take the free instance that was used last, or return null. No other call uses a free instance.
  PyObject* take_instance() {
    const Py_ssize_t count = PyList_Size(r_.free_instances);
    if (count <= 0) return nullptr;
    PyObject* instance = PyList_GetItem(r_.free_instances, count - 1);
    Py_INCREF(instance);
    PyList_SetSlice(r_.free_instances, count - 1, count, nullptr);
    return instance;
  }

  // Call the core's function without Python's lock. Returns its status, or CAFFE_STATUS_FAILED if
  // a service failed.
  int start(PyObject* instance, Running* running, Run function) {
    Owned handle(PyObject_GetAttr(instance, names_.handle));
    const int64_t words[] = {handle ? PyLong_AsLongLong(handle.get()) : 0, running->address()};
    if (r_.device_type == kDLCPU) {
      const long threads = Torch::number(PyObject_CallNoArgs(torch.get_num_threads));
      r_.set_num_threads(threads > 0 ? static_cast<int>(threads) : 1);
    }
    PyThreadState* const python = PyEval_SaveThread();
    const int status = static_cast<int>(function(words));
    PyEval_RestoreThread(python);
    const bool failed = !status && PyDict_Size(r_.failures) && Torch::ask(r_.failed);
    return failed ? CAFFE_STATUS_FAILED : status;
  }

  // Allocates the tops and runs Forward. Returns a tuple of the tops, or None if the layer has no code for
  // this mode, or NULL with an exception. *moved: a top has another address than the allocated one.
  PyObject* run(PyObject* instance, const std::vector<PyObject*>& inputs, Running* running, bool* moved) {
    std::vector<Owned> tops;
    std::vector<int64_t> places;
    const bool fills = Torch::ask(torch.deterministic);
    for (int i = 0; i < r_.top_count(); ++i) {
      tops.emplace_back(r_.tops[i].make(fills));
      caffe_blob_record& blob = running->blob(r_.place_of_top(i));
      if (!tops[i] || !address_of(tops[i].get(), &blob.data)) return nullptr;
      places.push_back(blob.data);
    }
    const int status = start(instance, running, r_.run_forward);
    if (status == CAFFE_STATUS_NOT_IMPLEMENTED) return nothing();
    if (status) return PyObject_CallNoArgs(r_.fail);
    Owned results(PyTuple_New(r_.top_count()));
    *moved = false;
    for (int i = 0; i < r_.top_count(); ++i) {
      const caffe_blob_record& blob = running->blob(r_.place_of_top(i));
      PyObject* top = blob.data == places[i] ? tops[i].release() : elsewhere(blob, tops[i].get(), inputs);
      *moved |= blob.data != places[i];
      if (!top) return nullptr;
      PyTuple_SetItem(results.get(), i, top);
    }
    return results.release();
  }

  // The tensor of a top that is not in its allocated memory: its shape depends on values, or it shares an
  // input's memory.
  PyObject* elsewhere(const caffe_blob_record& blob, PyObject* top, const std::vector<PyObject*>& inputs) {
    Owned shape(PyTuple_New(blob.axes)), others(PyList_New(0));
    for (int64_t i = 0; i < blob.axes; ++i)
      PyTuple_SetItem(shape.get(), i, PyLong_FromLongLong(blob.shape[i]));
    for (PyObject* input : inputs) PyList_Append(others.get(), input);
    return PyObject_CallFunction(r_.top_elsewhere, "OLLOO", shape.get(), static_cast<long long>(blob.data),
                                 static_cast<long long>(blob.data_token), top, others.get());
  }

  const RecordedCall& r_;
  const Names& names_;
};

inline const RecordedCall& recorded_of(PyObject* capsule) {
  return *static_cast<RecordedCall*>(PyCapsule_GetPointer(capsule, nullptr));
}
inline PyObject* recorded_forward(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return count == 3 ? CallRunner(recorded_of(self)).forward(given[0], given[1], given[2]) : nothing();
}
inline PyObject* recorded_backward(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return count == 4 ? CallRunner(recorded_of(self)).backward(given[0], given[1], given[2], given[3])
                    : nothing();
}

// The forward of a call's autograd node: (ctx, call, *inputs). `careful`, in Python, runs every call that is not
// recorded, or is in doubt.
inline PyObject* node_forward(PyObject* careful, PyObject* const* given, Py_ssize_t count) {
  const RecordedCall* const recorded = std::exchange(CallRunner::pending(), nullptr);
  if (recorded && count == 2 + recorded->inputs()) {
    PyObject* const tops = CallRunner(*recorded).differentiable(given[0], given[1], given + 2);
    if (tops != Py_None) return tops;
    Py_DECREF(tops);
    if (PyObject_SetAttr(given[1], Names::get().recorded, Py_None)) return nullptr;
  }
  const Owned all(tuple_of(given, count));
  return all ? PyObject_Call(careful, all.get(), nullptr) : nullptr;
}
inline PyObject* caffe_forward(PyObject*, PyObject* careful) {
  static PyMethodDef method = {"forward", PY_METHOD(node_forward), METH_FASTCALL, nullptr};
  return PyCFunction_NewEx(&method, careful, nullptr);
}

inline void delete_recorded(PyObject* capsule) {
  delete static_cast<RecordedCall*>(PyCapsule_GetPointer(capsule, nullptr));
}

// The builtins (forward, backward) of a recorded call. layers/_caffe/recorded.py calls this.
inline PyObject* record_caffe_call(PyObject*, PyObject* values) {
  static PyMethodDef methods[] = {{"forward", PY_METHOD(recorded_forward), METH_FASTCALL, nullptr},
                                  {"backward", PY_METHOD(recorded_backward), METH_FASTCALL, nullptr}};
  std::unique_ptr<RecordedCall> recorded(new RecordedCall(values));
  if (PyErr_Occurred()) return nullptr;
  PyObject* capsule = PyCapsule_New(recorded.release(), nullptr, delete_recorded);
  PyObject* made = PyTuple_New(2);
  for (int i = 0; i < 2; ++i) PyTuple_SetItem(made, i, PyCFunction_NewEx(&methods[i], capsule, nullptr));
  Py_DECREF(capsule);
  return made;
}

}  // namespace caffe
