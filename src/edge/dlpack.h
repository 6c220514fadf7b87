// DLPack's C exchange API. It reads torch's tensors without torch's headers. torch has it from 2.10 on.
#pragma once

#include <stdint.h>

namespace caffe {

// From dlpack.h, version 1. Its authors promise not to change the layout.
enum DLDeviceType : int32_t { kDLCPU = 1, kDLCUDA = 2 };
enum DLDataTypeCode : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  int32_t device_type, device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLPackExchangeAPI {
  uint32_t major, minor;
  DLPackExchangeAPI* older;
  void *allocate, *managed_from_python, *managed_to_python;
  int (*from_python)(void* object, DLTensor* out);  // owns nothing, allocates nothing
  int (*current_stream)(int32_t device_type, int32_t device, void** stream);
};

}  // namespace caffe
