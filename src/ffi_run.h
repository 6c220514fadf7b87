// How a C function is called by the words of a recorded call (src/call_plan.h): for each function of a layer
// build_ffi.py writes a `foo_run` that takes its arguments out of an array of 64-bit words.
#ifndef CAFFE_FFI_RUN_H_
#define CAFFE_FFI_RUN_H_

#include <stdint.h>
#include <string.h>

#include <type_traits>

namespace caffe {

// An address or a number as it lies in a word; one with a fraction lies there as a double.
template <typename T>
T from_word(int64_t word) {
  double value;
  memcpy(&value, &word, sizeof(value));
  return std::is_floating_point<T>::value ? static_cast<T>(value) : static_cast<T>(word);
}

struct Runner {
  const char* name;
  int (*run)(const int64_t* words);
};

// 0 if there is none.
inline uintptr_t find_runner(const Runner* runners, const char* name) {
  while (runners->name && strcmp(runners->name, name)) ++runners;
  return reinterpret_cast<uintptr_t>(runners->run);
}

}  // namespace caffe

#endif  // CAFFE_FFI_RUN_H_
