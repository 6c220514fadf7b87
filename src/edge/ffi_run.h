// Calls a C function with words from Python (src/edge/call_launcher.h). For each function foo of a layer,
// build_ffi.py writes a `foo_run`, which takes the arguments from an array of 64-bit words.
#pragma once

#include <stdint.h>
#include <string.h>

#include <type_traits>

namespace caffe {

// Reads an address or a number from a word. The word of a floating-point number holds a double.
template <typename T>
T from_word(int64_t word) {
  double value;
  memcpy(&value, &word, sizeof(value));
  return std::is_floating_point<T>::value ? static_cast<T>(value) : static_cast<T>(word);
}

struct Runner {
  const char* name;
  int64_t (*run)(const int64_t* words);  // a status, or what the function returns
};

// Returns 0 if there is no runner of that name.
inline uintptr_t find_runner(const Runner* runners, const char* name) {
  while (runners->name && strcmp(runners->name, name)) ++runners;
  return reinterpret_cast<uintptr_t>(runners->run);
}

}  // namespace caffe
