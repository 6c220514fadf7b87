// The parts of gflags that Caffe code uses. A flag is a variable with its default.
#pragma once
#define GFLAGS_GFLAGS_H_  // Caffe's common.hpp tests this macro

#include <stdint.h>

#include <string>

namespace gflags {
inline uint32_t ParseCommandLineFlags(int*, char***, bool) { return 1; }
inline void SetUsageMessage(const std::string&) {}
inline void SetVersionString(const std::string&) {}
}  // namespace gflags
namespace google {
using namespace gflags;
}

#define CAFFE_DEFINE_FLAG_(type, name, value) static type FLAGS_##name = value
#define DEFINE_bool(name, value, help) CAFFE_DEFINE_FLAG_(bool, name, value)
#define DEFINE_int32(name, value, help) CAFFE_DEFINE_FLAG_(int32_t, name, value)
#define DEFINE_int64(name, value, help) CAFFE_DEFINE_FLAG_(int64_t, name, value)
#define DEFINE_double(name, value, help) CAFFE_DEFINE_FLAG_(double, name, value)
#define DEFINE_string(name, value, help) CAFFE_DEFINE_FLAG_(std::string, name, value)
