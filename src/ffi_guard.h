// What the generated wrapper (build_ffi.py) is made of: the edge between C++ and Python's C code.
//
// Every exported function is called through caffe_guard. An exception, whoever threw it, becomes a
// status of 1 and a text in this thread's slot; nothing prints, exits or unwinds into the interpreter.
#ifndef CAFFE_FFI_GUARD_H_
#define CAFFE_FFI_GUARD_H_

#include <stdint.h>
#include <stdio.h>

#include <exception>

extern "C" {
#include "caffe_ffi.h"
}

// A plain array: it outlives every destructor and cannot itself run out of memory.
static thread_local char caffe_error_text[2048];

template <typename Call>
static int caffe_guard(const Call& call) noexcept {
  caffe_error_text[0] = '\0';
  try {
    return call();
  } catch (const std::exception& error) {
    snprintf(caffe_error_text, sizeof(caffe_error_text), "%s", error.what());
  } catch (...) {
    snprintf(caffe_error_text, sizeof(caffe_error_text), "an exception that is not a std::exception");
  }
  return 1;
}

extern "C" const char* caffe_last_error(void) { return caffe_error_text; }

// For a call that returns a status of its own: why.
extern "C" void caffe_set_last_error(const char* text) {
  snprintf(caffe_error_text, sizeof(caffe_error_text), "%s", text);
}

extern "C" const char* caffe_build_info(void) { return CAFFE_BUILD_INFO; }

// CAFFE_CPU_FEATURES(X) lists what the kernels' object files were compiled for; this file is
// compiled for the plainest processor, so it can still say what is missing.
extern "C" const char* caffe_unsupported(void) {
#define CAFFE_CPU_FEATURE_CHECK(feature) \
  if (!__builtin_cpu_supports(feature))  \
    return "built for a processor with " feature ", which this one lacks: make HOST_ARCH=native";
  CAFFE_CPU_FEATURES(CAFFE_CPU_FEATURE_CHECK)
#undef CAFFE_CPU_FEATURE_CHECK
  return nullptr;
}

// The host launcher has its own; elsewhere there are no host threads to limit.
extern "C" __attribute__((weak)) void caffe_set_num_threads(int) {}

#endif  // CAFFE_FFI_GUARD_H_
