// Read before every source that nvcc compiles (mk/cuda.mk).
// nvcc 11.5, which Ubuntu 22.04 has, cannot read the std::function of g++ 11, which Ubuntu 22.04 has, too; in C++17
// <algorithm> includes it. Without it everything but std::function itself compiles. The macro is that header's own guard.
#if __CUDACC_VER_MAJOR__ == 11 && __CUDACC_VER_MINOR__ < 7 && __GNUC__ >= 11
#define _GLIBCXX_STD_FUNCTION_H 1
#endif
