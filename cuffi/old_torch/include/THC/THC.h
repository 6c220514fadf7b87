// The functions of THC that extensions of torch.utils.ffi called: those of TH/TH.h, for a GPU's tensors. On the host
// backend these are the processor's.
#ifndef THC_INC
#define THC_INC

#include <TH/TH.h>
#include <cuda_runtime.h>

typedef struct THCState THCState;
typedef THDescBuff THCDescBuff;
// Extensions declare it themselves: `extern THCState *state;`.
TH_EXTERNC void* th_stream(void);
TH_EXTERNC int th_device(void);
TH_EXTERNC void* th_allocate(size_t bytes);

TH_INLINE cudaStream_t THCState_getCurrentStream(THCState* s) {
  (void)s;
  return (cudaStream_t)th_stream();
}
TH_INLINE int THCState_getCurrentDevice(THCState* s) {
  (void)s;
  return th_device();
}

#define THCudaCheck(call)                                                                                \
  do {                                                                                                   \
    const cudaError_t th_error = (call);                                                                 \
    if (th_error != cudaSuccess) th_fail("%s:%d: %s", __FILE__, __LINE__, cudaGetErrorString(th_error)); \
  } while (0)
#define THCAssertSameGPU(condition) THAssertMsg(condition, "some of the tensors are on different GPUs")

// THCudaMalloc(state, bytes) gives memory, THCudaMalloc(state, &pointer, bytes) a status. It lives until the call ends.
TH_INLINE cudaError_t th_allocate_to(THCState* s, void** pointer, size_t bytes) {
  (void)s;
  *pointer = th_allocate(bytes);
  return cudaSuccess;
}
TH_INLINE void* th_allocate_here(THCState* s, size_t bytes) {
  (void)s;
  return th_allocate(bytes);
}
TH_INLINE cudaError_t THCudaFree(THCState* s, void* pointer) {
  (void)s;
  (void)pointer;
  return cudaSuccess;
}
#define TH_FOURTH(a, b, c, d, ...) d
#define THCudaMalloc(...) TH_FOURTH(__VA_ARGS__, th_allocate_to, th_allocate_here, )(__VA_ARGS__)

#ifdef __CUDACC__
#include <cuda_fp16.h>
#elif !defined(__cplusplus)
typedef THHalf half;
#endif

#define TH_STATE(...) (THCState * th_state, __VA_ARGS__)
// The last arguments of checkGPU are tensors. That they are on one GPU is checked before the call.
#define TH_OF_GPU_ALSO(X)                                                                          \
  TH_INLINE int X##_checkGPU(THCState* s, unsigned count, ...) { return (void)s, (void)count, 1; } \
  TH_INLINE void X##_copyCPU(THCState* s, X* t, THTensor* from) { (void)s, th_torch("copy", "tt", t, from); }
#define TH_OF_GPU(Name, T, K, C)                                                                   \
  TH_FAMILY(THCuda##Name##Tensor, THCuda##Name##Storage, T, K, C, TH_STATE, (THCState * th_state)) \
  TH_OF_GPU_ALSO(THCuda##Name##Tensor)                                                             \
  TH_INLINE void TH##Name##Tensor_copyCuda(THCState* s, THTensor* t, THTensor* from) {             \
    (void)s, th_torch("copy", "tt", t, from);                                                      \
  }

#define THFloatTensor_copyCuda THTensor_copyCuda
TH_OF_GPU(, float, "d", double)
TH_TYPES(TH_OF_GPU)
TH_VIEWS(THCudaHalfTensor, THCudaHalfStorage, THHalf, TH_STATE)
TH_SIZES(THCudaHalfTensor, TH_STATE)
TH_MAKERS(THCudaHalfTensor, TH_STATE, (THCState * th_state))
TH_OTHERS(THCudaHalfTensor, TH_STATE)
TH_OF_GPU_ALSO(THCudaHalfTensor)

// Matrices by columns, as in BLAS: c = alpha a b + beta c, y = alpha a x + beta y.
#define TH_BLAS(Letter, T)                                                                                   \
  TH_INLINE void THCudaBlas_##Letter##gemm(THCState* s, char ta, char tb, long m, long n, long k, T alpha,   \
                                           T* a, long lda, T* b, long ldb, T beta, T* c, long ldc) {         \
    (void)s, th_torch("gemm", "sllllldplpldpl", #Letter, (long)ta, (long)tb, m, n, k, (double)alpha, a, lda, \
                      b, ldb, (double)beta, c, ldc);                                                         \
  }                                                                                                          \
  TH_INLINE void THCudaBlas_##Letter##gemv(THCState* s, char ta, long m, long n, T alpha, T* a, long lda,    \
                                           T* x, long incx, T beta, T* y, long incy) {                       \
    (void)s, th_torch("gemv", "sllldplpldpl", #Letter, (long)ta, m, n, (double)alpha, a, lda, x, incx,       \
                      (double)beta, y, incy);                                                                \
  }
TH_BLAS(S, float)
TH_BLAS(D, double)

#endif  // THC_INC
