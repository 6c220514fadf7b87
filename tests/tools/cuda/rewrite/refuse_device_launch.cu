// error: 3: dynamic parallelism
__global__ void child(float* x) { x[0] = 1; }
__device__ void parent(float* x) { child<<<1, 2>>>(x); }
