// What a judged file sees (cuffi/judging): the headers that nvcc includes by itself, and the calls of a file that has
// kernels and no main().
#pragma once

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <tuple>
#include <type_traits>

#include "cuda_runtime.h"

namespace cuda_host {
const char* lost_launch();
}

namespace judge {

// A kernel ran as a plain function, once, and no launch after it says so.
struct AtEnd {
  ~AtEnd() {
    if (!cuda_host::lost_launch()) return;
    fprintf(stderr, "%s\n", cuda_host::lost_launch());
    fflush(nullptr);
    _exit(1);
  }
};
inline AtEnd at_end;

// Arguments by their types. The first whole number is the count of elements, and so are the others of one or two; of more,
// the others are smaller, because kernels multiply them. Arrays have more elements than any kernel of this size uses,
// because nobody said how many.
struct Case {
  int count, pattern, side = count;
  unsigned int state = 12345;
  int numbers = 0;
  // Before the first argument of a function of this type.
  template <typename Result, typename... A>
  void begin(Result (*)(A...)) {
    const int others = (0 + ... + std::is_integral<std::remove_reference_t<A>>::value) - 1;
    const char* const given = getenv("CAFFE_JUDGE_NUMBER");
    if (others > 0 && given) side = atoi(given);
    if (others > 1 && !given) side = std::min(count, std::max(4, int(pow(4000, 1.0 / others)) / 4 * 4));
  }
  unsigned int next() { return state = state * 1664525u + 1013904223u, state >> 8; }

  template <typename T>
  T value(int at) {
    if constexpr (std::is_integral<T>::value) {
      const int most = count > 1 ? count : 1;
      return static_cast<T>(pattern == 0 ? 0 : pattern == 1 ? at : static_cast<int>(next()) % most);
    } else if constexpr (std::is_floating_point<T>::value) {
      const T hard[] = {T(INFINITY), T(-INFINITY), T(NAN), T(-0.0), T(1e30), T(1e-30)};
      if (pattern == 2 && next() % 16 == 0) return hard[next() % 6];
      return pattern == 0 ? T(0) : pattern == 1 ? T(at + 1) : T(static_cast<int>(next() % 2001) - 1000) / 100;
    } else {
      T zero;
      memset(static_cast<void*>(&zero), 0, sizeof zero);
      return zero;
    }
  }
  template <typename T>
  T* array() {
    constexpr size_t bytes = size_t(64) << 20;
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    T* const begin = reinterpret_cast<T*>(static_cast<char*>(memory) + bytes / 2);
    const int most = std::max(4096, std::min(count * count, 65536));
    for (int i = 0; i < most; ++i) begin[i] = value<T>(i);
    return begin;
  }
  // An array of so many elements, and not one more.
  template <typename T>
  T sized(long long elements) {
    using Element = std::remove_cv_t<std::remove_pointer_t<T>>;
    using One = std::conditional_t<std::is_void<Element>::value, char, Element>;
    const size_t count = elements > 0 ? elements : 0;
#ifdef CAFFE_HOST_RACES
    constexpr size_t kApart = 1 << 16;  // what is outside of one array is in no other one
#else
    constexpr size_t kApart = 0;
#endif
    const size_t bytes = count * sizeof(One) + kApart;
    One* const begin = static_cast<One*>(cuda_host::make_memory(bytes, cuda_host::kDeviceMemory));
    for (size_t i = 0; i < count; ++i) begin[i] = value<One>(static_cast<int>(i));
    return begin;
  }
  template <typename T>
  T argument() {
    using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
    if constexpr (std::is_pointer<Plain>::value) {
      using Element = std::remove_cv_t<std::remove_pointer_t<Plain>>;
      static_assert(!std::is_pointer<Element>::value && !std::is_function<Element>::value,
                    "judge: an argument that points to pointers or functions needs a main()");
      if constexpr (std::is_same<Plain, cudaStream_t>::value)
        return nullptr;
      else if constexpr (std::is_void<Element>::value)
        return array<char>();
      else
        return array<Element>();
    } else if constexpr (std::is_same<Plain, bool>::value) {
      return pattern % 2;
    } else if constexpr (std::is_integral<Plain>::value) {
      const char* const first = getenv("CAFFE_JUDGE_FIRST");
      return static_cast<Plain>(std::exchange(numbers, numbers + 1) ? side : first ? atoi(first) : count);
    } else if constexpr (std::is_floating_point<Plain>::value) {
      return Plain(0.5);
    } else {
      return value<Plain>(0);
    }
  }
};

template <int I, typename Function>
struct parameter;
template <int I, typename Result, typename... A>
struct parameter<I, Result (*)(A...)> {
  using type = std::tuple_element_t<I, std::tuple<A...>>;
};

// What a promise asks of a number that was invented (cuffi/judging/promises.py).
template <typename T, typename O>
void equals(T& number, const O& other) {
  number = static_cast<T>(other);
}
template <typename T, typename O>
void most(T& number, const O& other) {
  if (number > static_cast<T>(other)) number = static_cast<T>(other);
}
template <typename T, typename O>
void least(T& number, const O& other) {
  if (number < static_cast<T>(other)) number = static_cast<T>(other);
}
template <typename T, typename O>
void below(T& number, const O& other) {
  most(number, other - 1);
}
template <typename T, typename O>
void above(T& number, const O& other) {
  least(number, other + 1);
}
template <typename T, typename O>
void divides(T& number, const O& other) {
  if (const T by = static_cast<T>(other); by > 0) number = (number + by - 1) / by * by;
}
// As many blocks as this count of elements needs.
template <typename T>
void covers(dim3& grid, const dim3& block, T count) {
  grid.x = static_cast<unsigned int>((static_cast<long long>(count) + block.x - 1) / block.x);
}

// Call a function for counts of 0, 1 and several blocks that no block divides, and three patterns, each in a process of
// its own; and for two blocks, because some code takes nothing else. `whole`: it has arrays of whole numbers.
// `blocks`: those that it may have; CAFFE_JUDGE_BLOCK says which. `promised`: 1: something of its arguments, 2: the sizes
// of all arrays, too.
template <typename Call>
int cases(const char* name, std::initializer_list<dim3> blocks, bool whole, int promised, Call call) {
  constexpr int kUnmet = 77;
  int wrong = 0, met = 0;
  const char* const number = getenv("CAFFE_JUDGE_BLOCK");
  dim3 block = blocks.begin()[number ? std::min<size_t>(atoi(number), blocks.size() - 1) : 0];
  block.y = std::max(1u, std::min(block.y, 1024 / block.x));
  const int threads = block.x;
  const char* const mark = getenv("CAFFE_JUDGE");  // of this run alone
  for (const int count : {0, threads - 3 > 0 ? threads - 3 : 1, 2 * threads, 2 * threads + 5})
    for (int pattern = 0; pattern < 3; ++pattern) {
      if (count == 2 * threads ? pattern != 1 : !count && pattern) continue;
      fflush(nullptr);
      for (FILE* to : {stderr, getenv("CAFFE_RACES") ? fopen(getenv("CAFFE_RACES"), "a") : nullptr}) {
        if (!to) continue;
        fprintf(to, "JUDGE %s begin: %d %d %d %d\n", mark, count, pattern, whole, promised);
        to == stderr ? fflush(to) : fclose(to);
      }
      const pid_t child = fork();
      if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        Case one{count, pattern};
        const bool is_met = call(one, dim3((count + threads - 1) / threads), block);
        fflush(nullptr);
        if (!is_met) _exit(kUnmet);
        if (cuda_host::lost_launch()) fprintf(stderr, "%s\n", cuda_host::lost_launch());
        _exit(cuda_host::lost_launch() ? 1 : 0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (WIFEXITED(status) && WEXITSTATUS(status) == kUnmet) continue;
      ++met;
      if (!status) continue;
      wrong = 1;
      fprintf(stderr, "JUDGE %s case: %s %d %d %d\n", mark, name, count, pattern,
              WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
    }
  if (!met) fprintf(stderr, "JUDGE %s unmet: %s\n", mark, name);
  return wrong;
}

// A block of a dimension that the code names, within a GPU's limits.
inline unsigned int threads(long long wanted) {
  return wanted < 1 ? 64 : static_cast<unsigned int>(std::min(wanted, 1024LL));
}

// So many threads along x that a block with these along y has at most `bound`.
inline long long most(long long x, long long y, long long bound) {
  return std::max(1LL, std::min(x, bound / std::max(1LL, y)));
}

}  // namespace judge
