// Signals that come while a kernel runs on the host. A GPU would go on, or report an error. So the launch ends with an
// error that names the kernel (way_out.h), and Python lives on:
//
//   SIGFPE             an integer was divided by zero
//   SIGILL, SIGTRAP    g++ wrote a trap where the source is undefined, such as a division by a constant zero
//   SIGSEGV, SIGBUS    the kernel used memory that is not there, or more stack than a GPU's thread has
//   SIGINT             Ctrl-C, while Python waits for the kernel; Python gets it, too
//
// The first three also end a call from Python whose C++ does so outside of a kernel.
// This holds only if the signal finds a thread in this library's own code, or in memcpy, memmove or memset, which g++ calls
// for loops. Another function of another library, such as malloc, may hold a lock. Other signals go to the handler that was there before.
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <atomic>

#include "../edge/way_out.h"

// The beginning of this library in memory, and the end of its code. The linker defines them.
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" const char etext[] __attribute__((visibility("hidden")));

namespace cuda_host {

// Does this thread run a kernel's own code, and not the launcher's?
extern __thread volatile bool in_kernel;
// Is it in one of the C library's functions that copy or set memory?
extern __thread volatile bool copying;
// The end of the stacks of this thread's fibres, which nobody may touch.
extern __thread const char* stack_guard;
// The end of this thread's dynamic shared memory, of which the launch asked for `shared_size` bytes.
extern __thread const char* shared_guard;
extern __thread size_t shared_size;
// Ctrl-C came while this thread was launching.
extern __thread volatile bool interrupted;
constexpr size_t kGuardBytes = size_t(64) << 20;
constexpr size_t kSharedGuardBytes = size_t(1) << 20;
// Sent by a launch to its own host threads, to end them.
constexpr int kNudge = SIGURG;

// Tell the race finder of a fault at this place in the code.
void note_fault(int number, uintptr_t code, const void* memory);

namespace signals {

constexpr int kNumbers[] = {SIGFPE, SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGINT, kNudge};
struct sigaction before[65];
__thread bool launching = false, passing_on = false;

inline uintptr_t code_address(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(registers.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return registers.pc;
#else
  return (void)registers, 0;
#endif
}

// Is an address near the end of the stack that the code at the signal has?
inline bool near_stack(const char* address, const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto at = registers.gregs[REG_RSP];
  return llabs(static_cast<long long>(reinterpret_cast<intptr_t>(address)) - at) < (1 << 16);
#elif defined(__aarch64__)
  const auto at = static_cast<long long>(registers.sp);
  return llabs(static_cast<long long>(reinterpret_cast<intptr_t>(address)) - at) < (1 << 16);
#else
  return (void)address, (void)registers, false;
#endif
}

// The address that a cast has moved to where no memory is, because it is no multiple of its type's alignment: its lowest
// bits are in bits 42 to 45, too (include/host/cuda_convert.h). The access may be to a later part. Null of another one.
inline const char* misaligned(const char* address) {
  const auto moved = reinterpret_cast<uintptr_t>(address);
  for (uintptr_t low = 1; low < 16; ++low) {
    const uintptr_t meant = moved ^ low << 42;
    unsigned char is_there;
    if (mincore(reinterpret_cast<void*>(meant & ~uintptr_t(4095)), 1, &is_there)) continue;
    uintptr_t mask = 1;
    while (mask < low) mask = 2 * mask + 1;
    for (uintptr_t part = 0; part < 16; part += 4)
      if (((meant - part) & mask) == low) return reinterpret_cast<const char*>(meant - part);
  }
  return nullptr;
}

inline void explain(int number, const siginfo_t* info, const void* context) {
  copying = false;
  const char* const address = static_cast<const char*>(info->si_addr);
  if (number == SIGFPE)
    caffe_leave("an integer was divided by zero, or its quotient does not fit");
  else if (number == SIGILL || number == SIGTRAP)
    caffe_leave("came to what C++ does not define, such as a division by a constant zero");
  else if (number == SIGINT || number == kNudge)
    caffe_leave("interrupted");
  else if (stack_guard && address >= stack_guard && address < stack_guard + kGuardBytes)
    caffe_leave("a thread needs more stack than 640 KiB; on a GPU it has at most 512 KiB");
  else if (shared_guard && address >= shared_guard && address < shared_guard + kSharedGuardBytes)
    caffe_leave("used byte %lld of its dynamic shared memory, of which the launch asked for %lld bytes",
                static_cast<long long>(address - shared_guard + shared_size),
                static_cast<long long>(shared_size));
  else if (const char* const meant = misaligned(address))
    caffe_leave(
        "read or wrote a type at address %p that is no multiple of the type's alignment; a GPU stops there",
        static_cast<const void*>(meant));
  else if (!in_kernel && near_stack(address, context))
    caffe_leave("needs more stack than this thread has");
  else if (!address && info->si_code == SI_KERNEL)  // x86 does not say which address it was
    caffe_leave("used memory that is not there, beyond all addresses of a process");
  else
    caffe_leave("used memory that is not there, at address %p", info->si_addr);
}

inline void pass_on(int number, siginfo_t* info, void* context) {
  const struct sigaction& old = before[number];
  if (old.sa_flags & SA_SIGINFO) {
    old.sa_sigaction(number, info, context);
  } else if (old.sa_handler == SIG_DFL) {
    sigaction(number, &old, nullptr);
    // A fault comes again when the instruction does. Other signals are sent again.
    if (number == SIGINT || info->si_code <= 0) raise(number);
  } else if (old.sa_handler != SIG_IGN) {
    old.sa_handler(number);
  }
}

inline void handle(int number, siginfo_t* info, void* context) {
  const int error = errno;
  if (number == SIGINT) {
    interrupted = launching;
    // Another library's handler may have this one as its old one.
    if (!passing_on) {
      passing_on = true;
      pass_on(number, info, context);
      passing_on = false;
    }
  }
  const uintptr_t at = code_address(context);
  const bool own =
      copying || (at >= reinterpret_cast<uintptr_t>(__ehdr_start) && at < reinterpret_cast<uintptr_t>(etext));
  const bool fault = number != SIGINT && number != kNudge;
  if (in_kernel && own && fault) note_fault(number, at, info->si_addr);
  if ((in_kernel || (fault && !launching)) && own) explain(number, info, context);
  if (fault) pass_on(number, info, context);
  errno = error;
}

// A thread's stack for its handlers, because a fibre's may be full.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t now;
    if (sigaltstack(nullptr, &now) || !(now.ss_flags & SS_DISABLE)) return;
    own_ = new char[kBytes];
    stack_t mine = {};
    mine.ss_sp = own_;
    mine.ss_size = kBytes;
    sigaltstack(&mine, nullptr);
  }
  ~HandlerStack() {
    if (!own_) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    delete[] own_;
  }

 private:
  static constexpr size_t kBytes = 64 * 1024;
  char* own_ = nullptr;
};

inline void take(int number) {
  struct sigaction now, mine = {};
  if (sigaction(number, nullptr, &now) || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == handle)) return;
  if (number == SIGINT && !(now.sa_flags & SA_SIGINFO) &&
      (now.sa_handler == SIG_IGN || now.sa_handler == SIG_DFL))
    return;  // nobody wants to live on
  before[number] = now;
  mine.sa_sigaction = handle;
  mine.sa_flags = (now.sa_flags & SA_RESTART) | SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(number, &mine, nullptr);
}

// Install the handlers, where they are not installed. A notebook sets its own for SIGINT at each cell, so that one is
// looked after every 0.1 s.
inline void install() {
#if !defined(__SANITIZE_ADDRESS__)
  static const bool once = [] {
    for (int number : kNumbers) take(number);
    return true;
  }();
  (void)once;
  static std::atomic<int64_t> looked{0};
  timespec at;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &at);
  const int64_t now = int64_t(at.tv_sec) * 1000 + at.tv_nsec / 1000000;
  if (now - looked.load(std::memory_order_relaxed) > 100) {
    looked.store(now, std::memory_order_relaxed);
    take(SIGINT);
  }
#endif
  thread_local HandlerStack stack;
  (void)stack;
}

}  // namespace signals
}  // namespace cuda_host
