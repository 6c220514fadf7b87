// A plan: the steps of one call, which C repeats for a call of the same kind.
//
// A call allocates tensors and launches C functions. The plan has the source of each word of a launch: an argument, an
// allocation, or a number. A plan holds no tensor's memory and never changes, so threads may share it.
#pragma once

#include <algorithm>
#include <vector>

#include "call_launcher.h"

namespace caffe {

enum SourceKind : int { kConstant, kArgument, kAllocation, kCurrentStream };

// The limits of a plan. A call with more goes the careful way.
constexpr size_t kMostArguments = 32, kMostAllocations = 16, kMostWords = 64;

// Where one word of a C function's arguments comes from.
struct Source {
  SourceKind kind;
  int64_t value;  // the number, or the index of the argument or allocation
};

struct Launch {
  Function run;
  SetNumThreads set_num_threads;  // null if the library has no host threads
  PyObject* fail;                 // raises the library's last error
  std::vector<Source> words;
};

class Plan {
 public:
  // plan in cuffi/runtime/planning.py passes the values. If one is wrong, there is an exception.
  explicit Plan(const Named& values)
      : device_type_(static_cast<int32_t>(values.number("device_type"))),
        device_(static_cast<int32_t>(values.number("device"))),
        returns_tuple_(values.number("returns_tuple")),
        allocations_(values.allocations("allocations")) {
    for (const Allocation& a : allocations_)
      for (PyObject* held : a.all()) Py_INCREF(held);
    PyObject *const launches = values.object("launches"), *const results = values.object("results");
    if (!launches || !results) return;
    for (Py_ssize_t i = 0; i < PyTuple_Size(launches); ++i)
      if (!add_launch(PyTuple_GetItem(launches, i))) return;
    for (Py_ssize_t i = 0; i < PyTuple_Size(results); ++i) {
      results_.push_back(PyLong_AsSize_t(PyTuple_GetItem(results, i)));
      if (results_.back() >= allocations_.size()) PyErr_SetString(PyExc_ValueError, "no such allocation");
    }
    empty_ = static_cast<uint32_t>(values.number("empty"));
    if (allocations_.size() > kMostAllocations) PyErr_SetString(PyExc_ValueError, "too many allocations");
  }

  // Run the plan. Returns the result. Null without an error: in doubt, nothing was done, so take the careful way.
  // unwanted: a bit for each result that the caller ignores.
  PyObject* run(PyObject* const* arguments, const View* tensors, uint32_t unwanted) const {
    if (!is_clear(arguments, tensors)) return nullptr;
    const OnDevice guard(device_type_, device_);
    return run_here(tensors, unwanted);
  }

  int traverse(visitproc visit, void* arg) const {
    for (const Allocation& a : allocations_)
      for (PyObject* held : a.all()) Py_VISIT(held);
    for (const Launch& l : launches_) Py_VISIT(l.fail);
    return 0;
  }
  void clear() {
    std::vector<Allocation> old_allocations;
    std::vector<Launch> old_launches;
    old_allocations.swap(allocations_);
    old_launches.swap(launches_);
    for (const Allocation& a : old_allocations)
      for (PyObject* held : a.all()) Py_DECREF(held);
    for (const Launch& l : old_launches) Py_DECREF(l.fail);
  }

 private:
  const int32_t device_type_, device_;
  const bool returns_tuple_;
  std::vector<Allocation> allocations_;
  std::vector<Launch> launches_;
  std::vector<size_t> results_;  // the indices of the allocations that are returned
  std::vector<int64_t> read_;    // the arguments whose memory is used
  uint32_t empty_ = 0;           // a bit for each allocation: it has no elements

  bool add_launch(PyObject* tuple) {
    unsigned long long run, set_num_threads;
    int is_program;
    PyObject *fail, *words;
    if (!PyArg_ParseTuple(tuple, "KpKOO!", &run, &is_program, &set_num_threads, &fail, &PyList_Type, &words))
      return false;
    std::vector<Source> sources;
    for (Py_ssize_t i = 0; i < PyList_Size(words); ++i) {
      int kind;
      long long value;
      if (!PyArg_ParseTuple(PyList_GetItem(words, i), "iL", &kind, &value)) return false;
      sources.push_back({static_cast<SourceKind>(kind), value});
      if (kind == kArgument && std::find(read_.begin(), read_.end(), value) == read_.end())
        read_.push_back(value);
    }
    if (sources.size() > kMostWords) return PyErr_SetString(PyExc_ValueError, "too many words"), false;
    Py_INCREF(fail);
    launches_.push_back({Function(run, is_program),
                         reinterpret_cast<SetNumThreads>(static_cast<uintptr_t>(set_num_threads)), fail,
                         std::move(sources)});
    return true;
  }

  // Check for what a signature does not contain: freed memory, and views like z.conj().imag, whose memory
  // holds other values.
  bool is_clear(PyObject* const* arguments, const View* tensors) const {
    for (const int64_t i : read_)
      if (tensors[i].data == nullptr || torch.is_lazy(arguments[i], tensors[i])) return false;
    return true;
  }

  // The allocations without elements that are only results which the caller ignores.
  uint32_t needless(uint32_t unwanted) const {
    uint32_t ignored = 0, needed = 0;
    for (size_t i = 0; i < results_.size(); ++i)
      (i < kMostArguments && unwanted >> i & 1 ? ignored : needed) |= uint32_t{1} << results_[i];
    return empty_ & ignored & ~needed;
  }

  // Run the plan on the current device.
  PyObject* run_here(const View* tensors, uint32_t unwanted) const {
    PyObject* made[kMostAllocations];
    int64_t addresses[kMostAllocations] = {};
    size_t count = 0;
    PyObject* result = nullptr;
    const bool fills = Torch::ask(torch.deterministic);
    for (const uint32_t skipped = unwanted ? needless(unwanted) : 0; count < allocations_.size(); ++count) {
      if (skipped >> count & 1)
        Py_INCREF(made[count] = Py_None);
      else if (!allocate(allocations_[count], fills, &made[count], &addresses[count]))
        break;
    }
    if (count == allocations_.size() && launch(tensors, addresses)) result = pack(made);
    while (count > 0) Py_DECREF(made[--count]);
    return result;
  }

  static bool allocate(const Allocation& a, bool fills, PyObject** tensor, int64_t* at) {
    View t;
    *tensor = a.make(fills);
    if (*tensor == nullptr) return false;
    if (torch.read(*tensor, &t)) {
      *at = memory_of(t);
      return true;
    }
    Py_DECREF(*tensor);
    PyErr_SetString(PyExc_RuntimeError, "torch made a tensor that cannot be read");
    return false;
  }

  bool launch(const View* tensors, const int64_t* addresses) const {
    int64_t stream = 0;
    const bool on_host = device_type_ == kDLCPU;
    const int threads = on_host ? torch.threads() : 0;
    DLTensor here{};
    here.device_type = device_type_;
    here.device = device_;
    if (!torch.stream_of(here, &stream)) return false;
    const Launch* failed = nullptr;
    PyThreadState* const python = PyEval_SaveThread();
    for (const Launch& l : launches_) {
      if (l.set_num_threads && threads > 0) l.set_num_threads(threads);
      int64_t words[kMostWords];
      fill(words, l, tensors, addresses, stream);
      if (l.run(words, device_)) {
        failed = &l;
        break;
      }
    }
    PyEval_RestoreThread(python);
    if (failed) Py_XDECREF(PyObject_CallNoArgs(failed->fail));
    return failed == nullptr;
  }

  static void fill(int64_t* words, const Launch& l, const View* tensors, const int64_t* addresses,
                   int64_t stream) {
    for (const Source& s : l.words)
      *words++ = s.kind == kConstant     ? s.value
                 : s.kind == kArgument   ? memory_of(tensors[s.value])
                 : s.kind == kAllocation ? addresses[s.value]
                                         : stream;
  }

  PyObject* pack(PyObject* const* made) const {
    if (!returns_tuple_) {
      PyObject* one = results_.empty() ? Py_None : made[results_[0]];
      Py_INCREF(one);
      return one;
    }
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(results_.size()));
    for (size_t i = 0; tuple && i < results_.size(); ++i) {
      Py_INCREF(made[results_[i]]);
      PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), made[results_[i]]);
    }
    return tuple;
  }
};

}  // namespace caffe
