// Functions that a wing adds to the extension of call.cpp, from a file cuffi/<wing>/edge/<name>.cpp.
#pragma once

#include <Python.h>

namespace caffe {

// A static object of this type adds its table, which ends with {nullptr, nullptr, 0, nullptr}.
struct Methods {
  explicit Methods(PyMethodDef* functions) : table(functions), next(first) { first = this; }
  PyMethodDef* const table;
  const Methods* const next;
  static inline const Methods* first = nullptr;
};

}  // namespace caffe
