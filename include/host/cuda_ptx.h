// What the instructions of inline PTX do. tools/cuda/ptx writes calls of the functions in ptx/.
//
// A register is an unsigned integer of its size, as in PTX, which gives types to instructions and not to registers. A
// predicate is a bool. get<T>(register) are its lower bits as a T, and set(register, value) writes a T, extended by its sign
// if the register is wider.
#pragma once

#include "ptx/arithmetic.h"
#include "ptx/bits.h"
#include "ptx/conversions.h"
#include "ptx/copies.h"
#include "ptx/matrices.h"
#include "ptx/mbarrier.h"
#include "ptx/memory.h"
#include "ptx/registers.h"
#include "ptx/video.h"
#include "ptx/warps.h"

__forceinline__ size_t __cvta_generic_to_shared(const void* memory) {
  return cuda_ptx::shared_address(memory);
}
__forceinline__ size_t __cvta_generic_to_global(const void* memory) {
  return reinterpret_cast<size_t>(memory);
}
__forceinline__ void* __cvta_shared_to_generic(size_t address) { return cuda_ptx::in_shared(address); }
__forceinline__ void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
__forceinline__ unsigned int __isShared(const void* memory) { return cuda_host::is_shared(memory); }
__forceinline__ unsigned int __isGlobal(const void* memory) { return !cuda_host::is_shared(memory); }
