// The way out of a call. A function that would end the program, such as exit() or a failed assert(), ends only the
// call, with an error.
//
// tools/make/link.py redirects a library's calls of such functions to those at the end of ffi_guard.h. They jump to
// this thread's innermost caffe_way_out. As with exit(), destructors do not run.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

struct caffe_way_out {
  jmp_buf back;
  caffe_way_out* outer;
  char text[512];  // why the call ends
};

extern "C" {
// Weak, because the wrapper and the host launcher share it.
__attribute__((weak, visibility("hidden"))) __thread caffe_way_out* caffe_innermost = nullptr;
// _longjmp by another name, because _FORTIFY_SOURCE reports a jump from a fibre's stack as an error.
[[noreturn]] void caffe_jump(struct __jmp_buf_tag* to, int value) __asm__("_longjmp");
}

// Returns only if this thread is in no call.
__attribute__((format(printf, 1, 2))) inline void caffe_leave(const char* format, ...) {
  caffe_way_out* const to = caffe_innermost;
  if (!to) return;
  va_list values;
  va_start(values, format);
  vsnprintf(to->text, sizeof(to->text), format, values);
  va_end(values);
  caffe_jump(to->back, 1);
}

// Returns call(). If the call is left, returns left(text).
template <typename Call, typename Left>
inline auto caffe_with_way_out(const Call& call, const Left& left) -> decltype(call()) {
  caffe_way_out here;
  here.outer = caffe_innermost;
  struct Restore {
    caffe_way_out* to;
    ~Restore() { caffe_innermost = to; }
  } restore{here.outer};
  if (_setjmp(here.back)) {
    caffe_innermost = here.outer;
    return left(here.text);
  }
  caffe_innermost = &here;
  return call();
}
