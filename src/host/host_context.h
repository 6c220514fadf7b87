// Where a fibre waits, and the change from one stack to another.
//
// On x86-64 and ARM64 it is done by hand: it keeps the registers that a function must keep, and takes a third of the time of
// _setjmp and _longjmp. Where the processor checks a shadow stack (CET), and on other processors, those do it.
#pragma once

#include <setjmp.h>
#include <stddef.h>
#include <ucontext.h>

namespace cuda_host {

struct Context {
  void* top = nullptr;  // by hand: the top of its stack
  ucontext_t start;
  bool begins = false;
  jmp_buf here;

  // The next switch to it calls entry() on this stack. It never returns.
  void begin_at(char* stack, size_t bytes, void (*entry)());
};

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" void caffe_switch_stack(void** save, void* to) __attribute__((visibility("hidden")));
#endif
#if defined(__aarch64__)
__asm__(R"(
.text
.hidden caffe_switch_stack
.globl caffe_switch_stack
.type caffe_switch_stack,%function
caffe_switch_stack:
  stp x29, x30, [sp, #-160]!
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x29, x30, [sp], #160
  ret
.size caffe_switch_stack,.-caffe_switch_stack
)");
inline bool has_shadow_stack() { return false; }
#elif defined(__x86_64__)
__asm__(R"(
.text
.hidden caffe_switch_stack
.globl caffe_switch_stack
.type caffe_switch_stack,@function
caffe_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size caffe_switch_stack,.-caffe_switch_stack
)");

// A processor or a kernel without shadow stacks does nothing here.
inline bool has_shadow_stack() {
  unsigned long long pointer = 0;
  __asm__ volatile("rdsspq %0" : "+r"(pointer));
  return pointer != 0;
}
#else
inline bool has_shadow_stack() { return true; }
inline void caffe_switch_stack(void**, void*) {}
#endif

inline const bool kByHand = !has_shadow_stack();

inline void Context::begin_at(char* stack, size_t bytes, void (*entry)()) {
  if (kByHand) {
#if defined(__aarch64__)
    void** const at = reinterpret_cast<void**>(stack + bytes) - 20;  // the registers: x29, x30 and the rest
    for (int i = 0; i < 20; ++i) at[i] = nullptr;
    at[1] = reinterpret_cast<void*>(entry);
#else
    void** at = reinterpret_cast<void**>(stack + bytes) - 1;
    *at = nullptr;  // a debugger finds no caller
    *--at = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; ++i) *--at = nullptr;  // the registers
#endif
    top = at;
    return;
  }
  getcontext(&start);
  start.uc_stack.ss_sp = stack;
  start.uc_stack.ss_size = bytes;
  start.uc_link = nullptr;
  makecontext(&start, entry, 0);
  begins = true;
}

// Go on at `to`. It returns when somebody goes on at `from`.
inline void switch_context(Context& from, Context& to) {
  if (kByHand) return caffe_switch_stack(&from.top, to.top);
  // swapcontext would make a system call for the signal mask at each barrier of each thread.
  if (_setjmp(from.here)) return;
  if (!to.begins) _longjmp(to.here, 1);
  to.begins = false;
  setcontext(&to.start);
}

}  // namespace cuda_host
