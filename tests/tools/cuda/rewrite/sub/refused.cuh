__device__ inline void nothing() { asm("x"); }
