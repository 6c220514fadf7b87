// What the runtime (aten_python.cpp) knows of the library that it is in. cuffi/old_torch/make/torch_library.py writes it.
#pragma once

extern "C" {
struct AtenModule {
  const char* name;
  const char* service;         // the Python module aten_service, by its full name
  const char* edge;            // the digest of the toolkit's files that the library is built with
  bool processor_is_gpu;       // the library has kernels for the host: its tensors are a GPU's
  void (*fill)(void* module);  // PYBIND11_MODULE, or null
  void* (*own_init)();         // the extension's own PyInit function, or null
};
extern const AtenModule aten_module __attribute__((visibility("hidden")));
// Runs a function within caffe_guard. Not 0 if it was left, by exit() for example; then the text says why.
int aten_guarded(void (*run)(void*), void* data) __attribute__((visibility("hidden")));
const char* aten_left_by() __attribute__((visibility("hidden")));
const char* aten_unsupported() __attribute__((visibility("hidden")));
// Python calls it at its next step after the library was loaded. If that was no import, as by torch.ops.load_library, it
// imports the library, which registers its operators.
int aten_open(void*) __attribute__((visibility("hidden")));
// The body of the PyInit function: a module, or null with Python's exception.
void* aten_make_module() __attribute__((visibility("hidden")));
}
