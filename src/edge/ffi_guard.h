// The edge between C++ and Python's C code, for the wrapper that build_ffi.py generates.
//
// caffe_guard calls every exported function. It turns any exception into a status of 1 and a text in this
// thread's slot, so nothing prints, exits or unwinds into the interpreter. It reports in the same way that the
// processor cannot run the kernels, and calls that would end the process (way_out.h).
#pragma once

#include <stdint.h>
#include <stdio.h>

#include <exception>

extern "C" {
#include "caffe_ffi.h"
}
#include "cpu_arm.h"
#include "way_out.h"

// A plain array, because it outlives every destructor and needs no allocation.
static thread_local char caffe_error_text[2048];

// The host launcher's (src/host/host_launch.cpp). Other libraries have none.
extern "C" {
__attribute__((weak, visibility("hidden"))) const char* caffe_take_launch_problem();
__attribute__((weak, visibility("hidden"))) void caffe_watch_faults();
}

template <typename Call>
static int caffe_caught(const Call& call) noexcept {
  caffe_error_text[0] = '\0';
  if (caffe_take_launch_problem) caffe_take_launch_problem();  // of a call that has failed
  static thread_local bool watched = false;
  if (caffe_watch_faults && !watched) watched = true, caffe_watch_faults();
  try {
    return caffe_with_way_out(call, [](const char* why) {
      snprintf(caffe_error_text, sizeof(caffe_error_text), "%s", why);
      return 1;
    });
  } catch (const std::exception& error) {
    snprintf(caffe_error_text, sizeof(caffe_error_text), "%s", error.what());
  } catch (...) {
    snprintf(caffe_error_text, sizeof(caffe_error_text), "an exception that is not a std::exception");
  }
  return 1;
}

// The static initialisers of the kernels' object files, which register layers, for example.
// tools/make/link.py moves them here, so that they do not run when the library is loaded.
extern "C" {
typedef void (*caffe_initialiser)(void);
extern const caffe_initialiser __start_caffe_initialisers[] __attribute__((weak, visibility("hidden")));
extern const caffe_initialiser __stop_caffe_initialisers[] __attribute__((weak, visibility("hidden")));
}

// CAFFE_CPU_FEATURES(X) lists the processor features that the kernels were compiled for. This file is
// compiled for the oldest processor, so it can report missing features before any code of the kernels runs.
static const char* caffe_initialise() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();  // with some linkers libgcc has not called it yet
#define CAFFE_CPU_SUPPORTS(feature) __builtin_cpu_supports(feature)
#elif defined(__aarch64__)
#define CAFFE_CPU_SUPPORTS(feature) caffe_cpu_supports(feature)
#endif
#define CAFFE_CPU_FEATURE_CHECK(feature) \
  if (!CAFFE_CPU_SUPPORTS(feature))      \
    return "built for a processor with " feature ", which this one lacks: make HOST_ARCH=native";
  CAFFE_CPU_FEATURES(CAFFE_CPU_FEATURE_CHECK)
#undef CAFFE_CPU_FEATURE_CHECK
  const auto run = [] {
    for (const caffe_initialiser* i = __start_caffe_initialisers; i != __stop_caffe_initialisers; ++i) (*i)();
    return 0;
  };
  if (!caffe_caught(run)) return nullptr;
  static char text[sizeof(caffe_error_text)];
  snprintf(text, sizeof(text), "a static initialiser failed: %.1900s", caffe_error_text);
  return text;
}

extern "C" const char* caffe_unsupported(void) {
  static const char* const reason = caffe_initialise();
  return reason;
}

template <typename Call>
static int caffe_guard(const Call& call) noexcept {
  const char* const reason = caffe_unsupported();
  if (!reason) return caffe_caught(call);
  snprintf(caffe_error_text, sizeof(caffe_error_text), "%s", reason);
  return 1;
}

extern "C" const char* caffe_last_error(void) { return caffe_error_text; }

// Sets the text of caffe_last_error(), for functions that return a status of their own.
extern "C" void caffe_set_last_error(const char* text) {
  snprintf(caffe_error_text, sizeof(caffe_error_text), "%s", text);
}

extern "C" const char* caffe_build_info(void) { return CAFFE_BUILD_INFO; }
extern "C" const char* caffe_edge(void) { return CAFFE_EDGE; }

// The host launcher defines the real one. Other libraries have no host threads to limit.
extern "C" __attribute__((weak)) void caffe_set_num_threads(int) {}

// Replace the functions that end a process, for the library's own code (WRAPPED in tools/make/link.py).
#define CAFFE_ENDS(name, parameters, arguments, ...)                              \
  extern "C" {                                                                    \
  __attribute__((visibility("default"), noreturn)) void __real_##name parameters; \
  __attribute__((visibility("hidden"), noreturn)) void __wrap_##name parameters;  \
  }                                                                               \
  void __wrap_##name parameters {                                                 \
    caffe_leave(__VA_ARGS__);                                                     \
    __real_##name arguments;                                                      \
  }
CAFFE_ENDS(exit, (int status), (status), "exit(%d) was called", status)
CAFFE_ENDS(_exit, (int status), (status), "_exit(%d) was called", status)
CAFFE_ENDS(quick_exit, (int status), (status), "quick_exit(%d) was called", status)
CAFFE_ENDS(abort, (), (), "abort() was called")
CAFFE_ENDS(_ZSt9terminatev, (), (), "std::terminate() was called")
CAFFE_ENDS(__assert_fail, (const char* assertion, const char* file, unsigned int line, const char* function),
           (assertion, file, line, function), "%s:%u: assertion `%s` failed", file, line, assertion)
#undef CAFFE_ENDS
