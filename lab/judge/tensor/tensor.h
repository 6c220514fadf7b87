// What the programs of this folder have alike: asynchronous copies, matrices in registers, barriers in shared memory.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "../right/program.h"

__device__ inline uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}
__device__ inline void copy16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}
__device__ inline void commit() { asm volatile("cp.async.commit_group;"); }
template <int n>
__device__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(n));
}
__device__ inline void load4(uint32_t (&r)[4], const void* at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(at)));
}
__device__ inline void load2(uint32_t (&r)[2], const void* at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(at)));
}
__device__ inline void load2_turned(uint32_t (&r)[2], const void* at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(at)));
}
#define PRODUCT(name, code, element, letter)                                                                 \
  __device__ inline void name(element(&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {              \
    asm volatile("mma.sync.aligned." code " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+" letter(d[0]), "+" letter(d[1]), "+" letter(d[2]), "+" letter(d[3])                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                        \
  }
PRODUCT(mma_halves, "m16n8k16.row.col.f32.f16.f16.f32", float, "f")
PRODUCT(mma_brains, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "f")
PRODUCT(mma_singles, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "f")
PRODUCT(mma_bytes, "m16n8k32.row.col.s32.s8.s8.s32", int, "r")

__device__ inline void barrier_init(uint64_t* barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count));
}
__device__ inline void arrive(uint64_t* barrier) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(shared_address(barrier))
               : "memory");
}
__device__ inline void expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ inline void wait_phase(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1; @!done bra again; }" ::
          "r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
__device__ inline void bulk(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
