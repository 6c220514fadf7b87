// A table of the kinds of calls so far, by the properties of their arguments, with the plan of each.
#pragma once

#include <string.h>

#include <unordered_map>
#include <vector>

#include "call_plan.h"

namespace caffe {

constexpr int64_t kFloat = kDLFloat << 8 | 32, kDouble = kDLFloat << 8 | 64;

inline bool is_floating(const DLDataType& type) { return type.code == kDLFloat || type.code == kDLBfloat; }

// Tensors' dtypes, devices, sizes and strides as numbers, and everything else as it is.
class Signature {
 public:
  static constexpr size_t kMostWords = 512;
  int64_t words[kMostWords];
  size_t word_count = 0;
  PyObject* others[kMostArguments];
  size_t other_count = 0;
  View tensors[kMostArguments];
  int64_t floating[kMostArguments];  // the floating tensors' dtypes
  size_t floating_count = 0;
  int32_t device_type = kDLCPU;

  void add_none() { words[word_count++] = 0; }
  bool add_tensor(PyObject* object, size_t at) {
    View& t = tensors[at];
    if (!torch.read(object, &t) || word_count + 2 * (t.ndim + kMostArguments) > kMostWords) return false;
    const int64_t dtype = t.dtype.code << 8 | t.dtype.bits;
    if (is_floating(t.dtype)) floating[floating_count++] = dtype;
    device_type = t.device_type;
    int64_t* word = words + word_count;
    *word++ = 1 | dtype << 8 | static_cast<int64_t>(t.device_type) << 32;
    *word++ = static_cast<int64_t>(t.device) << 32 | t.ndim;
    for (int32_t i = 0; i < t.ndim; ++i) *word++ = t.shape[i];
    for (int32_t i = 0; i < t.ndim; ++i) *word++ = t.strides ? t.strides[i] : -1;
    word_count += 2 + 2 * t.ndim;
    return true;
  }
  bool add_other(PyObject* object) {
    const Py_hash_t hash = PyObject_Hash(object);
    if (hash == -1) PyErr_Clear();  // a list: Python makes a tuple of it
    words[word_count++] = 2 | static_cast<int64_t>(hash) << 8;
    others[other_count++] = object;
    return hash != -1;
  }
  uint64_t hash() const {
    uint64_t made = word_count;
    for (size_t i = 0; i < word_count; ++i) {
      made = (made ^ static_cast<uint64_t>(words[i])) * 0x9E3779B97F4A7C15u;
      made ^= made >> 29;
    }
    return made;
  }

  bool mixed() const {
    for (size_t i = 1; i < floating_count; ++i)
      if (floating[i] != floating[0]) return true;
    return false;
  }
};

// Equal and of one type, also inside tuples: 1, 1.0 and True are three values, 0.0 and -0.0 are two.
inline bool is_same(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyTuple_CheckExact(a)) {
    const Py_ssize_t size = PyTuple_Size(a);
    if (size != PyTuple_Size(b)) return false;
    for (Py_ssize_t i = 0; i < size; ++i)
      if (!is_same(PyTuple_GetItem(a, i), PyTuple_GetItem(b, i))) return false;
    return true;
  }
  if (PyFloat_CheckExact(a)) {
    const double one = PyFloat_AsDouble(a), other = PyFloat_AsDouble(b);
    return memcmp(&one, &other, sizeof(one)) == 0;
  }
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

// One kind of call, from the first time it was seen.
struct Entry {
  std::vector<int64_t> words;
  std::vector<PyObject*> others;
  PyObject* plan;  // null while there is none
  bool planned;    // or could not be

  bool fits(const Signature& s) const {
    if (words.size() != s.word_count || memcmp(words.data(), s.words, s.word_count * sizeof(int64_t)))
      return false;
    for (size_t i = 0; i < others.size(); ++i)
      if (!is_same(others[i], s.others[i])) return false;
    return true;
  }
};

// By their hash. When there are too many (each batch has a shape of its own), all are forgotten.
class Table {
 public:
  ~Table() { clear(); }
  Entry* find(uint64_t hash, const Signature& s) {
    const auto range = entries_.equal_range(hash);
    for (auto at = range.first; at != range.second; ++at)
      if (at->second.fits(s)) return &at->second;
    return nullptr;
  }
  Entry* add(uint64_t hash, const Signature& s) {
    if (entries_.size() >= kMost) clear();
    Entry entry{std::vector<int64_t>(s.words, s.words + s.word_count),
                std::vector<PyObject*>(s.others, s.others + s.other_count), nullptr, false};
    for (PyObject* other : entry.others) Py_INCREF(other);
    return &entries_.emplace(hash, entry)->second;
  }
  void clear() {
    std::unordered_multimap<uint64_t, Entry> old;
    old.swap(entries_);
    for (auto& at : old) {
      Py_XDECREF(at.second.plan);
      for (PyObject* other : at.second.others) Py_DECREF(other);
    }
  }
  int traverse(visitproc visit, void* arg) const {
    for (const auto& at : entries_) {
      Py_VISIT(at.second.plan);
      for (PyObject* other : at.second.others) Py_VISIT(other);
    }
    return 0;
  }
  size_t size() const { return entries_.size(); }
  size_t plans() const {
    size_t count = 0;
    for (const auto& at : entries_) count += at.second.plan != nullptr;
    return count;
  }

 private:
  static constexpr size_t kMost = 1024;
  std::unordered_multimap<uint64_t, Entry> entries_;
};

}  // namespace caffe
