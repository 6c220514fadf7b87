// OpenMP's functions. Nothing is compiled for OpenMP: its pragmas have no effect, and there is one thread.
#pragma once

#ifdef _OPENMP
#include_next <omp.h>
#else

#include <chrono>

inline int omp_get_thread_num() { return 0; }
inline int omp_get_num_threads() { return 1; }
inline int omp_get_max_threads() { return 1; }
inline int omp_get_num_procs() { return 1; }
inline int omp_in_parallel() { return 0; }
inline void omp_set_num_threads(int) {}
inline void omp_set_dynamic(int) {}
inline void omp_set_nested(int) {}
inline double omp_get_wtime() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

#endif  // _OPENMP
