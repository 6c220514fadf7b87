// Finds a function of a shared library that the process has already loaded: torch's BLAS or cuBLAS.
#pragma once

#include <dlfcn.h>

#include "caffe/common.hpp"

namespace caffe {

// library: its path, or "" to search all loaded libraries. The library is never closed, so the
// address stays valid.
template <typename Function>
Function* find_symbol(const char* library, const char* kind, const char* name) {
  const bool any = !library || !*library;
  void* handle = any ? RTLD_DEFAULT : dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  void* symbol = any || handle ? dlsym(handle, name) : nullptr;
  if (!symbol) {
    const char* reason = dlerror();
    LOG(FATAL) << kind << " function " << name << " was not found in " << (any ? "this process" : library)
               << ": " << (reason ? reason : "it is null there");
  }
  return reinterpret_cast<Function*>(symbol);
}

}  // namespace caffe
