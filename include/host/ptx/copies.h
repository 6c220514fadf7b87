// Asynchronous copies to shared memory.
#pragma once

#include "memory.h"

namespace cuda_ptx {

__forceinline__ void touch(const char* at) { (void)*static_cast<const volatile char*>(at); }
// `given` bytes are read, and the rest is filled with zeros.
__forceinline__ void cp_async(char* to, const char* from, u32 bytes, u32 given) {
  aligned(to, bytes);
  aligned(from, bytes);
  given = given < bytes ? given : bytes;
#ifndef CAFFE_HOST_RACES  // a fault, or an error of AddressSanitizer, is here and not at the wait
  if (given) touch(from), touch(from + given - 1);
#endif
  ::cuda_host::async_copy(to, from, bytes, given);
}
// `ignores`: nothing is read.
__forceinline__ void cp_async(char* to, const char* from, u32 bytes, bool ignores) {
  cp_async(to, from, bytes, ignores ? 0u : bytes);
}
__forceinline__ void cp_async(char* to, const char* from, u32 bytes, u64 given) {
  cp_async(to, from, bytes, static_cast<u32>(given));
}

}  // namespace cuda_ptx
