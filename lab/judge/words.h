// Words of the labelled suites, for lab/judge: ESBMC's launch, and GPUVerify's annotations, which say what holds of the
// arguments. Clauses that speak of a prover's state, and not of values, are empty.
#pragma once

#define ESBMC_verify_kernel(kernel, grid, block, ...) \
  (::cuda_host::configure(grid, block), kernel(__VA_ARGS__))
#define ESBMC_verify_kernel_c ESBMC_verify_kernel
#define ESBMC_verify_kernel_f ESBMC_verify_kernel
#define ESBMC_verify_kernel_i ESBMC_verify_kernel
#define ESBMC_verify_kernel_u ESBMC_verify_kernel
#define ESBMC_verify_kernel_ui ESBMC_verify_kernel
#define ESBMC_verify_kernel_four ESBMC_verify_kernel
#define ESBMC_verify_kernel_intt ESBMC_verify_kernel
#define ESBMC_verify_kernel_fuintt ESBMC_verify_kernel
#define ESBMC_verify_kernel_fuintint ESBMC_verify_kernel
#define ESBMC_verify_kernel_three_args_iuull ESBMC_verify_kernel

#ifdef JUDGE_GPUVERIFY
#include <cooperative_groups.h>  // which GPUVerify's files need not include
#include <curand_kernel.h>

namespace judge {
constexpr int kRejected = 77, kAssertion = 76;
[[noreturn]] inline void leave(int status, const char* text, const char* file, int line) {
  if (text) fprintf(stderr, "%s:%d: Assertion `%s' failed\n", file, line, text);
  fflush(nullptr);
  _exit(status);
}

// Invented arguments: arrays without an end, since GPUVerify's have none, and integers in turn from a pool.
struct Invented {
  int number, threads, block, scalars = 0;
  unsigned int state = 12345u + number;
  unsigned int next() { return state = state * 1664525u + 1013904223u, state >> 8; }
  template <typename T>
  T* array() {
    constexpr size_t bytes = size_t(64) << 20;
    char* memory = static_cast<char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    using Plain = std::remove_cv_t<T>;
    Plain* begin = reinterpret_cast<Plain*>(memory + bytes / 2);
    if constexpr (std::is_arithmetic<Plain>::value)
      for (int i = 0; i < 2 * threads + 64; ++i)
        begin[i] = static_cast<Plain>(number % 3 == 0 ? 0 : number % 3 == 1 ? i : next() % 64);
    return begin;
  }
  template <typename T>
  T argument() {
    using Plain = std::remove_cv_t<T>;
    if constexpr (std::is_pointer<Plain>::value) {
      using Element = std::remove_cv_t<std::remove_pointer_t<Plain>>;
      if constexpr (std::is_function<Element>::value)
        return nullptr;
      else if constexpr (std::is_void<Element>::value)
        return array<char>();
      else
        return array<Element>();
    } else if constexpr (std::is_arithmetic<Plain>::value) {
      const int pool[] = {threads, 1, block, 0, 5, 185, 2, 64};
      return static_cast<Plain>(pool[(number + scalars++) % 8]);
    } else {
      Plain value;
      memset(static_cast<void*>(&value), 0, sizeof value);
      for (size_t at = 0; at + sizeof(void*) <= sizeof value; at += sizeof(void*)) {  // it may have pointers
        const void* const pointer = array<char>();
        memcpy(reinterpret_cast<char*>(&value) + at, &pointer, sizeof pointer);
      }
      return value;
    }
  }
};

// Each case in a process of its own. 77: the arguments do not fulfil the file's __requires.
template <typename Call>
int invented(const char* kernel, dim3 grid, dim3 block, Call call) {
  int rejected = 0;
  for (int number = 0; number < 8; ++number) {
    fflush(nullptr);
    const pid_t child = fork();
    if (!child) {
      const int of_block = block.x * block.y * block.z;
      Invented one{number, int(grid.x * grid.y * grid.z) * of_block, of_block};
      call(one);
      fflush(nullptr);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
      fprintf(stderr, "JUDGE %s case: %s 0 %d %d\n", getenv("CAFFE_JUDGE"), kernel, number,
              -WTERMSIG(status));
    rejected += WIFEXITED(status) && WEXITSTATUS(status) == kRejected;
  }
  if (rejected == 8) printf("JUDGE rejected: %s\n", kernel);
  return 0;
}
}  // namespace judge

#define __requires(...)                                                 \
  do {                                                                  \
    if (!(__VA_ARGS__)) judge::leave(judge::kRejected, nullptr, "", 0); \
  } while (0)
#define __assume(...) __requires(__VA_ARGS__)
#define __assert(...) \
  ((__VA_ARGS__) ? true : (judge::leave(judge::kAssertion, #__VA_ARGS__, __FILE__, __LINE__), false))
#define __invariant(...) ((void)0)
#define __global_invariant(...) ((void)0)
#define __ensures(...) ((void)0)
#define __requires_fresh_array(...) ((void)0)  // the call gives an array
#define __axiom(...) static_assert(true, "")
#define __implies(a, b) (!(a) || (b))
#define __enabled() true
#define __uniform_bool(...) true
#define __uniform_int(...) true
#define __distinct_int(...) true
#define __read(...) true
#define __write(...) true
#define __no_read(...) true
#define __no_write(...) true
#define __read_implies(...) true
#define __write_implies(...) true
#define __at_most_one(...) true
#define __other_int(x) (x)
#define __ptr_offset_bytes(...) 0
#define __read_offset_bytes(...) 0
#define __write_offset_bytes(...) 0
#define __return_val_int() 0
#endif
