// Code that only nvcc sees is neither read nor refused; the other branch is live.
__device__ int lane() {
#ifdef __CUDA_ARCH__
  int id;
  asm volatile("mov.u32 %0, %laneid;" : "=r"(id));
  return id;
#else
  return threadIdx.x % 32;
#endif
}
#if defined(__CUDACC__) && __CUDACC_VER_MAJOR__ >= 9
texture<float, 1> gone;
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600
__global__ void live(int* x) { x[0] = lane(); }
#else
__global__ void dead(int* x) { asm("x"); {
#endif
#if __CUDA_ARCH__ >= 700
__global__ void dead_too(int* x) {
#else
__global__ void live_too(int* x) {
#endif
  x[0] = 1;
}
#ifndef __CUDACC__
void launch(int* x) { live<<<1, 2>>>(x); }
#else
void launch(int* x) { tex1Dfetch(gone, 1); }
#endif
