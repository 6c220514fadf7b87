// A function of a shared library that the process has loaded already: torch's BLAS, or its cuBLAS.
#ifndef CAFFE_UTIL_FIND_SYMBOL_HPP_
#define CAFFE_UTIL_FIND_SYMBOL_HPP_

#include <dlfcn.h>

#include "caffe/common.hpp"

namespace caffe {

// library: its path, or "" for whatever the process has. The caller keeps the address; the library is never
// closed.
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

#endif  // CAFFE_UTIL_FIND_SYMBOL_HPP_
